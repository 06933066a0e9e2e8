"""The Contract of the design, to the letter: what users' scripts rely on."""

import csv
import io
import json
import signal
from pathlib import Path

import pytest

from bias_pipeline.metrics.attack.lic import LIC
from bias_pipeline.scenes.captioners import CAPTIONERS
from tests.cli.commands import COUNTING, SMALL, SWEEP, own_choice, part, results, start, wait_for
from tests.lic_folder import write_folder

# Written out here a second time on purpose: users' scripts rely on them.
COLUMNS = (
    "run_id,metric,metric_version,part,attribute,dataset,captioner,encoder,head,masking,alignment,"
    "scoring,value,unit,seed_std,ci_low,ci_high,p_value,n_images,n_seeds,coverage,neutral_rate,"
    "seeds"
)


# Words given as text, no further masked words, a data set's own column.
OWN_ATTRIBUTE = """
_target_: bias_pipeline.corpus.attribute.Attribute
name: own
groups: [male, female]
words: {male: "man, men", female: "woman, women"}
labels:
  scenes:
    _target_: bias_pipeline.corpus.attribute.LabelMap
    field: bb_gender
    groups: {Male: male, Female: female}
    strata: [Unsure]
"""


# --- the run folder


def test_result_json_has_the_shape_of_the_contract(finished_run):
    content = json.loads(finished_run.result.read_text())
    assert [*content] == ["schema", "rows", "manifest"]
    assert content["schema"] == 1
    parts = {row["part"]: row for row in content["rows"]}
    assert ",".join(parts["score"]) == COLUMNS
    assert {"score", "human", "model", "model:paired", "human:paired"} <= parts.keys()
    assert {row["run_id"] for row in content["rows"]} == {finished_run.result.parent.name}
    assert parts["score"]["head"] == ""  # which plays no part


def test_the_manifest_says_what_the_corpus_the_job_and_the_training_were(finished_run):
    manifest = json.loads(finished_run.result.read_text())["manifest"]
    assert len(manifest["corpus"]["digest"]) == 64
    assert manifest["job"]["launcher"] == "basic"
    # How much of the test captions stood in training
    assert 0 <= manifest["audit"]["verbatim_share"]["model"] <= 1


def test_no_logger_is_needed(ok):
    ok(*COUNTING[:-1], "logger=[]")


@pytest.mark.parametrize("name", ["rows.csv", "../table.csv"])
def test_a_csv_has_the_columns_of_the_contract(finished_run, name):
    assert (finished_run.result.parent / name).read_text().splitlines()[0] == COLUMNS


def test_values_are_fractions_and_printed_as_per_cent(finished_run):
    value = part(finished_run.result, "model")["value"]
    assert 0 < value < 1
    assert f"{100 * value:.1f} [" in finished_run.printed


# --- seeds


def test_lists_of_seeds_spread_a_sweep(ok, tmp_path):
    ok(*COUNTING, "seeds=[0,12],[456,789]")
    ordered = sorted(part(path, "score")["seeds"] for path in results(tmp_path))
    assert ordered == [[0, 12], [456, 789]]


def predictions(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("outputs/.cache/predictions/*/*")}


def test_three_seeds_then_ten_train_seven_more(ok, tmp_path):
    few = (*SMALL[1:], "dataset.n_images=300", "metric.positions=1")
    ok(*few, "seeds=3")
    assert part(results(tmp_path)[0], "score")["seeds"] == [0, 12, 456]  # the published ones
    before = predictions(tmp_path)
    ok(*few, "seeds=10")
    new = predictions(tmp_path) - before
    sides, folds, of_fewer_images = 1 + 1, 5, 2
    assert len(before) == (3 + of_fewer_images) * folds * sides
    assert len(new) == 7 * folds * sides
    assert before < predictions(tmp_path)


def test_both_metrics_use_the_same_predictions(ok, tmp_path):
    ok(*SMALL, "metric.positions=1")
    before = predictions(tmp_path)
    ok(*SMALL, "metric.positions=1", "metric=leakage")
    assert predictions(tmp_path) == before


def test_seeds_trained_apart_score_as_together(ok, tmp_path):
    few = (*SMALL, "metric.positions=1")
    ok(*few, "seeds=[0,12]", "paths.outputs=together", "paths.cache=one")
    for seeds in ("[0]", "[0,12]"):
        ok(*few, f"seeds={seeds}", "paths.outputs=apart", "paths.cache=two")
    table = [(tmp_path / name / "table.csv").read_bytes() for name in ("together", "apart")]
    assert table[0] == table[1]


# --- names and values


def test_a_known_captioner_without_a_file_exits_5(ends, tmp_path):
    root = write_folder(tmp_path / "data")
    printed = ends(5, "dataset=lic", f"dataset.root={root}", "captioner=updn", "logger=csv")
    assert "UpDn/gender_val_updn_cap_mw_entries.pkl" in printed


def test_a_failed_job_is_named_by_what_is_its_own(ends):
    printed = ends(4, *SMALL, "dataset.n_images=20,200", "metric.positions=1")
    assert "error: dataset.n_images=20: dataset 'scenes'" in printed


# --- sweeps and choices


@pytest.mark.slow  # fourteen cells
def test_all_captioners_of_several_attributes(ok, tmp_path):
    ok(*COUNTING, "attribute=gender,race", "captioner=all")
    assert len(results(tmp_path)) == 14
    table = csv.DictReader(io.StringIO((tmp_path / "outputs" / "table.csv").read_text()))
    assert {row["captioner"] for row in table} == set(CAPTIONERS) - {"verbose"}  # ten times as long


def test_what_a_sweep_varies_is_a_column(ok):
    printed = ok(*SMALL, "metric.relation=ratio,normalised", "metric.positions=1")
    assert "metric.relation" in printed


@pytest.mark.parametrize("flags", [(), ("-m",)])
def test_cfg_prints_the_first_job_of_a_sweep(ok, flags):
    assert "captioner: amplifier" in ok(*flags, "captioner=all", "--cfg", "job")


@pytest.mark.parametrize(
    ("group", "content"),
    [
        ("scoring", "_target_: bias_pipeline.stats.scoring.Confidence\n"),
        ("attribute", OWN_ATTRIBUTE),
    ],
)
def test_choices_may_lie_in_a_folder_of_ones_own(ok, tmp_path, group, content):
    ok(*SMALL, own_choice(tmp_path, group, content), f"{group}=own", "metric.positions=1")
    assert part(results(tmp_path)[0], "score")[group] == "own"


def test_masking_tasks_works_once_they_are_there(ok):
    ok(*SMALL, "masking=rest_only", "+task=coco_objects", "metric.positions=1")


# --- what is said


def test_a_bug_is_reported_with_its_traceback_in_a_file(ends, tmp_path, monkeypatch):
    monkeypatch.setattr(LIC, "compute", lambda *_, **__: 1 / 0)
    printed = ends(1, *SMALL)
    (trace,) = tmp_path.glob("outputs/.hydra_jobs/*/traceback.txt")
    assert str(trace.name) in printed
    assert "ZeroDivisionError" in trace.read_text()


def test_nothing_is_said_of_results_where_there_are_none(run):
    assert "results in" not in run(*SMALL, "split=lic", "split.test_share=0.0001")[1]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_a_job_that_slurm_stops_asks_to_be_queued_again(tmp_path, number):
    process = start(tmp_path, *SWEEP, SLURM_JOB_ID="1")
    wait_for(lambda: results(tmp_path))
    process.send_signal(number)
    assert process.wait(30) == 75
