"""torchvision and timm run beside a torch whose operators they lack; see also test_extras.py."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from bias_pipeline.models import torchvision
from bias_pipeline.models.torchvision import complete_when_imported, suppress_boxes

BOXES = torch.tensor([[0, 0, 4, 4], [1, 1, 5, 5], [8, 8, 9, 9], [0, 0, 4, 4]], dtype=torch.float32)
SCORES = torch.tensor([0.5, 0.9, 0.1, 0.4])


def test_overlapping_boxes_give_way_to_the_best():
    """The best overlaps two by 9 of 23 pixels, which overlap each other wholly."""
    assert suppress_boxes(BOXES, SCORES, 0.3).tolist() == [1, 2]
    assert suppress_boxes(BOXES, SCORES, 0.5).tolist() == [1, 0, 2]


def test_no_boxes_are_none():
    assert suppress_boxes(torch.zeros(0, 4), torch.zeros(0), 0.5).tolist() == []


def finder() -> Any:
    """Ours, of those that Python asks."""
    (match,) = (
        one for one in sys.meta_path if type(one).__module__ == complete_when_imported.__module__
    )
    return match


def test_the_guard_stands_once():
    before = list(sys.meta_path)
    complete_when_imported()
    assert sys.meta_path == before


def test_other_modules_are_found_as_ever():
    assert finder().find_spec("torch.nn", None) is None


def run_extension(folder: Path, *, operators: bool) -> None:
    """Import a torchvision.extension that finds operators or not, through the guard."""
    package = folder / "torchvision"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "extension.py").write_text(f"def _has_ops(): return {operators}")
    spec = finder().find_spec("torchvision.extension", [str(package)])
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


@pytest.fixture
def completed_modules(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of modules that were given operators."""
    names: list[str] = []
    monkeypatch.setattr(torchvision, "_complete", lambda module: names.append(module.__name__))
    return names


@pytest.mark.parametrize("operators", [False, True])
def test_a_module_that_finds_no_operators_is_given_some(tmp_path, completed_modules, operators):
    run_extension(tmp_path, operators=operators)
    assert completed_modules == ([] if operators else ["torchvision.extension"])


def test_suppression_runs_in_torchvision():
    package = pytest.importorskip("torchvision", reason="timm is absent")
    assert package.ops.nms(BOXES, SCORES, 0.3).tolist() == [1, 2]


def test_a_network_of_timm_runs():
    timm = pytest.importorskip("timm", reason="timm is absent")
    network = timm.create_model("resnet10t", pretrained=False).eval()
    assert network.forward_features(torch.zeros(1, 3, 64, 64)).shape[:2] == (1, 512)
