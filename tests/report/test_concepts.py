"""What queries retrieve, on the page: the least and the most alike, drawn and told."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from bias_pipeline.data.photos import thumbnail
from bias_pipeline.metrics.base import QUESTIONS
from bias_pipeline.metrics.value_names import HEADLINES
from bias_pipeline.report import concepts
from bias_pipeline.report.concepts import concept_sections
from bias_pipeline.report.figures import PRINT, FigureBar, bars
from bias_pipeline.report.page import html, report_of_folder
from bias_pipeline.report.section import Section
from bias_pipeline.report.verdict_sentences import PANELS, panel_of
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import ResultStore
from tests.report.test_tables import row

GROUPS = ("male", "female", "<b>other</b>")


def lines(n: int) -> list[dict[str, object]]:
    return [
        {
            "concept": f"concept {k}",
            "query": f"a photo of {k}",
            "fairness": k / 50,
            "ci_low": 0.0,
            "ci_high": 1.0,
            "p_holm": 0.5,
            "over_represented": "female",
            "excess": 0.301,
            **{f"share:{name}": share for name, share in zip(GROUPS, (0.5, 0.3, 0.2), strict=True)},
        }
        for k in range(n)
    ]


def save_run(
    folder: Path, n: int = 30, terms: str = "", picture: str = "", **changes: object
) -> ResultStore:
    headline = row(run_id="retrieved", metric="retrieval_fairness", part="score", captioner="any")
    table = [{**line, **changes} for line in lines(n)]
    retrieved = [{"concept": "concept 0", "group": "male", "picture": picture}]
    manifest = {
        "metric": {"neutral": {"score": 1.0}, "question": "retrieval"},
        "audit": {"shown_under": terms},
    }
    tables = {"concepts": table, "retrieved": retrieved}
    store = ResultStore(folder)
    store.save(Result("retrieved", [headline], manifest, tables=tables))
    return store


def read_result(store: ResultStore) -> Result:
    result = store.read("retrieved")
    assert result is not None
    return result


def section_of(store: ResultStore) -> tuple[Section, list[str]]:
    """The one section of the saved run, and what is said of damaged files."""
    ((section,), damaged) = concept_sections(store, [read_result(store)])
    return section, damaged


def test_all_queries_are_in_the_table(tmp_path):
    section, damaged = section_of(save_run(tmp_path))
    (table,) = section.tables
    assert [str(line[0]) for line in table.rows] == [f"concept {k}" for k in range(30)]
    assert table.head[-3:] == [f"{name}, share" for name in GROUPS]
    assert damaged == []


@pytest.mark.parametrize(("n", "shown"), [(30, 20), (20, 20), (3, 3)])
def test_the_ends_are_drawn(n, shown, tmp_path):
    drawn = section_of(save_run(tmp_path, n))[0].figures[0].svg()  # the bars
    assert drawn.count(">concept ") == shown
    assert f">concept {n - 1}<" in drawn


def test_the_names_of_many_groups_fit(tmp_path):
    names = [f"a_group_of_people_{k}" for k in range(9)]
    figure = bars([FigureBar("computer programmer", [1 / 9] * 9)] * 20, names, "queries")
    with figure._draw(PRINT) as drawn:
        drawn.draw_without_rendering()  # where there is no room, this warns
        assert drawn.axes[0].get_position().width > 0.5


def test_the_page_holds_them_and_no_markup_of_the_data(tmp_path):
    save_run(tmp_path)
    text = html(report_of_folder(tmp_path))
    assert "a photo of 7" in text
    assert "<b>other</b>" not in text


def test_a_run_without_queries_has_no_section(tmp_path):
    store = save_run(tmp_path)
    result = read_result(store)
    changed = replace(result, manifest={**result.manifest, "files": {}})
    assert concept_sections(store, [changed]) == ([], [])


def test_a_damaged_file_is_told(tmp_path):
    store = save_run(tmp_path)
    (tmp_path / "retrieved" / "concepts.csv").write_text("broken")
    sections, damaged = concept_sections(store, [read_result(store)])
    assert (sections, len(damaged), "queries are not shown" in damaged[0]) == ([], 1, True)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("headline", HEADLINES)
def test_every_question_has_a_panel(question, headline):
    assert panel_of(question, headline) in PANELS


@pytest.mark.parametrize(("p_holm", "message"), [(0.04, "female +30"), (0.06, "")])
def test_the_group_of_which_there_are_too_many_is_named(p_holm, message, tmp_path):
    (table,) = section_of(save_run(tmp_path, p_holm=p_holm))[0].tables
    assert {line[table.head.index("too many")] for line in table.rows} == {message}


def test_of_one_seed_there_is_no_p(tmp_path):
    save_run(tmp_path, p_holm=math.nan)
    assert "a photo of 7" in html(report_of_folder(tmp_path))


def test_pictures_stand_with_their_terms(tmp_path):
    small = thumbnail(Image.new("RGB", (9, 9), "red"))
    save_run(tmp_path, terms="CC BY 4.0, A. Author", picture=small)
    text = html(report_of_folder(tmp_path))
    assert f'src="data:image/jpeg;base64,{small}"' in text
    assert "CC BY 4.0, A. Author" in text


@pytest.mark.parametrize(
    ("terms", "message"), [("", "does not state terms"), ("ours", "the run's folder contains none")]
)
def test_where_no_pictures_are_shown_a_line_says_so(terms, message, tmp_path):
    section, damaged = section_of(save_run(tmp_path, terms=terms))
    assert message in section.texts[1]
    assert damaged == []


def test_a_foreign_picture_is_left_out_and_told(tmp_path):
    _, (damaged,) = section_of(save_run(tmp_path, terms="ours", picture="PHN2Zz4="))
    assert "retrieved.csv: no JPEG" in damaged


def test_of_very_many_runs_the_first_have_pictures(tmp_path):
    small = thumbnail(Image.new("RGB", (9, 9), "red"))
    store = save_run(tmp_path, terms="ours", picture=small)
    sections, _ = concept_sections(store, [read_result(store)] * (concepts.MOST_SHOWN + 2))
    pictured = [len(section.figures) > 1 for section in sections]
    assert pictured == [True] * concepts.MOST_SHOWN + [False] * 2
    assert "only for the first 12 runs" in sections[-1].texts[1]
