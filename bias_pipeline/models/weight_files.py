"""Reads PyTorch files of weights as numbers, never as code."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any

from bias_pipeline.errors import DataError
from bias_pipeline.models.inert_classes import inert_classes


def read_numbers(path: Path) -> Any:
    """The contents of a PyTorch or safetensors file, on the CPU.

    Numbers are memory-mapped if possible (PyTorch 1.6 and later), so unused ones are never read.
    Other objects, such as settings and scores, are empty
    (:mod:`~bias_pipeline.models.inert_classes`).

    Raises:
        DataError: if it is cut or not such a file, is a TorchScript archive, or contains more than
            numbers.
    """
    import torch

    if path.suffix == ".safetensors":
        return _safetensors(path)
    if _is_torchscript(path):
        raise DataError(
            f"{path}: a TorchScript archive, which contains a program; if you trust it, save only "
            "its numbers: torch.save(torch.jit.load(FILE).state_dict(), NEW_FILE)"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of how the file was written
        try:
            mapped = zipfile.is_zipfile(path)
            if mapped:
                _check_unpacked(path)
            with inert_classes(path):
                return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        except DataError:
            raise
        except pickle.UnpicklingError as error:
            raise DataError(
                f"{path}: it contains more than numbers, and reading it could run code; if you "
                "trust it, save only its state_dict"
            ) from error
        except Exception as error:  # whatever a broken file makes of the library
            raise _broken(path) from error


def _check_unpacked(path: Path) -> None:
    """Refuse a compressed file; PyTorch stores numbers uncompressed.

    Raises:
        DataError: with the sizes.
    """
    with zipfile.ZipFile(path) as file:
        unpacked = sum(entry.file_size for entry in file.infolist())
    packed = path.stat().st_size
    if unpacked > packed:
        raise DataError(
            f"{path}: has {packed:,} bytes and unpacks to {unpacked:,}; PyTorch does not compress "
            "files: write it again with torch.save"
        )


def _is_torchscript(path: Path) -> bool:
    """Whether a file is a program with its numbers, as OpenAI published CLIP."""
    try:
        with zipfile.ZipFile(path) as file:
            return any(name.endswith("/constants.pkl") for name in file.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _safetensors(path: Path) -> Any:
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except Exception as error:  # whatever a broken file makes of the library
        raise _broken(path) from error


def _broken(path: Path) -> DataError:
    return DataError(f"{path}: not a file of weights, or cut short; fetch it again")
