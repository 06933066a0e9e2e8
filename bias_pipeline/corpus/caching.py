"""A base class that caches what is computed from an object, for the object's lifetime."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T")


class ReadCache:
    """Caches results, so that several metrics compute them once."""

    @cached_property
    def _read(self) -> dict[Hashable, Any]:
        return {}

    def read(self, how: Callable[..., T], *words: Hashable) -> T:
        """The cached result of a function of this object; do not change it.

        Args:
            how: takes this object and ``words``.
            words: further arguments that decide the result.

        Example:
            >>> data = ReadCache()
            >>> data.read(lambda self, more: [more], 3)
            [3]
        """
        key = (how, words)
        if key not in self._read:
            self._read[key] = how(self, *words)
        result: T = self._read[key]
        return result
