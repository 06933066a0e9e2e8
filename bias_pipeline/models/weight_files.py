"""Files of PyTorch that hold weights: read as numbers, never as code."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

from bias_pipeline.errors import DataError


def read_numbers(path: Path) -> Any:
    """What a file of PyTorch or of safetensors holds, on the CPU.

    Raises:
        DataError: if it is cut or no such file, or holds more than numbers.
    """
    import torch

    if path.suffix == ".safetensors":
        return _safetensors(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of how the file was written
        try:
            return torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise DataError(
                f"{path}: it holds more than numbers, and reading it could run code; where you "
                "trust it, save its state_dict alone"
            ) from error
        except Exception as error:  # whatever a broken file makes of the library
            raise _broken(path) from error


def _safetensors(path: Path) -> Any:
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except Exception as error:  # whatever a broken file makes of the library
        raise _broken(path) from error


def _broken(path: Path) -> DataError:
    return DataError(f"{path}: no file of weights, or cut short; fetch it again")
