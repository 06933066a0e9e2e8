"""How people are described, on the page: concepts, spellings, captions with the word marked."""

import math
from pathlib import Path

import pytest

from bias_pipeline.report.described import HABIT, description_sections
from bias_pipeline.report.exports import files
from bias_pipeline.report.page import html, report_of_folder
from bias_pipeline.report.section import Section
from bias_pipeline.report.table import NumberCell, Weighted
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import ResultStore
from tests.corpora import make_corpus
from tests.metrics.counting.test_descriptions import METRIC, records, score_captions, sometimes
from tests.report.test_tables import row

SPEECH = "The <b>person</b> looks focused."


def save_run(folder: Path, tables: dict[str, object], sentences: list[str]) -> ResultStore:
    headline = row(run_id="described", metric="descriptions", part="score", captioner="any")
    manifest = {
        "metric": {"neutral": {"score": 0.0}, "question": "describing"},
        "audit": {"descriptions": {"sentences": sentences}},
    }
    store = ResultStore(folder)
    store.save(Result("described", [headline], manifest, tables=tables))
    return store


def section_of(store: ResultStore) -> tuple[list[Section], list[str]]:
    return description_sections(store, [store.read("described")])


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> ResultStore:
    """Runs of a captioner that says focused of men more often, beside an alien mark-up."""
    score = score_captions(sometimes(SPEECH, 0.1, 0.25))
    folder = tmp_path_factory.mktemp("runs")
    return save_run(folder, score.tables, score.audit["descriptions"]["sentences"])


@pytest.fixture(scope="module")
def section(store: ResultStore) -> Section:
    (section,), damaged = section_of(store)
    assert not damaged
    return section


def test_each_concept_has_both_rates_beside_annotators_and_its_own_difference(section):
    table = section.tables[0]
    assert table.rows[0][0] == "focused"
    assert list(table.head[1:5]) == ["male", "female", "annotators, male", "annotators, female"]
    male, female, people, _, difference, beyond = table.rows[0][1:7]
    assert male.value == pytest.approx(0.25, abs=0.03)
    assert female.value < 0.12
    assert people.value == 0
    assert difference.high < 0
    assert difference.low < difference.value < difference.high
    assert isinstance(beyond, NumberCell)
    assert not math.isnan(beyond.value)
    assert "annotators hardly ever say it" in table.rows[0][7]


def test_the_answer_stands_first_and_what_it_cannot_see_beside_it(section):
    assert section.texts[0].startswith("Focused (male 2")
    assert "said of male more often, by" in section.texts[0]
    assert HABIT in section.texts
    assert not any("stereotype" in text.lower() for text in section.texts)


def test_spellings_have_counts_by_group_and_annotators(section):
    (table,) = [table for table in section.tables if table.caption.startswith("Spellings")]
    lines = {(line[0], line[1]): line[2:] for line in table.rows}
    captioner, annotators = lines["young", "female"]
    assert captioner.startswith("young ")
    assert int(captioner.split()[1]) > 50
    assert annotators.startswith("young ")
    assert lines["focused", "male"][1] is None  # no annotator says it


def test_four_captions_of_a_concept_have_the_word_marked(section):
    (table,) = [table for table in section.tables if table.caption.startswith("Captions")]
    captions = [line for line in table.rows if line[0] == "focused"]
    assert len(captions) == 4
    assert [line[1] for line in captions] == ["male", "female", "male", "female"]
    for line in captions:
        assert isinstance(line[2], Weighted)
        assert [word for word, weight in line[2].words if weight] == ["focused."]


def test_captions_are_escaped_in_the_page_and_in_markdown(store):
    report = report_of_folder(store.root)
    page = html(report)
    assert "&lt;b&gt;person&lt;/b&gt;" in page
    assert "<b>person</b>" not in page
    assert "<mark" in page
    tables = {path: content.decode() for path, content in files(report) if path.endswith(".md")}
    (captions,) = [text for path, text in tables.items() if "captions-with-a-concept" in path]
    assert "<b>person</b>" not in captions
    assert "focused" in captions
    assert any(path.endswith(".csv") and "spellings" in path for path, _ in files(report))


def test_bars_stand_beside_annotators(section):
    (figure,) = section.figures
    drawn = figure.svg()
    for text in ("focused", "male", "female", "annotators"):
        assert f">{text}<" in drawn


def test_no_more_examples_are_stored_than_are_shown():
    score = METRIC.compute(make_corpus(records(1500, sometimes(SPEECH, 0.3, 0.3))), splits=[])
    by_concept: dict[str, int] = {}
    for line in score.tables["described_captions"]:
        by_concept[line["concept"]] = by_concept.get(line["concept"], 0) + 1
    assert set(by_concept.values()) == {4}


def test_runs_of_earlier_versions_have_their_concepts_alone(tmp_path, store):
    score = score_captions(sometimes(SPEECH, 0.1, 0.25))
    lines = [
        {k: v for k, v in line.items() if k != "note"} for line in score.tables["descriptions"]
    ]
    (section,), damaged = section_of(save_run(tmp_path, {"descriptions": lines}, []))
    assert not damaged
    assert len(section.tables) == 1


def test_a_damaged_table_is_named_and_the_rest_is_shown(tmp_path):
    score = score_captions(sometimes(SPEECH, 0.1, 0.25))
    store = save_run(tmp_path, score.tables, [])
    (tmp_path / "described" / "described_words.csv").write_text("concept\nyoung\n")
    (section,), (fault,) = section_of(store)
    assert "described_words" in fault
    assert len(section.tables) == 2
