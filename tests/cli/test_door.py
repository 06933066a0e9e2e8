"""The door as users know it: commands, folders, exit codes."""

import csv
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bias_pipeline.commands.main import main
from tests.cli.commands import COUNTING, SMALL, SWEEP, fork, results, rows, wait_for
from tests.lic_folder import SAT, entries, write_folder

NO_SIZE = [word for word in COUNTING if "n_images" not in word]  # of other data sets
BROKEN = {SAT: b"not a pickle"}


@pytest.fixture
def lic(tmp_path) -> tuple[str, str]:
    """Words of a folder of pickles."""
    return "dataset=lic", f"dataset.root={write_folder(tmp_path / 'data')}"


# --- one cell


def test_a_plain_run_leaves_the_three_files_and_prints_its_table(finished_run):
    names = {path.name for path in finished_run.result.parent.iterdir()}
    assert {"result.json", "rows.csv", "predictions.parquet"} <= names
    assert "amplifier" in finished_run.printed
    row = rows(finished_run.result)[0]
    named = ("metric", "encoder", "attribute", "dataset", "captioner")  # the contract's defaults
    assert [row[name] for name in named] == ["lic", "ngram", "gender", "scenes", "amplifier"]
    folder = finished_run.folder / "outputs"  # where Hydra's own files are in .hydra_jobs
    names = {path.name for path in folder.iterdir() if path.name[0] != "."}
    assert names == {"rows.csv", "table.csv", finished_run.result.parent.name}


def test_the_same_cell_is_not_run_again_and_other_seeds_are_another(ok, tmp_path):
    ok(*COUNTING)
    assert "cached, not run again: 1 of 1" in ok(*COUNTING)
    ok(*COUNTING, "seeds=[0,12,456]")
    assert len(results(tmp_path)) == 2


def test_a_metric_that_the_data_do_not_permit_fails_when_asked_for(ends, lic):
    assert "has no objects" in ends(3, *lic, "captioner=sat", "metric=ba_mals")


# --- sweeps


def test_a_comma_sweeps_without_a_flag_and_writes_its_table(ok, tmp_path):
    ok(*COUNTING, "metric=gender_error,gender_ratio", "captioner=faithful,terse")
    assert len(results(tmp_path)) == 4
    table = csv.DictReader(io.StringIO((tmp_path / "outputs" / "table.csv").read_text()))
    lines = list(table)
    assert {row["captioner"] for row in lines} == {"faithful", "terse"}
    assert len(lines) == sum(len(rows(path)) for path in results(tmp_path))


def test_captioner_all_runs_every_captioner(ok, lic, tmp_path):
    ok(*lic, *NO_SIZE, "captioner=all")
    assert {path.parent.name.split("-")[2] for path in results(tmp_path)} == {"sat", "fc"}


@pytest.mark.slow
def test_metric_all_says_what_the_data_do_not_permit(ok, lic, tmp_path):
    text = ok(*lic, "captioner=sat", "seeds=1", "stats.resamples=50", "metric=all", "logger=csv")
    cells = "ba_directional, ba_mals, dpa, multi_directional, objects"
    assert f"skipped: {cells}: dataset 'lic' has no objects" in text
    assert {"lic", "gender_error"} <= {p.parent.name.split("-")[0] for p in results(tmp_path)}


def test_a_counting_metric_is_one_cell_under_any_encoder(ok, tmp_path):
    ok(*COUNTING, "encoder=ngram,lstm", "masking=none,attribute")
    assert len(results(tmp_path)) == 1


def test_a_failed_job_of_a_sweep_exits_4_and_the_others_are_kept(ends, tmp_path):
    root = write_folder(tmp_path / "data", BROKEN)
    ends(4, "dataset=lic", f"dataset.root={root}", "captioner=sat,fc", *NO_SIZE)
    assert len(results(tmp_path)) == 1


def test_a_sweep_of_no_captioner_exits_2(ends, tmp_path):
    assert "nothing to run" in ends(2, "dataset=lic", f"dataset.root={tmp_path}", "captioner=all")


# --- mistakes


def test_bad_data_exits_3_and_writes_no_result(ends, tmp_path):
    root = write_folder(tmp_path / "data", BROKEN)
    ends(3, "dataset=lic", f"dataset.root={root}", "captioner=sat")
    assert results(tmp_path) == []


def test_outputs_that_cannot_be_written_exit_5(ends, tmp_path):
    (tmp_path / "file").write_text("")
    ends(5, *SMALL, "paths.outputs=file/x")


# --- other commands


def test_metrics_lists_the_metrics(ok):
    assert "leakage" in ok("metrics")


@pytest.mark.parametrize(
    ("caption", "words", "message"),
    [
        ("a bride", ("unmasked_words", "masking=lic"), "bride"),
        ("a white dog", ("collocations", "attribute.words.male=white"), "dog "),
    ],
    ids=["words that a list forgot", "words beside those of a group"],
)
def test_words_of_captions_are_analysed(ok, tmp_path, caption, words, message):
    content = [{**entry, "pred": caption} for entry in entries()]
    root = write_folder(tmp_path / "data", {SAT: content})
    name, word = words
    data = ("dataset=lic", f"dataset.root={root}", "captioner=sat", "attribute=gender")
    assert message in ok("analysis", name, *data, word)


def test_help_names_every_choice(ok):
    assert "leakage lic" in ok("--help")


# --- what is imported

HEAVY = ("torch", "pytorch_lightning", "transformers", "wandb", "sklearn")
# What help of commands of photos needs not either.
HELP = [[word, "--help"] for word in ("embed", "caption")]
LIGHT = [["--help"], ["--cfg", "job"], ["metrics"], SMALL, (*SMALL, "metric=ba_directional")]


def imports(folder: Path, lines: list[tuple[object, tuple[str, ...]]]) -> list[str]:
    """Run commands one after another in a process; which of some modules each has imported."""
    code = (
        "import sys; from bias_pipeline.commands.main import main\n"
        f"for words, modules in {lines}:\n"
        "    assert main(words) == 0, words\n"
        "    print('imported', [name for name in modules if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line.startswith("imported")]


def test_light_commands_import_nothing_heavy(tmp_path):
    lines = [(words, (*HEAVY, "PIL", "pyarrow")) for words in HELP]
    lines += [(words, HEAVY) for words in LIGHT]
    assert imports(tmp_path, lines) == ["imported []"] * len(lines)


@pytest.mark.slow  # a whole audit in a process of its own
def test_an_audit_of_captions_imports_nothing_heavy(tmp_path):
    """It counts, attacks with n-grams and writes a report, without a network or a tracker."""
    groups = [("male", "man"), ("female", "woman")] * 15
    captions = [f"{i},a {groups[i][1]} with a {('dog', 'cake')[i % 3 > 0]}" for i in range(30)]
    labels = [f"{i},{group}" for i, (group, _) in enumerate(groups)]
    (tmp_path / "captions.csv").write_text("\n".join(["image_id,caption", *captions]))
    (tmp_path / "labels.csv").write_text("\n".join(["image_id,gender", *labels]))
    words = "audit captions.csv --attributes labels.csv --out out --minutes 0.01"
    assert imports(tmp_path, [(words.split(), HEAVY)]) == ["imported []"]
    assert list(tmp_path.glob("out/lic-*/result.json"))


# --- what is stopped


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_sweep_exits_as_designed(tmp_path, number, code):
    process = fork(tmp_path, *SWEEP)
    wait_for(lambda: results(tmp_path))
    os.kill(process.pid or 0, number)
    process.join(30)
    assert process.exitcode == code


@pytest.mark.parametrize(("given", "retained"), [(None, "1"), ("3", "3")])
def test_numpy_has_one_thread_unless_told_otherwise(given, retained, monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)
    main(["--help"])
    assert os.environ["OPENBLAS_NUM_THREADS"] == retained


def test_the_configuration_that_hydra_composed_has_a_line_a_key(ok):
    lines = ok("--info", "config").splitlines()
    assert "stats:" in lines
    assert "  resamples: 1000" in lines
