"""What queries retrieve, on the page: the least and the most alike, drawn and told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bias_pipeline.metrics.base import QUESTIONS
from bias_pipeline.metrics.parts import HEADLINES
from bias_pipeline.report.concepts import concept_sections
from bias_pipeline.report.content import report_of_folder
from bias_pipeline.report.page import html
from bias_pipeline.report.plain import PANELS, panel_of
from bias_pipeline.results.store import Result, ResultStore
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
            **{f"share:{name}": share for name, share in zip(GROUPS, (0.5, 0.3, 0.2), strict=True)},
        }
        for k in range(n)
    ]


def saved(folder: Path, n: int = 30, **changes: object) -> ResultStore:
    own = row(run_id="retrieved", metric="retrieval_fairness", part="score", captioner="any")
    table = [{**line, **changes} for line in lines(n)]
    manifest = {"metric": {"neutral": {"score": 1.0}, "question": "retrieval"}}
    store = ResultStore(folder)
    store.save(Result("retrieved", [own], manifest, tables={"concepts": table}))
    return store


def found(store: ResultStore) -> Result:
    result = store.read("retrieved")
    assert result is not None
    return result


def test_all_queries_are_in_the_table(tmp_path: Path) -> None:
    store = saved(tmp_path)
    ((section,), damaged) = concept_sections(store, [found(store)])
    (sheet,) = section.sheets
    assert [str(line[0]) for line in sheet.rows] == [f"concept {k}" for k in range(30)]
    assert sheet.head[-3:] == [f"{name}, share" for name in GROUPS]
    assert damaged == []


@pytest.mark.parametrize(("n", "shown"), [(30, 20), (20, 20), (3, 3)])
def test_the_ends_are_drawn(n: int, shown: int, tmp_path: Path) -> None:
    store = saved(tmp_path, n)
    ((section,), _) = concept_sections(store, [found(store)])
    drawn = section.figures[0].svg()
    assert drawn.count(">concept ") == shown
    assert f">concept {n - 1}<" in drawn


def test_the_page_holds_them_and_no_markup_of_the_data(tmp_path: Path) -> None:
    saved(tmp_path)
    text = html(report_of_folder(tmp_path))
    assert "a photo of 7" in text
    assert "<b>other</b>" not in text


def test_a_run_without_queries_has_no_section(tmp_path: Path) -> None:
    store = saved(tmp_path)
    own = replace(found(store), run_id="another")
    assert concept_sections(store, [own]) == ([], [])


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    store = saved(tmp_path)
    (tmp_path / "retrieved" / "concepts.csv").write_text("broken")
    sections, damaged = concept_sections(store, [found(store)])
    assert (sections, len(damaged), "queries are not shown" in damaged[0]) == ([], 1, True)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("headline", HEADLINES)
def test_every_question_has_a_panel(question: str, headline: str) -> None:
    assert panel_of(question, headline) in PANELS
