"""Checks of a model's folder and configuration before loading.

A configuration is foreign data: it must neither fill the memory nor fetch code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from bias_pipeline.errors import DataError, ResourceError

MOST_LAYERS = 1000
LARGEST = 1_000_000  # limit for any whole number, such as a vocabulary's size
LARGEST_SIDE = 4096  # of a picture, in pixels

# Each line is sufficient for a tokenizer.
_VOCABULARIES = (("tokenizer.json",), ("vocab.txt",), ("vocab.json", "merges.txt"))
_PREPROCESSING = ("preprocessor_config.json", "processor_config.json")
_SIZES = ("size", "crop_size", "pad_size", "size_divisor", "max_image_size", "min_image_size")
_ATTENTION = ("eager", "sdpa", "flash_attention_2", None)
# The library's own cache classes, which published Gemmas name.
_CACHES = (
    "dynamic", "static", "hybrid", "hybrid_chunked", "sliding_window", "offloaded",
    "offloaded_static", "quantized", None,
)  # fmt: skip
_KERNELS = ("kernel_config", "use_kernels", "quantization_config")


def require_vocabulary(folder: Path, files: Collection[str]) -> None:
    """Refuse a model without its tokenizer: the library would make an empty one.

    Args:
        folder: the model's.
        files: that lie in it.

    Raises:
        ResourceError: naming the possible files.
    """
    whole = any(set(names) <= set(files) for names in _VOCABULARIES)
    if not whole and not any(name.endswith(".model") for name in files):
        wanted = ", or ".join(" with ".join(names) for names in _VOCABULARIES)
        raise ResourceError(
            f"{folder}: the tokenizer's vocabulary is absent; fetch {wanted}, or its *.model, into "
            "this folder"
        )


def require_preprocessing(folder: Path, files: Collection[str]) -> None:
    """Refuse a model that does not say how pictures are prepared for it.

    Raises:
        ResourceError: naming the file.
    """
    if not set(_PREPROCESSING) & set(files):
        raise ResourceError(f"{folder}: {_PREPROCESSING[0]} is absent; fetch it into this folder")


def check_config(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse a configuration of a too large network, or one that names code on the hub.

    Raises:
        DataError: naming the key.
    """
    for key, value in _entries(config):
        if _names_code(key, value):
            raise _refused(path, key, value, "code of a hub is not loaded; take it out")
        most = MOST_LAYERS if "layer" in key else LARGEST
        if type(value) is int and abs(value) > most:
            raise _refused(path, key, value, f"at most {most:,} are built")


def check_preprocessing(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse pictures of no size, or of a huge one.

    Raises:
        DataError: naming the key.
    """
    for key, value in _entries(config):
        if key not in _SIZES:
            continue
        sides = [side for _, side in _entries({key: value}) if not isinstance(side, dict | list)]
        for side in sides:
            if side is not None and not (type(side) is int and 1 <= side <= LARGEST_SIDE):
                raise _refused(path, key, side, f"pictures have 1 to {LARGEST_SIDE} pixels a side")


def _names_code(key: str, value: Any) -> bool:
    if key == "cache_implementation":
        return value not in _CACHES
    if key.endswith("_implementation"):  # of attention, of experts
        return not isinstance(value, dict) and value not in _ATTENTION
    return key in _KERNELS and bool(value)


def _entries(node: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every key with its value; items of a list come under the list's key."""
    if key:
        yield key, node
    if isinstance(node, Mapping):
        for name, value in node.items():
            yield from _entries(value, str(name))
    elif isinstance(node, list):
        for value in node:
            yield from _entries(value, key)


def _refused(path: Path, key: str, value: object, why: str) -> DataError:
    return DataError(f"{path}: {key} is {str(value)[:60]!r}; {why}")
