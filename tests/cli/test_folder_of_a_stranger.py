"""No file of the folder that a command starts in runs, whatever its name; only what is included."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import results
from tests.corpora import REPOSITORY
from tests.documents import own_package

CELL = ("metric=gender_error", "dataset.n_images=60", "seeds=1", "stats.resamples=20")
ATTACKERS = ("encoder=lstm", "probe.processes=2", "trainer.max_epochs=1")
OTHERS = ("hydra", "numpy", "omegaconf", "pandas", "pyarrow", "rich", "torch", "wandb", "yaml")


def modules_of_python() -> set[str]:
    """What Python itself imports before any program of ``python -m`` runs, out of its reach."""
    code = "import runpy, pkgutil, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files and folders with the names of all modules, which leave a mark when they run."""
    names = {name for name in sys.stdlib_module_names if not name.startswith("_")} | {"__future__"}
    for name in (names | set(OTHERS)) - modules_of_python():
        is_package = name in ("hydra", "numpy", "email")
        path = tmp_path / name / "__init__.py" if is_package else tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"open({str(tmp_path / 'mark.txt')!r}, 'a').write({name!r} + ' ')\n")
    plugin = tmp_path / "hydra_plugins" / "stranger.py"
    plugin.parent.mkdir()
    plugin.write_text((tmp_path / "yaml.py").read_text())
    (tmp_path / "mine.json").write_text(
        "["
        + ",".join(f'{{"image_id": {i}, "caption": "a man and a dog"}}' for i in range(60))
        + "]"
    )
    lines = [f"{i},{'mf'[i % 2]}" for i in range(60)]
    (tmp_path / "labels.csv").write_text("\n".join(["image_id,gender", *lines]))
    return tmp_path


def run_in(folder: Path, *words: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),  # for a run of one cell: see what is included, below
        ("audit", "mine.json", "--attributes", "labels.csv"),
        pytest.param(
            ("-m", *CELL, "seeds=1,2", "hydra/launcher=submitit_local"), marks=pytest.mark.slow
        ),
        pytest.param(("metric=lic", *CELL[1:], "seeds=2", *ATTACKERS), marks=pytest.mark.slow),
    ],
    ids=["help", "audit", "workers", "an attacker"],
)
def test_no_file_of_the_folder_is_run(folder, words):
    run_in(folder, "-m", "bias_pipeline", *words)
    assert not (folder / "mark.txt").exists(), (folder / "mark.txt").read_text()


def test_the_files_would_be_run(folder):
    """By Python alone: the test above tests something."""
    run_in(folder, "-c", "import yaml, hydra")
    assert (folder / "mark.txt").read_text() == "yaml hydra "


def test_what_is_included_is_run_and_nothing_beside_it(folder):
    own_package(folder, "mine")
    run_in(folder, "-m", "bias_pipeline", "--include", "mine", "metric=silence", *CELL[1:])
    assert len(results(folder)) == 1
    assert not (folder / "mark.txt").exists(), (folder / "mark.txt").read_text()


def test_a_module_beside_what_is_included_is_named(folder):
    own_package(folder, "mine")
    (folder / "beside.py").write_text("")
    path = folder / "mine" / "silence.py"
    path.write_text(f"{path.read_text()}\nimport beside\n")
    words = ("--include", "mine", "metric=silence", *CELL[1:])
    command = [sys.executable, "-m", "bias_pipeline", *words]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert "if you trust it, add --include beside" in done.stderr
    run_in(folder, "-m", "bias_pipeline", "--include", "beside", *words)


def test_a_checkout_that_is_not_installed_runs_in_its_folder(tmp_path):
    """Its processes too; but a file beside the package stands for no module."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("bias_pipeline", "conf"):
        (checkout / name).symlink_to(REPOSITORY / name)
    (checkout / "yaml.py").write_text("raise SystemExit('run')")
    printed = run_in(checkout, "-m", "bias_pipeline", *CELL, PYTHONPATH="")
    assert "gender_error" in printed
