"""Files of PyTorch that hold weights: read as numbers, never as code."""

from __future__ import annotations

import pickle
import pickletools
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bias_pipeline.errors import DataError


def read_numbers(path: Path) -> Any:
    """What a file of PyTorch or of safetensors holds, on the CPU.

    Numbers are mapped from the file where it allows that (those of PyTorch 1.6 and later do), so
    what nobody asks for is never read. Classes of callbacks, which Lightning names in the files it
    writes, are replaced by empty ones.

    Raises:
        DataError: if it is cut or no such file, or holds more than numbers.
    """
    import torch

    if path.suffix == ".safetensors":
        return _safetensors(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of how the file was written
        try:
            mapped = zipfile.is_zipfile(path)
            if mapped:
                _check_unpacked(path)
            with _empty_classes(path if mapped else None):
                return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        except DataError:
            raise
        except pickle.UnpicklingError as error:
            raise DataError(
                f"{path}: it holds more than numbers, and reading it could run code; where you "
                "trust it, save its state_dict alone"
            ) from error
        except Exception as error:  # whatever a broken file makes of the library
            raise _broken(path) from error


def _check_unpacked(path: Path) -> None:
    """Refuse a file that unpacks to more than it is; PyTorch stores numbers as they are.

    Raises:
        DataError: with the sizes.
    """
    with zipfile.ZipFile(path) as file:
        unpacked = sum(entry.file_size for entry in file.infolist())
    packed = path.stat().st_size
    if unpacked > packed:
        raise DataError(
            f"{path}: has {packed:,} bytes and unpacks to {unpacked:,}; files of PyTorch are not "
            "packed: write it again with torch.save"
        )


@contextmanager
def _empty_classes(path: Path | None) -> Iterator[None]:
    """Have the classes of Lightning that a file names stand for nothing while it is read."""
    from torch import serialization

    before = serialization.get_safe_globals()
    names = sorted(_lightning_names(path)) if path is not None else []
    empty: list[Any] = [type(name, (), {"__module__": module}) for module, name in names]
    serialization.add_safe_globals(empty)
    try:
        yield
    finally:
        serialization.clear_safe_globals()
        serialization.add_safe_globals(before)


def _lightning_names(path: Path) -> set[tuple[str, str]]:
    """Module and name of each class of Lightning that a file names."""
    with zipfile.ZipFile(path) as file:
        told = [
            str(argument).partition(" ")
            for name in file.namelist()
            if name.endswith("/data.pkl")
            for code, argument, _ in pickletools.genops(file.read(name))
            if code.name == "GLOBAL"
        ]
    return {(module, name) for module, _, name in told if module.startswith("pytorch_lightning.")}


def _safetensors(path: Path) -> Any:
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except Exception as error:  # whatever a broken file makes of the library
        raise _broken(path) from error


def _broken(path: Path) -> DataError:
    return DataError(f"{path}: no file of weights, or cut short; fetch it again")
