"""Detectors whose backbone is timm's: no hub is asked for it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from bias_pipeline.models import detection
from bias_pipeline.models.detection import detector
from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.models.torchvision import make_importable
from tests.tiny_detectors import DETR, LABELS
from tests.tiny_models import write_preprocessing

SIZES: dict[str, Any] = {**DETR, "d_model": 32, "decoder_layers": 2, "num_feature_levels": 4}


def write_published(folder: Path, **changes: Any) -> Any:
    """A Deformable DETR, and its folder as published ones are: the backbone by timm's name."""
    make_importable()
    pytest.importorskip("timm", reason="timm is absent")
    backbone = {"in_chans": 3, "out_indices": [2, 3, 4]}
    named: dict[str, Any] = {"id2label": dict(enumerate(LABELS)), **SIZES}
    if transformers.__version__.startswith("4."):
        named |= {"backbone": "resnet10t", "backbone_kwargs": backbone}
        named |= {"use_timm_backbone": True, "use_pretrained_backbone": False}
    else:
        timm = {"backbone": "resnet10t", "features_only": True, "out_indices": [2, 3, 4]}
        named["backbone_config"] = {"model_type": "timm_backbone", "num_channels": 3, **timm}
    torch.manual_seed(0)
    config = transformers.DeformableDetrConfig(**named)
    net = transformers.DeformableDetrForObjectDetection(config).eval()
    net.save_pretrained(folder)
    write_preprocessing(folder, "DeformableDetrImageProcessor")
    path = folder / "config.json"
    former = {"backbone": "resnet10t", "backbone_config": None, "backbone_kwargs": backbone}
    former |= {"use_timm_backbone": True, "use_pretrained_backbone": True, **changes}
    path.write_text(json.dumps({**json.loads(path.read_text()), **former}))
    return net


@pytest.mark.parametrize("message", [{}, {"backbone_kwargs": {"out_indices": [2, 3, 4]}}])
def test_a_backbone_with_its_levels_is_not_asked_of_the_hub(tmp_path, message, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    net = write_published(tmp_path, **message)
    built_detector = detector(
        find_pretrained(str(tmp_path), detection.KINDS), 0.1, torch.device("cpu")
    )
    pixels = torch.randn(1, 3, 128, 160)
    with torch.inference_mode():
        network = built_detector._network(pixel_values=pixels)
        expected = net(pixel_values=pixels)
    assert (network.logits - expected.logits).abs().max() < 1e-5
    assert (network.pred_boxes - expected.pred_boxes).abs().max() < 1e-5
