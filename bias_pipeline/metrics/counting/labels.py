"""Groups and tasks by label and by caption, as BA_MALS, BA-> and Multi-> set them side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.counting.tally import (
    About,
    FloatArray,
    IntArray,
    Mask,
    Sums,
    TaskMetric,
    by_group,
    choice,
    crossed,
    one_hot,
    only,
)
from bias_pipeline.metrics.functional.counts import Counts, share
from bias_pipeline.metrics.parts import PartName
from bias_pipeline.metrics.seen import Seen
from bias_pipeline.stats.bootstrap import Bootstrap

LABELS = ("objects", "union", "each")
GROUPS = ("labels", "captions")
UNCLEAR = ("keep", "skip")

Reader = Callable[[sparse.csr_array], sparse.csr_array]


@dataclass(frozen=True, eq=False)
class Sides:
    """What labels and captions say of N images; rows of images that are not used are empty.

    Attributes:
        images: (N,) the images used.
        codes: (N,) group by label, -1 where unused.
        observations: (N,) how many observations of the labels an image is.
        labelled: (N, T) how many of them have each task.
        named: (N,) the one group the model's caption names, below 0 for none or several.
        predicted: (N, T) tasks it names.
        n_groups: K.
    """

    images: Mask
    codes: IntArray
    observations: FloatArray
    labelled: sparse.csr_array
    named: IntArray
    predicted: sparse.csr_array
    n_groups: int

    def tables(self) -> dict[str, sparse.csr_array]:
        """The tables of :func:`counts_of`."""
        n_groups = self.n_groups
        return {
            "groups": one_hot(self.codes, n_groups, self.observations),
            "captioned": one_hot(self.codes, n_groups),
            "labels": crossed(self.codes, self.labelled, n_groups),
            "task_given_group": crossed(self.codes, self.predicted, n_groups),
            "group_given_task": crossed(self.named, self.labelled, n_groups),
            "joint": crossed(self.named, self.predicted, n_groups),
        }


class LabelledTaskMetric(TaskMetric):
    """A metric that sets a captioner's captions against labels.

    Args:
        attribute: whose groups are A.
        task: whose tasks are T.
        stats: how intervals are made.
        labels: where the labelled tasks come from: ``objects`` in the image; the ``union`` of what
            its human captions name (as Wang and Russakovsky do for captions); or ``each`` human
            caption as an observation of its own, which lets people and captioner say equally much
            (ours).
        groups: where the labelled groups come from: the image's ``labels``, or the one group that
            all its human ``captions`` together name; images without one are skipped.
        unclear: whether images whose model caption names no group or several are kept, or skipped
            as Wang and Russakovsky do for captions.
        words: see :class:`~bias_pipeline.metrics.counting.tally.CountingMetric`.
        exclude_tasks: tasks left out; every image shows a person.

    Raises:
        UsageError: on an unknown choice.
    """

    def __init__(
        self,
        attribute: Attribute,
        task: TaskVocabulary,
        stats: Bootstrap,
        labels: str = "objects",
        groups: str = "labels",
        unclear: str = "keep",
        words: str | None = None,
        exclude_tasks: Sequence[str] = ("person",),
    ) -> None:
        super().__init__(attribute, task, stats, words, exclude_tasks)
        self.labels = choice("labels", labels, LABELS)
        self.groups = choice("groups", groups, GROUPS)
        self.unclear = choice("unclear", unclear, UNCLEAR)

    def sides(self, seen: Seen, read: Reader = lambda table: table) -> Sides:
        """Labels and predictions on the images that have both.

        Args:
            seen: what images and captions say.
            read: from (R, T) tasks of observations to the (R, M) columns that are counted.

        Raises:
            NotApplicableError: if there is no such image.
        """
        codes = seen.codes
        images = seen.labelled & seen.has("model")
        if self.groups == "captions":
            codes = seen.named_together("human")
            images = images & (codes >= 0)
        table = self.observed(seen, read)
        images = images & (seen.known if self.labels == "objects" else seen.has("human"))
        named = _of_images(seen, seen.named("model"))
        if self.unclear == "skip":
            images = images & (named >= 0)
        if not images.any():
            raise NotApplicableError(
                f"captioner {seen.corpus.captioner!r}: no image has a group, a caption and what "
                f"labels={self.labels} groups={self.groups} unclear={self.unclear} ask for"
            )
        observations = np.ones(len(codes))
        if self.labels == "each":
            observations = np.bincount(seen.images("human"), minlength=len(codes)).astype(float)
        return Sides(
            images=images,
            codes=np.where(images, codes, -1),
            observations=observations,
            labelled=only(table, images),
            named=np.where(images, named, -1),
            predicted=only(seen.by_image("model", read(seen.mentions("model"))), images),
            n_groups=len(seen.groups),
        )

    def observed(self, seen: Seen, read: Reader = lambda table: table) -> sparse.csr_array:
        """(N, M) how many observations of each image's labels have each column."""
        if self.labels == "objects":
            return read(seen.objects)
        if self.labels == "each":
            return seen.by_image("human", read(seen.mentions("human")))
        named = seen.by_image("human", seen.mentions("human"))
        named.data = np.ones_like(named.data)
        return read(named)

    def caution(self) -> str:
        """What a reader of A->T must know."""
        return (
            "A→T by counting follows how much captions mention: read it beside mentions:model and "
            f"mentions:human (labels={self.labels}); below 0 is no sign of mitigation"
        )


def counts_of(sums: Sums, n_groups: int) -> Counts:
    """Counts from the sums of :meth:`Sides.tables`."""
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


def mention_rates(counts: Counts, of: str = "") -> dict[PartName, FloatArray]:
    """How many tasks an observation names or holds on average, by captions and by labels.

    Args:
        counts: of tasks.
        of: what stands instead of tasks.
    """
    return {
        PartName("mentions", side="model", detail=of): share(
            counts.task_given_group.sum(axis=(-2, -1)), counts.captioned.sum(axis=-1)
        ),
        PartName("mentions", side="human", detail=of): share(
            counts.labels.sum(axis=(-2, -1)), counts.total
        ),
    }


def mentions_about(images: Mask, of: str = "") -> dict[PartName, About]:
    """What :func:`mention_rates` rest on."""
    return {
        PartName("mentions", side="model", detail=of): About(images, unit="per caption"),
        PartName("mentions", side="human", detail=of): About(images, "human", "per observation"),
    }


def _of_images(seen: Seen, of_captions: IntArray) -> IntArray:
    """(N,) what the model's caption of each image says, -1 without one."""
    found = np.full(len(seen.corpus), -1)
    found[seen.images("model")] = of_captions
    return found
