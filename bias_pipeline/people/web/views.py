"""A view of a list: what is searched, the order, the page, and the links between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from starlette.exceptions import HTTPException

T = TypeVar("T")
PAGE = 50
_LONGEST = 200  # characters of a value


@dataclass(frozen=True)
class View:
    """The part of an address after the question mark."""

    path: str  # of the page
    values: Mapping[str, str]  # name to value, without empty ones

    @classmethod
    def of(cls, path: str, given: Mapping[str, str], known: Sequence[str]) -> View:
        """A view of an address; names that a page does not know are left out."""
        values = {name: given[name].strip() for name in known if given.get(name, "").strip()}
        if any(len(value) > _LONGEST for value in values.values()):
            raise HTTPException(400, f"a filter has more than {_LONGEST} characters; shorten it")
        return cls(path, values)

    def __getitem__(self, name: str) -> str:
        """A value, empty if it is not given."""
        return self.values.get(name, "")

    def link(self, **changes: object) -> str:
        """The address with other values; the page starts again at the first.

        Example:
            >>> View("/", {"metric": "lic", "page": "3"}).link(sort="value", metric="")
            '/?sort=value'
        """
        values = {name: value for name, value in self.values.items() if name != "page"}
        values |= {name: str(value) for name, value in changes.items()}
        text = urlencode({name: value for name, value in values.items() if value})
        return f"{self.path}?{text}" if text else self.path

    @property
    def number(self) -> int:
        """Of the page, from 1."""
        text = self["page"] or "1"
        if not (text.isascii() and text.isdigit()) or int(text) < 1:
            raise HTTPException(404, "there is no such page")
        return int(text)

    @property
    def descending(self) -> bool:
        """Whether the largest come first."""
        return self["sort"].startswith("-")

    @property
    def key(self) -> str:
        return self["sort"].removeprefix("-")


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list."""

    view: View  # of the list
    count: int  # how many things there are on all pages
    make: Callable[[int, int], Sequence[T]]  # the things from one place to another

    @property
    def last(self) -> int:
        """The number of the last page."""
        return max(1, -(-self.count // PAGE))

    @cached_property
    def items(self) -> Sequence[T]:
        """The things of this page."""
        if self.view.number > self.last:
            raise HTTPException(404, "there is no such page")
        first = (self.view.number - 1) * PAGE
        return self.make(first, min(first + PAGE, self.count))

    @property
    def first(self) -> int:
        """The place of its first thing, from 1."""
        return min((self.view.number - 1) * PAGE + 1, self.count)

    @property
    def end(self) -> int:
        """The place of its last thing."""
        return min(self.view.number * PAGE, self.count)

    def neighbour(self, step: int) -> str:
        """The link to another page; possibly empty."""
        number = self.view.number + step
        return self.view.link(page=number if number > 1 else "") if 1 <= number <= self.last else ""


def page_of(view: View, things: Sequence[T]) -> Page[T]:
    return Page(view, len(things), lambda first, last: things[first:last])


def sorted_by(
    things: Sequence[T], view: View, keys: Mapping[str, Callable[[T], Any]], default: str
) -> list[T]:
    """Things in the view's order; equal ones stay as they were."""
    chosen = view["sort"] or default
    name = chosen.removeprefix("-")
    if name not in keys:
        raise HTTPException(400, f"sort={name} is unknown; choose {', '.join(keys)}")
    absent = [thing for thing in things if _absent(keys[name](thing))]
    present = [thing for thing in things if not _absent(keys[name](thing))]
    return [*sorted(present, key=keys[name], reverse=chosen.startswith("-")), *absent]


def _absent(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
