"""Detectors of a few thousand random weights, written as published ones are."""

import importlib
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.models.torchvision import make_importable
from tests.tiny_models import DETR, PLAIN, VISION, write_preprocessing

# In no order of COCO's, as label spaces of 80, 91 or 133 are; some of them are none of COCO's.
LABELS = ("N/A", "diningtable", "sky-other-merged", "person", "kite", "dog")
NUMBERS = (None, 67, None, 1, 38, 18)
KINDS = ("detr", "yolos", "conditional_detr", "rt_detr", "mask2former")
_PROCESSORS = {
    "detr": "DetrImageProcessor",
    "yolos": "YolosImageProcessor",
    "conditional_detr": "ConditionalDetrImageProcessor",
    "rt_detr": "RTDetrImageProcessor",
    "mask2former": "Mask2FormerImageProcessor",
}


def write_detector(folder: Path, kind: str, labels: tuple[str, ...] = LABELS) -> Path:
    """One of :data:`KINDS`, surer of some labels than of others."""
    import torch

    torch.manual_seed(0)
    network = _BUILDERS[kind]({"id2label": dict(enumerate(labels))})
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if "class" in name and weight.ndim == 2:
                weight.normal_(std=0.5)
            if "bbox" in name:
                weight.normal_(std=0.3)
    network.save_pretrained(folder)
    write_preprocessing(folder, _PROCESSORS[kind])
    path = folder / "preprocessor_config.json"
    content = json.loads(path.read_text())
    if kind != "rt_detr":  # the one that squeezes pictures into a square
        content["size"] = {"shortest_edge": 64, "longest_edge": 96}
    if kind == "mask2former":
        content |= {"size_divisor": 32, "ignore_index": 255}
    path.write_text(json.dumps(content))
    return folder


def _resnet(stages: int) -> Any:
    from transformers import ResNetConfig

    return ResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16, 16, 16][:stages],
        depths=[1] * stages,
        layer_type="basic",
        out_features=[f"stage{number}" for number in range(1, stages + 1)][-1:],
    )


def _detr(named: dict[str, Any]) -> Any:
    from transformers import DetrConfig, DetrForObjectDetection

    settings = {**PLAIN, "backbone_config": _resnet(2)}
    return DetrForObjectDetection(DetrConfig(**settings, **DETR, **named))


def _conditional(named: dict[str, Any]) -> Any:
    from transformers import ConditionalDetrConfig, ConditionalDetrForObjectDetection

    settings = {**PLAIN, "backbone_config": _resnet(2)}
    return ConditionalDetrForObjectDetection(ConditionalDetrConfig(**settings, **DETR, **named))


def _yolos(named: dict[str, Any]) -> Any:
    from transformers import YolosConfig, YolosForObjectDetection

    sizes = {**VISION, "image_size": [64, 64], "num_detection_tokens": 8}
    return YolosForObjectDetection(YolosConfig(**sizes, **named, initializer_range=0.5))


def _rt_detr(named: dict[str, Any]) -> Any:
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig

    backbone = RTDetrResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 8, 16, 16],
        depths=[1, 1, 1, 1],
        layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )
    config = RTDetrConfig(
        backbone_config=backbone,
        encoder_hidden_dim=16,
        encoder_in_channels=[8, 16, 16],
        encoder_ffn_dim=16,
        encoder_attention_heads=2,
        decoder_in_channels=[16, 16, 16],
        num_denoising=0,
        **{key: DETR[key] for key in DETR if not key.startswith("encoder")},
        **named,
    )
    return RTDetrForObjectDetection(config)


def _swin() -> Any:
    from transformers import SwinConfig

    return SwinConfig(
        image_size=64,
        embed_dim=8,
        depths=[1, 1, 1, 1],
        num_heads=[1, 1, 2, 2],
        window_size=2,
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )


def _mask2former(named: dict[str, Any]) -> Any:
    from transformers import Mask2FormerConfig, Mask2FormerForUniversalSegmentation

    config = Mask2FormerConfig(
        backbone_config=_swin(),
        feature_size=32,
        mask_feature_size=32,
        hidden_dim=32,
        encoder_feedforward_dim=16,
        dim_feedforward=16,
        encoder_layers=1,
        decoder_layers=2,
        num_attention_heads=2,
        num_queries=8,
        **named,
    )
    return Mask2FormerForUniversalSegmentation(config)


_BUILDERS = {
    "detr": _detr,
    "yolos": _yolos,
    "conditional_detr": _conditional,
    "rt_detr": _rt_detr,
    "mask2former": _mask2former,
}


def random_torchvision(monkeypatch: pytest.MonkeyPatch, n_classes: int = 91) -> Any:
    """Torchvision's smallest network, which pools 50 regions of a picture instead of 1,000.

    All networks of that kind built in the same test do.
    """
    import torch

    make_importable()
    name, part = "fasterrcnn_mobilenet_v3_large_fpn", "torchvision.models.detection"
    pytest.importorskip("torchvision", reason="torchvision is absent")
    few = partial(
        getattr(importlib.import_module(part + ".faster_rcnn"), name), rpn_post_nms_top_n_test=50
    )
    monkeypatch.setattr(importlib.import_module(part), name, few)
    torch.manual_seed(0)
    return few(weights=None, weights_backbone=None, num_classes=n_classes)
