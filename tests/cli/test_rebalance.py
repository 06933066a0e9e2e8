"""``analysis rebalance`` through the door, and ``fit`` that reads what it wrote."""

import pandas as pd
import pytest

SCORED = ("dataset.n_images=800", "stats.resamples=100", "seeds=1", "logger=csv")


@pytest.mark.slow  # a fit after it
def test_the_command_writes_what_fit_reads(run, ok, tmp_path):
    assert run("metric=cooccurrence", "captioner=amplifier", *SCORED)[0] == 0
    (run_folder,) = tmp_path.glob("outputs/cooccurrence-*")
    learnt = ("dataset.n_images=90", "dataset.seed=3", "captioner=amplifier", "--captions", "model")
    assert "use them with fit sat --weights w.parquet" in ok(
        "analysis", "rebalance", str(run_folder), *learnt, "--out", "w.parquet"
    )
    table = pd.read_parquet("w.parquet")
    assert (list(table), len(table), table["weight"].nunique() > 9) == (
        ["image", "weight"],
        90,
        True,
    )
    small = ("--epochs", "1", "encoder.side=32", "encoder.width=4", "--weights", "w.parquet")
    ok("fit", "sat", *learnt, *small, "--out", "mine")


def test_other_runs_and_fair_captioners_are_refused(ok, run, tmp_path):
    ok("metric=gender_error,cooccurrence", "captioner=faithful", *SCORED)
    for metric, message in (
        ("gender_error", "is a run of gender_error"),
        ("cooccurrence", "nothing to rebalance"),
    ):
        (run_folder,) = tmp_path.glob(f"outputs/{metric}-*")
        code, output = run("analysis", "rebalance", str(run_folder), "--out", "w.parquet")
        assert (code != 0, message in output) == (True, True), output


def test_another_attribute_than_that_of_the_run_is_refused(ok, ends, tmp_path):
    ok("metric=cooccurrence", "captioner=amplifier", *SCORED)
    (run_folder,) = tmp_path.glob("outputs/cooccurrence-*")
    words = (str(run_folder), "attribute=race", "--out", "w.parquet")
    assert "is of attribute=gender, not race; give" in ends(2, "analysis", "rebalance", *words)


def test_a_folder_without_a_run_is_refused(run):
    code, output = run("analysis", "rebalance", "nowhere", "--out", "w.parquet")
    assert (code != 0, "nowhere is not the folder of a finished run" in output) == (True, True)
