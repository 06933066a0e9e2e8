"""Computes bias amplification by counting: BA_MALS, BA->, and Multi-> for sets of tasks.

Sources: Zhao et al. (2017), Wang and Russakovsky (2021), Zhao et al. (2023). Functions take
:class:`~bias_pipeline.metrics.functional.counts.Counts` of K groups and T tasks, or of K groups and
T sets of tasks. Leading axes are free. Undefined pairs are NaN and are left out of means; the
caller reports how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.captions import dense_ranks, ranges
from bias_pipeline.metrics.functional.counts import Counts, nanmean, share
from bias_pipeline.metrics.functional.groups import group_shares

Tie = Literal["zero", "negative"]
Denominator = Literal["images", "named"]
Predicted = Literal["joint", "task", "group"]
Absent = Literal["keep", "drop"]
DENOMINATORS: tuple[Denominator, ...] = get_args(Denominator)
PREDICTIONS: tuple[Predicted, ...] = get_args(Predicted)


def association(counts: Counts) -> IntArray:
    """The sign of the correlation of group and task in the labels, or 0 if they are independent.

    The integers n c(a, t) and c(a) c(t) are compared, since in floating point 3/15 differs from
    (5/15) (9/15).

    Args:
        counts: only the labels' counts are used; they must be whole numbers.

    Returns:
        (..., K, T).
    """
    n, a, t, both = (
        np.rint(x).astype(np.int64)
        for x in (counts.total, counts.groups, counts.tasks, counts.labels)
    )
    return np.sign(n[..., None, None] * both - a[..., :, None] * t[..., None, :])


def directional_pairs(
    counts: Counts,
    direction: str,
    *,
    tie: str = "zero",
    denominator: str = "images",
    training: Counts | None = None,
) -> Float64Array:
    """Amplification of each pair in one direction, which is above 0 if a correlation grows.

    The value is ``y D - (1 - y) D``, with y = 1 where P(a, t) > P(a) P(t) in the labels, else 0. D
    is the predicted minus the labelled conditional probability: P(t^ | a) - P(t | a) for
    ``a_to_t``, and P(a^ | t) - P(a | t) for ``t_to_a``.

    Args:
        counts: of the images that are scored.
        direction: ``a_to_t`` or ``t_to_a``.
        tie: the sign if group and task are exactly independent: ``zero`` (as in the authors' code)
            or ``negative`` (y = 0, as in the paper).
        denominator: the denominator of P(a^ | t): all ``images`` with task t, so that a caption
            that names no group counts as 0 for every group (the authors' first code), or only the
            ``named`` images, whose caption names a group (the authors' count tables).
        training: labels that give the correlation (default: the labels of ``counts``).

    Returns:
        (..., K, T) in [-1, 1], NaN where a conditional probability is undefined.

    Source: Wang and Russakovsky 2021, eq. 2-3.
    """
    signs = association(training or counts)
    changes = multi_pairs(counts, direction, denominator=denominator)
    return np.where(signs == 0, -1 if tie == "negative" else 0, signs) * changes


def ba_directional(
    counts: Counts,
    direction: str,
    *,
    tie: str = "zero",
    denominator: str = "images",
    undefined: str = "drop",
    training: Counts | None = None,
) -> Float64Array:
    """BA-> in one direction: the mean of :func:`directional_pairs`, in [-1, 1]; no change gives 0.

    Args:
        counts: see :func:`directional_pairs`.
        direction: see :func:`directional_pairs`.
        tie: see :func:`directional_pairs`.
        denominator: see :func:`directional_pairs`.
        undefined: whether undefined pairs are left out of the mean (``drop``, as in the authors'
            first code) or count as no change (``keep``, as in the authors' count tables).
        training: see :func:`directional_pairs`.

    Example:
        From the authors: one task, two groups, eight images.

        >>> groups = np.array([[0, 1]] * 3 + [[1, 0]] * 5)
        >>> labels = np.array([[0, 1, 1, 0, 0, 0, 0, 1]]).T
        >>> predicted = np.array([[1, 1, 1, 0, 0, 0, 0, 0]]).T
        >>> counts = Counts.from_rows(groups, labels, groups, predicted)
        >>> ba_directional(counts, "a_to_t").round(4).item()
        0.2667
    """
    pairs = directional_pairs(
        counts, direction, tie=tie, denominator=denominator, training=training
    )
    return nanmean(np.nan_to_num(pairs, nan=0.0) if undefined == "keep" else pairs, 2)


def mals_tasks(
    counts: Counts, *, predictions: str = "joint", training: Counts | None = None
) -> Float64Array:
    """The value that each task adds to BA_MALS: how much the share of its usual groups grows.

    The value is ``sum over groups a with b*(a, t) > 1/K of b~(a, t) - b*(a, t)``, where b(a, t) is
    the share of a among the images with t. A share of exactly 1/K does not count, and integers are
    compared.

    Args:
        counts: of the images that are scored.
        predictions: what b~ is computed from: ``joint`` predictions of group and task (the paper),
            the predicted ``task`` with the labelled group, or the predicted ``group`` with the
            labelled task.
        training: labels that give b* (default: the labels of ``counts``).

    Returns:
        (..., T) in [-1, 1], NaN where the task is absent from labels or predictions (0/0).
    """
    of_labels = training or counts
    before = group_shares(of_labels.labels)
    after = group_shares(predicted_pairs(counts, predictions))
    change = after - before
    total: Float64Array = np.where(leaning(of_labels), change, 0.0).sum(axis=-2)
    return np.where(np.isnan(change).any(axis=-2), np.nan, total)


def ba_mals(
    counts: Counts,
    *,
    predictions: str = "joint",
    absent: str = "keep",
    training: Counts | None = None,
) -> Float64Array:
    """BA_MALS: (1 / number of tasks) times the sum of :func:`mals_tasks`, in [-1, 1].

    Args:
        counts: see :func:`mals_tasks`.
        predictions: see :func:`mals_tasks`.
        absent: whether a task that is 0/0 counts as no change (``keep``, as in the public code) or
            is not counted among the tasks either (``drop``).
        training: see :func:`mals_tasks`.

    Returns:
        (...), NaN where no task counts.

    Source: Zhao et al. 2017, section 3.

    Example:
        >>> a, t = np.array([[1, 0], [1, 0], [0, 1]]), np.ones((3, 1))
        >>> all_men = np.array([[1, 0], [1, 0], [1, 0]])
        >>> ba_mals(Counts.from_rows(a, t, all_men, t)).round(4).item()
        0.3333
    """
    tasks = mals_tasks(counts, predictions=predictions, training=training)
    return nanmean(np.nan_to_num(tasks, nan=0.0) if absent == "keep" else tasks, 1)


def predicted_pairs(counts: Counts, predictions: str) -> Float64Array:
    """(..., K, T): counts of pairs in predictions. For the arguments see :func:`mals_tasks`."""
    return {
        "joint": counts.joint,
        "task": counts.task_given_group,
        "group": counts.group_given_task,
    }[predictions]


def leaning(counts: Counts) -> BoolArray:
    """(..., K, T) flags: true where a group has more than 1/K of a task's labels, in integers.

    Args:
        counts: only the labels' counts are used; they must be whole numbers.
    """
    labels = np.rint(counts.labels).astype(np.int64)
    return np.asarray(labels.shape[-2] * labels > labels.sum(axis=-2, keepdims=True))


def of_task(counts: Counts, denominator: str) -> Float64Array:
    """(..., T): the denominator of P(a^ | t) in observations; see :func:`directional_pairs`."""
    if denominator == "images":
        return counts.tasks
    named: Float64Array = counts.group_given_task.sum(axis=-2)
    return named


def multi_pairs(
    counts: Counts, direction: str, *, denominator: str = "images", training: Counts | None = None
) -> Float64Array:
    """(..., K, M): predicted minus labelled conditional probability, without the sign of BA->.

    Args:
        counts: of the images that are scored.
        direction: ``a_to_t`` (groups to sets) or ``t_to_a``.
        denominator: see
            :func:`bias_pipeline.metrics.functional.amplification.directional_pairs`.
        training: labels that are subtracted, as in the paper (default: the labels of ``counts``, as
            in the public code).
    """
    base = training or counts
    if direction == "a_to_t":
        predicted = share(counts.task_given_group, counts.captioned[..., :, None])
        return predicted - share(base.labels, base.groups[..., :, None])
    predicted = share(counts.group_given_task, of_task(counts, denominator)[..., None, :])
    return predicted - share(base.labels, base.tasks[..., None, :])


def multi_directional(
    counts: Counts,
    direction: str,
    *,
    absolute: bool = True,
    denominator: str = "images",
    training: Counts | None = None,
) -> tuple[Float64Array, Float64Array]:
    """Multi-> in one direction, as the mean and the variance of the differences.

    Args:
        counts: see :func:`multi_pairs`.
        direction: see :func:`multi_pairs`.
        absolute: True for the paper's mean of absolute differences, in [0, 1], which cannot show
            that bias shrinks; False for the signed mean of BA->, in [-1, 1].
        denominator: see :func:`multi_pairs`.
        training: see :func:`multi_pairs`.

    Example:
        >>> a, t = np.eye(2)[[0, 0, 1, 1]], np.array([[1], [0], [1], [0]])
        >>> more = np.array([[1], [1], [0], [0]])
        >>> mean, variance = multi_directional(Counts.from_rows(a, t, a, more), "a_to_t")
        >>> mean.item(), variance.item()
        (0.5, 0.25)
    """
    pairs = multi_pairs(counts, direction, denominator=denominator, training=training)
    whole, signed, variance = multi_summary(pairs, association(training or counts))
    return (whole if absolute else signed), variance


def multi_summary(
    pairs: Float64Array, signs: IntArray
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """The mean of absolute differences, the mean of signed differences, and the variance.

    Args:
        pairs: (..., K, M) differences.
        signs: (..., K, M) :func:`~bias_pipeline.metrics.functional.amplification.association`.

    Example:
        >>> [x.item() for x in multi_summary(np.array([[0.5, -0.5]]), np.array([[1, 1]]))]
        [0.5, 0.0, 0.25]
    """
    return nanmean(np.abs(pairs), 2), nanmean(signs * pairs, 2), _variance(pairs)


def multi_mals(counts: Counts) -> tuple[Float64Array, Float64Array]:
    """Multi_MALS: over sets, the mean and variance of absolute changes of usual groups' shares.

    Args:
        counts: see :func:`multi_pairs`.

    Example:
        >>> a, t = np.array([[1, 0], [1, 0], [0, 1]]), np.ones((3, 1))
        >>> all_men = np.array([[1, 0], [1, 0], [1, 0]])
        >>> multi_mals(Counts.from_rows(a, t, all_men, t))[0].round(4).item()
        0.3333
    """
    change = group_shares(counts.joint) - group_shares(counts.labels)
    pairs = np.where(leaning(counts), change, 0.0 * change)
    return nanmean(np.abs(pairs).sum(axis=-2), 1), _variance(pairs)


def _variance(pairs: Float64Array) -> Float64Array:
    mean = nanmean(pairs, 2)
    return nanmean((pairs - mean[..., None, None]) ** 2, 2)


TaskSet = tuple[int, ...]

Sets = Literal["subsets", "complete"]


def task_sets(tasks: sparse.csr_array, kind: str = "subsets", max_size: int = 2) -> list[TaskSet]:
    """The sets of tasks that occur in labels.

    Args:
        tasks: (N, T) indicators.
        kind: ``subsets``: every set whose tasks occur together in an image (the paper);
            ``complete``: only the complete sets of images (the public code).
        max_size: size of the largest set; 79 tasks have too many sets to use all.

    Example:
        >>> images = sparse.csr_array(np.array([[1, 1, 0], [0, 0, 1]]))
        >>> task_sets(images), task_sets(images, "complete")
        ([(0,), (0, 1), (1,), (2,)], [(0, 1), (2,)])
    """
    rows = _sorted_rows(tasks)
    if kind == "complete":
        lists = np.split(rows.indices, rows.indptr[1:-1])
        return sorted(
            {tuple(columns.tolist()) for columns in lists if 0 < len(columns) <= max_size}
        )
    sets: list[TaskSet] = []
    largest: list[TaskSet] = [()]
    places = rows.indptr[:-1].astype(np.int64)
    image, which = np.arange(rows.shape[0]), np.zeros(rows.shape[0], np.int64)
    for _ in range(max_size):
        image, places, codes = _extend_sets(rows, image, places, which)
        which = dense_ranks(codes)  # so that codes stay far below 2 ** 63, whatever the size
        distinct = np.zeros(int(which.max(initial=-1)) + 1, np.int64)
        distinct[which] = codes
        steps = (divmod(code, rows.shape[1]) for code in distinct.tolist())
        largest = [(*largest[smaller], task) for smaller, task in steps]
        sets += largest
    return sorted(sets)


def holds(tasks: sparse.csr_array, sets: Sequence[TaskSet]) -> sparse.csr_array:
    """(N, M) flags: true where the image contains all tasks of the set.

    Args:
        tasks: (N, T) indicators.
        sets: M sets of task numbers, each ascending.

    Example:
        >>> images = sparse.csr_array(np.array([[1, 1, 0], [0, 0, 1]]))
        >>> holds(images, [(0, 1), (2,)]).toarray().tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    rows = _sorted_rows(tasks)
    prefixes = sorted(
        {tasks_of_set[:k] for tasks_of_set in sets for k in range(1, len(tasks_of_set) + 1)}
    )
    node = {prefix: number + 1 for number, prefix in enumerate(prefixes)}  # 0 is the empty set
    steps = {node.get(p[:-1], 0) * rows.shape[1] + p[-1]: node[p] for p in prefixes}
    keys = np.array(sorted(steps), np.int64)
    targets = np.array([steps[key] for key in keys.tolist()], np.int64)
    column = np.full(len(prefixes) + 1, -1)
    for number, tasks_of_set in enumerate(sets):
        column[node[tasks_of_set]] = number
    image, places = np.arange(rows.shape[0]), rows.indptr[:-1].astype(np.int64)
    at = np.zeros(rows.shape[0], np.int64)
    cells = [np.empty((2, 0), np.int64)]
    for _ in range(max(map(len, sets), default=0)):
        image, places, code = _extend_sets(rows, image, places, at)
        positions = np.searchsorted(keys, code)
        known = np.append(keys, -1)[positions] == code
        image, places, at = image[known], places[known], targets[positions[known]]
        whole = column[at] >= 0
        cells.append(np.stack([image[whole], column[at][whole]]))
    row, col = np.concatenate(cells, axis=1)
    return sparse.csr_array((np.ones(len(row)), (row, col)), shape=(rows.shape[0], len(sets)))


def _sorted_rows(tasks: sparse.csr_array) -> sparse.csr_array:
    rows = sparse.csr_array(tasks > 0)
    rows.sort_indices()
    return rows


def _extend_sets(
    rows: sparse.csr_array, image: IntArray, places: IntArray, codes: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """All sets with one more task of the same image.

    Each set occurs once, since the tasks of a set are in ascending order.

    ``rows`` (N, T) are indicators with sorted columns. ``image`` (E,) is the image of each set.
    ``places`` (E,) says where the next tasks of the image begin in ``rows.indices``. ``codes`` (E,)
    is the number of each set. The function returns these three arrays for the larger sets. A new
    code is the old code times T, plus the index of the new task.
    """
    lengths = rows.indptr[image + 1] - places
    entry = ranges(places, lengths)
    larger = np.repeat(codes, lengths) * rows.shape[1] + rows.indices[entry]
    return np.repeat(image, lengths), entry + 1, larger
