"""Ids of images, and images that are copies of one another.

Files write ids differently: as file names, paths or bare numbers. An attacker must not learn from
an image and be tested on its copy. Two images are copies if people wrote the same captions for
them, two different ones at least, or if their pictures are the same files or have the same
``picture_id``. One caption in common is not enough: many pictures of a surfer get the same five
words. Captions that more than ten images share do not count either: they are set phrases, as in
data made from a few templates.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, canonical_id, id_key

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")  # of pictures

_FEW = 5

_COCO_NAME = re.compile(r"COCO_(?:train|val|test)20\d\d_(\d{12})")
_ENDING = re.compile(f"(?:{'|'.join(map(re.escape, ENDINGS))})$", re.IGNORECASE)
_QUERY = re.compile(r"[?#].*", re.DOTALL)  # of an address
_WHOLE = re.compile(r"\d+\.0")


def short_id(identifier: str) -> str:
    """The image id in a file name, a path, a URL or a number such as "42.0".

    Other ids stay as they are.

    Args:
        identifier: canonical, see :func:`~bias_pipeline.corpus.corpus.canonical_id`.

    Example:
        >>> short_id("val2014/COCO_val2014_000000000042.jpg"), short_id("000000000139.png")
        ('42', '139')
        >>> short_id("https://host/photos/42.jpg?width=640#top")
        '42'
        >>> short_id("42.0"), short_id("kite_7.JPG"), short_id("a/b"), short_id("0")
        ('42', 'kite_7', 'a/b', '0')
    """
    if identifier.isdigit():
        return identifier
    if _WHOLE.fullmatch(identifier):
        return canonical_id(identifier[:-2])
    plain = _QUERY.sub("", identifier) if "://" in identifier else identifier
    stem = _ENDING.sub("", plain)
    name = re.split(r"[/\\]", stem)[-1]
    coco = _COCO_NAME.fullmatch(name)
    if coco:
        return canonical_id(coco[1])
    return canonical_id(name) if stem != plain and name.strip() else identifier


def short_forms(files: Collection[Collection[str]]) -> Mapping[str, str] | None:
    """Each long id to its short form.

    Args:
        files: the ids of each file.

    Returns:
        None if two ids of one file would become the same: they are different images, so ids are
        used as written.

    Example:
        >>> short_forms([["42", "7"], ["000042.jpg", "7.jpg"]])
        {'000042.jpg': '42', '7.jpg': '7'}
        >>> short_forms([["a/1.jpg", "b/1.jpg"]]) is None
        True
    """
    forms: dict[str, str] = {}
    for identifiers in files:
        long = {i: short for i in identifiers if (short := short_id(i)) != i}
        plain = len(identifiers) - len(long)
        distinct = len(set(long.values())) + plain
        if long and (distinct < len(identifiers) or any(i in identifiers for i in long.values())):
            return None
        forms |= long
    return forms


def few(identifiers: Iterable[str]) -> str:
    """The first five ids, for a message.

    Example:
        >>> few(["10", "9", "a"])
        '9, 10, a'
    """
    return ", ".join(sorted(identifiers, key=id_key)[:_FEW])


_FEWEST_TEXTS = 2
_MOST_IMAGES = 10


def originals(corpus: Corpus) -> IntArray:
    """The first image that each one is a copy of.

    Args:
        corpus: raw captions.

    Returns:
        (N,) rows of the corpus, read-only; an image that is no copy stands for itself.
    """
    return corpus.read(_originals)


def _originals(corpus: Corpus) -> IntArray:
    pairs = [
        (copies[0], row)
        for copies in (
            *_same_captions(corpus.human),
            *_same_ids(corpus.picture_ids or ()),
            *(corpus.pictures.copies() if corpus.pictures else ()),
        )
        for row in copies[1:]
    ]
    one, two = np.array(pairs, np.int64).reshape(-1, 2).T
    shape = (len(corpus), len(corpus))
    graph = sparse.csr_array((np.ones(len(pairs)), (one, two)), shape=shape)
    _, member = sparse.csgraph.connected_components(graph, directed=False)
    _, first = np.unique(member, return_index=True)
    original_rows: IntArray = first[member]
    original_rows.setflags(write=False)  # all callers get the same array
    return original_rows


def _same_ids(pictures: Sequence[str]) -> Iterator[IntArray]:
    """Rows of each picture that several records share."""
    _, which, counts = np.unique(pictures, return_inverse=True, return_counts=True)
    order = np.argsort(which, kind="stable")
    for rows in np.split(order, np.cumsum(counts)[:-1]):
        if len(rows) > 1:
            yield rows


def _same_captions(captions: Captions) -> Iterator[IntArray]:
    """Rows of images with the same captions in any order, each set of two images or more."""
    images, starts, counts = np.unique(captions.image_rows, return_index=True, return_counts=True)
    for count in np.unique(counts[counts >= _FEWEST_TEXTS]):
        chosen = counts == count
        texts = np.sort(captions.identities[starts[chosen][:, None] + np.arange(count)], axis=1)
        several = 1 + (np.diff(texts, axis=1) > 0).sum(axis=1) >= _FEWEST_TEXTS
        sets = _alike(images[chosen][several], texts[several])
        yield from (rows for rows in sets if len(rows) <= _MOST_IMAGES)


def _alike(rows: IntArray, keys: IntArray) -> Iterator[IntArray]:
    """Those of (M,) rows whose (M, C) keys are equal, in sets of two or more."""
    _, which, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(which.ravel(), kind="stable")
    for alike in np.split(rows[order], np.cumsum(counts)[:-1]):
        if len(alike) > 1:
            yield alike
