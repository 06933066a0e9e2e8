"""What metrics see: small corpora that differ in one thing alone.

In each behaviour captioners speak alike but for one habit, so a metric whose headline moves sees
that habit, and one whose headline stays does not. Every metric says in its ``info`` how it responds
(:class:`~bias_pipeline.metrics.base.Response`), and the tests go through these claims one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.attribute import LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.metrics.base import HEADLINES, Metric, MetricInfo, Part, Response
from bias_pipeline.stats.bootstrap import Estimate

FloatArray = npt.NDArray[np.float64]

GROUPS = ("male", "female")
VERDICTS = ("moves", "stays", "absent")
N_IMAGES = 420
N_HUMAN = 2
_WHO = {"male": "man", "female": "woman"}
_CHOICES = (
    *("synonym", "negation", "order", "word", "thing"),
    *("named", "invents", "assumes", "misgenders"),
)
_HABIT = 0.9  # how often a planted choice follows the group; by chance it would be one half


@dataclass(frozen=True)
class Speaker:
    """How captions are written. All defaults: whatever is said goes with the group by chance alone.

    Attributes:
        follows: choices that follow the group, of ``negation`` ("a dog", "no dog"), ``synonym``
            ("couch", "sofa"), ``order`` ("a chair and a book" and the other way round), ``word``
            ("grey", "pink") and ``thing`` (see ``things``).
        invents: how often an umbrella is named for women and not for men, whatever is there.
        assumes: how often who is under an umbrella is called a woman, and a man otherwise.
        misgenders: how often a woman is called a man.
        silent: whether everybody is a person.
        things: what is changed (the example of the DBAC paper), one of two by choice.
    """

    follows: frozenset[str] = frozenset()
    invents: float = 0.0
    assumes: float = 0.0
    misgenders: float = 0.0
    silent: bool = False
    things: tuple[str, str] = ("wheel", "wheel")

    def caption(self, female: bool, umbrella: bool, draws: FloatArray) -> str:
        """One caption of an image.

        Args:
            female: whether a woman is in it.
            umbrella: whether an umbrella is in it.
            draws: (9,) uniform random numbers that decide.
        """
        flip = dict(zip(_CHOICES, draws, strict=True))

        def second(choice: str) -> bool:
            return bool(flip[choice] < (_share(female) if choice in self.follows else 0.5))

        couch = ("couch", "sofa")[second("synonym")]
        dog = ("a", "no")[second("negation")]
        two = ("a chair and a book", "a book and a chair")[second("order")]
        colour = ("grey", "pink")[second("word")]
        thing = self.things[second("thing")]
        named = flip["named"] < (0.9 if umbrella else 0.1)
        if flip["invents"] < self.invents:
            named = female
        under = "under an umbrella " if named else ""
        who = self._who(female, umbrella, flip)
        return f"a {who} changing a {thing} {under}on a {colour} {couch} with {dog} dog , {two}"

    def _who(self, female: bool, umbrella: bool, flip: Mapping[str, float]) -> str:
        called = umbrella if flip["assumes"] < self.assumes else female
        if female and flip["misgenders"] < self.misgenders:
            called = False
        return "person" if self.silent else _WHO[GROUPS[called]]


def _share(female: bool) -> float:
    return _HABIT if female else 1 - _HABIT


PLAIN = Speaker()


@dataclass(frozen=True)
class Behaviour:
    """One thing in which captions differ, and which metrics see it.

    Attributes:
        title: in words.
        planted: how the captioner speaks.
        people: how people speak beside the captioner.
        before: captioner and people without the habit.
        variants: what it does to metrics with other than their default settings, by which a
            setting shows what it is for: ``metric:setting`` to one of :data:`VERDICTS`.
    """

    title: str
    planted: Speaker
    people: Speaker = PLAIN
    before: tuple[Speaker, Speaker] = (PLAIN, PLAIN)
    variants: Mapping[str, str] = field(default_factory=dict)


def corpus_of(model: Speaker, people: Speaker, n_images: int = N_IMAGES) -> Corpus:
    """Images of one person each, half of them women, two in three of these under an umbrella.

    Of men it is one in three.

    Captions of two speakers who differ in one habit differ in nothing else: the same random
    numbers decide.

    Args:
        model: writes one caption an image.
        people: writes two.
        n_images: how many.
    """
    records = []
    draws = np.random.default_rng(0).random((n_images, 1 + N_HUMAN, len(_CHOICES)))
    for i in range(n_images):
        female = bool(i % 2)
        umbrella = i // 2 % 3 < 1 + female  # exact independence would hide all from BA
        said = [
            own.caption(female, umbrella, draws[i, k])
            for k, own in enumerate([model] + [people] * N_HUMAN)
        ]
        objects = {"couch", "chair", "book", "dog"} | ({"umbrella"} if umbrella else set())
        labels = {"gender": GROUPS[female]}
        records.append(Record(str(i), said[0], tuple(said[1:]), labels, frozenset(objects)))
    names = LabelMap("gender", {name: name for name in GROUPS})
    return Corpus.build(
        records,
        dataset="behaviour",
        captioner="planted",
        groups={"gender": (GROUPS, names)},
        trained_on_reference=True,
    )


def headlines(metric: Metric, corpus: Corpus, seeds: Sequence[int]) -> dict[str, Part]:
    """The headlines of a metric."""
    found = metric.compute(corpus, splits=metric.draw_splits(corpus, seeds)).parts
    return {name: found[name] for name in HEADLINES if name in found}


def verdict(plain: Estimate, planted: Estimate) -> str:
    """Whether a headline ``moves``, ``stays``, or is ``absent`` now.

    It moves where neither interval holds the other's value. A value that no resampling moves stands
    for its own interval; one without any shows neither: that is ``unknown``, which no metric says
    of itself.

    Example:
        >>> nan = math.nan
        >>> low, high = (Estimate(v, nan, nan, v - 1, v + 1, nan, 1) for v in (0.0, 3.0))
        >>> verdict(low, high), verdict(low, low)
        ('moves', 'stays')
    """
    if math.isnan(planted.value):
        return "absent"
    (low, high), (planted_low, planted_high) = _ends(plain), _ends(planted)
    if any(map(math.isnan, (low, high, planted_low, planted_high))):
        return "unknown"
    held = low <= planted.value <= high
    return "stays" if held or planted_low <= plain.value <= planted_high else "moves"


def _ends(estimate: Estimate) -> tuple[float, float]:
    """The interval of a number, of one that no resampling moves the number itself."""
    if estimate.image_std == 0 and math.isnan(estimate.ci_low):
        return estimate.value, estimate.value
    return estimate.ci_low, estimate.ci_high


def verdicts(behaviour: str, infos: Iterable[MetricInfo]) -> dict[str, str]:
    """What a behaviour does to headlines: ``metric part`` to one of :data:`VERDICTS`.

    ``part`` is left out where it is ``score``.

    Args:
        behaviour: of :data:`BEHAVIOURS`.
        infos: of metrics, which say it of themselves.
    """
    found = {
        f"{info.name} {part}".removesuffix(" score"): verdict
        for info in infos
        for part, response in info.responses.items()
        for verdict in VERDICTS
        if behaviour in getattr(response, verdict)
    }
    return found | dict(BEHAVIOURS[behaviour].variants)


def is_tested(info: MetricInfo, name: str) -> bool:
    """Whether a line of the table shows that a metric has a property of the papers' tables.

    Args:
        info: of the metric.
        name: of the property, as in :class:`~bias_pipeline.metrics.base.MetricInfo`.
    """
    if name == "directional":
        return all(_shows(info, *line) for line in _DIRECTIONAL)
    return any(
        _shows(info, part, verdict, behaviour)
        for verdict, behaviour in _SHOWN.get(name, ())
        for part in ("score", "a_to_t")
    )


def _shows(info: MetricInfo, part: str, verdict: str, behaviour: str) -> bool:
    return behaviour in getattr(info.responses.get(part, Response()), verdict)


# Property to the behaviours that show it, and what a metric that has it then does.
_SHOWN: Mapping[str, tuple[tuple[str, str], ...]] = {
    "source_identifying": (("stays", "biased people"),),
    "learnable": (("moves", "unlisted word"),),
    "amplification": (("moves", "object follows group"), ("moves", "women called men")),
    "full_context": (("moves", "word order"),),
    "language_aware": (("stays", "tire and diaper"),),
}
_DIRECTIONAL = (
    ("a_to_t", "moves", "object follows group"),
    ("t_to_a", "stays", "object follows group"),
    ("a_to_t", "stays", "group follows object"),
    ("t_to_a", "moves", "group follows object"),
)


def _following(*choices: str, **more: Any) -> Speaker:
    return Speaker(follows=frozenset(choices), **more)


_CHANGED = ("tire", "diaper")

BEHAVIOURS: Mapping[str, Behaviour] = {
    "negation": Behaviour("no dog for women, a dog for men", _following("negation")),
    "synonym": Behaviour("a sofa for women, a couch for men", _following("synonym")),
    "word order": Behaviour(
        "the same words in another order", _following("order"), variants={"lic:words": "stays"}
    ),
    "unlisted word": Behaviour(
        "pink for women, grey for men", _following("word"), variants={"lic:words": "moves"}
    ),
    "object follows group": Behaviour("women get an umbrella, men lose it", Speaker(invents=0.7)),
    "group follows object": Behaviour(
        "who has an umbrella is called a woman", Speaker(assumes=0.5)
    ),
    "women called men": Behaviour("some women are called men", Speaker(misgenders=0.4)),
    "neutral alone": Behaviour("everybody is a person", Speaker(silent=True)),
    "neutral instead of wrong": Behaviour(
        "everybody is a person, where some women were called men",
        Speaker(silent=True),
        before=(Speaker(misgenders=0.4), PLAIN),
    ),
    "tire and diaper": Behaviour(
        "people have men change a tire and women a diaper, the captioner knows neither word",
        PLAIN,
        people=_following("thing", things=_CHANGED),
        before=(PLAIN, Speaker(things=_CHANGED)),
        variants={"lic:unaligned": "moves"},
    ),
    "biased people": Behaviour(
        "people and captioner alike give women an umbrella and have men lose it",
        Speaker(invents=0.5),
        people=Speaker(invents=0.5),
    ),
}
