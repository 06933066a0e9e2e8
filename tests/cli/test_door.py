"""The door as users know it: commands, folders, exit codes."""

import contextlib
import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bias_pipeline.commands.main import main
from tests.cli.commands import (
    COUNTING,
    SMALL,
    SWEEP,
    fork,
    results,
    rows,
    start,
    wait_for,
)
from tests.lic_folder import SAT, entries, write_folder

NO_SIZE = [word for word in COUNTING if "n_images" not in word]  # of other data sets


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, Path]:
    """Exit code, what was printed, and the folder of a plain run."""
    folder = tmp_path_factory.mktemp("plain")
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        code = main(SMALL)
    return code, printed.getvalue(), folder


def test_a_plain_run_leaves_the_three_files(plain):
    (path,) = results(plain[2])
    assert {"result.json", "rows.csv", "predictions.parquet"} <= {
        p.name for p in path.parent.iterdir()
    }


def test_a_plain_run_is_ok_and_prints_its_table(plain):
    assert (plain[0], "amplifier" in plain[1]) == (0, True)


def test_the_defaults_are_those_of_the_contract(plain):
    row = rows(results(plain[2])[0])[0]
    named = ("metric", "encoder", "attribute", "dataset", "captioner")
    assert [row[name] for name in named] == ["lic", "ngram", "gender", "scenes", "amplifier"]


def test_hydras_own_files_stay_in_their_folder(plain):
    shown = {path.name for path in (plain[2] / "outputs").iterdir() if path.name[0] != "."}
    assert shown == {"rows.csv", "table.csv", results(plain[2])[0].parent.name}


def test_the_job_is_in_the_manifest(plain):
    manifest = json.loads(results(plain[2])[0].read_text())["manifest"]
    assert manifest["job"]["launcher"] == "basic"


def test_the_same_cell_is_not_run_again(run, plain):
    text = run(*SMALL, f"paths.outputs={plain[2] / 'outputs'}")[1]
    assert "cached, not run again: 1 of 1" in text


def test_other_seeds_are_another_cell(run, tmp_path):
    run(*SMALL)
    run(*SMALL, "seeds=[0,12,456]")
    assert len(results(tmp_path)) == 2


def test_a_comma_sweeps_without_a_flag_and_writes_its_table(run, tmp_path):
    run(*COUNTING, "metric=gender_error,gender_ratio", "captioner=faithful,terse")
    assert len(results(tmp_path)) == 4
    table = csv.DictReader(io.StringIO((tmp_path / "outputs" / "table.csv").read_text()))
    assert {row["captioner"] for row in table} == {"faithful", "terse"}


def test_leakage_is_scored_by_accuracy(run, tmp_path):
    run(*SMALL, "metric=leakage")
    assert rows(results(tmp_path)[0])[0]["scoring"] == "accuracy"


def test_captioner_all_runs_every_captioner(run, tmp_path):
    words = ("dataset=lic", f"dataset.root={write_folder(tmp_path / 'data')}", *NO_SIZE)
    run(*words, "captioner=all")
    assert {path.parent.name.split("-")[2] for path in results(tmp_path)} == {"sat", "fc"}


@pytest.mark.slow
def test_metric_all_says_what_the_data_do_not_permit(run, tmp_path):
    root = write_folder(tmp_path / "data")
    words = (f"dataset.root={root}", "captioner=sat", "seeds=1", "stats.resamples=50")
    code, text = run("dataset=lic", *words, "metric=all", "logger=csv")
    assert code == 0
    assert "skipped: metric=ba_mals: dataset 'lic' has no objects" in text
    assert {"lic", "gender_error"} <= {p.parent.name.split("-")[0] for p in results(tmp_path)}


def test_a_metric_that_the_data_do_not_permit_fails_when_asked_for(run, tmp_path):
    root = write_folder(tmp_path / "data")
    code, text = run("dataset=lic", f"dataset.root={root}", "captioner=sat", "metric=ba_mals")
    assert (code, "has no objects" in text) == (3, True)


def test_a_counting_metric_is_one_cell_under_any_encoder(run, tmp_path):
    run(*SMALL, "metric=gender_error", "encoder=ngram,lstm", "masking=none,attribute")
    assert len(results(tmp_path)) == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["rnu"], 2, "did you mean 'run'"),
        (["metric=lix"], 2, "did you mean 'lic'"),
        (["metric=lic,leakge"], 2, "did you mean 'leakage'"),
        (["captioner=faithfull"], 2, "did you mean 'faithful'"),
        (["sedes=3"], 2, "did you mean 'seeds'"),
        (["seeds=0"], 2, "seeds=0"),
        (["seeds=abc"], 2, "seeds=abc"),
        (["split=lic", "split.test_share=2"], 2, "test_share=2"),
        (["metric.relation=ratios"], 2, "must be one of difference, ratio"),
        (["encoder.nothing=1"], 2, "nothing"),
        (["attribute=emotion", "masking=lic"], 2, "lic"),
        (["dataset=lic", "dataset.root=nowhere"], 5, "set dataset.root"),
        (["+dataset.captioners.x.a_to_t=7"], 2, "a_to_t"),
        (["captioner=all", "dataset=scenes,lic"], 5, "is not a folder"),
        (["--config-path=/tmp"], 2, "not supported"),
    ],
)
def test_a_mistake_has_its_exit_code_and_a_hint(run, words, code, message, monkeypatch):
    monkeypatch.delenv("BIAS_PIPELINE_DATA", raising=False)  # else data may be where it looks
    output, text = run(*words)
    assert (output, message in text, "Traceback" in text) == (code, True, False), text


def test_e1_bad_data_exits_3_and_writes_no_result(run, tmp_path):
    root = write_folder(tmp_path / "data", {SAT: b"not a pickle"})
    code, text = run("dataset=lic", f"dataset.root={root}", "captioner=sat")
    assert (code, "Traceback" in text) == (3, False)
    assert results(tmp_path) == []


def test_a_failed_job_of_a_sweep_exits_4_and_the_others_are_kept(run, tmp_path):
    root = write_folder(tmp_path / "data", {SAT: b"not a pickle"})
    words = ["dataset=lic", f"dataset.root={root}", "captioner=sat,fc"]
    assert run(*words, *NO_SIZE)[0] == 4
    assert len(results(tmp_path)) == 1


def test_a_sweep_of_no_captioner_exits_2(run, tmp_path):
    (tmp_path / "empty").mkdir()
    code, text = run("dataset=lic", f"dataset.root={tmp_path / 'empty'}", "captioner=all")
    assert (code, "nothing to run" in text) == (2, True)


def test_e13_outputs_that_cannot_be_written_exit_5(run, tmp_path):
    (tmp_path / "file").write_text("")
    code, text = run(*SMALL, "paths.outputs=file/x")
    assert (code, "Traceback" in text) == (5, False), text


@pytest.mark.parametrize(
    "override",
    [
        "encoder._target_=os.system",
        "+hydra.callbacks.x._target_=os.system",
        "hydra.launcher._target_=os.system",
        "+hydra.job_logging.handlers.x.class=subprocess.Popen",
        "metric._target_=bias_pipeline.results.store.os.system",
    ],
)
def test_e11_a_foreign_target_is_refused_before_anything_runs(run, override):
    code, text = run(override)
    assert (code, "is not allowed" in text) == (2, True), text


def test_e11_a_foreign_target_is_refused_in_a_sweep(run):
    code, text = run("encoder._target_=bias_pipeline.encoders.ngram.Ngram,os.system", *SMALL)
    assert (code, "is not allowed" in text) == (2, True), text


@pytest.mark.parametrize("words", [["metrics"], ["analysis", "metrics"]])
def test_metrics_lists_the_metrics(run, words):
    code, text = run(*words)
    assert (code, "leakage" in text) == (0, True)


def test_survivors_lists_words_a_list_forgot(run, tmp_path):
    content = [{**entry, "pred": "a bride"} for entry in entries()]
    root = write_folder(tmp_path / "data", {SAT: content})
    words = ["dataset=lic", f"dataset.root={root}", "captioner=sat", "masking=lic"]
    assert "bride" in run("analysis", "unmasked_words", *words)[1]


def test_beside_counts_who_is_named(run, tmp_path):
    content = [{**entry, "pred": "a white dog"} for entry in entries()]
    root = write_folder(tmp_path / "data", {SAT: content})
    words = ["dataset=lic", f"dataset.root={root}", "captioner=sat", "attribute=gender"]
    code, text = run("analysis", "collocations", *words, "attribute.words.male=white")
    assert code == 0
    assert "dog " in text


def test_help_names_every_choice(run):
    code, text = run("--help")
    assert (code, "leakage lic" in text) == (0, True)


HEAVY = ("torch", "pytorch_lightning", "transformers", "wandb", "sklearn")
COUNTED = (*SMALL, "metric=ba_directional")


LIGHT = [["--help"], ["--cfg", "job"], ["metrics"], SMALL, COUNTED]


def test_light_commands_import_nothing_heavy(tmp_path):
    code = (
        "import sys; from bias_pipeline.commands.main import main\n"
        f"for words in {LIGHT}:\n"
        "    assert main(words) == 0, words\n"
        f"    print([(m, words) for m in {HEAVY} if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line[:2] == "[("] == []
    assert done.stdout.splitlines().count("[]") == len(LIGHT)


@pytest.mark.slow  # a whole audit in a process of its own
def test_an_audit_of_captions_imports_nothing_heavy(tmp_path):
    """It counts, attacks with n-grams and writes a report, without a network or a tracker."""
    groups = [("male", "man"), ("female", "woman")] * 15
    captions = [f"{i},a {groups[i][1]} with a {('dog', 'cake')[i % 3 > 0]}" for i in range(30)]
    labels = [f"{i},{group}" for i, (group, _) in enumerate(groups)]
    (tmp_path / "captions.csv").write_text("\n".join(["image_id,caption", *captions]))
    (tmp_path / "labels.csv").write_text("\n".join(["image_id,gender", *labels]))
    code = (
        "import sys; from bias_pipeline.commands.main import main\n"
        "words = 'audit captions.csv --attributes labels.csv --out out --minutes 0.01'\n"
        "assert main(words.split()) == 0\n"
        f"print([module for module in {HEAVY} if module in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert list(tmp_path.glob("out/lic-*/result.json"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_e12_a_stopped_sweep_exits_as_designed(tmp_path, number, code):
    process = fork(tmp_path, *SWEEP)
    wait_for(lambda: results(tmp_path))
    os.kill(process.pid or 0, number)
    process.join(30)
    assert process.exitcode == code


@pytest.mark.slow
def test_e12_a_killed_sweep_resumes_to_the_same_table(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    start(whole, *SWEEP).wait(120)
    for n_results in (1, 4):
        process = start(broken, *SWEEP)
        wait_for(lambda n=n_results: len(results(broken)) >= n)
        process.kill()
        process.wait(30)
    start(broken, *SWEEP).wait(120)
    assert (broken / "outputs/table.csv").read_bytes() == (whole / "outputs/table.csv").read_bytes()


@pytest.mark.slow
def test_e18_two_sweeps_at_once_share_the_work(tmp_path):
    both = [start(tmp_path, *SWEEP) for _ in range(2)]
    assert ([process.wait(120) for process in both], len(results(tmp_path))) == ([0, 0], 14)


@pytest.mark.parametrize(("given", "retained"), [(None, "1"), ("3", "3")])
def test_numpy_has_one_thread_unless_told_otherwise(given, retained, monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)
    main(["--help"])
    assert os.environ["OPENBLAS_NUM_THREADS"] == retained
