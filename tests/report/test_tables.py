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
from bias_pipeline.report.compare import Leaderboard, Rank
from bias_pipeline.report.compared_questions import print_leaderboards
from bias_pipeline.report.sections import overviews
from bias_pipeline.report.table import NumberCell, Table, percent
from bias_pipeline.report.tables import (
    arrow,
    attributed_notes,
    headline_table,
    latest_results,
    print_results,
    write_table,
)
from bias_pipeline.report.text_formats import markdown_report
from bias_pipeline.results.rows import COLUMNS, Result, Row, rows_csv

HOSTILE = ["[red]", "[/]", "[bold", "a\\[b]", "[link=http://x.invalid]y[/link]", ":smile:", "{0}"]
HOSTILE += ["=cmd()", "../../up", "x|y", "<script>", "%s"]


def row(**changes: object) -> Row:
    values: dict[str, object] = dict.fromkeys(COLUMNS, "x")
    numbers = ("value", "seed_std", "ci_low", "ci_high", "p_value", "coverage", "neutral_rate")
    values |= dict.fromkeys(numbers, 0.5)
    values |= {"metric_version": 1, "n_images": 10, "n_seeds": 2, "seeds": (0, 12)}
    values |= {"part": "score", "unit": "fraction"}
    return Row(**{**values, **changes})


def markdown(results: list[Result]) -> str:
    """The headline table, without its caption."""
    return markdown_report(headline_table(results)).partition("\n\n")[2]


def result(notes: tuple[str, ...] = (), **changes: object) -> Result:
    return Result("x", [row(**changes)], {"notes": list(notes)})


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_printed_as_it_is_written(capsys, text):
    made = result((text,), captioner=text, dataset=text)
    print_results([replace(made, settings={"dataset.root": text})])
    out = capsys.readouterr().out
    for printed in (f" {text} †", f"dataset {text} ·", f"{text}: {text}\n", f"root {text} "):
        assert printed in out


@pytest.mark.parametrize(("high", "marked"), [(0.0, True), (0.1, False), (math.nan, False)])
def test_an_interval_of_no_width_is_marked(capsys, high, marked):
    print_results([result(value=0.0, ci_low=0.0, ci_high=high)])
    assert ("¶ every resampling" in capsys.readouterr().out) == marked


@pytest.mark.parametrize(("reach", "marked"), [(0.81, True), (0.95, False), (math.nan, False)])
def test_people_who_do_not_reach_the_captioner_are_marked(capsys, reach, marked):
    made = result(ci_low=0.4)
    made.rows.append(row(part="matched:reach", value=reach))
    print_results([made])
    printed = capsys.readouterr().out
    assert ("50 ‖" in printed, "‖ at equal style" in printed) == (marked, marked)


@pytest.mark.parametrize("sign", ["\x1b[31m", "\x07", "\r", "\n", "\u202e", "\u2066", "\ud800"])
def test_control_characters_are_written_out(capsys, sign):
    print_results([result((f"a{sign}b",), captioner=f"a{sign}b")])
    assert sign not in capsys.readouterr().out.replace("\n", "" if sign == "\n" else "\n")


@given(st.text())
def test_printable_text_is_printable(text):
    assert printable(text).isprintable()


@given(st.text(st.characters(categories=["L", "N", "P", "S"]).filter(lambda x: x not in INVISIBLE)))
def test_ordinary_text_is_printed_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_keeps_its_columns(name):
    header, _, line = markdown([result(captioner=name)]).splitlines()
    assert line.replace("\\|", "").count("|") == header.count("|")


def test_markdown_holds_no_tag():
    assert "<script>" not in markdown([result(captioner="<script>")])


@given(st.text())
def test_no_cell_of_a_csv_is_a_formula(text):
    (line,) = csv.DictReader(io.StringIO(rows_csv([row(captioner=text)]), newline=""))
    assert line["captioner"][:1] not in tuple("=+-@\t\r\n")


@given(st.text())
def test_text_comes_back_from_a_csv(text):
    (line,) = read_csv(rows_csv([row(captioner=text)]))
    assert line["captioner"] == text


def test_a_table_with_half_a_surrogate_pair_is_written(tmp_path):
    write_table(tmp_path, [result(captioner="a\ud800")])
    assert "a?" in (tmp_path / "table.csv").read_text(encoding="utf-8")


def test_the_columns_of_a_table_are_those_of_a_row(tmp_path):
    write_table(tmp_path, [result()])
    assert (tmp_path / "table.csv").read_text().splitlines()[0] == ",".join(COLUMNS)


@pytest.mark.parametrize(
    ("unit", "numbers", "printed"),
    [
        ("fraction", (0.123, 0.1, 0.2), "12.3 [10.0, 20.0]"),
        ("ratio", (1.25, 1.0, 1.5), "1.25 [1.00, 1.50]"),
        ("fraction", (math.nan,) * 3, "– [–, –]"),
        ("ratio", (math.nan,) * 3, "– [–, –]"),
    ],
)
def test_fractions_are_printed_in_per_cent_and_absent_numbers_as_dashes(unit, numbers, printed):
    value, low, high = numbers
    assert NumberCell.of_row(row(unit=unit, value=value, ci_low=low, ci_high=high)).text == printed


def test_an_absent_share_is_a_dash():
    assert percent(math.nan) == "–"


def test_fractions_stay_fractions_in_files():
    (line,) = csv.DictReader(io.StringIO(rows_csv([row(value=0.123)])))
    assert float(line["value"]) == 0.123


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


FAIRER = "lower is fairer"
TWO_WAYS = replace(
    result(), rows=[row(part="a_to_t", p_value=0.697), row(part="t_to_a", p_value=1e-9)]
)


def read_as(direction: str, metric: str = "lic", neutral: float = 0.0) -> Result:
    reading = {"direction": direction, "neutral": {"score": neutral}}
    return Result("x", [row(metric=metric)], {"notes": [], "metric": reading})


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ([read_as(FAIRER), read_as(FAIRER, "leakage")], "lic, leakage: lower is fairer\n"),
        ([read_as(FAIRER)], " score ↓ "),
        ([read_as("nearer to 1 is fairer")], " score   "),
        ([read_as("", neutral=1.0)], "50.0 [50.0, 50.0] ↓"),
        ([result()], "not an amplification"),  # where training is unknown
        ([TWO_WAYS], "0.697, <0.001"),
        ([replace(result(), settings={"metric.relation": name}) for name in "ab"], ".relation"),
    ],
)
def test_it_is_printed(capsys, results, words):
    print_results(results)
    assert words in capsys.readouterr().out


def test_settings_that_a_column_tells_do_not(capsys):
    print_results([replace(result(scoring=item), settings={"scoring": item}) for item in "ab"])
    assert capsys.readouterr().out.count("scoring") == 1


NOTE = ("a note",)


@pytest.mark.parametrize(
    ("cells", "line"),
    [
        ([("sat", "lic", NOTE), ("sat", "leakage", NOTE)], "sat: a note"),
        ([("sat", "lic", NOTE), ("oscar", "lic", NOTE)], "sat, oscar: a note"),
        ([("sat", "lic", ()), ("sat", "dba", NOTE)], "sat (dba): a note"),
        (
            [("sat", "lic", ()), ("sat", "dba", NOTE), ("sat", "dpa", NOTE)],
            "sat (dba; dpa): a note",
        ),
    ],
)
def test_a_note_says_whose_it_is(cells, line):
    results = [result(notes, captioner=who, metric=metric) for who, metric, notes in cells]
    assert attributed_notes(results) == [line]


@pytest.mark.parametrize("key", ["attribute", "dataset"])
def test_a_note_names_the_attribute_and_the_data_set_that_it_is_about(key):
    results = [result(notes, captioner="sat", **{key: notes[0]}) for notes in (("a",), ("b",))]
    assert attributed_notes(results) == ["sat (a): a", "sat (b): b"]


def test_a_note_names_a_usual_setting_where_others_differ():
    results = [
        replace(result(notes, captioner="sat"), settings={"text.preambles": name})
        for name, notes in {"keep": NOTE, "cut": ()}.items()
    ]
    assert attributed_notes(results) == ["sat (text.preambles=keep): a note"]


def test_a_note_names_only_settings_in_which_runs_of_its_metric_differ():
    alignments = {"constant": (), "matched": NOTE}
    lic = [
        result(notes, captioner="sat", metric="lic", alignment=name)
        for name, notes in alignments.items()
    ]
    results = [*lic, result((), captioner="sat", metric="dpa", encoder="lstm")]
    assert attributed_notes(results) == ["sat (lic matched): a note"]


@pytest.mark.parametrize(("n_captioners", "against_first"), [(3, False), (31, True)])
def test_letters_are_explained_as_they_were_tested(capsys, n_captioners, against_first):
    rows = [row(captioner=f"c{number}") for number in range(n_captioners)]
    print_leaderboards([Leaderboard("lic", "score", [Rank(one, 0.5, "a") for one in rows])], [])
    out = capsys.readouterr().out
    assert ("that share a letter" in out, "against the first only" in out) == (
        not against_first,
        against_first,
    )


@pytest.mark.parametrize(
    ("unit", "title"), [("fraction", "2 seeds · per cent"), ("ratio", "· fractions in per cent")]
)
def test_only_fractions_are_said_to_be_in_per_cent(capsys, unit, title):
    print_results([result(unit=unit)])
    assert capsys.readouterr().out.splitlines()[0].endswith(title)


def run(run_id: str, captioner: str, started: str) -> Result:
    return Result(run_id, [row(run_id=run_id, captioner=captioner)], {"started": started})


def test_of_two_runs_of_a_cell_the_later_is_shown():
    shown = latest_results([run("late", "sat", "2026-01-02"), run("early", "sat", "2026-01-01")])
    assert [item.run_id for item in shown] == ["late"]


def test_runs_of_other_settings_are_all_shown():
    runs = [run("1", "sat", "2026-01-01"), run("2", "sat", "2026-01-02")]
    lines = [replace(item, settings={"encoder.order": item.run_id}) for item in runs]
    assert len(latest_results(lines)) == 2


def headlines(*captioners: str) -> Table:
    """The table of a page on two metrics; the metric that is later in the alphabet ran first."""
    results = [
        Result(f"{captioner} {metric}", [row(captioner=captioner, metric=metric, n_images=n)], {})
        for metric, n in (("quality", 30), ("lic", 20))
        for captioner in captioners
    ]
    (section,) = overviews(results, [])
    return section.tables[0]


def test_a_page_has_its_metrics_in_the_order_of_their_names():
    assert [name for name, *_ in headlines("sat").rows] == ["lic", "quality"]


def test_a_captioners_line_has_the_images_of_the_metric_with_the_most_images():
    assert [line[3].value for line in headlines("sat", "oscar").rows] == [30, 30]
