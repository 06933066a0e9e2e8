"""Empty stand-ins for classes that files of weights name, such as settings and scores.

Reading a pickle calls the classes it names. Each class listed here is replaced by an empty one that
does nothing; all others are refused.
"""

from __future__ import annotations

import pickletools
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

Named = tuple[str, str]  # a module, and a class or function of it

# Callbacks of Lightning, by which it names their states; settings of Hydra.
_PACKAGES = ("pytorch_lightning.", "omegaconf.")
_BUILTINS = ("bool", "dict", "float", "int", "list", "long", "str", "tuple", "unicode")
_NAMES: frozenset[Named] = frozenset(
    {
        # Numbers of numpy, as its majors name them.
        ("numpy.core.multiarray", "scalar"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy", "dtype"),
        # What settings of omegaconf are pickled with: types, and where they keep what they resolve.
        ("typing", "Any"),
        *((module, name) for module in ("__builtin__", "builtins") for name in _BUILTINS),
    }
)
_DICTS: frozenset[Named] = frozenset({("collections", "defaultdict")})  # which may be filled
_HEADERS = 3  # pickles before that of what was saved, in files of PyTorch before 1.6


class _Inert:
    """Stand-in for an object of such a class."""

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        del args, kwargs
        return super().__new__(cls)

    def __init__(self, *args: object, **kwargs: object) -> None:
        del args, kwargs

    def __setstate__(self, state: object) -> None:
        del state


class _PlainDict:
    """Stand-in for a class of dictionaries: makes empty ones."""

    def __new__(cls, *args: object) -> Any:
        del args
        return {}


@contextmanager
def inert_classes(path: Path) -> Iterator[None]:
    """Context in which PyTorch replaces the classes that a file names by empty ones.

    Raises:
        ValueError: if the file is broken.
        OSError: if it cannot be read.
    """
    from torch import serialization

    named = _zipped(path) if zipfile.is_zipfile(path) else _plain(path)
    harmless = {pair for pair in named if pair[0].startswith(_PACKAGES)} | _NAMES | _DICTS
    before = serialization.get_safe_globals()
    serialization.add_safe_globals([_class(*pair) for pair in sorted(harmless)])
    try:
        yield
    finally:
        serialization.clear_safe_globals()
        serialization.add_safe_globals(before)


def _class(module: str, name: str) -> Any:
    base = _PlainDict if (module, name) in _DICTS else _Inert
    return type(name, (base,), {"__module__": module})


def _zipped(path: Path) -> set[Named]:
    with zipfile.ZipFile(path) as file:
        pickles = [file.read(name) for name in file.namelist() if name.endswith("/data.pkl")]
    return {pair for pickled in pickles for pair in _named(pickled)}


def _plain(path: Path) -> set[Named]:
    """The same of a file from before PyTorch 1.6, or none of its files."""
    with path.open("rb") as file:
        try:
            for _ in range(_HEADERS):
                _named(file)
            return _named(file)
        except ValueError:  # reading the file raises the error
            return set()


def _named(pickled: bytes | IO[bytes]) -> set[Named]:
    """Modules and names in one pickle; no code is run."""
    named = [
        str(argument).partition(" ")
        for code, argument, _ in pickletools.genops(pickled)
        if code.name == "GLOBAL"
    ]
    return {(module, name) for module, _, name in named}
