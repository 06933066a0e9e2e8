"""Reads PyTorch files of weights as numbers, never as code, and renames foreign weights.

Reading a pickle calls the classes it names. Each class listed here is replaced by an empty class
that does nothing; all other classes are refused.
"""

from __future__ import annotations

import pickle
import pickletools
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bias_pipeline.errors import DataError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Named = tuple[str, str]  # a module, and a class or function of it

# Lightning names states of callbacks by the callbacks' classes; omegaconf has settings of Hydra.
_PACKAGES = ("pytorch_lightning.", "omegaconf.")
_BUILTINS = ("bool", "dict", "float", "int", "list", "long", "str", "tuple", "unicode")
_NAMES: frozenset[Named] = frozenset(
    {
        # Numbers of numpy, under the names that its major versions use.
        ("numpy.core.multiarray", "scalar"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy", "dtype"),
        # The classes in a pickle of omegaconf's settings: types, and containers of resolved values.
        ("typing", "Any"),
        *((module, name) for module in ("__builtin__", "builtins") for name in _BUILTINS),
    }
)
# Classes whose objects hold weights.
_DICTS: frozenset[Named] = frozenset({("collections", "defaultdict")})
_HEADERS = 3  # in files of PyTorch before 1.6, so many pickles precede the saved object


class _Inert:
    """Takes the place of an object of a listed class."""

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        del args, kwargs
        return super().__new__(cls)

    def __init__(self, *args: object, **kwargs: object) -> None:
        del args, kwargs

    def __setstate__(self, state: object) -> None:
        del state


class _PlainDict:
    """Takes the place of a class of dictionaries, and makes empty dictionaries."""

    def __new__(cls, *args: object) -> Any:
        del args
        return {}


@contextmanager
def inert_classes(path: Path) -> Iterator[None]:
    """Context in which PyTorch replaces all classes that a file names by empty classes."""
    from torch import serialization

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as file:
            pickles = [file.read(name) for name in file.namelist() if name.endswith("/data.pkl")]
        named = set().union(*map(_names_in_pickle, pickles))
    else:
        named = _names_in_old_file(path)
    harmless = {pair for pair in named if pair[0].startswith(_PACKAGES)} | _NAMES | _DICTS
    before = serialization.get_safe_globals()
    stand_ins: list[Any] = [
        type(name, (_PlainDict if (module, name) in _DICTS else _Inert,), {"__module__": module})
        for module, name in sorted(harmless)
    ]
    serialization.add_safe_globals(stand_ins)
    try:
        yield
    finally:
        serialization.clear_safe_globals()
        serialization.add_safe_globals(before)


def _names_in_old_file(path: Path) -> set[Named]:
    """The names in a file written before PyTorch 1.6; empty for any other file."""
    with path.open("rb") as file:
        try:
            for _ in range(_HEADERS):
                _names_in_pickle(file)
            return _names_in_pickle(file)
        except ValueError:  # reading the file raises the error
            return set()


def _names_in_pickle(pickled: bytes | IO[bytes]) -> set[Named]:
    """Modules and names in one pickle; no code is run."""
    named = [
        str(argument).partition(" ")
        for code, argument, _ in pickletools.genops(pickled)
        if code.name == "GLOBAL"
    ]
    return {(module, name) for module, _, name in named}


def read_numbers(path: Path) -> Any:
    """The contents of a PyTorch or safetensors file, on the CPU.

    Numbers are memory-mapped if possible (PyTorch 1.6 and later), so unused numbers are never read.
    Other objects, such as settings and scores, become empty objects.
    """
    import torch

    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except Exception as error:  # whatever the library raises on a broken file
            raise _broken_file(path) from error
    if _is_torchscript(path):
        raise DataError(
            f"{path}: a TorchScript archive, which contains a program; if you trust it, save only "
            "its numbers: torch.save(torch.jit.load(FILE).state_dict(), NEW_FILE)"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about how the file was written
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
        except Exception as error:  # whatever the library raises on a broken file
            raise _broken_file(path) from error


def _check_unpacked(path: Path) -> None:
    with zipfile.ZipFile(path) as file:
        unpacked = sum(entry.file_size for entry in file.infolist())
    packed = path.stat().st_size
    if unpacked > packed:
        raise DataError(
            f"{path}: has {packed:,} bytes and unpacks to {unpacked:,}; PyTorch does not compress "
            "files: write it again with torch.save"
        )


def _is_torchscript(path: Path) -> bool:
    """Whether a file is a program with its numbers, like OpenAI's files of CLIP."""
    try:
        with zipfile.ZipFile(path) as file:
            return any(name.endswith("/constants.pkl") for name in file.namelist())
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):  # a damaged archive
        return False


def _broken_file(path: Path) -> DataError:
    return DataError(f"{path}: not a file of weights, or cut short; fetch it again")


Names = Iterable[tuple[str, str]]  # a pattern of the file's name, and ours


def rename_weights(
    weights: Mapping[str, Tensor], names: Names, unused: Iterable[str], path: Path, network: str
) -> dict[str, Tensor]:
    r"""The weights under our names, without reading unused weights.

    Example:
        >>> import torch
        >>> one = {"net.fc.weight": torch.ones(1), "queue": torch.ones(9)}
        >>> rename_weights(one, [(r"net\.(fc\..+)", r"\1")], ["queue"], Path("a.pth"), "Net")
        {'fc.weight': tensor([1.])}
    """
    import torch

    new_weights: dict[str, Tensor] = {}
    for name, value in weights.items():
        matches = ((re.fullmatch(pattern, name), new) for pattern, new in names)
        new_name = next((match.expand(new) for match, new in matches if match), None)
        if new_name is None and not any(re.fullmatch(pattern, name) for pattern in unused):
            raise DataError(
                f"{path}: {name!r} is not a weight of {network}; another network was saved"
            )
        if new_name is None:
            continue
        if new_name in new_weights and not torch.equal(new_weights[new_name], value):
            raise DataError(f"{path}: {name!r} occurs in it twice, with different numbers")
        if not value.isfinite().all():
            raise DataError(f"{path}: {name!r} contains NaN or infinity; the file is broken")
        new_weights[new_name] = value
    return new_weights


def check_fit(
    weights: Mapping[str, Tensor], shapes: Mapping[str, torch.Size], path: Path, why: str
) -> None:
    """Check that a file has every weight of a network in the right size, and no other weights."""
    for name, shape in shapes.items():
        if name not in weights:
            raise DataError(
                f"{path}: {name!r} is absent; it is the file of another network, or is cut off"
            )
        if weights[name].shape != shape:
            size, wanted = (" x ".join(map(str, one)) for one in (weights[name].shape, shape))
            raise DataError(f"{path}: {name!r} is of {size} numbers and not of {wanted}; {why}")
    more = sorted(set(weights) - set(shapes))
    if more:
        raise DataError(f"{path}: {more[0]!r} is one too many; {why}")
