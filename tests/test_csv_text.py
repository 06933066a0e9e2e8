"""CSV for people: no cell is a formula, and what is read back is what was written."""

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.io.files import csv_text, read_csv, table_csv

FORMULAS = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠x"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def spreadsheet_cell(value: object) -> str:
    """The cell as a spreadsheet reads it."""
    ((cell,),) = csv.reader(io.StringIO(csv_text([(value,)]), newline=""))
    return cell


@pytest.mark.parametrize("text", [*FORMULAS, *("'" + text for text in FORMULAS)])
def test_a_formula_is_text(text):
    assert spreadsheet_cell(text) == f"'{text}"


@given(st.floats(allow_nan=False))
def test_numbers_are_whole(number):
    assert float(spreadsheet_cell(number)) == number


def test_a_list_is_guarded_as_a_whole():
    assert (
        spreadsheet_cell(("=1", "2")),
        spreadsheet_cell((0, 12)),
        spreadsheet_cell(math.nan),
    ) == ("'=1 2", "0 12", "")


@given(st.lists(st.fixed_dictionaries({"a": TEXTS, "=b": TEXTS}), min_size=1))
def test_what_is_read_back_is_what_was_written(lines):
    assert read_csv(table_csv(lines)) == lines


def test_lines_of_another_length_are_refused():
    with pytest.raises(ValueError, match="zip"):
        read_csv("a,b\n1\n")
