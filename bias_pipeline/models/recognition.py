"""Labels pictures with published networks: classifiers, CLIP with names as prompts, detectors.

Sources: He et al., Deep Residual Learning (CVPR 2016); Radford et al., Learning Transferable Visual
Models From Natural Language Supervision (ICML 2021); Carion et al., End-to-End Object Detection
with Transformers (ECCV 2020). Faster and Mask R-CNN of torchvision (Ren et al., NeurIPS 2015; He et
al., ICCV 2017) come from a file of weights that was fetched by hand.
"""

from __future__ import annotations

import importlib
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bias_pipeline.array_types import Float32Array
from bias_pipeline.corpus.object_names import NAMES_BY_NUMBER, plain_label
from bias_pipeline.data.photos import read_photo
from bias_pipeline.data.regions import by_confidence
from bias_pipeline.errors import DataError, ResourceError, inflect
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.machine import Extra
from bias_pipeline.models import clip
from bias_pipeline.models.clip import ClipPhotos, ClipTexts
from bias_pipeline.models.detection import (
    BOXES,
    MOST,
    ONE_LABEL,
    Candidates,
    Detector,
    Photo,
    labels_of,
    load_boxes,
)
from bias_pipeline.models.pretrained import Preprocessing, Pretrained, find_pretrained, load
from bias_pipeline.models.timm_networks import TimmNetwork, find_network_of_timm, is_timm
from bias_pipeline.models.torchvision import make_importable
from bias_pipeline.models.weight_files import read_numbers

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
_FORMER_MASK = r"roi_heads\.mask_head\.mask_fcn(\d+)\.(weight|bias)"  # the number begins at 1
_SURE = 0.5  # pixels from this value on belong to a mask


class TorchvisionDetector(Detector):
    numbers = tuple(n if str(n) in NAMES_BY_NUMBER else None for n in range(_N_CLASSES))

    def __init__(self, path: Path, min_score: float, device: torch.device) -> None:
        TORCHVISION.require()
        make_importable()
        pooling = importlib.import_module("torchvision.ops.roi_align")
        plain = getattr(pooling._roi_align, "__wrapped__", None)
        if plain is not None:  # a torchvision without operators would compile it
            pooling.__dict__["_roi_align"] = plain
        weights = read_numbers(check_weights(path))
        network = _build(_state_dict(weights, path), path)
        network.roi_heads.score_thresh = min_score
        network.roi_heads.detections_per_img = MOST
        self._network, self._device = network.to(device).eval(), device

    def read(self, path: Path) -> Photo:
        """(3, H, W) the colours of a photo, from 0 to 1; the network scales the picture itself."""
        photo = read_photo(path)
        pixels = np.asarray(photo, np.float32).transpose(2, 0, 1) / 255
        return Photo(np.ascontiguousarray(pixels), (photo.height, photo.width))

    def candidates(self, photos: Sequence[Photo]) -> Iterator[Candidates]:
        import torch

        pixels = [torch.from_numpy(photo.pixels).to(self._device) for photo in photos]
        for output in self._network(pixels):
            masks = output["masks"][:, 0] >= _SURE if "masks" in output else None
            yield Candidates(output["scores"], output["labels"], output["boxes"], masks)


def check_weights(path: Path) -> Path:
    """The path of a file of weights; an absent file is refused."""
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
            f"{path}: {inflect(len(classes), 'classes')} without names; torchvision's weights of "
            f"COCO have {_N_CLASSES}"
        )
    return {_present_name(name): value for name, value in weights.items()}


def _present_name(name: str) -> str:
    """The library's present name for a layer in files from 2019, renamed as the library does it.

    Example:
        >>> _present_name("roi_heads.mask_head.mask_fcn1.bias")
        'roi_heads.mask_head.0.0.bias'
    """
    for former, present in _FORMER:
        name = re.sub(rf"^{former}$", present, name)
    mask = re.fullmatch(_FORMER_MASK, name)
    return f"roi_heads.mask_head.{int(mask[1]) - 1}.0.{mask[2]}" if mask else name


def _build(weights: Mapping[str, Tensor], path: Path) -> Any:
    import torch

    detection = importlib.import_module("torchvision.models.detection")
    for name in _NETWORKS:
        with torch.device("meta"):
            network = _fresh_network(detection, name)
        if _shapes(network.state_dict()) == _shapes(weights):
            whole = _fresh_network(detection, name)
            whole.load_state_dict(weights, strict=False)  # counters may be absent
            for part in whole.modules() if name in _FROZEN else ():
                if isinstance(part, torch.nn.BatchNorm2d):
                    part.eps = 0.0  # as in training, where this layer was frozen
            return whole
    raise DataError(
        f"{path}: does not match any of {', '.join(_NETWORKS)} with {_N_CLASSES} classes"
    )


def _fresh_network(detection: Any, name: str) -> nn.Module:
    network: nn.Module = detection.__dict__[name](
        weights=None, weights_backbone=None, num_classes=_N_CLASSES
    )
    return network


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {k: tuple(v.shape) for k, v in weights.items() if not k.endswith(_COUNTERS)}


MOST_LABELS = 20  # most confident labels kept per picture
_LEAST = 0.05  # the lowest confidence of a box, torchvision's own default
PROMPT = "a photo of a {}"  # the first prompt in CLIP's paper

CLASSIFIERS = (
    *("beit", "bit", "convnext", "convnextv2", "deit", "dinov2", "efficientnet", "mobilenet_v2"),
    *("poolformer", "regnet", "resnet", "swin", "swinv2", "vit"),
)
KINDS = (clip.CLIP, *CLASSIFIERS, *BOXES)


class Recognizer(ABC):
    """A network that labels pictures, with confidences."""

    names: Sequence[str]  # the L labels; an empty name is not a category

    @abstractmethod
    def read(self, path: Path) -> Any:
        """A photo in the form that the network takes."""

    @abstractmethod
    def confidences(self, photos: Sequence[Any]) -> Float32Array:
        """(N, L) confidence in each label, in [0, 1]."""

    def describe(self, photos: Sequence[Any]) -> list[str]:
        """The most confident labels of each photo, as JSON."""
        confidences = self.confidences(photos)
        if not np.isfinite(confidences).all():
            raise DataError("the model gives scores that are not numbers; its weights are broken")
        texts = []
        for row in confidences.tolist():
            best: dict[str, float] = {}
            for name, confidence in zip(self.names, row, strict=True):
                if name:
                    best[name] = max(best.get(name, 0.0), confidence)
            texts.append(json.dumps(by_confidence(best)[:MOST_LABELS]))
        return texts


class Network(NamedTuple):
    name: str  # the name of a model or a file
    files: Mapping[str, str]  # digests of the files that decide its answers
    prompted: bool  # whether it is prompted with names, like CLIP; else it has labels of its own
    # Takes the prompted names and the device
    load: Callable[[Sequence[str], torch.device], Recognizer]


def find_network(source: str) -> Network:
    """A network of a kind in :data:`KINDS`, a network of timm, or a torchvision detector's file."""
    if is_weights(source):
        path = check_weights(Path(source).expanduser())
        files = {"weights": digest_of(path)}
        return Network(path.name, files, False, lambda _, device: _Torchvision(path, device))
    if is_timm(source):
        network = find_network_of_timm(source)
        network.check_classifier()
        return Network(
            network.name,
            network.files,
            False,
            lambda _, device: _TimmClassifier(network, device),
        )
    model = find_pretrained(source, KINDS)
    return Network(
        model.name,
        model.files,
        model.kind == clip.CLIP,
        lambda names, device: recognizer(model, names, device),
    )


def is_weights(source: str) -> bool:
    """Whether a source is a file of weights rather than a model's folder or name.

    Example:
        >>> is_weights("fasterrcnn.pth"), is_weights("facebook/detr-resnet-50")
        (True, False)
    """
    return Path(source).suffix in SUFFIXES


def recognizer(model: Pretrained, names: Sequence[str], device: torch.device) -> Recognizer:
    make_importable()
    if model.kind == clip.CLIP:
        return _Clip(model, names, device)
    return (_Detector if model.kind in BOXES else _Classifier)(model, device)


class _Classifier(Recognizer):
    """A classifier, whose confidences are a softmax over all labels."""

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        from transformers import AutoModelForImageClassification

        self._prepare = Preprocessing(model).of_one_shape()
        self._network = load(model, AutoModelForImageClassification, device)
        self._device = device
        self.names = [plain_label(label) for label in labels_of(self._network)]

    def read(self, path: Path) -> Float32Array:
        return self._prepare(read_photo(path))

    def confidences(self, photos: Sequence[Float32Array]) -> Float32Array:
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(photos)).to(self._device)
            logits = self._network(pixel_values=pixels).logits
            return np.asarray(logits.float().softmax(-1).cpu().numpy())


class _TimmClassifier(Recognizer):
    """A classifier of timm, which sees the middle of a picture after timm's preparation."""

    def __init__(self, model: TimmNetwork, device: torch.device) -> None:
        self.names = [plain_label(label) for label in model.labels]
        self._model, self._device = model, device
        self._network = model.build().to(device)

    def read(self, path: Path) -> Float32Array:
        """(3, S, S) a photo in the form that the network takes."""
        from PIL.Image import Resampling

        photo, side = read_photo(path), self._model.side
        shorter = math.floor(side / self._model.cut)
        width, height = (int(shorter * length / min(photo.size)) for length in photo.size)
        shown = photo.resize((width, height), Resampling[self._model.interpolation.upper()])
        left, top = round((width - side) / 2), round((height - side) / 2)
        middle = np.asarray(shown.crop((left, top, left + side, top + side)), np.float32) / 255
        mean, std = (np.array(one, np.float32) for one in (self._model.mean, self._model.std))
        return np.ascontiguousarray(((middle - mean) / std).transpose(2, 0, 1))

    def confidences(self, photos: Sequence[Float32Array]) -> Float32Array:
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(photos)).to(self._device)
            return np.asarray(self._network(pixels).float().softmax(-1).cpu().numpy())


class _Clip(Recognizer):
    """A CLIP, whose confidences are a softmax over the names in prompts."""

    def __init__(self, model: Pretrained, names: Sequence[str], device: torch.device) -> None:
        self._photos = ClipPhotos(model, device, normalize=True)
        texts = ClipTexts(model, device, normalize=True)
        self._texts = texts.describe([PROMPT.format(name) for name in names])
        self._scale = texts.scale
        self.names = names

    def read(self, path: Path) -> Float32Array:
        return self._photos.prepare(read_photo(path))

    def confidences(self, photos: Sequence[Float32Array]) -> Float32Array:
        logits = self._scale * (self._photos.describe(photos) @ self._texts.T)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float32)


class _Detector(Recognizer):
    """A detector, whose confidence in a label is the highest confidence of a box with the label."""

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        self._prepare = Preprocessing(model)
        self._network = load_boxes(model, device)
        self._device = device
        self._one_label = model.kind in ONE_LABEL
        self.names = [plain_label(label) for label in labels_of(self._network)]

    def read(self, path: Path) -> Float32Array:
        return self._prepare(read_photo(path))

    def confidences(self, photos: Sequence[Float32Array]) -> Float32Array:
        import torch

        rows = []
        with torch.inference_mode():
            for photo in photos:  # photos differ in size
                pixels = torch.from_numpy(photo[None]).to(self._device)
                logits = self._network(pixel_values=pixels).logits[0].float()
                # DETR's last label means no object.
                each = logits.softmax(-1)[:, :-1] if self._one_label else logits.sigmoid()
                rows.append(each.max(dim=0).values.cpu().numpy())
        return np.stack(rows)


class _Torchvision(Recognizer):
    """A detector of torchvision; its confidence in a label is the highest of the label's boxes."""

    def __init__(self, path: Path, device: torch.device) -> None:
        self._detector = TorchvisionDetector(path, _LEAST, device)
        self.names = [NAMES_BY_NUMBER.get(str(n), "") for n in self._detector.numbers]

    def read(self, path: Path) -> Photo:
        return self._detector.read(path)

    def confidences(self, photos: Sequence[Photo]) -> Float32Array:
        import torch

        confidences = np.zeros((len(photos), len(self.names)), np.float32)
        with torch.inference_mode():
            for row, candidates in enumerate(self._detector.candidates(photos)):
                np.maximum.at(
                    confidences[row],
                    candidates.labels.cpu().numpy(),
                    candidates.scores.cpu().numpy(),
                )
        return confidences
