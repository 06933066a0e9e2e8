"""Shows what metrics detect, with pairs of small corpora.

The two captioners of a pair differ only in one behaviour, such as a bias. A metric detects the
behaviour if its headline changes. The ``info`` of every metric claims how the metric responds
(:class:`~bias_pipeline.metrics.base.ExpectedResponse`), and tests check each claim.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.attribute import LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.metrics.base import (
    HEADLINES,
    LABELLED,
    UNSURE,
    ExpectedResponse,
    Metric,
    MetricInfo,
    Number,
)
from bias_pipeline.stats.bootstrap import Estimate

GROUPS = ("male", "female")
VERDICTS = ("moves", "stays", "absent")
N_IMAGES = 420
N_UNSURE = 42  # images of people whose group annotators could not see
N_HUMAN = 2
_WHO = {"male": "man", "female": "woman"}
_CHOICES = (
    *("synonym", "negation", "order", "word", "thing"),
    *("named", "invents", "assumes", "misgenders"),
)
_HABIT = 0.9  # how often a planted choice follows the group; chance would be one half


@dataclass(frozen=True)
class CaptionStyle:
    """How captions are written. By default nothing in captions depends on the group."""

    # Choices that follow the group, of `negation` ("a dog", "no dog"), `synonym` ("couch", "sofa"),
    # `order` ("a chair and a book", "a book and a chair"), `word` ("grey", "pink") and `thing` (see
    # `things`)
    follows: frozenset[str] = frozenset()
    # How often captions name an umbrella for women and none for men, whatever the image shows
    invents: float = 0.0
    # How often captions call a person under an umbrella a woman, and any other person a man
    assumes: float = 0.0
    misgenders: float = 0.0  # how often a woman is called a man
    supposes: float = 0.0  # how often a person whose group annotators could not see is called a man
    silent: bool = False  # whether everybody is called a person
    # The two things between which captions choose (the example of the DBAC paper)
    things: tuple[str, str] = ("wheel", "wheel")

    def caption(self, female: bool | None, umbrella: bool, draws: Float64Array) -> str:
        flip = dict(zip(_CHOICES, draws, strict=True))

        def second(choice: str) -> bool:
            follows = choice in self.follows and female is not None
            return bool(flip[choice] < ((_HABIT if female else 1 - _HABIT) if follows else 0.5))

        couch = ("couch", "sofa")[second("synonym")]
        dog = ("a", "no")[second("negation")]
        two = ("a chair and a book", "a book and a chair")[second("order")]
        colour = ("grey", "pink")[second("word")]
        thing = self.things[second("thing")]
        named = flip["named"] < (0.9 if umbrella else 0.1)
        if female is not None and flip["invents"] < self.invents:
            named = female
        under = "under an umbrella " if named else ""
        who = self._noun(female, umbrella, flip)
        return f"a {who} changing a {thing} {under}on a {colour} {couch} with {dog} dog , {two}"

    def _noun(self, female: bool | None, umbrella: bool, flip: Mapping[str, float]) -> str:
        if female is None:
            return _WHO["male"] if flip["misgenders"] < self.supposes else "person"
        called = umbrella if flip["assumes"] < self.assumes else female
        if female and flip["misgenders"] < self.misgenders:
            called = False
        return "person" if self.silent else _WHO[GROUPS[called]]


PLAIN = CaptionStyle()


@dataclass(frozen=True)
class Behaviour:
    """A behaviour in which two captioners differ."""

    title: str  # in words
    planted: CaptionStyle  # how the captioner writes
    people: CaptionStyle = PLAIN  # how annotators write at the same time
    # The styles of captioner and annotators without the behaviour
    before: tuple[CaptionStyle, CaptionStyle] = (PLAIN, PLAIN)
    # The images whose captions change: images of a group, or images whose group annotators could
    # not see, which most metrics leave out
    images: str = LABELLED
    # The effect on metrics with other settings, to show what a setting does: by `metric:setting`,
    # one of `VERDICTS`
    variants: Mapping[str, str] = field(default_factory=dict)


def behaviour_corpus(model: CaptionStyle, people: CaptionStyle, n_images: int = N_IMAGES) -> Corpus:
    """A corpus of images with one person each. Half of the persons are women.

    Two in three women and one in three men are under an umbrella. There are also :data:`N_UNSURE`
    images of people whose group annotators could not see.

    The captioner and annotators use the same random numbers. So two captioners that differ in one
    behaviour differ in nothing else.
    """
    records = []
    draws = np.random.default_rng(0).random((n_images + N_UNSURE, 1 + N_HUMAN, len(_CHOICES)))
    for i in range(n_images + N_UNSURE):
        female = bool(i % 2) if i < n_images else None
        umbrella = i // 2 % 3 < 1 + (i % 2)  # with exact independence BA would be 0
        captions = [
            speaker.caption(female, umbrella, draws[i, k])
            for k, speaker in enumerate([model] + [people] * N_HUMAN)
        ]
        objects = {"couch", "chair", "book", "dog"} | ({"umbrella"} if umbrella else set())
        labels = {"gender": UNSURE if female is None else GROUPS[female]}
        records.append(Record(str(i), captions[0], tuple(captions[1:]), labels, frozenset(objects)))
    names = LabelMap("gender", {name: name for name in GROUPS}, (UNSURE,), (UNSURE,))
    return Corpus.build(
        records,
        dataset="behaviour",
        captioner="planted",
        groups={"gender": (GROUPS, names)},
        trained_on_reference=True,
    )


def headlines(metric: Metric, corpus: Corpus, seeds: Sequence[int]) -> dict[str, Number]:
    parts = metric.compute(corpus, splits=metric.draw_splits(corpus, seeds)).parts
    return {name: parts[name] for name in HEADLINES if name in parts}


def behaviour_verdict(plain: Estimate, planted: Estimate) -> str:
    """Whether a headline ``moves``, ``stays``, or is ``absent`` if a behaviour is planted.

    A headline moves if neither captioner's interval contains the other captioner's value. If no
    resampling changes a value, its interval is the value itself. Without any interval the result is
    ``unknown``, which no metric claims.

    Example:
        >>> nan = math.nan
        >>> low, high = (Estimate(v, nan, nan, v - 1, v + 1, nan, 1) for v in (0.0, 3.0))
        >>> behaviour_verdict(low, high), behaviour_verdict(low, low)
        ('moves', 'stays')
    """
    if math.isnan(planted.value):
        return "absent"
    (low, high), (planted_low, planted_high) = _ends(plain), _ends(planted)
    if any(map(math.isnan, (low, high, planted_low, planted_high))):
        return "unknown"
    contained = low <= planted.value <= high
    return "stays" if contained or planted_low <= plain.value <= planted_high else "moves"


def _ends(estimate: Estimate) -> tuple[float, float]:
    """The interval of a number, or the number itself if no resampling changes it."""
    if estimate.image_std == 0 and math.isnan(estimate.ci_low):
        return estimate.value, estimate.value
    return estimate.ci_low, estimate.ci_high


def verdicts(behaviour: str, infos: Iterable[MetricInfo]) -> dict[str, str]:
    """The effects (:data:`VERDICTS`) that metrics claim for a behaviour, by ``metric part``.

    The name of the part is left out if it is ``score``.
    """
    responses = {
        f"{info.name} {part}".removesuffix(" score"): behaviour_verdict
        for info in infos
        for part, response in info.responses.items()
        for behaviour_verdict in VERDICTS
        if behaviour in getattr(response, behaviour_verdict)
    }
    return responses | dict(BEHAVIOURS[behaviour].variants)


def is_tested(info: MetricInfo, name: str) -> bool:
    """Whether a tested behaviour shows that a metric has one of the papers' eight properties."""
    if name == "directional":
        return all(_shows(info, *line) for line in _DIRECTIONAL)
    return any(
        _shows(info, part, behaviour_verdict, behaviour)
        for behaviour_verdict, behaviour in _SHOWN.get(name, ())
        for part in ("score", "a_to_t")
    )


def _shows(info: MetricInfo, part: str, behaviour_verdict: str, behaviour: str) -> bool:
    return behaviour in getattr(info.responses.get(part, ExpectedResponse()), behaviour_verdict)


# By property, the behaviours that show it and the response of a metric with the property.
_SHOWN: Mapping[str, tuple[tuple[str, str], ...]] = {
    "source_identifying": (("stays", "biased annotators"),),
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


def _following(*choices: str, **more: Any) -> CaptionStyle:
    return CaptionStyle(follows=frozenset(choices), **more)


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
    "object follows group": Behaviour(
        "umbrellas are added for women and left out for men", CaptionStyle(invents=0.7)
    ),
    "group follows object": Behaviour(
        "people with an umbrella are called women", CaptionStyle(assumes=0.5)
    ),
    "women called men": Behaviour("some women are called men", CaptionStyle(misgenders=0.4)),
    "group assumed": Behaviour(
        "some people whose group nobody can tell are called men",
        CaptionStyle(supposes=0.6),
        images=UNSURE,
    ),
    "names no group": Behaviour("everybody is a person", CaptionStyle(silent=True)),
    "no group instead of wrong": Behaviour(
        "everybody is called a person; before, some women were called men",
        CaptionStyle(silent=True),
        before=(CaptionStyle(misgenders=0.4), PLAIN),
    ),
    "tire and diaper": Behaviour(
        "annotators write tire for men and diaper for women; the captioner writes neither",
        PLAIN,
        people=_following("thing", things=_CHANGED),
        before=(PLAIN, CaptionStyle(things=_CHANGED)),
        variants={"lic:unaligned": "moves"},
    ),
    "biased annotators": Behaviour(
        "annotators and the captioner alike add umbrellas for women and leave them out for men",
        CaptionStyle(invents=0.5),
        people=CaptionStyle(invents=0.5),
    ),
}
