"""Sets of tasks that occur together in images, for Multi->."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.captions import ranges

TaskSet = tuple[int, ...]

SETS = ("subsets", "complete")


def task_sets(tasks: sparse.csr_array, kind: str = "subsets", max_size: int = 2) -> list[TaskSet]:
    """The sets of tasks that occur.

    Args:
        tasks: (N, T) indicators.
        kind: ``subsets``: every set whose tasks occur together in an image (the paper);
            ``complete``: only the complete sets of images (the public code).
        max_size: largest set; 79 tasks have too many sets to use all.

    Example:
        >>> images = sparse.csr_array(np.array([[1, 1, 0], [0, 0, 1]]))
        >>> task_sets(images), task_sets(images, "complete")
        ([(0,), (0, 1), (1,), (2,)], [(0, 1), (2,)])
    """
    rows = _sorted(tasks)
    if kind == "complete":
        lists = np.split(rows.indices, rows.indptr[1:-1])
        return sorted(
            {tuple(columns.tolist()) for columns in lists if 0 < len(columns) <= max_size}
        )
    sets: set[TaskSet] = set()
    places = rows.indptr[:-1].astype(np.int64)
    image, codes = np.arange(rows.shape[0]), np.zeros(rows.shape[0], np.int64)
    for size in range(1, max_size + 1):
        image, places, codes = _extended(rows, image, places, codes)
        sets |= {_decoded(code, size, rows.shape[1]) for code in np.unique(codes).tolist()}
    return sorted(sets)


def holds(tasks: sparse.csr_array, sets: Sequence[TaskSet]) -> sparse.csr_array:
    """(N, M) whether each image contains all tasks of each set.

    Args:
        tasks: (N, T) indicators.
        sets: M sets of task numbers, each ascending.

    Example:
        >>> images = sparse.csr_array(np.array([[1, 1, 0], [0, 0, 1]]))
        >>> holds(images, [(0, 1), (2,)]).toarray().tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    rows = _sorted(tasks)
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
        image, places, code = _extended(rows, image, places, at)
        positions = np.searchsorted(keys, code)
        known = np.append(keys, -1)[positions] == code
        image, places, at = image[known], places[known], targets[positions[known]]
        whole = column[at] >= 0
        cells.append(np.stack([image[whole], column[at][whole]]))
    row, col = np.concatenate(cells, axis=1)
    return sparse.csr_array((np.ones(len(row)), (row, col)), shape=(rows.shape[0], len(sets)))


def _sorted(tasks: sparse.csr_array) -> sparse.csr_array:
    rows = sparse.csr_array(tasks > 0)
    rows.sort_indices()
    return rows


def _extended(
    rows: sparse.csr_array, image: IntArray, places: IntArray, codes: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Every set with one more task of its image, each set once (tasks ascend).

    Args:
        rows: (N, T) indicators with sorted columns.
        image: (E,) whose set it is.
        places: (E,) where the image's next tasks begin in ``rows.indices``.
        codes: (E,) a number of the set.

    Returns:
        The same three arrays for the larger sets; a code is the old one times T plus the task.
    """
    lengths = rows.indptr[image + 1] - places
    entry = ranges(places, lengths)
    larger = np.repeat(codes, lengths) * rows.shape[1] + rows.indices[entry]
    return np.repeat(image, lengths), entry + 1, larger


def _decoded(code: int, size: int, n_tasks: int) -> TaskSet:
    digits = []
    for _ in range(size):
        code, task = divmod(code, n_tasks)
        digits.append(task)
    return tuple(reversed(digits))
