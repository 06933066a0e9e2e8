"""Labels of pictures by published networks: classifiers, CLIP prompted with names, detectors.

He et al., Deep Residual Learning (CVPR 2016); Radford et al., Learning Transferable Visual Models
From Natural Language Supervision (ICML 2021); Carion et al., End-to-End Object Detection with
Transformers (ECCV 2020).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bias_pipeline.array_types import Float32Array
from bias_pipeline.datasets.scenes.categories import NAMES_BY_NUMBER
from bias_pipeline.errors import DataError
from bias_pipeline.io.digests import digest_of
from bias_pipeline.models import clip
from bias_pipeline.models.clip import ClipPhotos, ClipTexts
from bias_pipeline.models.detection import BOXES, ONE_LABEL, Photo, labels_of, load_boxes
from bias_pipeline.models.pretrained import Preprocessing, Pretrained, find_pretrained, load
from bias_pipeline.models.torchvision_detection import (
    SUFFIXES,
    TorchvisionDetector,
    check_weights,
)
from bias_pipeline.vision.people import plain_label, surest_first
from bias_pipeline.vision.photos import read_photo
from bias_pipeline.vision.torchvision import make_importable

if TYPE_CHECKING:
    import torch

KEPT = 20  # most confident labels kept per picture
_LEAST = 0.05  # confidence of a box, torchvision's own default
PROMPT = "a photo of a {}"  # the first one of CLIP's paper

CLASSIFIERS = (
    *("beit", "bit", "convnext", "convnextv2", "deit", "dinov2", "efficientnet", "mobilenet_v2"),
    *("poolformer", "regnet", "resnet", "swin", "swinv2", "vit"),
)
KINDS = (clip.CLIP, *CLASSIFIERS, *BOXES)


class Recognizer(ABC):
    """A network that labels pictures, with confidences."""

    names: Sequence[str]  # the L labels; an empty one is not a category

    @abstractmethod
    def read(self, path: Path) -> Any:
        """A photo as the network takes it."""

    @abstractmethod
    def confidences(self, photos: Sequence[Any]) -> Float32Array:
        """(N, L) confidence in each label, in [0, 1]."""

    def describe(self, photos: Sequence[Any]) -> list[str]:
        """The most confident labels of each photo, as JSON.

        Raises:
            DataError: if the network gives no numbers.
        """
        confidences = self.confidences(photos)
        if not np.isfinite(confidences).all():
            raise DataError("the model gives scores that are not numbers; its weights are broken")
        return [json.dumps(_surest(self.names, row.tolist())) for row in confidences]


def _surest(names: Sequence[str], confidences: Sequence[float]) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    for name, confidence in zip(names, confidences, strict=True):
        if name:
            best[name] = max(best.get(name, 0.0), confidence)
    return list(surest_first(best)[:KEPT])


class Network(NamedTuple):
    """A network named by the user."""

    name: str  # of a model or a file
    files: Mapping[str, str]  # digests of the files that decide its answers
    prompted: bool  # whether it is prompted with names, like CLIP, and has no labels of its own
    # Takes the prompted names and the device
    load: Callable[[Sequence[str], torch.device], Recognizer]


def find_network(source: str) -> Network:
    """A model of one of :data:`KINDS`, or a file of weights of torchvision's detectors."""
    if is_weights(source):
        path = check_weights(Path(source).expanduser())
        files = {"weights": digest_of(path)}
        return Network(path.name, files, False, lambda _, device: _Torchvision(path, device))
    model = find_pretrained(source, KINDS)
    return Network(
        model.name,
        model.files,
        model.kind == clip.CLIP,
        lambda names, device: recognizer(model, names, device),
    )


def is_weights(source: str) -> bool:
    """Whether it is a file of weights, not a model's folder or name.

    Example:
        >>> is_weights("fasterrcnn.pth"), is_weights("facebook/detr-resnet-50")
        (True, False)
    """
    return Path(source).suffix in SUFFIXES


def recognizer(model: Pretrained, names: Sequence[str], device: torch.device) -> Recognizer:
    """The network that a model is.

    Args:
        model: of one of :data:`KINDS`.
        names: CLIP's prompted names; the others have their own labels.
        device: where to compute.
    """
    make_importable()
    if model.kind == clip.CLIP:
        return _Clip(model, names, device)
    return (_Detector if model.kind in BOXES else _Classifier)(model, device)


class _Classifier(Recognizer):
    """One label a picture: a softmax over all."""

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
            return _array(logits.float().softmax(-1))


class _Clip(Recognizer):
    """CLIP: a softmax over the prompted names."""

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
        probabilities: Float32Array = (powers / powers.sum(axis=1, keepdims=True)).astype(
            np.float32
        )
        return probabilities


class _Detector(Recognizer):
    """Any number of objects a picture: the most confident box of each label."""

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        self._prepare = Preprocessing(model)
        self._network = load_boxes(model, device)
        self._device = device
        self._one_label = model.kind in ONE_LABEL
        self.names = [plain_label(label) for label in labels_of(self._network)]

    def read(self, path: Path) -> Float32Array:
        return self._prepare(read_photo(path))

    def confidences(self, photos: Sequence[Float32Array]) -> Float32Array:
        return np.stack([self._of_one(photo) for photo in photos])  # each has a size of its own

    def _of_one(self, photo: Float32Array) -> Float32Array:
        """(L,) the most confident box of each label."""
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(photo[None]).to(self._device)
            logits = self._network(pixel_values=pixels).logits[0].float()
            # DETR's last label means no object.
            each = logits.softmax(-1)[:, :-1] if self._one_label else logits.sigmoid()
            return _array(each.max(dim=0).values)


class _Torchvision(Recognizer):
    """A detector of torchvision: the most confident box of each label."""

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


def _array(values: torch.Tensor) -> Float32Array:
    array: Float32Array = values.cpu().numpy()
    return array
