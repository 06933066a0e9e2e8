"""Vision networks of transformers, and the vision towers of CLIP and SigLIP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import DataError
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.models.model_location import check_preprocessing, require_preprocessing
from bias_pipeline.models.pretrained import Pretrained, find_pretrained, load
from bias_pipeline.pictures.vision.model import VisionModel, channels, square_side

if TYPE_CHECKING:
    from bias_pipeline.pictures.vision.net import VisionNet

_TOWERS = {
    "clip": "CLIPVisionModel",
    "clip_vision_model": "CLIPVisionModel",
    "siglip": "SiglipVisionModel",
    "siglip_vision_model": "SiglipVisionModel",
}
KINDS = (
    *_TOWERS,
    *("convnext", "convnextv2", "deit", "dinov2", "dinov2_with_registers", "resnet", "swin", "vit"),
)
_POOLING = ("pooler", "vision_model.head")  # of the whole picture, which plays no part
PREPROCESSING = "preprocessor_config.json"


@dataclass(frozen=True)
class HfModel(VisionModel):
    pretrained: Pretrained

    def load(self) -> VisionNet:
        import torch
        import transformers

        from bias_pipeline.models.torchvision import make_importable
        from bias_pipeline.pictures.vision.net import HfNet

        make_importable()
        architecture = getattr(transformers, _TOWERS.get(self.pretrained.kind, "AutoModel"))
        network = load(self.pretrained, architecture, torch.device("cpu"), _POOLING)
        return HfNet(network, self.name, self.side, self.mean, self.std)


def find_hf(name: str) -> HfModel:
    model = find_pretrained(name, KINDS)
    require_preprocessing(model.folder, model.files)
    path = model.folder / PREPROCESSING
    shown: Mapping[str, Any] = expect(
        load_json(path, what="a model's preprocessing"), dict, path, ""
    )
    check_preprocessing(path, shown)
    if (
        not shown.get("do_rescale", True)
        or abs(255 * shown.get("rescale_factor", 1 / 255) - 1) > 1e-3
    ):
        raise DataError(f"{path}: pixels must be divided by 255; another scale is not supported")
    plain = shown.get("do_normalize", True)
    return HfModel(
        f"hf:{name}",
        model.folder,
        square_side(_input_size(shown), path, "its size"),
        channels(shown.get("image_mean") if plain else [0.0] * 3, path, "image_mean"),
        channels(shown.get("image_std") if plain else [1.0] * 3, path, "image_std"),
        model.files,
        model,
    )


def _input_size(shown: Mapping[str, Any]) -> tuple[object, object]:
    cut = shown.get("crop_size") if shown.get("do_center_crop") else None
    size = shown.get("size") if cut is None else cut
    if isinstance(size, Mapping):
        short = size.get("shortest_edge")
        return size.get("height", short), size.get("width", short)
    return size, size
