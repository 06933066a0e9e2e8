"""Exports for papers: the page's own cells as LaTeX, Markdown, CSV, Parquet, SVG and PNG."""

import csv
import io
import math
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import BufferReader, parquet

from bias_pipeline.commands.main import main
from bias_pipeline.errors import ResourceError
from bias_pipeline.io.terminal import printable
from bias_pipeline.report import text_formats as md
from bias_pipeline.report import text_formats as tex
from bias_pipeline.report.exports import export, files
from bias_pipeline.report.page import Report, html, report_of
from bias_pipeline.report.section import Section
from bias_pipeline.report.table import NumberCell, Table, Weighted, without_places
from bias_pipeline.report.word_attribution import section
from bias_pipeline.results.store import ResultStore
from tests.report.test_page import directional, draw, result
from tests.report.test_summary import result as other_style
from tests.report.test_tables import HOSTILE
from tests.report.test_word_attribution import make_words

LATEX = shutil.which("pdflatex") or shutil.which("lualatex")
NASTY = [*HOSTILE, r"\input{/etc/passwd}", "a & b % c", "$x^2$", "~#_", "[2cm]", "*", "--- ``q''"]
COMMANDS = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\symbol{34}": '"',
    r"\textendash{}": "–",
    r"\textemdash{}": "—",
    r"\textdagger{}": "†",
    r"\textellipsis{}": "…",
    r"$\uparrow$": "↑",
    r"$\downarrow$": "↓",
    r"$\rightarrow$": "→",
    r"$\approx$": "≈",
    r"$\pm$": "±",
    "{[}": "[",
    "{]}": "]",
    "{*}": "*",
    r"\ ": " ",
    "{}": "",
    **{f"\\{sign}": sign for sign in "{}$&#%_"},
}
COMMAND = re.compile("|".join(re.escape(name) for name in sorted(COMMANDS, key=len)[::-1]))


def read_tex(text: str) -> str:
    """What LaTeX sets: known commands as their signs; any other special sign is an error."""
    left = COMMAND.sub("\1", text)
    assert not re.search(r"[\\{}$&#%_~^\[\]*<>|\"]|--|``|''|,,|  ", left), left
    return COMMAND.sub(lambda match: COMMANDS[match.group()], text)


@cache
def contest() -> Report:
    """Two captioners that a test tells apart, and one metric with directions."""
    draws = {"run-fair": {"score": draw(0.1)}, "run-unfair": {"score": draw(0.5)}}
    return report_of([FAIR, UNFAIR, directional("sat")], draws)


def all_tables(report: Report) -> str:
    return "".join(tex.latex(table, "t") for section in report.sections for table in section.tables)


@pytest.fixture(scope="module")
def exported_files() -> Mapping[str, bytes]:
    return dict(files(contest()))


# --- LaTeX


@given(st.text())
@example("/0/")
def test_latex_sets_any_text_as_it_is(text):
    """But for the folders of absolute paths, which no paper shows."""
    assert read_tex(tex.escape_latex(text)) == without_places(printable(text))


@given(st.text(alphabet="-'`,!?[]*\\{} ^~\"", max_size=8))
def test_latex_joins_no_signs(text):
    assert read_tex(tex.escape_latex(text)) == text


FAIR, UNFAIR = result("fair", value=0.1), result("unfair", value=0.5)
EQUAL = [result(name, value=0.1) for name in ("one", "two")]
EQUAL_DRAWS = {cell.run_id: {"score": draw(0.1)} for cell in EQUAL}


def test_nothing_is_bold_but_what_the_test_tells_apart(exported_files):
    markdown = "".join(t.decode() for p, t in exported_files.items() if re.match("tables.*md", p))
    assert set(re.findall(r"\\textbf\{([^{]*) ", all_tables(contest()))) == {"10.0"}
    assert set(re.findall(r"\| \*\*([0-9.]+) ", markdown)) == {"10.0"}
    assert set(re.findall(r"<strong>([0-9.]+) ", html(contest()))) == {"10.0"}


@pytest.mark.parametrize(
    ("results", "draws"),
    [([FAIR, UNFAIR], {}), (EQUAL, EQUAL_DRAWS)],
    ids=["without a test", "a pair that cannot be told apart"],
)
def test_nothing_is_bold(results, draws):
    assert "textbf" not in all_tables(report_of(results, draws))


def test_numbers_that_are_not_used_are_italic_in_files():
    exported_files = dict(files(report_of([other_style("lic", words=5.0)], {})))
    table = exported_files["tables/gender-data-set-x-headlines.md"].decode()
    assert ("| *11.0 " in table, "Italic: not used, because" in table) == (True, True)
    table = exported_files["tables/gender-data-set-x-headlines.tex"].decode()
    assert r"\textit{11.0 " in table


def test_no_table_says_nan():
    nan = dict.fromkeys(("value", "ci_low", "ci_high", "p_value", "coverage"), math.nan)
    assert "nan" not in all_tables(report_of([result(**nan)], {})).lower()


def test_a_negative_number_has_a_minus():
    table = Table("t", ["a", "b"], [["x-1", NumberCell(-0.5, -0.6, -0.4)]])
    assert "x-1 & $-$0.50 {[}$-$0.60, $-$0.40{]} " in tex.latex(table, "t")


def test_a_table_that_stands_alone_says_how_it_is_read(exported_files):
    table = exported_files["tables/x-data-set-x-headlines.tex"].decode()
    assert "Fractions in per cent" in table
    assert "than every other captioner beyond chance" in table
    assert "neither beyond chance (by the corrected p of the answers)" in table


@pytest.mark.slow
@pytest.mark.skipif(LATEX is None, reason="neither pdflatex nor lualatex is installed")
def test_a_real_latex_compiles_every_table_of_an_export(tmp_path):
    hostile = [result(name, name, value=0.1) for name in NASTY]
    export(contest(), tmp_path / "contest")
    export(report_of([*hostile, other_style("lic", words=5.0)], {}), tmp_path / "hostile")
    tables = sorted(path.relative_to(tmp_path) for path in tmp_path.glob("*/tables/*.tex"))
    assert len({table.parts[0] for table in tables}) == 2
    inputs = "".join(rf"\input{{{table.as_posix()}}}\clearpage " for table in tables)
    head = r"\documentclass{article}\usepackage{booktabs}\begin{document}"
    (tmp_path / "t.tex").write_text(rf"{head}{inputs}\end{{document}}", encoding="utf-8")
    command = [str(LATEX), "-halt-on-error", "-no-shell-escape", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]


# --- Markdown


@given(st.text())
@example("/0/")
def test_markdown_shows_any_text_as_it_is(text):
    """But for the folders of absolute paths."""
    escaped = md.escape_markdown(text)
    assert re.sub(r"\\(.)", r"\1", escaped) == without_places(printable(text))
    assert not re.search(r"[|<>`*_\[\]&]|://|www\.", re.sub(r"\\.", "", escaped))


# --- CSV and Parquet


def test_csv_has_numbers_with_their_intervals(exported_files):
    (line, *_) = csv.DictReader(
        io.StringIO(exported_files["tables/x-data-set-x-headlines.csv"].decode())
    )
    assert (line["lic"], line["lic ci_low"], line["images"]) == ("0.1", "0.5", "10")


def test_parquet_has_what_csv_has(exported_files):
    for path, content in exported_files.items():
        if path.startswith("tables") and path.endswith(".csv"):
            columns = parquet.read_table(
                BufferReader(exported_files[path[:-3] + "parquet"])
            ).to_pydict()
            lines = list(csv.DictReader(io.StringIO(content.decode())))
            for name, values in columns.items():
                assert [line[name] for line in lines] == [
                    "" if v is None else str(v) for v in values
                ]


def test_every_row_of_every_run_is_there(exported_files):
    table = parquet.read_table(BufferReader(exported_files["rows.parquet"])).to_pylist()
    lines = list(csv.DictReader(io.StringIO(exported_files["rows.csv"].decode())))
    assert [row["part"] for row in table] == [line["part"] for line in lines]
    assert len(table) == len(contest().rows)


def test_an_absent_number_is_no_number_in_parquet():
    report = Report("t", "", [], [], rows=result(value=math.nan).rows)
    content = dict(files(report))["rows.parquet"]
    assert parquet.read_table(BufferReader(content))["value"].to_pylist() == [None, None]


@pytest.mark.parametrize("name", ["=cmd()", "@x", "a\ud800b"])
def test_a_hostile_name_is_no_formula(name):
    report = Report("t", "", [Section("s", tables=[Table("s", [name], [[name]])])], [])
    content = dict(files(report))["tables/s.csv"].decode()
    assert not re.search("(?m)^[=@]", content)


# --- figures and the folder


def test_a_name_outlives_further_runs(exported_files):
    """A paper refers to labels and includes files; sections before theirs must not rename them."""
    first = Section("Before all", tables=[Table("More", ["a"], [["b"]])])
    report = contest()
    later = dict(files(replace(report, sections=[first, *report.sections])))
    names = {path for path in exported_files if path.endswith((".tex", ".svg"))}
    assert {path: later[path] for path in names} == {path: exported_files[path] for path in names}


def test_equal_titles_get_names_of_their_own():
    tables = [Table("t", ["a"], [[text]]) for text in "xy"]
    report = Report("t", "", [Section("s", tables=tables)], [])
    assert {"tables/s-t.tex", "tables/s-t-2.tex"} <= set(dict(files(report)))


def test_a_figure_is_named_for_what_it_shows_and_stands_alone(exported_files):
    figures = {path: content for path, content in exported_files.items() if path.endswith(".svg")}
    assert figures
    assert not [path for path in figures if re.search(r"/\d|-\d+\.", path)], figures
    for path, content in figures.items():
        assert ElementTree.fromstring(content).tag.endswith("svg")
        assert b"var(--" not in content
        assert exported_files[path[:-3] + "png"].startswith(b"\x89PNG")


def test_the_same_results_make_the_same_files(exported_files):
    assert dict(files(contest())) == exported_files


def test_contents_lead_to_every_file(exported_files):
    linked = set(re.findall(r"\]\(([^)]+)\)", exported_files["contents.md"].decode()))
    assert linked == {path for path in exported_files if "/" in path}


@pytest.mark.parametrize("name", ["../../up", "/etc/x", "a\x00b", "x" * 400])
def test_a_hostile_name_leaves_the_folder_for_none(name, tmp_path):
    report = Report(name, name, [Section(name, tables=[Table(name, [name], [[name]])])], [])
    export(report, tmp_path / "paper")
    assert [path.name for path in tmp_path.iterdir()] == ["paper"]


def test_weighted_words_are_marked_everywhere():
    words = Weighted((("a", 0.0), ("truck", -1.0), ("dress", 1.0)))
    table = Table("t", ["n", "caption"], [["1", words]])
    report = Report("t", "", [Section("s", tables=[table])], [])
    assert 'a <mark class="from2">truck</mark> <mark class="to2">dress</mark>' in html(report)
    assert r"a \underline{truck} \underline{\textsl{dress}}" in tex.latex(table, "t")
    assert "a <u>truck</u> <u><i>dress</i></u>" in md.markdown_report(table)


def test_examples_are_explained_as_each_format_marks_them():
    tables = section(make_words("dress")).tables
    report = Report("t", "", [Section("s", tables=tables)], [])
    (name,) = (path for path, _ in files(report) if "test-captions" in path and "md" in path)
    exported_files = dict(files(report))[name].decode()
    slanted = "Underlined words point to male, and to female if they are slanted too"
    assert (slanted in exported_files, "dotted" in exported_files) == (True, False)
    assert "Underlined words point to female (dotted) or male (solid)" in html(report)


def test_the_door_exports(tmp_path, capsys):
    ResultStore(tmp_path / "runs").save(result("c"))
    assert main(["report", str(tmp_path / "runs"), "--export", str(tmp_path / "paper")]) == 0
    assert "hirota2022lic" in (tmp_path / "paper" / "references.bib").read_text()
    assert str(tmp_path / "paper" / "contents.md") in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match="cannot write"):
        export(contest(), tmp_path / "file")
