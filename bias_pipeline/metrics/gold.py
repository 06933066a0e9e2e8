"""Corrects scores by gold labels (``dataset.gold``). All forms of correction share this code.

Machine labels are sometimes wrong, and more often for one group than for another. Labels that
people gave to a few hundred images can correct a score. Each metric chooses a form: cells
(:mod:`~bias_pipeline.metrics.counting.gold`), one step from the machine's number
(:mod:`~bias_pipeline.metrics.counting.gold_counts`,
:mod:`~bias_pipeline.metrics.attack.gold_pairs`), or scores of attackers' guesses under both labels
(:mod:`~bias_pipeline.metrics.attack.gold_guesses`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.corpus import NO_GROUP, UNSURE, Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.io.hashing import UIntArray
from bias_pipeline.metrics.base import Metric, MetricInfo, Number, Score
from bias_pipeline.metrics.value_names import GOLD, HEADLINES, MACHINE, PartName
from bias_pipeline.stats.bootstrap import (
    UNSEEN_TRAINING,
    Bootstrap,
    Draws,
    Estimate,
    summary,
    two_sided_p,
    widen_draws,
)

FEWEST_FOR_A_POINT = 400  # gold labels; with fewer, gaps and amplifications have only an interval
_MANY = 100  # times as many labels; above it, notes say "more than 100"
_SHOWN = 8  # the most names of parts in a note


@dataclass(frozen=True, kw_only=True)
class Correction:
    """The corrected numbers of a score, and notes."""

    corrected: Mapping[PartName, Estimate]
    alone: Mapping[PartName, Estimate]  # scores of the gold images alone
    worth: Mapping[PartName, float]  # alone, so many times the gold labels would be as exact
    n_gold: int  # gold images with a caption
    without_labels: Collection[str] = ()  # parts that do not depend on labels
    notes: Sequence[str] = ()


class CorrectableByGold(ABC):
    """A metric that gold labels correct."""

    @abstractmethod
    def correct(self, score: Score, corpus: Corpus, gold: GoldLabels) -> Correction:
        """Correct a score that was computed from machine labels by gold labels."""


def check_correctable(metric: Metric) -> None:
    if isinstance(metric, CorrectableByGold):
        return
    raise NotApplicableError(
        f"gold labels do not correct {metric.info.name}, for which there is no correction; score "
        "the images with gold labels alone (--attributes), or choose another metric "
        "(docs/labels.md lists those corrected)"
    )


def with_gold(score: Score, corpus: Corpus, metric: Metric, gold: GoldLabels) -> Score:
    """The score corrected by gold labels.

    The parts ``NAME:machine`` are computed from machine labels, and the parts ``NAME:gold`` from
    the gold images alone. Parts that gold labels cannot correct have no value.
    """
    check_correctable(metric)
    if corpus.samples:
        raise NotApplicableError(
            "gold labels correct one caption an image; score the first of each "
            "(metric.samples=first)"
        )
    assert isinstance(metric, CorrectableByGold)
    correction = metric.correct(score, corpus, gold)
    parts: dict[str, Number] = {}
    lost = []
    for name, part in score.parts.items():
        if name in correction.without_labels:
            parts[name] = part
        elif not isinstance(name, PartName) or name not in correction.corrected:
            parts[name] = replace(part, **vars(Estimate(math.nan)))
            lost += [] if math.isnan(part.value) else [str(name)]
        else:
            parts[name] = replace(part, **vars(correction.corrected[name]))
            if not name.detail:
                parts[_with_detail(name, MACHINE)] = part
                alone = correction.alone.get(name, Estimate(math.nan))
                parts[_with_detail(name, GOLD)] = replace(part, **vars(alone))
    n_found, every = len(gold.labels_in(corpus)[0]), len(gold.groups) + len(gold.unsure)
    every += len(gold.others)
    notes = [*score.notes, *gold.notes]
    if n_found < every:
        notes.append(
            f"{n_found} of {every} gold labels are of images that are scored; the others do nothing"
        )
    main = _main_parts(correction, parts, metric.info)
    notes += [
        *(_sentence(name, correction, score.parts[name], parts[name]) for name in main),
        *correction.notes,
    ]
    if lost:
        more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        notes.append(f"gold labels do not correct {', '.join(lost[:_SHOWN])}{more}: no value")
    worth = {str(name): correction.worth.get(name, math.nan) for name in main}
    known = {name: None if math.isnan(times) else times for name, times in worth.items()}
    audit = {**score.audit, GOLD: {"labels": correction.n_gold, "worth": known}}
    return replace(score, parts=parts, notes=notes, audit=audit)


def _with_detail(name: PartName, detail: str) -> PartName:
    return PartName(
        name.what,
        direction=name.direction,
        group=name.group,
        object=name.object,
        side=name.side,
        detail=detail,
    )


def _main_parts(
    correction: Correction, parts: Mapping[str, Number], info: MetricInfo
) -> list[PartName]:
    """The corrected headlines, the parts on which conclusions rest, and the groups."""
    decide = [*info.readings.values()]
    whats = {"score", *info.says, *(rule.part for rule in decide)} & {*map(str, parts)}
    return [
        name
        for name in parts
        if isinstance(name, PartName)
        and name in correction.corrected
        and name in correction.alone
        and not name.object
        and (name in whats or (name.group and (name.what in whats or not name.what)))
    ]


def _sentence(name: PartName, correction: Correction, machine: Number, number: Number) -> str:
    """A sentence with a part's value by machine labels, corrected, and by gold labels alone."""
    times = correction.worth.get(name, math.nan)
    amount = f"{times:.1f}" if times <= _MANY else f"more than {_MANY}"
    worth = "" if math.isnan(times) else f"; worth {amount} times as many gold labels"
    return (
        f"{name}: {percent(machine.value)} by machine labels, corrected "
        f"{_with_interval(number)}; {correction.n_gold} gold labels alone "
        f"{_with_interval(correction.alone[name])}{worth}"
    )


def percent(value: float) -> str:
    return "no value" if math.isnan(value) else f"{100 * value:.1f}%"


def _with_interval(number: Estimate) -> str:
    if math.isnan(number.ci_low):
        return percent(number.value)
    ends = f"[{100 * number.ci_low:.1f}, {100 * number.ci_high:.1f}]"
    return f"between {ends}%" if math.isnan(number.value) else f"{percent(number.value)} {ends}"


@dataclass(frozen=True, eq=False)
class GoldSample:
    """The gold images among the images that a number may use."""

    rows: IntArray  # (n,) their rows in the corpus
    truth: IntArray  # (n,) the codes of their true labels, as a grouping has them
    machine: IntArray  # (n,) the codes of their machine labels
    weights: Float64Array  # (n,) 1 / the chance of being drawn
    keys: UIntArray  # (n,) hashes of their ids
    population: int  # how many images they were drawn from
    groups: tuple[str, ...]
    drawn_evenly: bool
    notes: Sequence[str] = field(default_factory=tuple)

    @classmethod
    def from_rows(cls, rows: IntArray, corpus: Corpus, gold: GoldLabels) -> GoldSample:
        """The gold images among some rows of a corpus, in ascending order."""
        grouping = corpus.groupings[gold.attribute]
        n_groups = len(grouping.names)
        of_gold, codes, chances = gold.labels_in(corpus)
        inside = np.isin(of_gold, rows)
        if not inside.any():
            raise DataError(f"{gold.file}: no image with a gold label has a caption")
        places, codes = of_gold[inside], codes[inside]
        outside = np.where(codes == n_groups, UNSURE, NO_GROUP)
        return cls(
            places,
            np.where(codes < n_groups, codes, outside),
            grouping.codes[places],
            1 / chances[inside],
            corpus.keys[places],
            len(rows),
            grouping.names,
            not gold.chances,
        )

    @cached_property
    def differ(self) -> IntArray:
        """The indices of images whose true label differs from the machine label."""
        return np.flatnonzero(self.truth != self.machine)

    def relabel(self, corpus: Corpus, attribute: str) -> Corpus:
        """The corpus, in which gold images have their true labels."""
        grouping = corpus.groupings[attribute]
        codes = grouping.codes.copy()
        codes[self.rows] = self.truth
        changed = {attribute: replace(grouping, codes=codes)}
        return replace(corpus, groupings={**corpus.groupings, **changed})

    def mean_change(self, changes: Float64Array, stats: Bootstrap) -> Draws:
        """The mean of (n, S) changes over the images that gold images represent, with resamples."""
        total = self.weights.sum()
        resampled = []
        for counts in stats.weights(self.keys):
            weighted = counts * self.weights
            sums = np.maximum(weighted.sum(axis=1, keepdims=True), 1e-12)
            resampled.append(weighted @ changes / sums)
        return Draws(self.weights @ changes / total, np.concatenate(resampled), trained=False)

    def label_notes(self) -> list[str]:
        """Sentences on how often machine labels are wrong, judged by gold labels."""
        return label_notes(self.groups, self.machine, self.truth, self.weights, self.population)


def label_notes(
    groups: Sequence[str],
    machine: IntArray,
    truth: IntArray,
    weights: Float64Array,
    n_images: int,
) -> list[str]:
    """Sentences on how often machine labels are wrong, judged by gold labels."""
    wrong = [
        f"{percent(float(np.average(machine[of_group] != code, weights=weights[of_group])))} "
        f"of {group}"
        for code, group in enumerate(groups)
        if (of_group := truth == code).any()
    ]
    alike = (
        [
            "machine labels equal all gold labels: if the machine was fitted to them, it errs more "
            "elsewhere, and the interval is too narrow"
        ]
        if (machine == truth).all() and len(truth) < n_images
        else []
    )
    return [f"machine labels are wrong for {', '.join(wrong)}, by gold labels", *alike]


def one_step_from_machine(
    machine: Estimate, changes: Float64Array, sample: GoldSample, stats: Bootstrap
) -> Estimate:
    """Correct a number by one step from its value under machine labels.

    Each row of ``changes`` (n, S) belongs to one gold image. If that image gets its true label
    instead of its machine label, and all other images changed alike, the number would change by
    this row (to first order). The row is NaN if the number does not change smoothly.
    """
    if machine.draws is None or np.isnan(changes).any():
        return Estimate(math.nan)
    step = sample.mean_change(changes, stats)
    drawn = replace(
        machine.draws,
        per_seed=machine.draws.per_seed + step.per_seed,
        resampled=machine.draws.resampled + step.resampled,
        trials=math.nan,
    )
    return add_training_once(summary(drawn, stats.level), machine, stats.level)


def check_cross_fitted(score: Score, metric: str) -> None:
    """Raise an error if a score's attackers guess only some of the images."""
    drawn = [part.draws for part in score.parts.values() if part.draws is not None]
    if drawn and not any(draws.cross_fitted for draws in drawn):
        raise NotApplicableError(
            f"gold labels correct {metric} if each seed's attackers guess all images "
            "(split=crossfit)"
        )


def join_corrections(
    corrections: Iterable[Correction], notes: Sequence[str], without_labels: Collection[str] = ()
) -> Correction:
    """Join the corrections of several directions and their notes."""
    every = [*corrections]
    return Correction(
        corrected={name: one.corrected[name] for one in every for name in one.corrected},
        alone={name: one.alone[name] for one in every for name in one.alone},
        worth={name: one.worth[name] for one in every for name in one.worth},
        n_gold=max((one.n_gold for one in every), default=0),
        without_labels=without_labels,
        notes=[*(every[0].notes if every else []), *notes],
    )


def attackers_note(attribute: str) -> str:
    """A note on the meaning of a corrected score of attackers."""
    return (
        "attackers learnt machine labels: the score says how well such attackers guess the true "
        f"{attribute} of images to which the machine gives a group"
    )


def add_training_once(estimate: Estimate, machine: Estimate, level: float) -> Estimate:
    """The estimate, with the variance from training attackers on other images added once.

    The number by machine labels has this variance too, since attackers learn from all images.
    Counts have no variance from training.
    """
    draws, whole = estimate.draws, machine.draws
    if draws is None or whole is None or not (draws.cross_fitted and draws.image_std > 0):
        return estimate
    training = (UNSEEN_TRAINING**2 - 1) * whole.image_std**2
    needed = math.sqrt(draws.image_std**2 + training)
    factor = needed / (UNSEEN_TRAINING * draws.image_std)
    return summary(widen_draws(draws, factor), level)


def one_step_correction(
    metric: Metric,
    score: Score,
    changes: Mapping[PartName, Float64Array],
    alone: Mapping[PartName, Estimate],
    sample: GoldSample,
) -> Correction:
    """The numbers of ``changes`` after one step; see :func:`one_step_from_machine`.

    With few gold labels, numbers have an interval but no value. ``alone`` contains the numbers
    computed from gold images alone.
    """
    info, stats = metric.info, metric.stats
    decide = {*HEADLINES, *(rule.part for rule in info.readings.values())} - {*info.untested}
    corrected = {}
    for name, change in changes.items():
        if name not in score.parts:
            continue
        estimate = one_step_from_machine(score.parts[name], change, sample, stats)
        if len(sample.rows) < FEWEST_FOR_A_POINT:
            estimate = interval_alone(estimate, info.neutral, name in decide)
        corrected[name] = estimate
    return Correction(
        corrected=corrected,
        alone={name: replace(one, draws=None) for name, one in alone.items()},
        worth={
            name: worth_of(one, alone[name], drawn_evenly=sample.drawn_evenly)
            for name, one in corrected.items()
            if name in alone
        },
        n_gold=len(sample.rows),
        notes=sample.label_notes(),
    )


def interval_alone(estimate: Estimate, neutral: float, tested: bool) -> Estimate:
    """The interval and, for a tested number, the p value against the no-bias value."""
    p_value = two_sided_p(estimate, neutral) if tested else math.nan
    return Estimate(math.nan, ci_low=estimate.ci_low, ci_high=estimate.ci_high, p_value=p_value)


def worth_of(corrected: Estimate, alone: Estimate, *, drawn_evenly: bool) -> float:
    """The factor by which gold labels must increase to give the same interval alone."""
    width = corrected.ci_high - corrected.ci_low
    if not (width > 0 and drawn_evenly):
        return math.nan
    return ((alone.ci_high - alone.ci_low) / width) ** 2
