"""Detectors of transformers, which find objects in pictures and give boxes or outlines.

Sources: Carion et al., End-to-End Object Detection with Transformers (ECCV 2020); Zhao et al.,
DETRs Beat YOLOs on Real-time Object Detection (CVPR 2024); Cheng et al., Masked-attention Mask
Transformer for Universal Image Segmentation (CVPR 2022).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bias_pipeline.array_types import Float32Array
from bias_pipeline.corpus.object_names import coco_numbers
from bias_pipeline.data.photos import read_photo
from bias_pipeline.errors import DataError
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.models.pretrained import Preprocessing, Pretrained, load
from bias_pipeline.models.torchvision import make_importable

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# Whether a query has one label or no object (a softmax), or each label on its own (a sigmoid).
ONE_LABEL = ("detr", "yolos")
EACH_LABEL = ("conditional_detr", "deformable_detr", "rt_detr", "rt_detr_v2")
BOXES = (*ONE_LABEL, *EACH_LABEL)
MASKS = ("mask2former",)
_IDLE = ("model.pixel_level_module.encoder.swin.layernorm.",)  # one major of the library has it
KINDS = (*BOXES, *MASKS)
MOST = 100  # most detections kept of one picture, as in COCO's evaluation


class Photo(NamedTuple):
    pixels: Float32Array
    size: tuple[int, int]


class Candidates(NamedTuple):
    """The candidates for objects that a network proposes in one picture."""

    scores: Tensor  # (Q,) in [0, 1]
    labels: Tensor  # (Q,) the network's own numbers of labels
    # (Q, 4) left, top, right and bottom edges in pixels; None: the edges of the masks
    boxes: Tensor | None
    masks: Tensor | None  # (Q, H, W) whether a pixel belongs to a candidate, None without masks


class Detector(ABC):
    # COCO's number of each of its L labels, None for labels that COCO does not have
    numbers: Sequence[int | None]

    @abstractmethod
    def read(self, path: Path) -> Photo:
        """A photo in the form that the network takes."""

    @abstractmethod
    def candidates(self, photos: Sequence[Photo]) -> Iterator[Candidates]:
        """The candidates of each photo; all photos have the same shape."""

    def describe(self, photos: Sequence[Photo]) -> list[str]:
        """The detections of each photo, in COCO's JSON of results but without ``image_id``."""
        import torch

        results: list[str] = []
        with torch.inference_mode():
            for _, alike in groupby(photos, key=lambda photo: photo.pixels.shape):
                same_size = list(alike)
                for photo, proposed in zip(same_size, self.candidates(same_size), strict=True):
                    results.append(json.dumps(list(self._results(proposed, photo.size))))
        return results

    def _results(self, proposed: Candidates, size: tuple[int, int]) -> Iterator[dict[str, object]]:
        from pycocotools import mask as coco

        for row in proposed.scores.argsort(descending=True, stable=True).tolist():
            number = self.numbers[int(proposed.labels[row])]
            outline = None
            if proposed.masks is not None:
                mask = np.asfortranarray(proposed.masks[row].cpu().numpy().astype(np.uint8))
                coded = coco.encode(mask)
                size_of_mask = [int(side) for side in coded["size"]]
                outline = {"size": size_of_mask, "counts": coded["counts"].decode()}
            box = _box(proposed, row, outline, size)
            if number is not None and box is not None:
                result = {
                    "category_id": number,
                    "bbox": box,
                    "score": round(min(float(proposed.scores[row]), 1.0), 5),
                }
                yield result | ({"segmentation": outline} if outline else {})


def _box(
    proposed: Candidates, row: int, outline: dict[str, Any] | None, size: tuple[int, int]
) -> list[float] | None:
    """Left, top, width and height within the picture, or None for a box outside the picture."""
    from pycocotools import mask as coco

    if outline and not coco.area(outline):
        return None
    if proposed.boxes is None:
        return [round(float(side), 2) for side in coco.toBbox(outline)]
    height, width = size
    left, top, right, bottom = proposed.boxes[row].tolist()
    left, right = (min(max(side, 0.0), width) for side in (left, right))
    top, bottom = (min(max(side, 0.0), height) for side in (top, bottom))
    if right <= left or bottom <= top:
        return None
    return [round(side, 2) for side in (left, top, right - left, bottom - top)]


def detector(model: Pretrained, min_score: float, device: torch.device) -> Detector:
    make_importable()
    return (_Masks if model.kind in MASKS else _Boxes)(model, min_score, device)


def load_boxes(model: Pretrained, device: torch.device) -> Any:
    """A network of a kind in :data:`BOXES`, without any masks that it may have learnt."""
    from transformers import CONFIG_MAPPING, AutoModelForObjectDetection

    path = model.folder / "config.json"
    settings = expect(load_json(path, what="a model's configuration"), dict, path, "")
    config = CONFIG_MAPPING[model.kind].from_dict(_self_contained(settings))
    return load(model, AutoModelForObjectDetection, device, config=config)


def _self_contained(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without the keys that make the library fetch a backbone from the hub.

    Example:
        >>> _self_contained({"backbone": "resnet50", "use_pretrained_backbone": True})
        {'backbone': 'resnet50', 'use_pretrained_backbone': False}
    """
    usual = {"in_chans": config.get("num_channels", 3), "out_indices": [1, 2, 3, 4]}
    idle = {"backbone_kwargs": usual, "dilation": None}  # the newer library refuses these
    settings = {k: v for k, v in config.items() if k not in idle or v != idle[k]}
    if (
        settings.get("backbone")
        and settings.get("backbone_kwargs")
        and not settings.get("backbone_config")
    ):
        return _with_inline_backbone(settings)
    built_on = {"backbone", "backbone_config"} & set(settings)
    return settings | ({"use_pretrained_backbone": False} if built_on else {})


def _with_inline_backbone(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with timm's backbone written out; newer libraries would fetch it."""
    import transformers

    if int(transformers.__version__.partition(".")[0]) < 5:
        return {**config, "use_pretrained_backbone": False}
    settings = dict(config["backbone_kwargs"])
    channels = settings.pop("in_chans", config.get("num_channels", 3))
    stride = {"output_stride": 16} if config.get("dilation") else {}
    backbone = {
        "model_type": "timm_backbone",
        "backbone": config["backbone"],
        "features_only": True,
        "use_pretrained_backbone": False,
        "num_channels": channels,
        **stride,
        **settings,
    }
    idle = ("backbone", "backbone_kwargs", "use_timm_backbone", "use_pretrained_backbone")
    return {k: v for k, v in config.items() if k not in idle} | {"backbone_config": backbone}


def labels_of(network: Any) -> list[str]:
    """The labels that a network's configuration names, in the order of their numbers."""
    return [network.config.id2label[number] for number in range(len(network.config.id2label))]


class _Published(Detector):
    def __init__(self, model: Pretrained, min_score: float, device: torch.device) -> None:
        self._prepare = Preprocessing(model)
        self._network = self._load(model, device)
        self._device, self._least = device, min_score
        self._one_label = model.kind in ONE_LABEL
        self.numbers = coco_numbers(labels_of(self._network), model.name)

    @abstractmethod
    def _load(self, model: Pretrained, device: torch.device) -> Any: ...

    @abstractmethod
    def _candidates_of(self, output: Any, row: int, size: tuple[int, int]) -> Candidates:
        """The candidates of one picture of a batch."""

    def read(self, path: Path) -> Photo:
        photo = read_photo(path)
        return Photo(self._prepare(photo), (photo.height, photo.width))

    def candidates(self, photos: Sequence[Photo]) -> Iterator[Candidates]:
        import torch

        pixels = torch.from_numpy(np.stack([photo.pixels for photo in photos])).to(self._device)
        output = self._network(pixel_values=pixels)
        for row, photo in enumerate(photos):
            yield self._candidates_of(output, row, photo.size)


class _Boxes(_Published):
    def _load(self, model: Pretrained, device: torch.device) -> Any:
        return load_boxes(model, device)

    def _candidates_of(self, output: Any, row: int, size: tuple[int, int]) -> Candidates:
        import torch

        logits = _numbers(output.logits[row])
        if self._one_label:  # the last label means no object
            scores, labels = logits.softmax(-1)[:, :-1].max(-1)
            queries = scores.argsort(descending=True)[:MOST]
            scores, labels = scores[queries], labels[queries]
        else:
            scores, queries, labels = _most_confident(logits.sigmoid())
        retained = scores >= self._least
        # Centre, width and height as shares of the picture become edges in its pixels.
        centre, extent = output.pred_boxes[row].float()[queries[retained]].chunk(2, dim=1)
        height, width = size
        edges = torch.cat([centre - extent / 2, centre + extent / 2], dim=1)
        boxes = edges * torch.tensor([width, height, width, height], device=edges.device)
        return Candidates(scores[retained], labels[retained], boxes, None)


class _Masks(_Published):
    """Detectors with a mask for each query. Scores include the confidence in the masks' pixels."""

    def _load(self, model: Pretrained, device: torch.device) -> Any:
        from transformers import AutoModelForUniversalSegmentation

        return load(model, AutoModelForUniversalSegmentation, device, unused=_IDLE)

    def _candidates_of(self, output: Any, row: int, size: tuple[int, int]) -> Candidates:
        from torch.nn.functional import interpolate

        sure = _numbers(output.class_queries_logits[row]).softmax(-1)[:, :-1]
        scores, queries, labels = _most_confident(sure)
        able = scores >= self._least  # a mask never raises a score
        scores, queries, labels = scores[able], queries[able], labels[able]
        coarse = output.masks_queries_logits[row].float()[queries]
        logits = interpolate(coarse[:, None], size, mode="bilinear", align_corners=False)[:, 0]
        masks = logits > 0
        inside = (logits.sigmoid() * masks).sum((1, 2)) / masks.sum((1, 2)).clamp(min=1)
        scores = scores * inside
        retained = scores >= self._least
        return Candidates(scores[retained], labels[retained], None, masks[retained])


def _numbers(logits: Tensor) -> Tensor:
    """The logits of one picture as float32; an error is raised if they are not numbers."""
    if not bool(logits.isfinite().all()):
        raise DataError("the model gives scores that are not numbers; its weights are broken")
    return logits.float()


def _most_confident(sure: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The largest of (Q, L) confidences, with the query and the label of each."""
    scores, places = sure.flatten().topk(min(MOST, sure.numel()))
    n_labels = sure.shape[1]
    return scores, places // n_labels, places % n_labels
