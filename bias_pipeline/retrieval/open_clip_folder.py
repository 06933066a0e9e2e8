"""Reads a folder in open_clip's layout, finds its weights and checks its configuration.

A folder often has a model twice: for transformers (``config.json``) and for open_clip
(``open_clip_config.json``). This module reads only the configuration for open_clip.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bias_pipeline.declared import is_number
from bias_pipeline.errors import AbsentModelError, DataError, ResourceError, UsageError
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.models.model_location import (
    LARGEST_SIDE,
    MAIN,
    check_config,
    find_place,
    require_vocabulary,
)
from bias_pipeline.models.pretrained import Pretrained

KIND, CONFIG = "open_clip", "open_clip_config.json"
# The names that the library gives weights, in order of preference; another library writes
# model.safetensors.
_WEIGHTS = (
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.safetensors",
    "open_clip_pytorch_model.bin",
    "open_clip_pytorch_model.pth",
    "open_clip_pytorch_model.pt",
)
_VOCABULARY = ("*.txt", "*.model", "*token*.json", "vocab.json", "*.jinja")
_TOKENIZING = ("additional_special_tokens", "clean", "language", "strip_sep_token")
# The values of OpenAI, which the library uses by default.
_MEAN = (0.48145466, 0.4578275, 0.40821073)
_STD = (0.26862954, 0.26130258, 0.27577711)
_RESIZING = ("shortest", "longest", "squash")
_INTERPOLATION = ("bicubic", "bilinear", "random")  # outside training, random means bicubic


class PictureSettings(NamedTuple):
    mean: tuple[float, ...]  # subtracted from each channel, which is in [0, 1]
    std: tuple[float, ...]  # each channel is divided by it
    interpolation: str  # of pixels
    resize_mode: str  # which side is made to fit; `squash`: both sides
    fill_color: int  # 0 to 255, the colour of the border where the longest side is made to fit


def is_open_clip(folder: str) -> bool:
    """Whether a folder has a model for open_clip but no model for transformers.

    Example:
        >>> is_open_clip("nowhere")
        False
    """
    path = Path(folder).expanduser()
    return (path / CONFIG).is_file() and not (path / "config.json").is_file()


def find_open_clip(
    name: str | None, weights: str | None = None, *, revision: str = MAIN
) -> Pretrained:
    if name is None:
        raise AbsentModelError(
            "encoder.model=null: set encoder.model to a folder with "
            f"{CONFIG} and {_WEIGHTS[0]}, or to such a model's name on the hub"
        )
    try:
        place = find_place(name, revision)
        folder = place.folder
        paths = [_weights(folder, weights), _existing_file(folder, CONFIG), *_vocabulary(folder)]
    except ResourceError as error:
        raise AbsentModelError(str(error)) from error
    files = {path.name: digest_of(path) for path in paths}
    return Pretrained(name, folder, KIND, files, place.source, place.revision)


def _weights(folder: Path, name: str | None) -> Path:
    if name is None:
        _existing_file(folder, CONFIG)
        weights_name = next(
            (candidate for candidate in _WEIGHTS if (folder / candidate).is_file()), _WEIGHTS[0]
        )
        return _existing_file(folder, weights_name, ", or set encoder.weights=NAME")
    if Path(name).name != name:
        raise UsageError(f"encoder.weights={name}: give a file's name within encoder.model")
    return _existing_file(folder, name)


def _existing_file(folder: Path, name: str, other: str = "") -> Path:
    if not (folder / name).is_file():
        raise ResourceError(f"{folder}: {name} is absent; fetch it into this folder{other}")
    return folder / name


def _vocabulary(folder: Path) -> list[Path]:
    """The files of a transformers tokenizer; empty if the library's tokenizer is used."""
    if not model_config(folder)["text_cfg"].get("hf_tokenizer_name"):
        return []
    paths = {path for pattern in _VOCABULARY for path in folder.glob(pattern)}
    require_vocabulary(folder, [path.name for path in paths])
    return sorted(paths)


def _read(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    config = expect(load_json(path, what="a configuration of open_clip"), dict, path, "")
    check_config(path, config)
    return config


def model_config(folder: Path) -> dict[str, Any]:
    """The network's configuration, if it can be built offline."""
    path = folder / CONFIG
    config = expect(_read(folder).get("model_cfg"), dict, path, "model_cfg")
    for tower in ("vision_cfg", "text_cfg"):
        expect(config.get(tower), dict, path, f"model_cfg.{tower}")
    expect(config.get("quick_gelu", False), bool, path, "model_cfg.quick_gelu")
    vision, text = config["vision_cfg"], config["text_cfg"]
    timm = vision.get("timm_model_name") or ""
    if not isinstance(timm, str) or {":", "/"} & set(timm):
        raise DataError(
            f"{path}: timm_model_name {str(timm)[:60]!r} is not one of timm's own names"
        )
    if text.get("hf_model_name"):
        raise DataError(
            f"{path}: text_cfg.hf_model_name needs a transformers model whose configuration is "
            "not in this folder; choose a model with open_clip's own text tower"
        )
    sizes = vision.get("image_size", 224)
    for side in sizes if isinstance(sizes, list) else [sizes]:
        if type(side) is not int or not 1 <= side <= LARGEST_SIDE:
            raise DataError(
                f"{path}: image_size is {str(sizes)[:60]}; pictures have 1 to {LARGEST_SIDE} "
                "pixels a side"
            )
    return config


def tokenizing(folder: Path) -> Mapping[str, Any]:
    """The options of the tokenizer, such as how it cleans texts, without the length of texts."""
    path = folder / CONFIG
    settings = model_config(folder)["text_cfg"].get("tokenizer_kwargs") or {}
    options = expect(settings, dict, path, "text_cfg.tokenizer_kwargs")
    more = sorted(set(options) - set(_TOKENIZING))
    if more:
        raise DataError(
            f"{path}: tokenizer_kwargs.{more[0]} is not supported; allowed are "
            f"{', '.join(_TOKENIZING)}"
        )
    return options


def quick_gelu(folder: Path, requested: bool | None) -> bool:
    """Whether a network computes OpenAI's approximation of GELU."""
    configured: bool = model_config(folder).get("quick_gelu", False)
    return configured if requested is None else requested


def preprocessing(folder: Path) -> PictureSettings:
    """How pictures are prepared for the model, except their size, which the network decides."""
    path = folder / CONFIG
    settings = expect(_read(folder).get("preprocess_cfg") or {}, dict, path, "preprocess_cfg")
    present = {key: value for key, value in settings.items() if value is not None}
    fill = expect(present.get("fill_color", 0), int, path, "preprocess_cfg.fill_color")
    return PictureSettings(
        _channels(present.get("mean", list(_MEAN)), path, "mean"),
        _channels(present.get("std", list(_STD)), path, "std"),
        _one_of(present.get("interpolation", "bicubic"), _INTERPOLATION, path, "interpolation"),
        _one_of(present.get("resize_mode", "shortest"), _RESIZING, path, "resize_mode"),
        fill,
    )


def _channels(value: object, path: Path, key: str) -> tuple[float, ...]:
    given: list[Any] = value if isinstance(value, list) else [value] * 3
    sound = [float(n) for n in given if is_number(n)]
    if len(given) != 3 or len(sound) != 3 or (key == "std" and min(sound) <= 0):
        above = ", each above 0" if key == "std" else ""
        raise DataError(f"{path}: preprocess_cfg.{key} must be three numbers{above}")
    return tuple(sound)


def _one_of(value: object, known: tuple[str, ...], path: Path, key: str) -> str:
    if value not in known:
        raise DataError(
            f"{path}: preprocess_cfg.{key} is {str(value)[:60]!r}; name one of {', '.join(known)}"
        )
    return str(value)
