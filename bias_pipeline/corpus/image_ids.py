"""Brings image ids to one form. Files write ids as file names, paths or numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import cast, overload

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.encoding import plain_name_of
from bias_pipeline.errors import DataError

# Endings of pictures' files
ENDINGS = (".jpg", ".jpeg", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")

_FEW = 5
_AT_ONCE = 1 << 16  # ids that are written at once
_SHORT = 18  # digits of ids that are compared as numbers of 64 bits

_COCO_NAME = re.compile(r"COCO_(?:train|val|test)20\d\d_(\d{12})")
# The names of most pictures, in one search, since there may be a million
_PICTURE = r"(?:[^:\n]*[/\\])?(?:COCO_(?:train|val|test)20\d\d_(?=\d{12}\.))?0*(\d+)\.(?:jpg|png)"
_NUMBER = re.compile(_PICTURE, re.ASCII)
_NUMBERS = re.compile(f"^{_PICTURE}$", re.ASCII | re.MULTILINE)
_ENDING = re.compile(f"(?:{'|'.join(map(re.escape, ENDINGS))})$", re.IGNORECASE)
_QUERY = re.compile(r"[?#].*", re.DOTALL)  # query and fragment of an address
_WHOLE = re.compile(r"(\d+)\.0{0,2}", re.ASCII)
# Numbers as spreadsheets write them: as text, in powers of ten, with separators of thousands
_AS_TEXT = re.compile(r"['\u2019](\d+)", re.ASCII)
_POWER = re.compile(r"(\d)(?:[.,](\d+))?[eE]\+(\d{1,3})", re.ASCII)
_THOUSANDS = re.compile(r"\d{1,3}(?:([,.'\u2019_ \u00a0\u2009\u202f])\d{3})(?:\1\d{3})*", re.ASCII)


def canonical_id(raw: object) -> str:
    """The standard form of an image id: digits without leading zeros, or text without mojibake.

    So ``42``, ``"42"`` and ``"000042"`` are one image, and ``"a042"`` is another. Operating systems
    write accents in file names differently (NFC, NFD). Canonical ids are in NFC and have no
    invisible characters.

    Example:
        >>> canonical_id("000042") == canonical_id(42) == "42"
        True
    """
    if type(raw) is int:  # the usual case, a million times
        return str(raw)
    if isinstance(raw, bool) or not isinstance(raw, int | str | np.integer):
        raise DataError(f"image id {raw!r} is neither a whole number nor text")
    text = str(raw).strip()
    if not text:
        raise DataError("an image id is empty")
    if not text.isascii():
        text = plain_name_of(text)
    if not text:
        raise DataError(f"image id {raw!r} has no sign that can be seen")
    if "+" in text and (power := _POWER.fullmatch(text)):
        _check_whole(text, power)
    return text.lstrip("0") or "0" if text.isascii() and text.isdigit() else text


def plain_ids(raw: Sequence[object]) -> list[str] | None:
    """Canonical ids if all raw ids are whole numbers, or if all are digits; otherwise None.

    Example:
        >>> plain_ids([42, 7]), plain_ids(["000042", "0"]), plain_ids(["42.jpg"])
        (['42', '7'], ['42', '0'], None)
    """
    kinds = set(map(type, raw))
    if kinds == {int}:
        return list(map(str, raw))
    texts = cast("Sequence[str]", raw) if kinds == {str} else ()
    if not are_digits(texts):
        return None
    padded = "\n0" in "\n" + "\n".join(texts)
    return [text.lstrip("0") or "0" for text in texts] if padded else list(texts)


def _check_whole(text: str, power: re.Match[str]) -> None:
    if len(power[2] or "") < int(power[3]):
        raise DataError(
            f"image id {text} is a number in powers of ten without its last digits; give the "
            "column the format of whole numbers or of text, and write the file again"
        )


def id_key(identifier: str) -> tuple[int, int, str]:
    """A sort key for canonical ids. Numbers come first, by value, then all other texts."""
    numeric = identifier.isascii() and identifier.isdigit()
    return (0, len(identifier), identifier) if numeric else (1, 0, identifier)


def sorting_order(identifiers: Sequence[str]) -> list[int]:
    """The indices that sort ids by :func:`id_key`.

    Example:
        >>> sorting_order(["10", "9", "8"]), sorting_order(["a", "10", "9"])
        ([2, 1, 0], [2, 1, 0])
    """
    if are_digits(identifiers) and max(map(len, identifiers)) <= _SHORT:
        numbers = np.array(identifiers).astype(np.int64)
        order: list[int] = np.argsort(numbers, kind="stable").tolist()
        return order
    return sorted(range(len(identifiers)), key=lambda place: id_key(identifiers[place]))


def are_digits(identifiers: Collection[str]) -> bool:
    """Whether all ids consist of digits; false without ids."""
    together = "".join(identifiers)
    return together.isascii() and together.isdigit() and all(identifiers)


class NumberedIds(Sequence[str]):
    """Ids that are whole numbers in ascending order. Texts would need ten times the memory.

    Example:
        >>> ids = NumberedIds(np.array([7, 42]))
        >>> ids[1], ids[:2], list(ids)
        ('42', ['7', '42'], ['7', '42'])
    """

    def __init__(self, numbers: IntArray) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _AT_ONCE):
            yield from self[first : first + _AT_ONCE]

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return list(map(str, self.numbers[place].tolist()))
        return str(self.numbers[place])


def short_id(identifier: str) -> str:
    """The image id in a file name, a path, a URL or a number such as "42.0".

    Other ids do not change.

    Example:
        >>> short_id("val2014/COCO_val2014_000000000042.jpg"), short_id("000000000139.png")
        ('42', '139')
        >>> short_id("https://host/photos/42.jpg?width=640#top")
        '42'
        >>> short_id("42.0"), short_id("kite_7.JPG"), short_id("a/b"), short_id("0")
        ('42', 'kite_7', 'a/b', '0')
        >>> short_id("1.097E+03"), short_id("'0042"), short_id("-42")
        ('1097', '42', '-42')
    """
    if identifier.isdigit():
        return identifier
    if number := _NUMBER.fullmatch(identifier):
        return number[1]
    if digits := _as_number(identifier):
        return canonical_id(digits)
    plain = _QUERY.sub("", identifier) if "://" in identifier else identifier
    stem = _ENDING.sub("", plain)
    name = re.split(r"[/\\]", stem)[-1]
    coco = _COCO_NAME.fullmatch(name)
    if coco:
        return canonical_id(coco[1])
    return canonical_id(name) if stem != plain and name.strip() else identifier


def short_ids(identifiers: Sequence[str]) -> list[str]:
    """The :func:`short_id` of each id, which is fast for numbered file names.

    Example:
        >>> short_ids(["000042.jpg", "7.jpg"]), short_ids(["000042.jpg", "a"])
        (['42', '7'], ['42', 'a'])
    """
    together = "\n".join(identifiers)
    numbers: list[str] = _NUMBERS.findall(together)
    if len(numbers) == len(identifiers) == together.count("\n") + 1:
        return numbers
    return [short_id(identifier) for identifier in identifiers]


def _as_number(identifier: str) -> str:
    """The digits of an id that is a number in another notation, or empty for other ids."""
    if number := _WHOLE.fullmatch(identifier) or _AS_TEXT.fullmatch(identifier):
        return number[1]
    power = _POWER.fullmatch(identifier)
    if power is None or len(power[2] or "") < int(power[3]):
        return ""
    fraction, exponent = power[2] or "", int(power[3])
    return "" if fraction[exponent:].strip("0") else power[1] + fraction[:exponent]


def short_forms(files: Collection[Collection[str]]) -> Mapping[str, str] | None:
    """Map each long id to its short form, or None if two ids would have the same short form.

    Example:
        >>> short_forms([["42", "7"], ["000042.jpg", "7.jpg"]])
        {'000042.jpg': '42', '7.jpg': '7'}
        >>> short_forms([["a/1.jpg", "b/1.jpg"]]) is None
        True
    """
    forms: dict[str, str] = {}
    if all(are_digits(identifiers) for identifiers in files if identifiers):
        return {}
    for identifiers in files:
        long = {i: short for i in identifiers if (short := short_id(i)) != i}
        plain = len(identifiers) - len(long)
        distinct = len(set(long.values())) + plain
        if long and (distinct < len(identifiers) or any(i in identifiers for i in long.values())):
            return None
        forms |= long
    return {**forms, **_without_separators(files, forms)}


def _without_separators(
    files: Collection[Collection[str]], forms: Mapping[str, str]
) -> dict[str, str]:
    """Map ids such as "1,234" to numbers without separators, if another file has the number."""
    written = [
        {i: canonical_id(re.sub(r"\D", "", i)) for i in ids if _THOUSANDS.fullmatch(i)}
        for ids in files
    ]
    if not any(written):
        return {}
    known = [{forms.get(i, i) for i in ids} for ids in files]
    needed = any(
        len(ids.intersection(numbers.values())) > len(ids.intersection(numbers))
        for numbers in written
        for ids in known
    )
    if not needed:
        return {}
    for numbers, ids in zip(written, known, strict=True):
        by_number = {number: i for i, number in numbers.items()}
        if both := min(ids & by_number.keys(), default=""):
            raise DataError(
                f"image ids {by_number[both]} and {both} are in one file and may be one picture; "
                "write the ids of all files without separators of thousands"
            )
    return {i: number for numbers in written for i, number in numbers.items()}


def reading_notes(short: Mapping[str, str]) -> list[str]:
    """A note on how ids were read, with a file name and a number as examples.

    Example:
        >>> reading_notes({"42.jpg": "42", "1,097": "1097"})[1]
        'image ids are read as numbers: 1,097 is 1097'
    """
    numbers = [i for i in short if _as_number(i) or _THOUSANDS.fullmatch(i)]
    names = short.keys() - set(numbers)
    kinds = {"used without folder and ending": names, "read as numbers": numbers}
    firsts = {how: min(ids, key=id_key) for how, ids in kinds.items() if ids}
    return [f"image ids are {how}: {first} is {short[first]}" for how, first in firsts.items()]


def first_ids(identifiers: Iterable[str]) -> str:
    """The first five ids, for a message.

    Example:
        >>> first_ids(["10", "9", "a"])
        '9, 10, a'
    """
    return ", ".join(sorted(identifiers, key=id_key)[:_FEW])
