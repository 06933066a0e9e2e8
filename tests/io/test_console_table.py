"""Tables within the width: folded by columns, no word cut, a line a row."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.io.terminal import print_text, width, wrap_sentence
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Table

WIDTHS = st.integers(40, 120)
CELL = st.text(alphabet="ab.1 ", max_size=25)


def printed_lines(
    monkeypatch: pytest.MonkeyPatch, columns: int, head: list[str], rows: list[list[str]]
) -> str:
    out = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setattr(sys, "stdout", out)
        print_table(Table("", head, rows))
    return out.getvalue()


NAMES = ["amplifier", "faithful"]
HEADER = ["captioner", *(f"part {n}" for n in range(9))]
LINES = [[name, *(f"{n}.5 [{n}.1, {n}.9] ↑" for n in range(9))] for name in NAMES]


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_every_number_is_whole_on_the_line_of_its_row_and_no_line_too_wide(monkeypatch, columns):
    lines = printed_lines(monkeypatch, columns, HEADER, LINES).splitlines()
    assert max(map(len, lines)) <= columns
    for row in LINES:
        matches = [line for line in lines if line.strip().startswith(row[0])]
        assert all(any(f"  {cell}" in line for line in matches) for cell in row)


def test_a_table_that_fits_is_one_block(monkeypatch):
    assert printed_lines(monkeypatch, 200, HEADER, LINES).count("captioner") == 1


def test_long_names_break_behind_a_sign(monkeypatch):
    name = "blip_2_large_flan_t5_xxl_beam_5_temperature_0.7_of_november"
    lines = printed_lines(monkeypatch, 60, ["captioner", "score"], [[name, "0.5"]]).splitlines()[2:]
    pieces = [line.split("  ")[1].strip() for line in lines]
    assert "".join(pieces) == name
    assert all(piece[-1] in "_." for piece in pieces[:-1])


def test_values_do_not_break_at_a_point(monkeypatch):
    text = printed_lines(
        monkeypatch, 40, ["n" * 18, "value"], [["x", "12.3456 [11.1111, 13.1111] ↑"]]
    )
    assert all(number in text for number in ("12.3456", "11.1111", "13.1111"))


@given(st.data(), WIDTHS)
def test_any_table_fits_and_loses_nothing(data, columns):
    n_columns = data.draw(st.integers(1, 6))
    row = st.lists(CELL, min_size=n_columns, max_size=n_columns)
    table = data.draw(st.lists(row, min_size=1, max_size=4))
    with pytest.MonkeyPatch.context() as monkeypatch:
        text = printed_lines(monkeypatch, columns, table[0], table[1:])
    assert max(map(len, text.splitlines())) <= columns
    for sign in "ab1":
        repeated = sum(cell.count(sign) for line in table for cell in line)
        assert text.count(sign) >= repeated


def test_wide_signs_take_two_columns(monkeypatch):
    rows = [["描述", "1"], ["abcd", "1"]]
    lines = printed_lines(monkeypatch, 80, ["captioner", "n"], rows).splitlines()
    assert lines[2].index("1") + 2 == lines[3].index("1")


def test_a_rule_is_one_that_the_output_can_take(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", out)
    print_table(Table("", ["a"], [["b"]]))
    out.flush()
    assert b"  -\n" in out.buffer.getvalue()


def test_without_a_terminal_there_are_eighty_columns(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())
    assert width() == 80


def test_sentences_stay_whole_where_nobody_looks(capsys):
    print_text("word " * 40)
    assert capsys.readouterr().out == "word " * 40 + "\n"


@given(st.text(alphabet="ab ", max_size=300), WIDTHS)
def test_sentences_break_between_words(text, columns):
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = wrap_sentence(text).splitlines()
    words = [word for word in text.split() if len(word) <= columns]
    assert [w for line in lines for w in line.split() if w in words] or not words
    assert all(len(line) <= columns for line in lines)


def test_tables_obey_no_cell(monkeypatch):
    text = printed_lines(monkeypatch, 120, ["a\x1b[31mb", "score"], [["c\u202ed", "1\n2"]])
    assert [sign for sign in text if not sign.isprintable()] == ["\n"] * 3
