"""torchvision and timm run beside a torch whose operators they lack; see also test_extras.py."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest
import torch

from bias_pipeline.vision.torchvision import guard, suppressed

BOXES = torch.tensor([[0, 0, 4, 4], [1, 1, 5, 5], [8, 8, 9, 9], [0, 0, 4, 4]], dtype=torch.float32)
SCORES = torch.tensor([0.5, 0.9, 0.1, 0.4])


def test_overlapping_boxes_give_way_to_the_best() -> None:
    """The best overlaps two by 9 of 23 pixels, which overlap each other wholly."""
    assert suppressed(BOXES, SCORES, 0.3).tolist() == [1, 2]
    assert suppressed(BOXES, SCORES, 0.5).tolist() == [1, 0, 2]


def test_no_boxes_are_none() -> None:
    assert suppressed(torch.zeros(0, 4), torch.zeros(0), 0.5).tolist() == []


def finder() -> Any:
    """Ours, of those that Python asks."""
    (own,) = (one for one in sys.meta_path if type(one).__module__ == guard.__module__)
    return own


def test_the_guard_stands_once() -> None:
    before = list(sys.meta_path)
    guard()
    assert sys.meta_path == before


def test_other_modules_are_found_as_ever() -> None:
    assert finder().find_spec("torch.nn", None) is None


def test_a_module_that_finds_no_operators_is_given_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").touch()
    found = "def _has_ops(): return {}\ndef _assert_has_ops(): raise RuntimeError"
    (package / "extension.py").write_text(found.format(True))
    spec = finder().find_spec("torchvision.extension", [str(package)])
    assert spec.origin == PathFinder.find_spec("torchvision.extension", [str(package)]).origin  # type: ignore[union-attr]
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(RuntimeError):
        module._assert_has_ops()  # it has operators, so nothing is done


def test_suppression_runs_in_torchvision() -> None:
    torchvision = pytest.importorskip("torchvision", reason="extra vision is not installed")
    assert torchvision.ops.nms(BOXES, SCORES, 0.3).tolist() == [1, 2]


def test_a_network_of_timm_runs() -> None:
    timm = pytest.importorskip("timm", reason="extra vision is not installed")
    own = timm.create_model("resnet10t", pretrained=False).eval()
    assert own.forward_features(torch.zeros(1, 3, 64, 64)).shape[:2] == (1, 512)
