"""Differential fairness of what captions name, and its amplification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from scipy import sparse

from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.declared import Count, NotNegative
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import MetricInfo, Reading, Response
from bias_pipeline.metrics.counting.caption_sides import CaptionSides, mean_of
from bias_pipeline.metrics.counting.tally import (
    About,
    FloatArray,
    IntArray,
    Mask,
    Smoothing,
    Sums,
    Tally,
    TaskMetric,
    by_group,
    choice,
    crossed,
    least_share,
    one_hot,
    support,
)
from bias_pipeline.metrics.functional.fairness import PRIORS, epsilon, epsilons, pseudo_counts
from bias_pipeline.metrics.parts import HUMAN, HUMAN_PAIRED, MODEL, MODEL_PAIRED, SCORE, PartName
from bias_pipeline.metrics.seen import Seen
from bias_pipeline.metrics.sources import FOULDS_2020
from bias_pipeline.stats.bootstrap import Bootstrap

# The share of the prior that is drawn anew in every resampling: intervals then hold in simulations
# of people against people (``experiments/inference``). Ours.
RESAMPLED_PRIOR = 0.2


class DifferentialFairness(TaskMetric):
    """Amplification of differential fairness: epsilon of the captioner less that of people.

    Epsilon is the largest |ln P(t | a) - ln P(t | a')| over tasks t and pairs of labelled groups;
    P(t | a) is the share of the group's captions that name the task, smoothed by a prior. ``model``
    and ``human`` are the epsilons, ``object:NAME`` the difference for a task,
    ``object:NAME:model`` and ``object:NAME:human`` its own two. People's epsilon is the mean over
    caption positions, so that it rests on as many captions as the captioner's. Any number of
    groups will do.

    Args:
        attribute: whose labelled groups are compared.
        task: whose tasks count.
        stats: how intervals are made.
        prior: see :func:`~bias_pipeline.metrics.functional.fairness.epsilons`.
        min_support: the share of people's captions (of the captioner's where there are none) that
            must name a task; a maximum over rarer ones is noise. Ours. See
            :func:`~bias_pipeline.metrics.counting.tally.least_share`.
        positions: how many human captions of an image are used.
        words: see :class:`~bias_pipeline.metrics.counting.tally.CountingMetric`; plays no part but
            in what is said beside the numbers.
        exclude_tasks: tasks left out; every image shows a person.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="differential_fairness",
        title="Differential fairness amplification",
        version=3,
        unit="nat",
        range=(-np.inf, np.inf),
        neutral=0.0,
        direction="lower is fairer; above 0 groups differ more in captions than in people's",
        family="counting",
        question="tasks",
        sources={FOULDS_2020: "definition 3.1 and section 4; bias amplification: section 5"},
        responses={
            "score": Response(
                moves=("object follows group",),
                stays=(
                    "negation",
                    "synonym",
                    "word order",
                    "unlisted word",
                    "women called men",
                    "neutral alone",
                    "biased people",
                ),
            )
        },
        says={
            "score": "groups differ more in what is said than in people's words",
        },
        readings={"score": Reading("score", follows=("words", "vocabulary"))},
        source_identifying=True,
        amplification=True,
    )

    def __init__(
        self,
        attribute: Attribute,
        task: TaskVocabulary,
        stats: Bootstrap,
        prior: str = "proportional",
        min_support: NotNegative = 0.005,
        positions: Count = 5,
        words: str | None = None,
        exclude_tasks: Sequence[str] = ("person",),
    ) -> None:
        super().__init__(attribute, task, stats, words, exclude_tasks)
        self.prior = choice("prior", prior, PRIORS)
        self.min_support = support(min_support)
        self.positions = positions

    def rests_on_names(self, part: PartName) -> bool:
        """None: groups are labelled."""
        return False

    def tally(self, seen: Seen) -> Tally:
        """See the class."""
        sides = CaptionSides.of(seen, self.positions)
        n_groups, kept = len(seen.groups), self._kept(seen, sides)
        tasks = [seen.tasks[t] for t in kept]

        def table(side: str, chosen: Mask) -> sparse.csr_array:
            group = np.where(chosen, seen.codes[seen.images(side)], -1)
            named = sparse.csr_array(seen.mentions(side)[:, kept])
            counts = [crossed(group, named, n_groups), one_hot(group, n_groups)]
            return seen.by_image(side, sparse.csr_array(sparse.hstack(counts)))

        def of(part: PartName, sums: Sums) -> tuple[FloatArray, FloatArray]:
            whole, single = [], []
            for own in sides.each(part, sums):
                joint, groups = by_group(own[:, :-n_groups], n_groups), own[:, -n_groups:]
                whole.append(epsilon(joint, groups, self.prior))
                single.append(epsilons(joint, groups, self.prior))
            return mean_of(whole), mean_of(single)

        def numbers(sums: Sums) -> dict[PartName, FloatArray]:
            found = {part: of(part, sums) for part in sides.images}
            values = {part: own[0] for part, own in found.items()}
            if MODEL_PAIRED in found:
                values[SCORE] = values[MODEL_PAIRED] - values[HUMAN_PAIRED]
            return values | self._objects(found, tasks)

        parts = {part: sides.about(part, "nat") for part in sides.images}
        people = parts.get(HUMAN, parts[MODEL])
        parts |= {PartName(object=task, side="human"): people for task in tasks}
        parts |= {PartName(object=task, side="model"): parts[MODEL] for task in tasks}
        tables = sides.tables(seen, table)
        return Tally(
            tables=tables,
            numbers=numbers,
            smoothing=self._smoothing(seen, sides, tables),
            about=About(sides.images.get(MODEL_PAIRED, sides.images[MODEL]), unit="nat"),
            parts=parts,
            audit={"tasks": tasks, "tasks_without_support": len(seen.tasks) - len(tasks)},
            notes=[] if HUMAN in sides.images else ["no human captions: there is no score"],
        )

    def _smoothing(
        self, seen: Seen, sides: CaptionSides, tables: Mapping[str, sparse.csr_array]
    ) -> dict[str, Smoothing]:
        """Part of the prior is drawn anew in every resampling, as its captions were seen once."""
        if not PRIORS[self.prior]:
            return {}
        found = {}
        for part in sides.images:
            captions = seen.corpus.side(part.side).digest
            for position, name in enumerate(sides.keys(part)):
                totals = np.asarray(tables[name].sum(axis=0), np.float64)
                groups = totals[-len(seen.groups) :]
                alpha = pseudo_counts(groups, self.prior)
                tasks = (len(totals) - len(groups)) // len(groups)
                amounts = np.append(np.repeat(RESAMPLED_PRIOR * alpha, tasks), 0 * groups)
                found[name] = Smoothing(amounts, f"{captions}:{position}")
        return found

    def _objects(
        self, found: dict[PartName, tuple[FloatArray, FloatArray]], tasks: Sequence[str]
    ) -> dict[PartName, FloatArray]:
        single = {part: own[1] for part, own in found.items()}
        if MODEL_PAIRED in single:
            single[SCORE] = single[MODEL_PAIRED] - single[HUMAN_PAIRED]
        return {
            PartName(object=task, side=part.side): single[part][:, t]
            for part in (SCORE, MODEL, HUMAN)
            if part in single
            for t, task in enumerate(tasks)
        }

    def _kept(self, seen: Seen, sides: CaptionSides) -> IntArray:
        """Tasks that people's captions name often enough, whatever the captioner says.

        Raises:
            NotApplicableError: if there is none, or the captioner names none of them.
        """
        part = HUMAN if HUMAN in sides.images else MODEL
        named, captions = _naming(seen, sides, part)
        least = least_share(self.min_support, int(sides.images[part].sum()))
        kept = np.flatnonzero(named / captions >= least)
        if not len(kept):
            raise NotApplicableError(
                f"captioner {seen.corpus.captioner!r}: no task is named in {100 * least:.2g} % of "
                f"{part.side} captions; lower metric.min_support"
            )
        if not _naming(seen, sides, MODEL)[0][kept].any():
            raise NotApplicableError(
                f"captioner {seen.corpus.captioner!r} names no task: nothing can be said"
            )
        return kept


def _naming(seen: Seen, sides: CaptionSides, part: PartName) -> tuple[FloatArray, int]:
    """(T,) captions of a part that name each task, and how many captions there are."""
    chosen = sides.images[part][seen.images(part.side)]
    return np.asarray(seen.mentions(part.side)[chosen].sum(axis=0), np.float64), int(chosen.sum())
