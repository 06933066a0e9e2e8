"""Files of PyTorch that hold weights: read as numbers, never as code."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any

from bias_pipeline.errors import DataError
from bias_pipeline.models.inert_classes import inert_classes


def read_numbers(path: Path) -> Any:
    """What a file of PyTorch or of safetensors holds, on the CPU.

    Numbers are mapped from the file where it allows that (those of PyTorch 1.6 and later do), so
    what nobody asks for is never read. Objects beside them, such as settings and scores, are empty
    (:mod:`~bias_pipeline.models.inert_classes`).

    Raises:
        DataError: if it is cut or no such file, is a TorchScript archive, or holds more than
            numbers.
    """
    import torch

    if path.suffix == ".safetensors":
        return _safetensors(path)
    if _is_torchscript(path):
        raise DataError(
            f"{path}: a TorchScript archive, which holds a program beside its numbers; where you "
            "trust it, save them alone: torch.save(torch.jit.load(FILE).state_dict(), NEW_FILE)"
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
    return DataError(f"{path}: no file of weights, or cut short; fetch it again")
