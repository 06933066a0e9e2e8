"""What a base installation lacks is told in one sentence, before any work."""

import sys
from pathlib import Path

import pytest

from bias_pipeline.errors import ResourceError
from bias_pipeline.io import machine
from bias_pipeline.models.torchvision import make_importable
from bias_pipeline.run.hydra_composer import _check_launcher
from tests.cli.commands import SMALL

PAIR = " ".join(["captioner=faithful,terse", *SMALL])


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of an extra is installed."""
    monkeypatch.setattr(machine, "find_spec", lambda name: None)


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("report .", "matplotlib, which are not installed: pip install 'bias_pipeline[report]'"),
        ("audit x.json --attributes y.csv", "pip install 'bias_pipeline[report]'"),
        ("hydra/launcher=submitit_local PAIR", "hydra-submitit-launcher"),
        ("cluster=slurm PAIR", "a run on Slurm needs the packages submitit and hydra-"),
        ("rate . --question ? --out o", "pip install 'bias_pipeline[web]'"),
        ("anonymous build --model m --out o", "pip install 'bias_pipeline[diffusion]'"),
        ("submit PAIR", "pip install 'bias_pipeline[slurm]'"),
    ],
)
def test_an_absent_extra_is_named_before_any_work(ends, tmp_path, words, message):
    text = ends(5, *words.replace("PAIR", PAIR).split())
    assert (message in text, text.count("\n")) == (True, 1), text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("bare")
def test_a_launcher_that_hydra_does_not_find_is_an_extra():
    with pytest.raises(ResourceError, match=r"bias_pipeline\[slurm\]"):
        _check_launcher("In 'hydra/config': Could not find 'hydra/launcher/submitit_local' A ...")


def torchvision(folder: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """A torchvision of our own making."""
    (folder / "torchvision").mkdir()
    (folder / "torchvision" / "__init__.py").write_text(source)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)


def test_a_torchvision_that_is_broken_is_named(tmp_path, monkeypatch):
    torchvision(tmp_path, monkeypatch, "raise OSError('undefined symbol: _ZN3c10')")
    with pytest.raises(ResourceError, match=r"torchvision .* \(undefined symbol.*pip uninstall"):
        make_importable()
