"""A torchvision that does not fit its torch must not take Lightning and transformers with it.

Both import torchvision where it is installed. One that was built for another torch (from a package
index it is linked to CUDA, also beside a torch without) has no operators, and its import fails with
theirs. Nothing here uses them, so their names are declared and the import succeeds; whoever calls
one is told by PyTorch that it has no kernel.
"""

from __future__ import annotations

import importlib
import logging
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from bias_pipeline.errors import ResourceError

log = logging.getLogger(__name__)

_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_SIGN = "operator torchvision::"
_kept: list[object] = []  # declarations last as long as what declared them


def make_importable() -> None:
    """Import torchvision, if it is installed, with its operators or without.

    Raises:
        ResourceError: if it is broken in another way.
    """
    if "torchvision" in sys.modules or find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except Exception as error:
        if _SIGN not in str(error):
            raise _broken(error) from error
        _import_without_operators()


def _import_without_operators() -> None:
    import torch

    library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for operator in _OPERATORS:
        library.define(operator)
    _kept.append(library)
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    try:
        importlib.import_module("torchvision")
    except Exception as error:
        raise _broken(error) from error
    log.warning("%s; nothing here needs them", _misfit())


def _broken(error: Exception) -> ResourceError:
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return ResourceError(
        f"{_misfit()} and cannot be imported ({first}), which Lightning and transformers do; pip "
        "uninstall torchvision, or install the one that belongs to this torch"
    )


def _misfit() -> str:
    return f"torchvision {_version('torchvision')} has no operators for torch {_version('torch')}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"
