"""A captioner is held against a file of results as it is against the captions themselves."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bias_pipeline as bp
from bias_pipeline.errors import DataError
from bias_pipeline.report.baseline import Baseline, baseline_bytes, compare_to_baseline, read
from bias_pipeline.report.gate import compare_results
from bias_pipeline.results.rows import Result

LABELS = ["male", "female"] * 20
OLD = ["a man", "a woman"] * 10 + ["a man", "a man"] * 10
NEW = ["a man", "a woman"] * 20
OLD_FILE = Path("old.json")


def scored_result(captions: list[str], *, metric: str = "gender_error", **settings: Any) -> Result:
    given = {"labels": LABELS, "human": [["a man"], ["a woman"]] * 20, "captioner": "mine"}
    return bp.score(metric, captions, **{**given, "stats": {"resamples": 20}, **settings})


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("baseline") / "old.json"
    path.write_bytes(baseline_bytes([scored_result(OLD)]))
    return path


def test_it_decides_as_the_captions_do(baseline):
    new = scored_result(NEW)
    old = scored_result(OLD, captioner="mine (baseline)")
    direct = compare_results([new, old]).lines()
    by_file = compare_results([new, *compare_to_baseline([new], read(baseline))[0]]).lines()
    pair = "mine (baseline)", "mine_baseline"  # names of files are plainer
    assert [{**line, "other": pair[0]} for line in direct] == by_file
    assert by_file[0]["winner"] == "first"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"labels": ["male", "female"] * 19 + ["female", "male"]}, "images, labels, objects"),
        ({"human": [["a man"], ["a lady"]] * 20}, "human captions"),
        ({"stats": {"resamples": 30}}, r"settings \(stats\)"),
        ({"text": {"unit": "sentence"}}, "what of captions is scored"),
        (
            {"metric": "gender_ratio"},
            "old.json: was written without gender_ratio of gender; it has gender_error of gender. "
            "Write it again with metric=gender_ratio attribute=gender, or compare without it",
        ),
    ],
)
def test_what_was_not_made_alike_is_refused(baseline, settings, message):
    with pytest.raises(DataError, match=message):
        compare_to_baseline([scored_result(NEW, **settings)], read(baseline))


def test_seeds_play_no_part_where_nothing_is_trained_nor_do_places(baseline, tmp_path):
    assert compare_to_baseline([scored_result(NEW, seeds=3, out=tmp_path)], read(baseline))[0]


def test_attackers_need_the_same_seeds():
    old = scored_result(OLD, metric="leakage", seeds=2)
    with pytest.raises(DataError, match=r"seeds differ; add seeds=\[0,12\]"):
        compare_to_baseline(
            [scored_result(NEW, metric="leakage", seeds=3)], Baseline(OLD_FILE, [old], {})
        )


def test_results_of_an_earlier_version_are_refused(baseline):
    new = scored_result(NEW)
    del new.manifest["corpus"]["reference"]
    with pytest.raises(DataError, match="images"):
        compare_to_baseline([new], Baseline(OLD_FILE, [new], {}))


def test_a_setting_that_only_one_version_has_is_named(baseline):
    new = scored_result(NEW)
    config = {name: value for name, value in new.manifest["config"].items() if name != "over"}
    other = replace(new, manifest={**new.manifest, "config": config})
    for one, two in ((new, other), (other, new)):
        with pytest.raises(DataError, match=r"with these: settings \(over\) differ"):
            compare_to_baseline([one], Baseline(OLD_FILE, [two], {}))


@pytest.mark.parametrize("cell", ["metric=gender_ratio", "attribute=gender metric=gender_ratio"])
def test_what_the_earlier_captioner_could_not_be_scored_by_is_skipped(baseline, cell):
    earlier = replace(read(baseline), skipped={cell: "it names no group"})
    results = [scored_result(NEW), scored_result(NEW, metric="gender_ratio")]
    matches, skipped = compare_to_baseline(results, earlier)
    assert [match.rows[0].metric for match in matches] == ["gender_error"]
    assert skipped == {cell: "it names no group"}


def test_what_was_skipped_for_another_attribute_is_refused(baseline):
    earlier = replace(read(baseline), skipped={"attribute=age metric=gender_ratio": "no groups"})
    with pytest.raises(DataError, match="written without gender_ratio of gender"):
        compare_to_baseline([scored_result(NEW, metric="gender_ratio")], earlier)


def test_a_changed_file_is_refused(baseline, tmp_path):
    content = json.loads(baseline.read_text())
    content["results"][0]["rows"][0]["value"] = 0.0
    (tmp_path / "changed.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match="checksum"):
        read(tmp_path / "changed.json")


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"schema": 7}', '{"schema": 2}', '{"schema": 2, "about": 3}']
)
def test_what_is_no_baseline_is_refused(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(DataError, match="compare --json"):
        read(tmp_path / "x.json")


def test_it_names_no_place(baseline):
    assert "/tmp" not in baseline.read_text()
    assert "cache" not in baseline.read_text()
