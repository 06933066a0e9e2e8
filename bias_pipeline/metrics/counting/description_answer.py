"""Answers whether a captioner describes groups differently, and writes sentences on the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.errors import inflect
from bias_pipeline.metrics.base import NOT_SHOWN
from bias_pipeline.metrics.counting.compared_groups import Contrast
from bias_pipeline.metrics.functional.described_differences import (
    ALPHA,
    CONCEPT_ERRORS,
)
from bias_pipeline.metrics.functional.descriptions import Reference

CLOSER = "closer together than annotators"
FEWEST_ANSWERED = 500  # the fewest images with which the question is answered
NEGLIGIBLE = 0.02  # the share up to which a score means no difference
_LARGE = 0.05  # a difference whose interval lies above it is printed, even if annotators have it
_OFTEN = 0.05  # share of captions from which a concept counts as frequent
_MOST = 6  # the most concepts that are named
_Z = 1.96


@dataclass(frozen=True, eq=False, kw_only=True)
class DescriptionContrast(Contrast):
    concepts: Sequence[str]  # (Q,)
    classes: Sequence[str]  # (L,)
    human_rates: Float64Array  # (2, Q) the `rates` of annotators' captions; NaN without annotators
    alike: str  # what the compared pictures have in common, in words


@dataclass(frozen=True)
class Answer:
    """What an audit may conclude about descriptions.

    Attributes:
        answer: ``yes``, ``no`` or ``cannot_tell``.
        reason: why nothing can be concluded, or empty (:data:`NOT_SHOWN` if chance may explain all
            differences).
        p_value: twice the smaller p of the two tests.
        named: the concepts and classes that the answer Yes names.
        sentences: sentences for the reader. The first ones are on each named concept and class.
    """

    answer: str
    reason: str
    p_value: float
    named: Sequence[str]
    sentences: Sequence[str]


def answer_of(contrasts: Sequence[DescriptionContrast], n_images: int, annotated: bool) -> Answer:
    sentences = [sentence for one in contrasts for sentence in _further_sentences(one)]
    reason = _reason(contrasts, n_images, annotated)
    if reason:
        smallest = _smallest(contrasts) if annotated and contrasts else []
        first = f"cannot tell whether it describes the groups differently: {reason}"
        return Answer("cannot_tell", reason, math.nan, (), [first, *smallest, *sentences])
    tests = [_Test(one, len(contrasts)) for one in contrasts]
    p_value = min(min(1.0, 2 * test.p_value) for test in tests)
    named = [name for test in tests for name in test.names]
    if named:
        return Answer(
            "yes", "", p_value, named, [*(s for t in tests for s in t.sentences), *sentences]
        )
    smallest = _smallest(contrasts)
    at_most = max(one.differences.score_interval[1] for one in contrasts)
    if at_most <= NEGLIGIBLE:
        return Answer("no", "", p_value, (), [*smallest, *sentences])
    return Answer("cannot_tell", NOT_SHOWN, p_value, (), [*smallest, *sentences])


def _reason(contrasts: Sequence[DescriptionContrast], n_images: int, annotated: bool) -> str:
    if not contrasts:
        return "no caption describes a person, or all describe their person alike"
    if not annotated:
        return (
            "without annotators' captions, pictures and habit may explain all differences; name a "
            "file of human captions (dataset.captions=FILE, audit --captions FILE)"
        )
    return too_few(n_images)


def too_few(n_images: int) -> str:
    """A message if there are too few images for an answer; else empty."""
    if n_images >= FEWEST_ANSWERED:
        return ""
    return f"{inflect(n_images, 'images are')} too few; caption {FEWEST_ANSWERED}, or better 1,500"


class _Test:
    """The two tests of a contrast: one of single concepts and classes, and one of the score."""

    def __init__(self, contrast: DescriptionContrast, n_contrasts: int) -> None:
        self.contrast, differences = contrast, contrast.differences
        by_concept, by_class = (p * n_contrasts for p in differences.p_values())
        tested, classes = differences.tested_concepts, differences.tested_classes
        self.concepts = [int(q) for q in tested[by_concept < ALPHA]]
        self.classes = [int(k) for k in classes[by_class < ALPHA]]
        self.p_value = float(np.min(np.concatenate([by_concept, by_class, [1.0]])))
        score = differences.spread_p() * n_contrasts
        if score < ALPHA:
            self.p_value = min(self.p_value, score)
            self.concepts += [
                int(q) for q in differences.named_beside_score() if q not in self.concepts
            ]
            self.classes += [
                int(k) for k in differences.classes_beside_score() if k not in self.classes
            ]

    @property
    def names(self) -> list[str]:
        return [
            *(self.contrast.concepts[q] for q in self.concepts),
            *(self.contrast.classes[k] for k in self.classes),
        ]

    @property
    def sentences(self) -> list[str]:
        return [
            *(concept_sentence(self.contrast, q) for q in self.concepts),
            *(_class_sentence(self.contrast, k) for k in self.classes),
        ]


def concept_sentence(contrast: DescriptionContrast, concept: int) -> str:
    """Say how often each group's captions have a concept, and how the gap exceeds annotators'."""
    shown, beyond = contrast.differences.shown, contrast.differences.excess
    size = _points(float(beyond.values[concept]), CONCEPT_ERRORS * float(beyond.errors[concept]))
    more = contrast.group if shown.values[concept] > 0 else contrast.others
    text = (
        f"{contrast.concepts[concept]} ({_rates(contrast, concept)} of captions): said of {more} "
        "more often, by "
    )
    where = f"on pictures {contrast.alike}"
    if contrast.differences.references[concept] is Reference.HARDLY:
        return f"{text}{size} {where}; annotators hardly ever say it"
    difference = 100 * abs(float(shown.values[concept]))
    return f"{text}{difference:.1f} points {where}; {size} go beyond what annotators would show"


def _rates(contrast: DescriptionContrast, concept: int) -> str:
    """How often each group's captions have a concept. Two groups keep the attribute's order."""
    group, others = (_per_100(float(rate)) for rate in contrast.rates[:, concept])
    named = [f"{contrast.group} {group} %", f"{contrast.others} {others} %"]
    return ", ".join(named if contrast.label else reversed(named))


def differing_sentences(contrast: DescriptionContrast) -> list[str]:
    """Sentences on concepts that differ between groups by 5 points or more, largest first.

    If the annotators' difference at the captioner's rate is known, the sentence gives it too.
    """
    differences = contrast.differences
    shown, beyond = differences.shown, differences.excess
    clear = abs(shown.values) - _Z * CONCEPT_ERRORS * shown.errors >= _LARGE
    chosen = [q for q in differences.listed_concepts.tolist() if clear[q]]
    sentences = []
    for q in sorted(chosen, key=lambda q: -abs(shown.values[q]))[:_MOST]:
        text = f"{contrast.concepts[q]}: {_rates(contrast, q)} of captions"
        reference = differences.references[q]
        if reference is Reference.HARDLY:
            text += "; annotators hardly ever say it"
        elif reference is Reference.ALONE:
            text += "; annotators say it of one group alone"
        elif q in differences.tested_concepts and not np.isnan(contrast.human_rates).all():
            points = 100 * abs(float(shown.values[q] - beyond.values[q]))
            text += f"; annotators at that rate would show about {points:.0f} points"
        sentences.append(text)
    return sentences


def _class_sentence(contrast: DescriptionContrast, kind: int) -> str:
    excess, shown = contrast.differences.class_excess, contrast.differences.class_shown
    size = _points(float(excess.values[kind]), CONCEPT_ERRORS * float(excess.errors[kind]))
    of = contrast.group if excess.values[kind] > 0 else contrast.others
    return (
        f"words of {contrast.classes[kind]} go with {of}: by "
        f"{100 * abs(float(shown.values[kind])):.1f} points on pictures {contrast.alike}; "
        f"{size} go beyond what annotators would show"
    )


def _points(amount: float, error: float) -> str:
    """The absolute difference in points, with its interval."""
    low, high = sorted(abs(amount) + k * 1.96 * error for k in (-1, 1))
    return f"{100 * abs(amount):.1f} [{100 * low:.1f}, {100 * high:.1f}] points"


def _per_100(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.1 else f"{100 * share:.1f}"


def _smallest(contrasts: Sequence[DescriptionContrast]) -> list[str]:
    """For frequent concepts, the smallest differences that the data could show."""
    noticed = []
    for one in contrasts:
        tested, smallest = one.differences.tested_concepts, one.differences.smallest()
        often = one.differences.rates[tested] >= _OFTEN
        noticed += list(zip(smallest[often], (one.concepts[q] for q in tested[often]), strict=True))
    if not noticed:
        return ["no concept is said in 5 of 100 captions, so hardly any difference can be noticed"]
    low, high = min(noticed), max(noticed)
    between = f" to {100 * high[0]:.0f} ({high[1]})" if len(noticed) > 1 else ""
    return [f"differences from {100 * low[0]:.0f} points ({low[1]}){between} would be noticed"]


def _further_sentences(contrast: DescriptionContrast) -> list[str]:
    """Sentences on concepts that do not affect the answer."""
    differences, names = contrast.differences, contrast.concepts
    closer = [names[q] for q in differences.closer_together()]
    sentences = [f"{CLOSER}: {', '.join(closer)}"] if closer else []
    by_reference: dict[Reference, list[int]] = {}
    for concept, reference in enumerate(differences.references):
        if differences.mentions[concept] >= 10:
            by_reference.setdefault(reference, []).append(concept)
    alone = by_reference.get(Reference.ALONE, [])
    if alone:
        listed = "; ".join(_both_rates(contrast, q) for q in alone)
        sentences.append(f"follows the group in annotators' captions too: {listed}")
    return sentences + [
        f"cannot tell of {names[q]}: in {_per_100(float(differences.rates[q]))} of 100 captions, "
        f"annotators' {_per_100(float(np.nanmean(contrast.human_rates[:, q])))}"
        for q in by_reference.get(Reference.UNKNOWN, [])
    ]


def _both_rates(contrast: DescriptionContrast, concept: int) -> str:
    order = [0, 1] if contrast.label else [1, 0]
    (one, two), (people_one, people_two) = (
        (100 * rates[order, concept]).tolist() for rates in (contrast.rates, contrast.human_rates)
    )
    first, second = np.array([contrast.group, contrast.others])[order]
    return (
        f"{contrast.concepts[concept]} ({first} {one:.1f} %, {second} {two:.1f} "
        f"%; annotators {people_one:.1f} and {people_two:.1f} %)"
    )


def facts(answer: Answer, contrasts: Sequence[DescriptionContrast]) -> dict[str, object]:
    """The answer as plain data, for the manifest.

    The data also say how similar the groups' pictures are. The data list the largest clear
    differences, even if annotators show these differences too.
    """
    return {
        **asdict(answer),
        "p_value": None if math.isnan(answer.p_value) else answer.p_value,
        "differing": [sentence for one in contrasts for sentence in differing_sentences(one)],
        "pictures": {one.group: dict(one.pictures) for one in contrasts},
    }


def lines(contrasts: Sequence[DescriptionContrast]) -> list[dict[str, object]]:
    """A table line for each concept that is frequent enough, clearest difference first."""
    return [line for contrast in contrasts for line in _lines(contrast)]


def _lines(contrast: DescriptionContrast) -> list[dict[str, object]]:
    differences = contrast.differences
    z = np.minimum(abs(differences.shown.z), abs(differences.excess.z))
    closer = set(differences.closer_together().tolist())
    listed = sorted(differences.listed_concepts.tolist(), key=lambda q: -z[q])
    return [
        {
            "concept": contrast.concepts[q],
            "group": contrast.group,
            "rate": contrast.rates[0, q],
            "others": contrast.others,
            "rate of others": contrast.rates[1, q],
            "annotators": contrast.human_rates[0, q],
            "annotators of others": contrast.human_rates[1, q],
            "difference": differences.shown.values[q],
            "difference error": CONCEPT_ERRORS * differences.shown.errors[q],
            "beyond annotators": differences.excess.values[q],
            "beyond annotators error": CONCEPT_ERRORS * differences.excess.errors[q],
            "annotators at this rate by": differences.references[q].value,
            "note": CLOSER if q in closer else "",
        }
        for q in listed
    ]
