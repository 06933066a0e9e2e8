"""The committed W&B sweeps give commands that the door understands; no server is needed."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from bias_pipeline.commands.main import main
from tests.cli.commands import results
from tests.corpora import REPOSITORY

FILES = sorted((REPOSITORY / "experiments" / "sweeps").glob("*.yaml"))


def commands(path: Path) -> Iterator[list[str]]:
    """What W&B's agent would start for each point of a grid, made by W&B's own functions."""
    from wandb.sdk.launch.sweeps.utils import create_sweep_command, create_sweep_command_args

    sweep = yaml.safe_load(path.read_text())
    names, choices = zip(*sweep["parameters"].items(), strict=True)
    for values in product(*(choice["values"] for choice in choices)):
        args = {name: {"value": value} for name, value in zip(names, values, strict=True)}
        filled = create_sweep_command_args({"args": args})
        macros = {"${env}": ["/usr/bin/env"], "${interpreter}": ["python"]}
        macros |= {f"${{{key}}}": value for key, value in filled.items() if isinstance(value, list)}
        words = [macros.get(word, [word]) for word in create_sweep_command(sweep["command"])]
        yield [word for command in words for word in command]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_command_of_a_sweep_composes(path, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    items = list(commands(path))
    assert all(
        command[:4] == ["/usr/bin/env", "python", "-m", "bias_pipeline"] for command in items
    )
    assert len(items) == len({tuple(command) for command in items})
    assert main([*items[-1][4:], "--cfg", "job"]) == 0
    assert capfd.readouterr().out


def test_a_command_of_a_sweep_runs_as_one_wandb_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    words: list[Any] = next(commands(FILES[0]))[4:]
    for _ in range(2):  # as when it is queued again
        assert main([*words, "dataset.n_images=300", "stats.resamples=20"]) == 0
    (path,) = results(tmp_path)
    (run,) = tmp_path.glob("outputs/wandb/offline-run-*")
    assert run.name.endswith(path.parent.name)
