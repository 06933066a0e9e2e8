"""Tables of a corpus by group: each group has its own columns."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.captions import offsets


def crossed(codes: IntArray, table: sparse.csr_array, n_groups: int) -> sparse.csr_array:
    """(N, K * T) each row of a table moved to the columns of its group; rows of no group are empty.

    Args:
        codes: (N,) group of each row, below 0 for none.
        table: (N, T).
        n_groups: K.

    Example:
        >>> table = sparse.csr_array(np.array([[2.0, 0.0], [0.0, 3.0], [1.0, 1.0]]))
        >>> crossed(np.array([1, 0, -1]), table, 2).toarray().tolist()
        [[0.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    n_tasks = table.shape[1]
    code = np.repeat(codes, np.diff(table.indptr))
    in_group = code >= 0
    columns = code[in_group] * n_tasks + table.indices[in_group]
    shape = (len(codes), n_groups * n_tasks)
    return sparse.csr_array((table.data[in_group], columns, _ends(table, in_group)), shape=shape)


def only(table: sparse.csr_array, images: BoolArray) -> sparse.csr_array:
    """A table whose rows of other images are empty."""
    chosen = np.repeat(images, np.diff(table.indptr))
    columns = table.indices[chosen]
    return sparse.csr_array((table.data[chosen], columns, _ends(table, chosen)), shape=table.shape)


def _ends(table: sparse.csr_array, chosen: BoolArray) -> IntArray:
    """(N + 1,) where the rows of a table start and end once only the chosen entries are left.

    Rows stay in order, so nothing has to be sorted again.
    """
    return offsets(chosen)[table.indptr]


def one_hot(
    codes: IntArray, n_groups: int, weights: Float64Array | None = None
) -> sparse.csr_array:
    """(N, K) one column a row, none where the code is below 0."""
    rows = np.flatnonzero(codes >= 0)
    data = np.ones(len(rows)) if weights is None else weights[rows]
    return sparse.csr_array((data, (rows, codes[rows])), shape=(len(codes), n_groups))


def by_group(sums: Float64Array, n_groups: int) -> Float64Array:
    """(B, K, T) from (B, K * T) sums of a crossed table."""
    return sums.reshape(len(sums), n_groups, -1)
