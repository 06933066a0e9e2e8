"""Makes a table for each of the two sides that a metric compares, with a row per image.

BA_MALS, BA-> and Multi-> compare the groups and tasks in labels with the groups and tasks in
captions. Other metrics compare the captioner, who writes one caption per image, with annotators,
who write several. Noise makes some numbers larger, for example a maximum. Therefore annotators'
numbers are computed once for each position of human captions, each time from as many captions as
the captioner wrote, and averaged. If an image has fewer captions than there are positions, its
captions are reused from the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.captions import offsets
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.io.hashing import UIntArray, random_words
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import TaskMetric
from bias_pipeline.metrics.counting.numbers import CountedNumber, Sums
from bias_pipeline.metrics.functional.counts import Counts, share
from bias_pipeline.metrics.value_names import HUMAN, HUMAN_PAIRED, MODEL, MODEL_PAIRED, PartName

FOLDS = 5  # in simulations the number hardly matters; two folds are slightly worse for rare tasks
Labels = Literal["objects", "union", "each"]
Groups = Literal["labels", "captions"]
Unclear = Literal["keep", "skip"]

Reader = Callable[[sparse.csr_array], sparse.csr_array]


@dataclass(frozen=True, eq=False)
class LabelsVsCaptions:
    """The labels and captions of N images. Rows of images that are not used are empty."""

    images: BoolArray  # (N,) the images used
    codes: IntArray  # (N,) group by label, -1 where unused
    observations: Float64Array  # (N,) number of observations in each image's labels
    labelled: sparse.csr_array  # (N, T) how many of these observations have each task
    named: IntArray  # (N,) the only group that the model's caption names; below 0: none or several
    predicted: sparse.csr_array  # (N, T) tasks that the model's caption names
    n_groups: int  # K

    def tables(self) -> dict[str, sparse.csr_array]:
        """The tables of :func:`counts_of`."""
        n_groups = self.n_groups
        return {
            "groups": one_hot(self.codes, n_groups, self.observations),
            "captioned": one_hot(self.codes, n_groups),
            "labels": cross_with_groups(self.codes, self.labelled, n_groups),
            "task_given_group": cross_with_groups(self.codes, self.predicted, n_groups),
            "group_given_task": cross_with_groups(self.named, self.labelled, n_groups),
            "joint": cross_with_groups(self.named, self.predicted, n_groups),
        }

    def tables_of_folds(self, keys: UIntArray) -> dict[str, sparse.csr_array]:
        """The tables of all folds side by side; hashes of images' ids decide the folds."""
        fold = (random_words("leaning", 0, keys) % np.uint64(FOLDS)).astype(np.int64)
        tables = self.tables().items()
        return {name: cross_with_groups(fold, table, FOLDS) for name, table in tables}


@dataclass(eq=False, kw_only=True)
class LabelledTaskMetric(TaskMetric):
    """A metric that compares a captioner's captions with labels."""

    # Which tasks are an image's labels: its `objects`; the `union` of what its human captions name
    # (as Wang and Russakovsky do for captions); or what `each` human caption names, as an
    # observation of its own, so that annotators and captioner describe an image equally often
    # (ours)
    labels: Labels = "objects"
    # Which group is an image's label: the group of its `labels`, or the only group that its human
    # `captions` name; images without such a group are skipped
    groups: Groups = "labels"
    # Whether images whose model caption names no group or several are kept, or skipped as Wang and
    # Russakovsky do for captions
    unclear: Unclear = "keep"

    def sides(self, view: CorpusView, read: Reader = lambda table: table) -> LabelsVsCaptions:
        """The labels and predictions of images that have both labels and captions.

        ``read`` turns an (R, T) table, with the tasks of each observation, into an (R, M) table of
        the columns that are counted.
        """
        codes = view.codes
        images = view.labelled & view.has("model")
        if self.groups == "captions":
            codes = view.named_together("human")
            images = images & (codes >= 0)
        table = self.label_table(view, read)
        images = images & (view.objects_known if self.labels == "objects" else view.has("human"))
        named = np.full(len(view.corpus), -1)
        named[view.images("model")] = view.named_group("model")
        if self.unclear == "skip":
            images = images & (named >= 0)
        if not images.any():
            raise NotApplicableError(
                f"no image has a group, a caption and what labels={self.labels}, "
                f"groups={self.groups} and unclear={self.unclear} need"
            )
        view.check_compared(codes[images])
        observations = np.ones(len(codes))
        if self.labels == "each":
            observations = np.bincount(view.images("human"), minlength=len(codes)).astype(float)
        return LabelsVsCaptions(
            images=images,
            codes=np.where(images, codes, -1),
            observations=observations,
            labelled=keep_rows(table, images),
            named=np.where(images, named, -1),
            predicted=keep_rows(view.by_image("model", read(view.mentions("model"))), images),
            n_groups=len(view.groups),
        )

    def label_table(self, view: CorpusView, read: Reader = lambda table: table) -> sparse.csr_array:
        """(N, M): for each image and column, how many labelled observations have the column."""
        if self.labels == "objects":
            return read(view.task_labels)
        if self.labels == "each":
            return view.by_image("human", read(view.mentions("human")))
        named = view.by_image("human", view.mentions("human"))
        named.data = np.ones_like(named.data)
        return read(named)

    def caution(self) -> str:
        """A note on how to read A→T."""
        return (
            "A→T counts words, so it changes with how much captions mention: compare "
            f"mentions:model with mentions:human in rows.csv (metric.labels={self.labels}); below "
            "0 does not mean less bias"
        )


def counts_of(sums: Sums, n_groups: int) -> Counts:
    """The counts in the sums of :meth:`LabelsVsCaptions.tables`."""
    labels = by_group(sums["labels"], n_groups)
    return Counts(
        total=sums["groups"].sum(axis=-1),
        groups=sums["groups"],
        tasks=labels.sum(axis=-2),
        labels=labels,
        captioned=sums["captioned"],
        task_given_group=by_group(sums["task_given_group"], n_groups),
        group_given_task=by_group(sums["group_given_task"], n_groups),
        joint=by_group(sums["joint"], n_groups),
    )


def counts_of_folds(sums: Sums, n_groups: int) -> Counts:
    """The counts in the sums of :meth:`LabelsVsCaptions.tables_of_folds`. Axis 0 is the fold."""
    each = {name: np.moveaxis(by_group(table, FOLDS), 1, 0) for name, table in sums.items()}
    return counts_of(each, n_groups)


def mention_rates(counts: Counts, images: BoolArray, of: str = "") -> dict[PartName, CountedNumber]:
    """The mean number of tasks in a caption, and in the labels of an observation."""
    named, captioned = counts.task_given_group.sum(axis=(-2, -1)), counts.captioned.sum(axis=-1)
    return {
        PartName("mentions", side="model", detail=of): CountedNumber(
            values=share(named, captioned), images=images, unit="per caption"
        ),
        PartName("mentions", side="human", detail=of): CountedNumber(
            values=share(counts.labels.sum(axis=(-2, -1)), counts.total),
            images=images,
            side="human",
            unit="per observation",
        ),
    }


Table = Callable[[str, BoolArray], sparse.csr_array]


def described_images(view: CorpusView, among: BoolArray) -> dict[PartName, BoolArray]:
    """For each part, the images that its side describes; for ``:paired``, that both describe.

    Parts without images are left out.
    """
    model, human = (among & view.has(side) for side in ("model", "human"))
    both = model & human
    images = {MODEL: model, HUMAN: human, MODEL_PAIRED: both, HUMAN_PAIRED: both}
    return {part: mask for part, mask in images.items() if mask.any()}


@dataclass(frozen=True, eq=False)
class CaptionSides:
    """The images of each part."""

    positions: int  # how many human caption positions are used
    images: Mapping[PartName, BoolArray]  # the images of each part, see `described_images`

    @classmethod
    def from_view(cls, view: CorpusView, positions: int) -> CaptionSides:
        human = view.corpus.human
        places = human.positions[view.labelled[human.image_rows]]
        most = int(places.max(initial=-1)) + 1
        return cls(min(positions, most), described_images(view, view.labelled))

    @property
    def paired_images(self) -> BoolArray:
        """(N,) flags: true for images that both sides describe, or the model if it is alone."""
        return self.images.get(MODEL_PAIRED, self.images[MODEL])

    @property
    def notes(self) -> list[str]:
        """Without human captions, a note that there is no score; otherwise no notes."""
        return [] if HUMAN in self.images else ["no human captions: there is no score"]

    def number(self, part: PartName, values: Float64Array, unit: str = "fraction") -> CountedNumber:
        """A number of one side that is never negative."""
        return CountedNumber(
            values=values,
            images=self.images[part],
            side=part.side,
            unit=unit,
            range=(0.0, 1.0 if unit == "fraction" else np.inf),
        )

    def tables(
        self, view: CorpusView, make: Table, prefix: str = ""
    ) -> dict[str, sparse.csr_array]:
        """A table for each part. Annotators have one table for each caption position.

        ``make`` takes a side and the (C,) flags of the chosen captions. The result of ``make`` is
        an (N, ...) table.
        """
        tables = {}
        for part, images in self.images.items():
            captions = view.corpus.side(part.side)
            for k in range(self._positions(part)):
                chosen = np.zeros(len(captions), bool)
                chosen[captions.in_turn(k)] = True
                name = prefix + key(part, k)
                tables[name] = make(part.side, chosen & images[captions.image_rows])
        return tables

    def position_sums(self, part: PartName, sums: Sums, prefix: str = "") -> list[Float64Array]:
        return [sums[prefix + name] for name in self.keys(part)]

    def keys(self, part: PartName) -> list[str]:
        return [key(part, k) for k in range(self._positions(part))]

    def _positions(self, part: PartName) -> int:
        return self.positions if part.side == "human" else 1


def key(part: PartName, position: int) -> str:
    return f"{part}:{position}"


def mean_of(values: Sequence[Float64Array]) -> Float64Array:
    """The mean over positions, element by element, without NaN values."""
    stacked = np.stack(values)
    known = np.isfinite(stacked)
    n = known.sum(axis=0)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    return np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)


def cross_with_groups(codes: IntArray, table: sparse.csr_array, n_groups: int) -> sparse.csr_array:
    """(N, K * T): each (N, T) row, moved to the columns of its group.

    Rows with codes below 0 are empty.

    Example:
        >>> table = sparse.csr_array(np.array([[2.0, 0.0], [0.0, 3.0], [1.0, 1.0]]))
        >>> cross_with_groups(np.array([1, 0, -1]), table, 2).toarray().tolist()
        [[0.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    n_tasks = table.shape[1]
    code = np.repeat(codes, np.diff(table.indptr))
    in_group = code >= 0
    columns = code[in_group] * n_tasks + table.indices[in_group]
    shape = (len(codes), n_groups * n_tasks)
    return sparse.csr_array((table.data[in_group], columns, _ends(table, in_group)), shape=shape)


def keep_rows(table: sparse.csr_array, images: BoolArray) -> sparse.csr_array:
    """The table, in which the rows of all other images are empty."""
    chosen = np.repeat(images, np.diff(table.indptr))
    columns = table.indices[chosen]
    return sparse.csr_array((table.data[chosen], columns, _ends(table, chosen)), shape=table.shape)


def _ends(table: sparse.csr_array, chosen: BoolArray) -> IntArray:
    """(N + 1,): where each row begins and ends if only the chosen entries are kept.

    Rows stay in order, so nothing has to be sorted again.
    """
    return offsets(chosen)[table.indptr]


def one_hot(
    codes: IntArray, n_groups: int, weights: Float64Array | None = None
) -> sparse.csr_array:
    """(N, K): each row has 1 (or its weight) in the column of its code, if this is 0 or more."""
    rows = np.flatnonzero(codes >= 0)
    data = np.ones(len(rows)) if weights is None else weights[rows]
    return sparse.csr_array((data, (rows, codes[rows])), shape=(len(codes), n_groups))


def by_group(sums: Float64Array, n_groups: int) -> Float64Array:
    """(..., K, T) from (..., K * T) sums of a crossed table."""
    return sums.reshape(*sums.shape[:-1], n_groups, -1)
