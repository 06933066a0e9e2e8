"""Splits several captions in one cell at their separator, as in ``a dog; a wet dog``.

A cell is split only if the file shows that its cells are such lists: nearly all cells have the
separator, and about equally often. A file that has the separator often, but not in this way, is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.records import StockCaption
from bias_pipeline.data.columns import MODEL, Kind, Layout
from bias_pipeline.errors import DataError, UsageError

Separator = Literal["none", "sep", "bars", "slashes", "numbers", "bar", "lines", "semicolon"]

# Shares of cells with the separator, and with about equally many parts
_NEARLY_ALL, _SAME = 0.95, 0.9
_OFTEN = 0.5  # if a larger share of cells has a sign, it may be a separator
_SOME = 0.02  # the same share for separators that no caption contains
_FEWEST = 3  # words of most captions; with fewer, the parts are tags
_ALIKE = 0.2  # a larger share of parts is not an exception
_READ = 2000  # cells whose parts are looked at
_SHOWN = 40  # characters of a caption in a message

_ENTITY = re.compile(r"(&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30}));")
_TAG = re.compile(r"<[^<>]{0,40}>|\[[A-Z]{2,5}\]")
_WORD = re.compile(r"[^\W\d_]+")
_LINES = re.compile(r"(?:\s*(?:\n|\r|<br\s*/?>)\s*)+(?:[-*\u2022]\s+)?", re.IGNORECASE)
_NUMBER = re.compile(r"(?:^|(?<=\s))\(?(\d{1,2})[.):]\s+")
_SEP = re.compile(r"<sep\s*/?>|\[sep\]", re.IGNORECASE)
_SENTENCES = re.compile(r"[.!?]\s+[A-Z]")


def _numbered_parts(text: str) -> list[str]:
    places = [(0, 0)]
    for match in _NUMBER.finditer(text):
        if int(match[1]) == len(places):
            places.append((match.start(), match.end()))
    if len(places) == 1 or text[: places[1][0]].strip():
        return [text]
    ends = [start for start, _ in places[2:]] + [len(text)]
    return [text[begin:end] for (_, begin), end in zip(places[1:], ends, strict=True)]


def _between_semicolons(text: str) -> list[str]:
    """The parts between semicolons; a semicolon of an HTML code (``&amp;``) separates nothing."""
    if "&" not in text:
        return text.split(";")
    return [part.replace("\0", ";") for part in _ENTITY.sub("\\1\0", text).split(";")]


@dataclass(frozen=True)
class _Sign:
    shown: str  # the separator in messages
    hints: tuple[str, ...]  # every text with the separator has one of these
    split: Callable[[str], Sequence[str]]
    strong: bool = False  # whether no caption contains the separator
    prose: bool = False  # whether a description contains the separator too


_SIGNS: Mapping[str, _Sign] = {
    "sep": _Sign(
        "<sep>",
        ("<sep", "<SEP", "[sep", "[SEP"),
        _SEP.split,
        strong=True,
    ),
    "bars": _Sign("||", ("||",), re.compile(r"(?<!<)\|\|+(?!>)").split, strong=True),
    "slashes": _Sign("///", ("///",), re.compile(r"///+").split, strong=True),
    "numbers": _Sign("1. 2. ...", ("1.", "1)", "1:"), _numbered_parts),
    "bar": _Sign("|", ("|",), re.compile(r"(?<!<)\|(?!>)").split),
    "lines": _Sign("line ends", ("\n", "\r", "<br", "<BR"), _LINES.split, prose=True),
    "semicolon": _Sign(";", (";",), _between_semicolons, prose=True),
}


def split_cells(
    path: Path, captions: Mapping[str, tuple[str, ...]], layout: Layout, kind: Kind
) -> Mapping[str, tuple[str, ...]]:
    """The captions of each image; cells with several captions are split at separators."""
    if not may_be_joined(chain.from_iterable(captions.values()), layout, len(captions)):
        return captions
    cells = {
        image: texts[0]
        for image, texts in captions.items()
        if len(texts) == 1 and not isinstance(texts[0], StockCaption) and texts[0].strip()
    }
    if layout.separator == "none" or not cells or len(cells) <= len(captions) / 2:
        return captions
    texts = list(cells.values())
    name = layout.separator or _separator_of(path, texts, kind)
    if not name:
        return captions
    parts = {image: _parts(text, _SIGNS[name]) for image, text in cells.items()}
    several = {image: each for image, each in parts.items() if len(each) > 1}
    if not several:  # the user's separator is for another file
        return captions
    layout.used.add(f"separator {name}")
    most = np.bincount([len(each) for each in parts.values()]).argmax()
    layout.add_note(
        path,
        f"{kind.what} from cells with mostly {most} captions, separated by "
        f"{_SIGNS[name].shown!r}, such as {_example(next(iter(several.values())))}",
    )
    return {**captions, **several}


def may_be_joined(texts: Iterable[str], layout: Layout, n_images: int | None = None) -> bool:
    """Whether cells may be lists; false only if the file has at most half the separators needed."""
    if layout.separator is not None:
        return True
    cells = texts if isinstance(texts, Collection) else [*texts]
    together = "\0".join(cells)
    n_images = n_images or len(cells)
    frequent = {sign: together.count(sign) for sign in "<[|/1\n\r;"}  # hints begin with these signs

    def is_often(sign: _Sign) -> bool:
        least = _least_share(sign) * n_images / 2
        perhaps = sum(frequent[hint[0]] for hint in sign.hints) >= least
        return perhaps and sum(map(together.count, sign.hints)) >= least

    return any(map(is_often, _SIGNS.values()))


def check_separator(layout: Layout) -> None:
    """Refuse a separator that occurs in no file."""
    name = layout.separator
    if name not in (None, "none") and f"separator {name}" not in layout.used:
        raise UsageError(
            f"dataset.separator={name}: no cell of captions has {_SIGNS[name or ''].shown!r}"
        )


def _separator_of(path: Path, texts: Sequence[str], kind: Kind) -> str:
    """The name of the separator in the cells; empty if each cell is one caption."""
    together = "\0".join(texts)
    for name, sign in _SIGNS.items():
        holding = sum(map(together.count, sign.hints))
        if (
            not holding
            or holding < _least_share(sign) * len(texts)
            or (name, kind) == ("lines", MODEL)
        ):
            continue
        lists = _lists(texts, sign)
        if not lists:
            continue
        counts = np.array([*map(len, lists), *[1] * (len(texts) - len(lists))])
        shown = lists[:_READ]
        if _is_certain(counts, sign, shown):
            return name
        if not _is_prose(sign, shown):
            raise DataError(
                f"{path}: {(counts > 1).sum()} of {len(counts)} cells of {kind.what} have "
                f"{_SIGNS[name].shown!r}, such as {_example(shown[0])}, some more often than "
                f"others. Add dataset.separator={name} if it is between captions, or "
                "dataset.separator=none if each cell is one caption"
            )
    return ""


def _least_share(sign: _Sign) -> float:
    return _SOME if sign.strong else _OFTEN


def _lists(texts: Sequence[str], sign: _Sign) -> list[tuple[str, ...]]:
    """The parts of all cells with several parts; empty if such cells are few, or parts are tags."""
    least = _least_share(sign) * len(texts)
    holding = [text for text in texts if any(hint in text for hint in sign.hints)]
    lists = [parts for text in holding if len(parts := _parts(text, sign)) > 1]
    words = [len(_WORD.findall(part)) for parts in lists[:_READ] for part in parts]
    return [] if len(lists) < least or np.median(words) < _FEWEST else lists


def _parts(text: str, sign: _Sign) -> tuple[str, ...]:
    """The parts of a cell that contain a word."""
    parts = (part.strip() for part in sign.split(text.strip()))
    return tuple(part for part in parts if _WORD.search(_TAG.sub("", part)))


def _is_certain(counts: IntArray, sign: _Sign, lists: Sequence[Sequence[str]]) -> bool:
    """Whether the cells are certainly lists of captions."""
    usual = np.bincount(counts[counts > 1]).argmax()
    if sign.strong:
        return bool((counts > 1).mean() >= _OFTEN)
    if (counts > 1).mean() < _NEARLY_ALL or (abs(counts - usual) <= 1).mean() < _SAME:
        return False
    equal = (counts == usual).mean() >= _SAME
    return not _is_prose(sign, lists) or bool(equal and usual > 2 and not _is_one_text(lists))


def _is_prose(sign: _Sign, lists: Sequence[Sequence[str]]) -> bool:
    """Whether a sentence may continue after the separator."""
    return sign.prose and (_goes_on(lists) or _is_one_text(lists))


def _goes_on(lists: Sequence[Sequence[str]]) -> bool:
    """Whether the first part of a cell is the only part that begins with a capital."""
    first = [parts[0][0].isupper() for parts in lists]
    later = [part[0].isupper() for parts in lists for part in parts[1:]]
    return bool(np.mean(first) > 1 - _ALIKE and np.mean(later) < _ALIKE)


def _is_one_text(lists: Sequence[Sequence[str]]) -> bool:
    """Whether parts are paragraphs of several sentences, or form one sentence together."""
    several = [bool(_SENTENCES.search(part)) for parts in lists for part in parts]
    before = [part.endswith(".") for parts in lists for part in parts[:-1]]
    last = [parts[-1].endswith(".") for parts in lists]
    one = _goes_on(lists) and np.mean(last) > 1 - _ALIKE and np.mean(before) < _ALIKE
    return bool(np.mean(several) > _ALIKE or one)


def _example(parts: Sequence[str]) -> str:
    return " and ".join(repr(part[:_SHOWN]) for part in parts[:2])


def check_chosen(path: Path, captions: Mapping[str, tuple[str, ...]], index: int | None) -> None:
    """Refuse several captions by a captioner for one image, unless the user has chosen one."""
    image = next((image for image, texts in captions.items() if len(texts) > 1), None)
    if image is not None and index is None:
        raise DataError(
            f"{path}, image {image}: the cells have several captions, such as "
            f"{_example(captions[image])}; choose one with dataset.multi_caption=true, or add "
            "dataset.separator=none if each cell is one caption"
        )
