"""Numbers and run ids that a change did not mean to move have not moved."""

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from tests.golden.cells import CELLS, IDS, NET, ROWS, id_of, rows_of

NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] if {*NET} <= {*words} else [])
    for name, words in CELLS.items()
]


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_the_frozen_ones(name):
    frozen = pd.read_csv(ROWS)
    reset_index = frozen[frozen["cell"] == name].reset_index(drop=True)
    assert_frame_equal(rows_of(name), reset_index, check_dtype=False, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", CELLS)
def test_run_ids_are_the_frozen_ones(name):
    """A parameter that was added has its no-bias value in ``LATER`` of results/identity.py."""
    frozen = pd.read_csv(IDS, index_col="cell")["run_id"]
    assert id_of(name) == frozen[name]
