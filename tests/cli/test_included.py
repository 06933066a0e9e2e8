"""What CONTRIBUTING.md adds, in a package of one's own: metric, encoder, attribute, data set.

And that nothing but the user's own command or environment lets a configuration build them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import bias_pipeline as bp
from bias_pipeline.io.paths import VARIABLE, conf_file
from bias_pipeline.metrics import catalogue
from bias_pipeline.run import launch, overrides, slurm, targets
from bias_pipeline.run.targets import is_allowed
from tests.cli.commands import results, rows
from tests.corpora import REPOSITORY
from tests.documents import own_package

CELL = ("dataset.n_images=200", "seeds=1", "stats.resamples=20", "logger=csv")
INCLUDE = ("--include", "mine")
BAG = ("encoder=bag", "probe.processes=1")  # a process more imports PyTorch anew
SHEET = (
    "+attribute.labels.sheet={_target_:bias_pipeline.corpus.attribute.LabelMap,"
    "field:sex,groups:{m:male,f:female}}"
)


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package, in the folder that commands start in."""
    own_package(tmp_path, "mine")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "mine"
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mine", "other")]:
        del sys.modules[name]
    for known in (targets._defined_class, targets.parameters_of, catalogue.metric_class):
        known.cache_clear()


@pytest.mark.parametrize(
    ("words", "column", "name"),
    [
        ((*BAG, "trainer.max_epochs=1", "metric.positions=1"), "encoder", "bag"),
        (("attribute=mood", "metric=gender_error"), "attribute", "mood"),
    ],
)
def test_what_is_ones_own_is_run(ok, tmp_path, words, column, name):
    ok(*words, *INCLUDE, *CELL)
    assert rows(results(tmp_path)[0])[0][column] == name


def test_a_metric_of_ones_own_is_run_and_its_package_named(ok, tmp_path, mine):
    assert f"included: mine from {mine}" in ok(*INCLUDE, "metric=silence", *CELL)
    content = json.loads(results(tmp_path)[0].read_text())
    assert content["rows"][0]["metric"] == "silence"
    assert content["manifest"]["included"] == {"mine": str(mine)}


def test_a_data_set_of_ones_own_is_read(ok, tmp_path):
    lines = [f"{i},{'mf'[i % 2]},a red {('car', 'cat')[i % 2]},a dog" for i in range(80)]
    (tmp_path / "captions.csv").write_text("\n".join(["id,sex,mine,human", *lines]))
    ok("dataset=sheet", SHEET, "--include=mine", *CELL[1:])
    assert rows(results(tmp_path)[0])[0]["dataset"] == "sheet"


def test_an_installed_program_finds_the_packages_of_its_working_folder(tmp_path):
    """Python puts the program's folder in front of its path, not the one it was started in."""
    command = [sys.executable, "-P", "-m", "bias_pipeline", *INCLUDE, "metric=silence", *CELL]
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert (done.returncode, len(results(tmp_path))) == (0, 1), done.stderr


def test_help_offers_what_is_included(run):
    assert "silence" in run("--help", *INCLUDE)[1]


def test_all_metrics_are_those_of_ones_own_too(monkeypatch):
    monkeypatch.setenv(VARIABLE, "mine")
    (word,) = launch.expand(overrides.options_of(["metric=all"]))
    assert "silence" in word.partition("=")[2].split(",")


def test_all_metrics_are_those_of_a_folder_too(tmp_path):
    path = tmp_path / "metric" / "misnaming.yaml"
    path.parent.mkdir()
    path.write_text(conf_file("metric", "gender_error").read_text())
    words = ["metric=all", "--config-dir", str(tmp_path)]
    (word,) = launch.expand(overrides.options_of(words))
    assert "misnaming" in word.partition("=")[2].split(",")


@pytest.mark.slow  # several processes
def test_workers_of_a_sweep_have_it(run, tmp_path):
    words = ["metric=silence", "-m", "hydra/launcher=submitit_local"]
    code, printed = run(*INCLUDE, *words, *CELL)
    assert (code, len(results(tmp_path))) == (0, 1), printed


def test_submitted_jobs_are_told(ok, monkeypatch):
    submitted: list[list[str]] = []
    monkeypatch.setattr(slurm, "submit", lambda _, jobs, config: submitted.extend(jobs) or [])
    monkeypatch.setattr("bias_pipeline.run.slurm.shutil.which", lambda _: "sbatch")
    ok("submit", *INCLUDE, "metric=silence", *CELL)
    assert submitted[0][:3] == ["run", *INCLUDE]


def test_python_has_it_by_the_environment(monkeypatch):
    monkeypatch.setenv(VARIABLE, "mine")
    captions, labels = ["a man", "a dog"], ["male", "female"]
    assert bp.score("silence", captions, labels, human=["a man", "a girl"]).rows[0].value == 0.5


# --- and nobody else may


def test_without_a_word_it_is_refused(ends, mine):
    printed = ends(2, "--config-dir", str(mine / "conf"), "metric=silence", *CELL)
    assert "'mine.silence.Silence' is not allowed" in printed


def test_after_the_command_it_is_refused_again(ok):
    ok(*INCLUDE, "metric=silence", *CELL)
    assert not is_allowed("mine.silence.Silence")


@pytest.mark.parametrize(
    "content",
    [
        {"include": "mine"},
        {"--include": "mine"},
        {"hydra": {"job": {"env_set": {VARIABLE: "mine"}}}},
        {"hydra": {"searchpath": ["pkg://mine.conf"]}},
    ],
    ids=str,
)
def test_no_file_includes_a_package(run, mine, content):
    metric = {"metric": {"_target_": "mine.silence.Silence", "attribute": "${attribute}"}}
    path = mine / "conf" / "experiment" / "own.yaml"
    path.parent.mkdir()
    path.write_text(f"# @package _global_\n{yaml.safe_dump({**metric, **content})}")
    code, printed = run("--config-dir", str(mine / "conf"), "experiment=own", *CELL)
    assert (code, "mine.silence" in sys.modules) == (2, False), printed


@pytest.mark.parametrize(
    "target",
    [
        "mine.silence.counted_share",
        "mine.silence.CountingMetric",  # imported there, not defined
        "mine._hidden.Silence",
        "minefield.Silence",
        "os.system",
    ],
)
def test_an_included_package_has_its_own_configurable_classes_alone(target, monkeypatch):
    monkeypatch.setenv(VARIABLE, "mine")
    assert not is_allowed(target)


def test_a_class_of_ones_own_is_no_class_of_ours(run, tmp_path, mine):
    """Two metrics of one name and other code are two runs."""
    run(*INCLUDE, "metric=silence", *CELL)
    (tmp_path / "other").mkdir()
    for name in ("__init__.py", "silence.py"):
        (tmp_path / "other" / name).write_text((mine / name).read_text())
    both = ("--include=mine", "--include=other", "metric=silence")
    run(*both, "metric._target_=other.silence.Silence", *CELL)
    assert len(results(tmp_path)) == 2


# --- mistakes


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--include nothere", 5, "--include nothere: there is no such package"),
        ("--include", 2, "--include"),
        ("--include a/b", 2, "--include"),
        ("--include=", 2, "--include"),
        ("hydra.searchpath=[pkg://mine.conf]", 2, "a package with --include"),
    ],
)
def test_what_cannot_be_included_is_refused(ends, words, code, message):
    assert message in " ".join(ends(code, *CELL, *words.split()).split())


def test_a_mistake_in_ones_own_module_is_told(ends, mine):
    (mine / "silence.py").write_text("import nothing_of_this_name\n")
    printed = " ".join(ends(2, *INCLUDE, "metric=silence", *CELL).split())
    assert "ModuleNotFoundError: No module named 'nothing_of_this_name'" in printed
