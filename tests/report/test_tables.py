"""Tables for people: what is printed, and that nothing in it is obeyed."""

import csv
import io
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.io.files import read_csv
from bias_pipeline.io.terminal import INVISIBLE, printable
from bias_pipeline.report.tables import (
    arrow,
    attributed_notes,
    interval,
    markdown,
    percent,
    print_results,
    write_table,
)
from bias_pipeline.results.store import COLUMNS, Result, Row, rows_csv

HOSTILE = [
    "[red]",
    "[/]",
    "[link=http://x.invalid]y[/link]",
    "[bold",
    "a\\[b]",
    "=cmd()",
    "../../up",
    "x|y",
    "<script>",
    "{0}",
    "%s",
    ":smile:",
]


def row(**changes: object) -> Row:
    values: dict[str, object] = dict.fromkeys(COLUMNS, "x")
    numbers = ("value", "seed_std", "ci_low", "ci_high", "p_value", "coverage", "neutral_rate")
    values |= dict.fromkeys(numbers, 0.5)
    values |= {"metric_version": 1, "n_images": 10, "n_seeds": 2, "seeds": (0, 12)}
    values |= {"part": "score", "unit": "fraction"}
    return Row(**{**values, **changes})


def result(notes: tuple[str, ...] = (), **changes: object) -> Result:
    return Result("x", [row(**changes)], {"notes": list(notes)})


@pytest.mark.parametrize("name", HOSTILE)
def test_e9_a_hostile_name_is_printed_as_it_is_written(capsys, name):
    print_results([result(captioner=name)])
    assert f" {name} †" in capsys.readouterr().out


@pytest.mark.parametrize(("high", "marked"), [(0.0, True), (0.1, False), (math.nan, False)])
def test_an_interval_of_no_width_is_marked(capsys, high, marked):
    print_results([result(value=0.0, ci_low=0.0, ci_high=high)])
    assert ("¶ every resampling" in capsys.readouterr().out) == marked


@pytest.mark.parametrize("name", HOSTILE)
def test_e9_a_hostile_title_is_printed_as_it_is_written(capsys, name):
    print_results([result(dataset=name)])
    assert f"dataset {name} ·" in capsys.readouterr().out


@pytest.mark.parametrize("note", HOSTILE)
def test_e9_a_hostile_note_is_printed_as_it_is_written(capsys, note):
    print_results([result((note,))])
    assert f"x: {note}\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", HOSTILE)
def test_e9_a_hostile_setting_is_printed_as_it_is_written(capsys, name):
    print_results([replace(result(), settings={"dataset.root": name})])
    assert f" {name} " in capsys.readouterr().out


@pytest.mark.parametrize("sign", ["\x1b[31m", "\x07", "\r", "\n", "\u202e", "\u2066", "\ud800"])
def test_e9_control_characters_are_written_out(capsys, sign):
    print_results([result((f"a{sign}b",), captioner=f"a{sign}b")])
    assert sign not in capsys.readouterr().out.replace("\n", "" if sign == "\n" else "\n")


@given(st.text())
def test_e7_printable_text_is_printable(text):
    assert printable(text).isprintable()


@given(st.text(st.characters(categories=["L", "N", "P", "S"]).filter(lambda x: x not in INVISIBLE)))
def test_e7_ordinary_text_is_printed_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize("name", HOSTILE)
def test_e9_markdown_keeps_its_columns(name):
    header, _, line = markdown([result(captioner=name)]).splitlines()
    assert line.replace("\\|", "").count("|") == header.count("|")


def test_e9_markdown_holds_no_tag():
    assert "<script>" not in markdown([result(captioner="<script>")])


@given(st.text())
def test_e9_no_cell_of_a_csv_is_a_formula(text):
    (line,) = csv.DictReader(io.StringIO(rows_csv([row(captioner=text)]), newline=""))
    assert line["captioner"][:1] not in tuple("=+-@\t\r\n")


@given(st.text())
def test_text_comes_back_from_a_csv(text):
    (line,) = read_csv(rows_csv([row(captioner=text)]))
    assert line["captioner"] == text


def test_e7_a_table_with_half_a_surrogate_pair_is_written(tmp_path):
    write_table(tmp_path, [result(captioner="a\ud800")])
    assert "a?" in (tmp_path / "table.csv").read_text(encoding="utf-8")


def test_the_columns_of_a_table_are_those_of_a_row(tmp_path):
    write_table(tmp_path, [result()])
    assert (tmp_path / "table.csv").read_text().splitlines()[0] == ",".join(COLUMNS)


def test_fractions_are_per_cent_when_printed():
    assert interval(row(value=0.123, ci_low=0.1, ci_high=0.2)) == "12.3 [10.0, 20.0]"


def test_fractions_stay_fractions_in_files():
    (line,) = csv.DictReader(io.StringIO(rows_csv([row(value=0.123)])))
    assert float(line["value"]) == 0.123


def test_a_ratio_is_no_per_cent():
    assert interval(row(value=1.25, ci_low=1.0, ci_high=1.5, unit="ratio")) == "1.25 [1.00, 1.50]"


@pytest.mark.parametrize("unit", ["fraction", "ratio"])
def test_an_absent_number_is_a_dash(unit):
    nan = dict.fromkeys(("value", "ci_low", "ci_high"), math.nan)
    assert interval(row(unit=unit, **nan)) == "– [–, –]"


def test_an_absent_share_is_a_dash():
    assert percent(math.nan) == "–"


@pytest.mark.parametrize(
    ("low", "high", "neutral", "shown"),
    [
        (0.1, 0.2, 0.0, "↑"),
        (-0.2, -0.1, 0.0, "↓"),
        (-0.1, 0.1, 0.0, "≈"),
        (1.1, 1.2, 1.0, "↑"),
        (0.8, 0.9, 1.0, "↓"),
        (0.9, 1.1, 1.0, "≈"),
        (math.nan, math.nan, 0.0, ""),
    ],
)
def test_the_arrow_says_where_the_interval_lies(low, high, neutral, shown):
    assert arrow(row(ci_low=low, ci_high=high), neutral) == shown


def read_as(direction: str, metric: str = "lic", neutral: float = 0.0) -> Result:
    reading = {"direction": direction, "neutral": {"score": neutral}}
    return Result("x", [row(metric=metric)], {"notes": [], "metric": reading})


def test_metrics_that_are_read_alike_are_explained_once(
    capsys,
):
    print_results([read_as("lower is fairer"), read_as("lower is fairer", "leakage")])
    assert "lic, leakage: lower is fairer\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("direction", "heading"), [("lower is fairer", "score ↓"), ("nearer to 1 is fairer", "score ")]
)
def test_the_heading_points_down_only_where_lower_is_fairer(capsys, direction, heading):
    print_results([read_as(direction)])
    assert heading in capsys.readouterr().out


def test_the_arrow_of_a_headline_knows_its_neutral_value(
    capsys,
):
    print_results([read_as("", neutral=1.0)])
    assert "50.0 [50.0, 50.0] ↓" in capsys.readouterr().out


def test_two_headlines_have_their_own_p(capsys):
    rows = [row(part="a_to_t", p_value=0.697), row(part="t_to_a", p_value=1e-9)]
    print_results([replace(result(), rows=rows)])
    assert "0.697, <0.001" in capsys.readouterr().out


def test_settings_that_no_column_tells_become_columns(capsys):
    lines = [{"metric.relation": "ratio"}, {"metric.relation": "normalised"}]
    print_results([replace(result(), settings=item) for item in lines])
    assert "metric.relation" in capsys.readouterr().out


def test_settings_that_a_column_tells_do_not(capsys):
    print_results([replace(result(scoring=item), settings={"scoring": item}) for item in "ab"])
    assert capsys.readouterr().out.count("scoring") == 1


def test_unknown_training_is_a_difference_not_amplification(
    capsys,
):
    print_results([result()])
    assert "not an amplification" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        ([("sat", "lic"), ("sat", "leakage")], "sat: a note"),
        ([("sat", "lic"), ("oscar", "lic")], "sat, oscar: a note"),
    ],
)
def test_a_note_of_all_cells_of_a_captioner_is_the_captioner_s(cells, line):
    results = [result(("a note",), captioner=who, metric=metric) for who, metric in cells]
    assert attributed_notes(results) == [line]


def test_a_note_of_one_cell_says_which():
    quiet = result(captioner="sat", metric="lic")
    assert attributed_notes([quiet, result(("a note",), captioner="sat", metric="dba")]) == [
        "sat (dba): a note"
    ]
