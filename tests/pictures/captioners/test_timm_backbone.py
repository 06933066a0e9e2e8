"""Frozen networks of timm: found, refused, and looked through once, on small random weights."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.models.timm_networks import find_timm
from bias_pipeline.models.timm_networks import timm as timm_library
from bias_pipeline.pictures.captioners import backbones
from bias_pipeline.pictures.captioners.backbones import PublishedBackbone
from bias_pipeline.pictures.vision.networks import VisionRegions, find_network
from tests.pictures.captioners.test_sat import SAT, accuracy, data

timm = timm_library()


def network(folder: Path, architecture: str = "test_resnet", side: int = 64, **more: object) -> str:
    """A network of random weights in timm's own format."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model = timm.create_model(architecture, pretrained=False, num_classes=3)
    save_file(model.state_dict(), folder / "model.safetensors")
    halves = [0.5, 0.5, 0.5]
    prepared = {"input_size": [3, side, side], "mean": halves, "std": halves}
    config = {"architecture": architecture, "num_classes": 3, "pretrained_cfg": prepared, **more}
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.mark.parametrize(
    ("architecture", "side"), [("test_resnet", 64), ("test_vit", 160), ("test_convnext", 64)]
)
def test_regions_are_what_timm_computes(tmp_path, architecture, side):
    backbone = find_network(f"timm:{network(tmp_path, architecture, side)}")
    pixels = np.random.default_rng(0).integers(0, 256, (2, side, side, 3), np.uint8)
    torch.manual_seed(0)
    net = timm.create_model(architecture, pretrained=False, num_classes=3).eval()
    number = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 127.5 - 1
    with torch.inference_mode():
        wanted = net.forward_features(number)
    wanted = wanted[:, 1:] if architecture == "test_vit" else wanted.flatten(2).transpose(1, 2)
    regions = VisionRegions(backbone, torch.device("cpu")).regions(pixels)
    assert np.abs(regions - wanted.numpy()).max() < 1e-5


def test_pictures_are_looked_at_once(tmp_path, monkeypatch):
    labelled = data(40)
    backbone = PublishedBackbone(f"timm:{network(tmp_path / 'net')}", str(tmp_path / "cache"))
    first = np.array(backbone.read(labelled).table)
    monkeypatch.setattr(backbones, "VisionRegions", None)
    assert (backbone.read(labelled).table == first).all()


def test_attackers_learn_from_its_regions(tmp_path):
    """Which picture is blank."""
    labelled = data(120)
    labels = np.arange(120) % 2
    assert labelled.pictures is not None
    same = tuple(labelled.pictures.files[label] for label in labels.tolist())
    changed = replace(labelled, labels=labels, pictures=Pictures(same))
    assert accuracy(changed, replace(SAT, backbone=f"timm:{network(tmp_path)}")) > 0.9


def test_a_moved_network_is_the_same(tmp_path):
    one, other = (
        PublishedBackbone(f"timm:{network(tmp_path / name)}") for name in ("here", "there")
    )
    assert one.spec == other.spec


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"architecture": "no_such_net"}, "not one of timm's"),
        ({"pretrained_cfg": {"input_size": [1, 64, 64]}}, "not a square of three channels"),
        ({"pretrained_cfg": {"mean": [0.5]}}, "mean must be three numbers"),
        ({"model_args": {"act_layer": "relu"}}, "model_args.act_layer is not supported"),
        ({"model_args": {"in_chans": 1}}, "model_args.in_chans is not supported"),
        ({"num_classes": 5}, "cannot be loaded"),
    ],
)
def test_what_is_no_network_is_refused(tmp_path, more, message):
    name = network(tmp_path, **more) if "architecture" not in more else network(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **more}))
    with pytest.raises(DataError, match=message):
        VisionRegions(find_network(f"timm:{name}"), torch.device("cpu"))


def test_settings_of_a_classifier_do_not_matter_to_a_backbone(tmp_path):
    prepared = {"input_size": [3, 64, 64], "interpolation": "nearest", "crop_mode": "squash"}
    name = network(tmp_path, pretrained_cfg=prepared, label_names={"0": "dog"})
    assert VisionRegions(find_network(f"timm:{name}"), torch.device("cpu")).side == 64


def test_a_network_of_another_picture_size_is_built_as_it_was(tmp_path):
    model = timm.create_model("test_vit", pretrained=False, num_classes=3, img_size=64)
    folder = network(tmp_path, "test_vit", 64, model_args={"img_size": [64, 64], "in_chans": 3})
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    pixels = np.zeros((1, 64, 64, 3), np.uint8)
    assert (
        VisionRegions(find_network(f"timm:{folder}"), torch.device("cpu")).regions(pixels).shape[1]
        == 16
    )


def test_a_folder_without_weights_or_with_broken_ones_is_refused(tmp_path):
    name = network(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(DataError, match="cannot be loaded"):
        VisionRegions(find_network(f"timm:{name}"), torch.device("cpu"))
    folder = network(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ResourceError, match="fetch it into this folder") as absent:
        find_timm(folder)
    assert "prefetch" not in str(absent.value)


def test_weights_that_are_absent_or_misspelt_are_told_with_how_to_get_them():
    with pytest.raises(ResourceError, match=r"timm/resnet18\.\w+.*models prefetch timm/resnet18"):
        find_timm("resnet18")
    with pytest.raises(UsageError, match="did you mean 'resnet18'"):
        find_timm("resnet81")
