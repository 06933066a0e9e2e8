"""Faster and Mask R-CNN of torchvision, from a file of weights that was fetched by hand.

Ren et al., Faster R-CNN (NeurIPS 2015); He et al., Mask R-CNN (ICCV 2017).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.datasets.scenes.categories import NAMES_BY_NUMBER
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.machine import Extra
from bias_pipeline.models.detection import MOST, Candidates, Detector, Photo
from bias_pipeline.models.weight_files import read_numbers
from bias_pipeline.vision.photos import read_photo
from bias_pipeline.vision.torchvision import make_importable

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

SUFFIXES = (".pth", ".pt", ".safetensors")
TORCHVISION = Extra("vision", "a detector of torchvision", ("torchvision",))
_NETWORKS = (
    "fasterrcnn_resnet50_fpn",
    "fasterrcnn_resnet50_fpn_v2",
    "fasterrcnn_mobilenet_v3_large_fpn",
    "maskrcnn_resnet50_fpn",
    "maskrcnn_resnet50_fpn_v2",
)
_FROZEN = ("fasterrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn")
_CLASSES = "roi_heads.box_predictor.cls_score.bias"
_N_CLASSES = 91  # COCO's numbers up to 90, and the background
_COUNTERS = ".num_batches_tracked"
# Layer names in files from before torchvision 0.13, and the current names.
_FORMER = (
    (r"rpn\.head\.conv\.(weight|bias)", r"rpn.head.conv.0.0.\1"),
    (r"(backbone\.fpn\.(?:inner|layer)_blocks\.\d+)\.(weight|bias)", r"\1.0.\2"),
)
_FORMER_MASK = r"roi_heads\.mask_head\.mask_fcn(\d+)\.(weight|bias)"  # counted from 1
_SURE = 0.5  # pixels from this value on belong to a mask


class TorchvisionDetector(Detector):
    """One of torchvision's networks.

    Args:
        path: its weights: a state_dict with COCO's 91 classes.
        min_score: the least certainty of what is told.
        device: where to compute.

    Raises:
        DataError: if the file is cut, contains code, or is of another network.
        ResourceError: if it, or torchvision, is absent.
    """

    numbers = tuple(n if str(n) in NAMES_BY_NUMBER else None for n in range(_N_CLASSES))

    def __init__(self, path: Path, min_score: float, device: torch.device) -> None:
        TORCHVISION.require()
        make_importable()
        _interpret()
        weights = read_numbers(check_weights(path))
        network = _built(_state_dict(weights, path), path)
        network.roi_heads.score_thresh = min_score
        network.roi_heads.detections_per_img = MOST
        self._network, self._device = network.to(device).eval(), device

    def read(self, path: Path) -> Photo:
        """(3, H, W) colours from 0 to 1; the network scales the picture itself."""
        photo = read_photo(path)
        pixels = np.asarray(photo, np.float32).transpose(2, 0, 1) / 255
        return Photo(np.ascontiguousarray(pixels), (photo.height, photo.width))

    def candidates(self, photos: Sequence[Photo]) -> Iterator[Candidates]:
        """See the base."""
        import torch

        pixels = [torch.from_numpy(photo.pixels).to(self._device) for photo in photos]
        for output in self._network(pixels):
            masks = output["masks"][:, 0] >= _SURE if "masks" in output else None
            yield Candidates(output["scores"], output["labels"], output["boxes"], masks)


def _interpret() -> None:
    """Run region pooling uncompiled: without its operators torchvision would compile it."""
    cutting = importlib.import_module("torchvision.ops.roi_align")
    written = getattr(cutting._roi_align, "__wrapped__", None)
    if written is not None:
        cutting.__dict__["_roi_align"] = written


def check_weights(path: Path) -> Path:
    """The path of an existing file of weights.

    Raises:
        ResourceError: if it is not.
    """
    if not path.is_file():
        raise ResourceError(
            f"{path}: no such file; fetch torchvision's weights of Mask or Faster R-CNN by "
            "hand, or name a folder or a detector on the hub"
        )
    return path


def _state_dict(weights: Any, path: Path) -> Mapping[str, Tensor]:
    classes = weights.get(_CLASSES) if isinstance(weights, dict) else None
    if classes is None:
        raise DataError(
            f"{path}: {_CLASSES!r} is absent; name the state_dict of Mask or Faster R-CNN"
        )
    if classes.shape != (_N_CLASSES,):
        raise DataError(
            f"{path}: {len(classes)} classes without names; torchvision's weights of COCO have "
            f"{_N_CLASSES}"
        )
    return {_present_name(name): value for name, value in weights.items()}


def _present_name(name: str) -> str:
    """The library's current name of a layer; its own loading renames files of 2019 in the same way.

    Example:
        >>> _present_name("roi_heads.mask_head.mask_fcn1.bias")
        'roi_heads.mask_head.0.0.bias'
    """
    for former, present in _FORMER:
        name = re.sub(rf"^{former}$", present, name)
    mask = re.fullmatch(_FORMER_MASK, name)
    return f"roi_heads.mask_head.{int(mask[1]) - 1}.0.{mask[2]}" if mask else name


def _built(weights: Mapping[str, Tensor], path: Path) -> Any:
    """The one network that weights fit."""
    import torch

    detection = importlib.import_module("torchvision.models.detection")
    for name in _NETWORKS:
        with torch.device("meta"):
            network = _empty(detection, name)
        if _shapes(network.state_dict()) == _shapes(weights):
            whole = _empty(detection, name)
            whole.load_state_dict(weights, strict=False)  # counters may be absent
            return _as_trained(whole) if name in _FROZEN else whole
    raise DataError(f"{path}: fits none of {', '.join(_NETWORKS)} with {_N_CLASSES} classes")


def _as_trained(network: nn.Module) -> nn.Module:
    """Set the normalisation as in training: frozen, without an epsilon."""
    from torch import nn

    for part in network.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eps = 0.0
    return network


def _empty(detection: Any, name: str) -> nn.Module:
    network: nn.Module = detection.__dict__[name](
        weights=None, weights_backbone=None, num_classes=_N_CLASSES
    )
    return network


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {k: tuple(v.shape) for k, v in weights.items() if not k.endswith(_COUNTERS)}
