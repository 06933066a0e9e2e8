"""Data that keep what was read of them, as long as they are there themselves."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T")


class Remembering:
    """What several metrics read of the same data is read once."""

    @cached_property
    def _read(self) -> dict[Hashable, Any]:
        return {}

    def read(self, how: Callable[..., T], *words: Hashable) -> T:
        """What a function makes of these data; it must not be changed.

        Args:
            how: takes the data and ``words``.
            words: what else decides the result.

        Example:
            >>> data = Remembering()
            >>> data.read(lambda own, more: [more], 3)
            [3]
        """
        key = (how, words)
        if key not in self._read:
            self._read[key] = how(self, *words)
        found: T = self._read[key]
        return found
