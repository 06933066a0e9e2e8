"""One kind of file of strangers, and what reads it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Read = Callable[[Path], object]


@dataclass(frozen=True)
class Reader:
    """One kind of file.

    Attributes:
        files: sound ones, by name; a mutated one keeps its name.
        read: reads one.
    """

    files: Mapping[str, bytes]
    read: Read
