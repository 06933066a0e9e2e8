"""``analysis feature_sensitivity``: shifts, and when a number is steady."""

from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.results.rows import Result
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from bias_pipeline.studies.feature_sensitivity import WHOLE, Shift, is_steady, print_shifts, shifts
from tests.corpora import make_corpus

LINE = Shift(
    "lic", 2, "gender", "constant", "score", "fraction", "objects", 100,
    score=0.1, ci_low=0.05, ci_high=0.15, shift=0.04, shift_low=0.01, shift_high=0.07, p_value=0.01,
)  # fmt: skip


@pytest.mark.parametrize(("shift", "steady"), [(0.04, True), (-0.06, False), (0.06, False)])
def test_a_number_is_steady_within_its_interval(shift, steady):
    assert is_steady([LINE, replace(LINE, shift=shift)]) is steady


def corpus(captioner: str, n_wrong: int) -> Corpus:
    """200 images, of which so many captions name the wrong gender."""
    records = []
    for number in range(200):
        label = "mf"[number % 2]
        right = {"m": "man", "f": "woman"}[label]
        wrong = {"m": "woman", "f": "man"}[label]
        text = f"a {wrong if number < n_wrong else right}"
        records.append(Record(str(number), text, (f"a {right}",) * 2, {"gender": label}))
    return replace(make_corpus(records), captioner=captioner)


def scored_result(captioner: str, n_wrong: int) -> Result:
    metric = compose.cell(["metric=gender_error", "stats.resamples=200"]).build("metric")
    return run_cell(corpus(captioner, n_wrong), metric, [0], run_id=captioner)


def test_a_shift_is_of_the_changed_pictures_captions_over_the_others():
    lines = shifts(
        [scored_result(WHOLE, 10), scored_result("background", 10), scored_result("objects", 50)]
    )
    by_change = {line.change: line for line in lines if line.part == "score"}
    assert by_change["background"].shift == 0
    assert by_change["objects"].shift == pytest.approx(0.2)
    assert by_change["objects"].shift_low > 0.1
    assert not by_change["objects"].is_within


def test_what_was_not_scored_under_a_change_has_no_shift():
    lines = shifts([scored_result(WHOLE, 10), scored_result("background", 10)])
    assert {line.change for line in lines} == {"background"}


def test_a_number_without_an_interval_has_no_shift():
    whole = scored_result(WHOLE, 10)
    none = replace(whole, rows=[replace(row, ci_low=np.nan, ci_high=np.nan) for row in whole.rows])
    assert shifts([none, scored_result("background", 10)]) == []


def test_each_attribute_has_a_line(capsys):
    lines = [replace(LINE, attribute=name, score=n / 10) for n, name in ((1, "gender"), (2, "age"))]
    print_shifts(lines)
    printed = capsys.readouterr().out
    assert ("gender" in printed, "10.0 [" in printed, "20.0 [" in printed) == (True, True, True)


def test_a_folded_table_repeats_whose_number_a_line_is(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    whose = {"metric": "ba_directional", "part": "t_to_a:named"}
    print_shifts([replace(LINE, change=change, **whose) for change in ("background", "objects")])
    assert capsys.readouterr().out.count("t_to_a:named") == 2
