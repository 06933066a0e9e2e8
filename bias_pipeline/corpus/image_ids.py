"""Image ids that files write each in their own way: file names, paths and bare numbers."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from bias_pipeline.corpus.corpus import canonical_id

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")  # of pictures

_COCO_NAME = re.compile(r"COCO_(?:train|val|test)20\d\d_(\d{12})")
_ENDING = re.compile(f"(?:{'|'.join(map(re.escape, ENDINGS))})$", re.IGNORECASE)
_WHOLE = re.compile(r"\d+\.0")


def short_id(identifier: str) -> str:
    """What a file name, a path or a number with a fraction of 0 stands for; other ids as they are.

    Args:
        identifier: canonical, see :func:`~bias_pipeline.corpus.corpus.canonical_id`.

    Example:
        >>> short_id("val2014/COCO_val2014_000000000042.jpg"), short_id("000000000139.png")
        ('42', '139')
        >>> short_id("42.0"), short_id("kite_7.JPG"), short_id("a/b"), short_id("0")
        ('42', 'kite_7', 'a/b', '0')
    """
    if identifier.isdigit():
        return identifier
    if _WHOLE.fullmatch(identifier):
        return canonical_id(identifier[:-2])
    stem = _ENDING.sub("", identifier)
    name = re.split(r"[/\\]", stem)[-1]
    coco = _COCO_NAME.fullmatch(name)
    if coco:
        return canonical_id(coco[1])
    return canonical_id(name) if stem != identifier and name.strip() else identifier


def short_forms(files: Collection[Collection[str]]) -> Mapping[str, str] | None:
    """Each id that is written longer than need be, to its short form.

    Args:
        files: the ids of each file.

    Returns:
        None if two ids of one file would become the same: then they are different images, and ids
        count as they are written.

    Example:
        >>> short_forms([["42", "7"], ["000042.jpg", "7.jpg"]])
        {'000042.jpg': '42', '7.jpg': '7'}
        >>> short_forms([["a/1.jpg", "b/1.jpg"]]) is None
        True
    """
    found: dict[str, str] = {}
    for identifiers in files:
        long = {i: short for i in identifiers if (short := short_id(i)) != i}
        plain = len(identifiers) - len(long)
        distinct = len(set(long.values())) + plain
        if long and (distinct < len(identifiers) or any(i in identifiers for i in long.values())):
            return None
        found |= long
    return found
