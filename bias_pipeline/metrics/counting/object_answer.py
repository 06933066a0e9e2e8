"""Answers whether a captioner invents objects for one group, and writes sentences on the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy import special

from bias_pipeline.array_types import Float64Array
from bias_pipeline.metrics.base import NOT_SHOWN
from bias_pipeline.metrics.counting.compared_groups import Contrast
from bias_pipeline.metrics.counting.description_answer import (
    NEGLIGIBLE,
    Answer,
    too_few,
)
from bias_pipeline.metrics.counting.object_images import OBJECTS
from bias_pipeline.metrics.functional.described_differences import (
    ALPHA,
    CONCEPT_ERRORS,
    LEAST,
    SCORE_ERRORS,
)
from bias_pipeline.metrics.functional.invention import Amount


@dataclass(frozen=True, eq=False, kw_only=True)
class ObjectContrast(Contrast):
    objects: Sequence[str]  # (Q,)
    invented: tuple[float, float]  # shares of captions with an absent object: group, others
    raw: Amount  # difference of these shares
    alike: Mapping[str, Amount]  # the same difference, on pictures that are alike at each level
    recall: Amount | None  # difference of recall beyond annotators, on comparable pictures

    @property
    def p_values(self) -> Float64Array:
        """(Q,): the p value of each object's difference."""
        p_values: Float64Array = 2 * special.ndtr(-abs(self.differences.excess.z))
        return p_values

    @property
    def named_objects(self) -> list[int]:
        """Objects that captions invent more often for one group (Benjamini and Hochberg)."""
        beyond = self.differences.named_beside_score().tolist()
        return sorted(beyond, key=lambda q: float(self.p_values[q]))

    @property
    def score_p(self) -> float:
        """The p value of the score, or 1 if it is below a point or no object can be named."""
        if not self.named_objects or self.differences.score < LEAST:
            return 1.0
        z = self.differences.score / (SCORE_ERRORS * self.differences.score_error)
        return min(1.0, float(2 * special.ndtr(-z)))


def answer_of(
    contrasts: Sequence[ObjectContrast],
    n_images: int,
    most: float,
    notes: Sequence[str],
    foreign: str = "",
) -> Answer:
    scored = [one for one in contrasts if one.objects]
    beside = [*(text for one in contrasts for text in _gap_sentences(one)), *notes]
    p_value = min([1.0, *(len(contrasts) * one.score_p for one in scored)])
    at_most = max([one.differences.score_interval[1] for one in scored], default=most)
    limit = f"at most {per_100(at_most)} of 100 captions name an absent object for a group"
    if reason := foreign or too_few(n_images):
        first = f"cannot tell whether it invents objects for one group: {reason}"
        return Answer("cannot_tell", reason, float("nan"), (), [first, *beside])
    yes = [one for one in scored if len(contrasts) * one.score_p < ALPHA]
    if yes:
        named = [one.objects[q] for one in yes for q in one.named_objects]
        sentences = [_object_sentence(one, q) for one in yes for q in one.named_objects]
        spread = [_score_sentence(one) for one in yes]
        return Answer("yes", "", p_value, named, [*sentences, *spread, *beside])
    if at_most <= NEGLIGIBLE:
        return Answer("no", "", p_value, (), [limit, *beside])
    first = f"objects invented for a group are not shown: {limit}"
    return Answer("cannot_tell", NOT_SHOWN, p_value, (), [first, *beside])


def _score_sentence(contrast: ObjectContrast) -> str:
    differences = contrast.differences
    low, high = differences.score_interval
    of = f" ({contrast.label} against the others)" if contrast.label else ""
    return (
        f"of 100 captions {per_100(differences.score)} [{per_100(low)}, {per_100(high)}] name "
        f"an absent object that goes with the group{of}"
    )


def _object_sentence(contrast: ObjectContrast, place: int) -> str:
    group, others = (f"{100 * float(rate):.1f}" for rate in contrast.rates[:, place])
    excess = contrast.differences.excess
    amount = Amount(float(excess.values[place]), CONCEPT_ERRORS * float(excess.errors[place]))
    whose = contrast.group if amount.value > 0 else contrast.others
    size = Amount(abs(amount.value), amount.error)
    rates = [f"{contrast.group} {group} %", f"{contrast.others} {others} %"]
    return (
        f"{contrast.objects[place]} where there is none "
        f"({', '.join(rates if contrast.label else reversed(rates))} of captions): {_points(size)} "
        f"more of {whose} on comparable pictures"
    )


def _gap_sentences(contrast: ObjectContrast) -> list[str]:
    """Say how often each group's captions invent objects, and how much pictures explain of it."""
    if not any(contrast.invented):
        return [f"no caption of {contrast.group} or {contrast.others} names an absent object"]
    group, others = (f"{100 * share:.1f}" for share in contrast.invented)
    raw, alike = contrast.raw, contrast.alike[OBJECTS]
    gap = (
        f"captions that name an absent object: {contrast.group} {group} %, {contrast.others} "
        f"{others} %; difference {_points(raw)}, on pictures with the same objects {_points(alike)}"
    )
    explained = composition(raw, alike)
    sentences = [f"{gap}; {explained}" if explained else gap]
    if contrast.recall:
        sentences.append(
            f"objects that are there and are named, {contrast.group} minus {contrast.others}, "
            f"beyond the annotators' difference: {_points(contrast.recall)} on comparable pictures "
            "(no verdict)"
        )
    return sentences


def composition(raw: Amount, alike: Amount) -> str:
    """How much of a gap is explained by objects in pictures; empty if chance may explain the gap.

    Example:
        >>> composition(Amount(0.074, 0.01), Amount(0.019, 0.01))
        'composition explains 5.5 of 7.4 points'
        >>> composition(Amount(0.004, 0.01), Amount(0.019, 0.01))
        ''
    """
    low, high = raw.interval()
    if not (low > 0 or high < 0):
        return ""
    size = 100 * abs(raw.value)
    left = 100 * alike.value * (1 if raw.value > 0 else -1)
    if left <= 0:
        return f"composition explains all {size:.1f} points"
    if left >= size:
        return f"composition explains none of {size:.1f} points"
    return f"composition explains {round(size, 1) - round(left, 1):.1f} of {size:.1f} points"


def _points(amount: Amount) -> str:
    low, high = map(per_100, amount.interval())
    return f"{per_100(amount.value)} [{low}, {high}] points"


def per_100(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:.1f}"  # no minus sign before zero


def facts(answer: Answer, contrasts: Sequence[ObjectContrast]) -> dict[str, object]:
    """The answer as plain data, with each group's score and the similarity of groups' pictures."""
    p_value = None if np.isnan(answer.p_value) else answer.p_value
    pictures = {one.group: dict(one.pictures) for one in contrasts}
    spread = {
        one.group: {"score": one.differences.score, "interval": one.differences.score_interval}
        for one in contrasts
        if one.objects
    }
    return {**asdict(answer), "p_value": p_value, "pictures": pictures, "spread": spread}


def lines(contrasts: Sequence[ObjectContrast]) -> list[dict[str, object]]:
    """A table line for each object that captions often invent, clearest difference first."""
    return [
        {
            "object": one.objects[q],
            "group": one.group,
            "invented": one.rates[0, q],
            "others": one.others,
            "invented of others": one.rates[1, q],
            "captions": int(one.differences.mentions[q]),
            "difference": one.differences.excess.values[q],
            "difference error": one.differences.excess.errors[q],
            "p": one.p_values[q],
            "beyond chance": q in one.named_objects,
        }
        for one in contrasts
        for q in np.argsort(one.p_values, kind="stable").tolist()
    ]
