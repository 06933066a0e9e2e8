"""Names, finds and checks published vision networks, of timm and of transformers.

The networks turn pictures into regions. No code that comes with a network is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float32Array
from bias_pipeline.declared import Text
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.models.model_location import check_preprocessing, require_preprocessing
from bias_pipeline.models.pretrained import Pretrained, find_pretrained, load, numbers_of
from bias_pipeline.models.timm_networks import (
    LITE0,
    TIMM,
    SquareNetwork,
    TimmNetwork,
    channels,
    find_network_of_timm,
    is_timm,
    square_side,
)
from bias_pipeline.models.torchvision import make_importable

if TYPE_CHECKING:
    import torch

    from bias_pipeline.pictures.vision.net import VisionNet


class VisionRegions:
    """Turns pictures into the last grid of a frozen network, or into the network's tokens."""

    batch_size: ClassVar[int] = 32  # pictures per batch

    def __init__(self, model: SquareNetwork, device: torch.device) -> None:
        self._model, self._device = model, device
        self._network = load_network(model).to(device)

    @property
    def side(self) -> int:
        return self._model.side

    def extract(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float16]:
        return self.regions(pixels).astype(np.float16)

    def regions(self, pixels: npt.NDArray[np.uint8]) -> Float32Array:
        """Map (N, S, S, 3) pictures to regions (N, R, D)."""
        import torch

        turned = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)
        with torch.inference_mode():
            return numbers_of(self._network(turned.to(self._device)), self._model.name)


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
_POOLING = ("pooler", "vision_model.head")  # parts that pool the whole picture, not used here
PREPROCESSING = "preprocessor_config.json"


@dataclass(frozen=True)
class HfNetwork(SquareNetwork):
    pretrained: Pretrained


def load_network(model: SquareNetwork) -> VisionNet:
    import torch

    from bias_pipeline.pictures.vision.net import HfNet, TimmNet

    prepared = (model.name, model.side, model.mean, model.std)
    if isinstance(model, TimmNetwork):
        return TimmNet(model.build(), *prepared)
    assert isinstance(model, HfNetwork)
    make_importable()
    import transformers

    architecture = getattr(transformers, _TOWERS.get(model.pretrained.kind, "AutoModel"))
    network = load(model.pretrained, architecture, torch.device("cpu"), _POOLING)
    return HfNet(network, *prepared)


def find_hf(name: str) -> HfNetwork:
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
    return HfNetwork(
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


OWN_NETWORK, ANNOTATIONS, BOXES = "own", "annotations", "boxes"
HF = "hf:"
_NAMED = rf"{LITE0}|(?:{TIMM}|{HF})[^\x00-\x1f\x7f]+"
_NAMED_WORDS = f"{LITE0}, {TIMM}NAME, {TIMM}FOLDER, {HF}NAME or {HF}FOLDER"


def _text(words: tuple[str, ...]) -> Text:
    return Text("|".join((*words, _NAMED)), ", ".join((*words, _NAMED_WORDS)))


BackboneName = Annotated[str, _text((OWN_NETWORK, ANNOTATIONS, BOXES))]
PictureBackboneName = Annotated[str, _text((OWN_NETWORK,))]


def is_network(backbone: str) -> bool:
    return is_timm(backbone) or backbone.startswith(HF)


def find_network(backbone: str) -> SquareNetwork:
    """A published vision network on disk, which is not loaded yet."""
    if backbone.startswith(HF):
        return find_hf(backbone.removeprefix(HF))
    return find_network_of_timm(backbone)


def lasting_name(backbone: str) -> str:
    """The name of a backbone in any working directory, since folders get full paths."""
    kind, colon, name = backbone.partition(":")
    folder = Path(name).expanduser()
    return f"{kind}:{folder.resolve()}" if colon and folder.is_dir() else backbone


def find_again(backbone: str, files: object, folder: Path) -> str:
    """The backbone of a fitted captioner, at its recorded place or as ``backbone`` beside it."""
    kind, colon, place = backbone.partition(":")
    beside = folder / "backbone"
    places = [backbone, *([f"{kind}:{beside}"] if colon and beside.is_dir() else [])]
    for name in places:
        moved = Path(place).is_absolute() and not Path(place).is_dir() and name == backbone
        if not moved and dict(find_network(name).files) == files:
            return name
    raise ResourceError(
        f"{folder}: was fitted with {backbone}, which is absent or has changed; link the folder "
        f"that has the network's files: ln -s FOLDER {beside}"
    )
