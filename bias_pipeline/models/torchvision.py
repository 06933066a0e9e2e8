"""Lets Lightning, transformers and timm work with a torchvision that was built for another torch.

All three import torchvision if it is installed. A torchvision that was built for another torch has
no operators, so these imports fail. :func:`complete_when_imported` declares the operators.
Non-maximum suppression, which torchvision cannot compute in any other way, gets a kernel in plain
PyTorch. If torchvision has its operators, nothing is done.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import ResourceError

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger(__name__)

_MODULE = "torchvision.extension"  # loads the operators; modules that need them are imported later
_NMS = "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_OPERATORS = (_NMS, f"q{_NMS}")
_libraries: list[object] = []  # declarations last as long as the object that declared them


def complete_when_imported() -> None:
    """Complete torchvision as soon as it is imported; the call itself imports nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Import hook that finds one module and completes it after it has run."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _MODULE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Completing(spec.loader)
        return spec


class _Completing(Loader):
    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; if torchvision has no operators, declare them."""
        self.loader.exec_module(module)
        has_operators = getattr(module, "_has_ops", None)
        if has_operators is not None and not has_operators():
            _complete(module)


def _complete(module: ModuleType) -> None:
    import torch

    library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for operator in _OPERATORS:
        library.define(operator)
    library.impl("nms", suppress_boxes, "CPU")
    _libraries.append(library)
    module._assert_has_ops = lambda: None  # type: ignore[attr-defined]
    log.info("%s; non-maximum suppression runs in plain PyTorch", _misfit())


def suppress_boxes(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """(M,) int64 rows of the boxes (N, 4) that non-maximum suppression keeps, best first."""
    import torch

    order = scores.argsort(descending=True, stable=True)
    boxes = dets[order].float()
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    gone = torch.zeros(len(boxes), dtype=torch.bool)
    for row in range(len(boxes)):
        if gone[row]:
            continue
        rest = boxes[row + 1 :]
        first = torch.maximum(boxes[row, :2], rest[:, :2])
        last = torch.minimum(boxes[row, 2:], rest[:, 2:])
        shared = (last - first).clamp(min=0).prod(dim=1)
        gone[row + 1 :] |= shared / (areas[row] + areas[row + 1 :] - shared) > iou_threshold
    return order[~gone]


def make_importable() -> None:
    """Import torchvision, if it is installed."""
    if "torchvision" in sys.modules or find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except Exception as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ResourceError(
            f"{_misfit()} and cannot be imported ({first}), although Lightning and transformers "
            "need it; pip uninstall torchvision, or install the version for this torch"
        ) from error


def _misfit() -> str:
    return f"torchvision {_version('torchvision')} has no operators for torch {_version('torch')}"


def _version(package: str) -> str:
    import importlib.metadata  # slow, and every command imports this file

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"
