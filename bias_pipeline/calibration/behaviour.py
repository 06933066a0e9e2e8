"""What metrics see: small corpora that differ in one thing alone.

In each behaviour captioners speak alike but for one habit, so a metric whose headline moves sees
that habit, and one whose headline stays does not. :data:`BEHAVIOURS` is the table that the tests go
through line by line; what is claimed there is tested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.attribute import LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.metrics.base import HEADLINES, Metric, Part
from bias_pipeline.stats.bootstrap import Estimate

FloatArray = npt.NDArray[np.float64]

GROUPS = ("male", "female")
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
        verdicts: what it does to headlines, ``metric part`` (``part`` may be left out where it is
            ``score``) to ``moves``, ``stays`` or ``absent``, see :func:`verdict`.
        people: how people speak beside the captioner.
        before: captioner and people without the habit.
    """

    title: str
    planted: Speaker
    verdicts: Mapping[str, str]
    people: Speaker = PLAIN
    before: tuple[Speaker, Speaker] = (PLAIN, PLAIN)


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

    It moves where neither interval holds the other's value.

    Example:
        >>> nan = math.nan
        >>> low, high = (Estimate(v, nan, nan, v - 1, v + 1, nan, 1) for v in (0.0, 3.0))
        >>> verdict(low, high), verdict(low, low)
        ('moves', 'stays')
    """
    if math.isnan(planted.value):
        return "absent"
    held = plain.ci_low <= planted.value <= plain.ci_high
    return "stays" if held or planted.ci_low <= plain.value <= planted.ci_high else "moves"


def is_tested(metric: str, name: str) -> bool:
    """Whether a line of the table shows that a metric has a property of the papers' tables.

    Args:
        metric: its name.
        name: of the property, as in :class:`~bias_pipeline.metrics.base.MetricInfo`.

    Example:
        >>> is_tested("lic", "learnable"), is_tested("gender_error", "learnable")
        (True, False)
    """
    if name == "directional":
        return all(
            BEHAVIOURS[behaviour].verdicts.get(f"{metric} {part}") == expected
            for behaviour, part, expected in _DIRECTIONAL
        )
    return any(
        BEHAVIOURS[behaviour].verdicts.get(line) == expected
        for behaviour, expected in _SHOWN.get(name, ())
        for line in (metric, f"{metric} a_to_t")
    )


# Property to the behaviours that show it, and what a metric that has it then does.
_SHOWN: Mapping[str, tuple[tuple[str, str], ...]] = {
    "source_identifying": (("biased people", "stays"),),
    "learnable": (("unlisted word", "moves"),),
    "amplification": (("object follows group", "moves"), ("women called men", "moves")),
    "full_context": (("word order", "moves"),),
    "language_aware": (("tire and diaper", "stays"),),
}
_DIRECTIONAL = (
    ("object follows group", "a_to_t", "moves"),
    ("object follows group", "t_to_a", "stays"),
    ("group follows object", "a_to_t", "stays"),
    ("group follows object", "t_to_a", "moves"),
)


def _following(*choices: str, **more: Any) -> Speaker:
    return Speaker(follows=frozenset(choices), **more)


def _lines(expected: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, expected)


_READERS = ("lic", "leakage", "dbac a_to_t")  # whole captions; the others read listed words
_COUNTERS = ("dpa a_to_t", "ba_directional a_to_t", "differential_fairness")
_CHANGED = ("tire", "diaper")

BEHAVIOURS: Mapping[str, Behaviour] = {
    "negation": Behaviour(
        "no dog for women, a dog for men",
        _following("negation"),
        _lines("moves", "lic") | _lines("stays", *_COUNTERS, "quality"),
    ),
    "synonym": Behaviour(
        "a sofa for women, a couch for men",
        _following("synonym"),
        _lines("moves", "lic") | _lines("stays", *_COUNTERS, "quality"),
    ),
    "word order": Behaviour(
        "the same words in another order",
        _following("order"),
        _lines("moves", *_READERS) | _lines("stays", "lic:words", *_COUNTERS),
    ),
    "unlisted word": Behaviour(
        "pink for women, grey for men",
        _following("word"),
        _lines("moves", *_READERS, "lic:words") | _lines("stays", *_COUNTERS),
    ),
    "object follows group": Behaviour(
        "women get an umbrella, men lose it",
        Speaker(invents=0.7),
        _lines(
            "moves", *_READERS, "ba_mals", "multi_directional a_to_t", "cooccurrence", *_COUNTERS
        )
        | _lines("stays", "ba_directional t_to_a", "multi_directional t_to_a", "dpa t_to_a")
        | _lines("stays", "gender_error", "gender_ratio", "group_accuracy"),
    ),
    "group follows object": Behaviour(
        "who has an umbrella is called a woman",
        Speaker(assumes=0.5),
        _lines("moves", "ba_directional t_to_a", "multi_directional t_to_a", "dpa t_to_a")
        | _lines("moves", "gender_error")
        | _lines("stays", "lic", "ba_directional a_to_t", "multi_directional a_to_t")
        | _lines("stays", "dpa a_to_t"),
    ),
    "women called men": Behaviour(
        "some women are called men",
        Speaker(misgenders=0.4),
        _lines("moves", "gender_error", "gender_ratio", "group_accuracy")
        | _lines("stays", "lic", "ba_directional a_to_t", "differential_fairness"),
    ),
    "neutral alone": Behaviour(
        "everybody is a person",
        Speaker(silent=True),
        _lines("moves", "quality")
        | _lines("stays", "lic", "differential_fairness")
        | _lines("absent", "gender_error", "gender_ratio", "group_accuracy", "dpa t_to_a"),
    ),
    "neutral instead of wrong": Behaviour(
        "everybody is a person, where some women were called men",
        Speaker(silent=True),
        _lines("absent", "gender_error", "group_accuracy") | _lines("stays", "lic"),
        before=(Speaker(misgenders=0.4), PLAIN),
    ),
    "tire and diaper": Behaviour(
        "people have men change a tire and women a diaper, the captioner knows neither word",
        PLAIN,
        _lines("moves", "lic:unaligned") | _lines("stays", "lic", "dbac a_to_t"),
        people=_following("thing", things=_CHANGED),
        before=(PLAIN, Speaker(things=_CHANGED)),
    ),
    "biased people": Behaviour(
        "people and captioner alike give women an umbrella and have men lose it",
        Speaker(invents=0.5),
        _lines("stays", *_READERS, *_COUNTERS, "cooccurrence", "ba_mals"),
        people=Speaker(invents=0.5),
    ),
}
