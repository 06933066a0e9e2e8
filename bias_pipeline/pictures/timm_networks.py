"""Networks of timm that turn pictures into regions, loaded without code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float32Array
from bias_pipeline.errors import DataError
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.io.machine import TIMM
from bias_pipeline.models.model_location import check_config, find_place
from bias_pipeline.models.pretrained import WEIGHTS, unfinished
from bias_pipeline.models.torchvision import make_importable

if TYPE_CHECKING:
    import torch

CONFIG = "config.json"
MOST_PIXELS = 1024  # a side
# What timm writes about every network; with any other it would compute something else.
_BUILT_WITH, _KNOWN_OTHERWISE = ("img_size", "global_pool"), ("num_classes", "in_chans")


@dataclass(frozen=True)
class TimmModel:
    """A network on disk."""

    name: str  # as the user wrote it
    folder: Path  # where it lies
    architecture: str  # as timm calls it
    n_classes: int  # of the head it was trained with
    side: int  # of the square pictures it takes, in pixels
    mean: tuple[float, ...]  # subtracted from each channel, which is in [0, 1]
    std: tuple[float, ...]  # divided by
    built_with: Mapping[str, Any]  # more that timm needs to build it
    files: Mapping[str, str]  # name to SHA-256 (hex) of all files that decide its output


def find_timm(name: str) -> TimmModel:
    """Find a network; nothing is loaded."""
    known = name if Path(name).expanduser().is_dir() or "/" in name else f"timm/{_tagged(name)}"
    place = find_place(known)
    folder = place.folder
    for file in (CONFIG, WEIGHTS):
        if not (folder / file).is_file():
            raise unfinished(known, place, file)
    path = folder / CONFIG
    config = expect(load_json(path, what="a network's configuration"), dict, path, "")
    check_config(path, config)
    architecture = str(config.get("architecture"))
    if not _timm().is_model(architecture):
        raise DataError(f"{path}: architecture {architecture!r} is not one of timm's")
    settings = expect(config.get("pretrained_cfg", {}), dict, path, "pretrained_cfg")
    return TimmModel(
        known,
        folder,
        architecture,
        expect(config.get("num_classes", 1000), int, path, "num_classes"),
        _side(settings.get("input_size", [3, 224, 224]), path),
        _channels(settings.get("mean", [0.485, 0.456, 0.406]), path, "mean"),
        _channels(settings.get("std", [0.229, 0.224, 0.225]), path, "std"),
        _built_with(config.get("model_args") or {}, path),
        {file: digest_of(folder / file) for file in (CONFIG, WEIGHTS)},
    )


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


def _tagged(name: str) -> str:
    """The name of an architecture's default weights."""
    if "." in name:
        return name
    known = _timm().get_pretrained_cfg(name) if _timm().is_model(name) else None
    return f"{name}.{known.tag}" if known is not None and known.tag else name


def _timm() -> Any:
    TIMM.require()
    make_importable()
    import timm

    return timm


def _side(size: object, path: Path) -> int:
    numbers = size if isinstance(size, list) and len(size) == 3 else [0, 0, 0]
    if numbers[0] != 3 or numbers[1] != numbers[2] or not 1 <= numbers[1] <= MOST_PIXELS:
        raise DataError(
            f"{path}: input_size {size} is not a square of three channels and at most "
            f"{MOST_PIXELS} "
            "pixels a side"
        )
    return int(numbers[1])


def _channels(values: object, path: Path, key: str) -> tuple[float, ...]:
    numbers = values if isinstance(values, list) else []
    if len(numbers) != 3 or not all(isinstance(n, int | float) for n in numbers):
        raise DataError(f"{path}: {key} must be three numbers")
    return tuple(float(number) for number in numbers)


class TimmRegions:
    """Pictures as the last grid of a frozen network, or as its tokens."""

    together: ClassVar[int] = 32  # pictures per batch

    def __init__(self, model: TimmModel, device: torch.device) -> None:
        from safetensors.torch import load_file

        self._model, self._device = model, device
        library = _timm()
        try:
            network = library.create_model(
                model.architecture,
                pretrained=False,
                num_classes=model.n_classes,
                **model.built_with,
            )
            network.load_state_dict(load_file(model.folder / WEIGHTS), strict=True)
        except Exception as error:  # whatever a broken file makes of the library
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise DataError(f"{model.folder / WEIGHTS}: cannot be loaded ({first})") from error
        self._network = network.to(device).eval()

    @property
    def side(self) -> int:
        return self._model.side

    def extract(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float16]:
        """The result of :meth:`regions` as float16."""
        return self.regions(pixels).astype(np.float16)

    def regions(self, pixels: npt.NDArray[np.uint8]) -> Float32Array:
        """(N, S, S, 3) pictures to (N, R, D)."""
        import torch

        normal = self._model.mean, self._model.std
        mean, std = (torch.tensor(channels, device=self._device) for channels in normal)
        with torch.inference_mode():
            scaled = torch.from_numpy(np.ascontiguousarray(pixels)).to(self._device).float() / 255
            features = self._network.forward_features(((scaled - mean) / std).permute(0, 3, 1, 2))
            return self._as_regions(features).float().cpu().numpy()

    def _as_regions(self, features: torch.Tensor) -> torch.Tensor:
        """Regions from grids of either layout or from tokens, without tokens that have no place."""
        if features.ndim == 4 and str(getattr(self._network, "output_fmt", "NCHW")) != "NHWC":
            return features.flatten(2).transpose(1, 2)
        if features.ndim == 4:
            return features.flatten(1, 2)
        first = int(getattr(self._network, "num_prefix_tokens", 0) or 0)
        return features[:, first:]
