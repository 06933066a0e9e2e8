"""Blank captions make nobody fair: every metric, built from its YAML, with a part of them blank."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from bias_pipeline.analysis.gate import decisions
from bias_pipeline.cell import run_cell
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.report.tables import print_results
from bias_pipeline.results.rows import Result
from tests.metrics.test_contract import NAMES, SEEDS, cell, rebuilt

TEXTS = ("", " . ", "NaN", "None", "null")
EVERY = 10


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def blanked(corpus: Corpus) -> Corpus:
    """The same captioner with three in ten captions blank, under another name."""
    spoiled = [
        replace(record, model=TEXTS[i % len(TEXTS)]) if i % EVERY < 3 else record
        for i, record in enumerate(corpus)
    ]
    return replace(rebuilt(corpus, spoiled), captioner="blank")


@cache
def scenes(*, blank: bool) -> Corpus:
    """Enough of every object for what is left; of every attribute that a metric asks for."""
    corpus = cell("retrieval_fairness", "dataset.n_images=400").corpus()
    return blanked(corpus) if blank else corpus


@cache
def result(name: str, blank: bool) -> Result:
    metric, corpus = cell(name).build("metric"), scenes(blank=blank)
    return run_cell(corpus, metric, SEEDS, run_id=f"{name}-{blank}")


def coverages(result: Result) -> Mapping[str, float]:
    return {row.part: row.coverage for row in result.rows if row.part in HEADLINES}


# Where no caption plays a part, none that is blank does.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "retrieval_fairness"])
def test_e6_blanks_lower_the_coverage_of_every_headline(name):
    whole, spoiled = (coverages(result(name, blank)) for blank in (False, True))
    assert all(spoiled[part] < 0.8 * whole[part] for part in spoiled), (whole, spoiled)


@pytest.mark.parametrize("name", NAMES)
def test_e6_blanks_are_noted(name):
    notes = result(name, True).manifest["notes"]
    assert isinstance(notes, list)
    assert any("captions (30.0%) are blank" in note for note in notes)


@pytest.mark.parametrize("name", NAMES)
def test_e6_blanks_are_counted_in_the_manifest(name):
    corpus = result(name, True).manifest["corpus"]
    assert isinstance(corpus, dict)
    assert corpus["blanks"]["model"] == 0.3 * corpus["n_images"]


@pytest.mark.parametrize("name", NAMES)
def test_e6_a_captioner_with_blanks_wins_nothing(name):
    pair = [result(name, True), result(name, False)]
    draws = {item.run_id: item.draws for item in pair}
    outcome = decisions(pair, draws)
    assert {decision.winner for decision in outcome} == {""}
    assert all(decision.doubts for decision in outcome)


def test_e6_the_table_marks_blanks(capsys):
    print_results([result("gender_error", True)])
    out = capsys.readouterr().out
    assert "70 ‡" in out
    assert "‡ blank captions" in out
