"""A view of a list, with its search, its order, its page and the links to other views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar
from urllib.parse import urlencode

from starlette.exceptions import HTTPException

T = TypeVar("T")
PAGE = 50
_LONGEST = 200  # characters of a value


@dataclass(frozen=True)
class View:
    """The view in the part of an address after the question mark."""

    path: str  # the address before the question mark
    values: Mapping[str, str]  # values by name, without empty values

    @classmethod
    def from_query(cls, path: str, given: Mapping[str, str], known: Sequence[str]) -> View:
        """The view that an address requests; names that the page does not know are ignored."""
        values = {name: given[name].strip() for name in known if given.get(name, "").strip()}
        if any(len(value) > _LONGEST for value in values.values()):
            raise HTTPException(400, f"a filter has more than {_LONGEST} characters; shorten it")
        return cls(path, values)

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")

    def link(self, **changes: object) -> str:
        """The address with other values, which starts again at the first page.

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
        text = self["page"] or "1"
        if not (text.isascii() and text.isdigit()) or int(text) < 1:
            raise HTTPException(404, "there is no such page")
        return int(text)

    @property
    def descending(self) -> bool:
        return self["sort"].startswith("-")

    @property
    def key(self) -> str:
        return self["sort"].removeprefix("-")


@dataclass(frozen=True)
class Page(Generic[T]):
    view: View  # the view of the list
    count: int  # how many things there are on all pages
    make: Callable[[slice], Sequence[T]]  # the things at some places

    @property
    def n_pages(self) -> int:
        return max(1, -(-self.count // PAGE))

    @cached_property
    def items(self) -> Sequence[T]:
        if self.view.number > self.n_pages:
            raise HTTPException(404, "there is no such page")
        return self.make(slice(self.first_place - 1, self.last_place))

    @property
    def first_place(self) -> int:
        """The place of the first item on the page, counted from 1."""
        return min((self.view.number - 1) * PAGE + 1, self.count)

    @property
    def last_place(self) -> int:
        return min(self.view.number * PAGE, self.count)

    def neighbour(self, step: int) -> str:
        """The link to the next or the previous page; may be empty."""
        number = self.view.number + step
        return (
            self.view.link(page=number if number > 1 else "") if 1 <= number <= self.n_pages else ""
        )
