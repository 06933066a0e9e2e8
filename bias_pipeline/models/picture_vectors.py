"""Finds regions, labels and answers in pictures by networks; each is computed once and cached.

The cache consists of the blocks of :mod:`bias_pipeline.models.blocks`. The digest of its edited
pixels names a picture. So overlapping sets of pictures share features, and a killed job continues.
Training reads rows in any order, so features are also written to a memory-mapped table.
"""

from __future__ import annotations

import hashlib
import json
from argparse import Namespace
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float32Array
from bias_pipeline.corpus.pictures import Pictures, Pixels
from bias_pipeline.data.photos import read_pixels
from bias_pipeline.data.regions import Labels
from bias_pipeline.io.arrays import Filling, mapped_table
from bias_pipeline.io.machine import n_threads
from bias_pipeline.models.blocks import BlockStore, by_name, read_block, store_in
from bias_pipeline.models.runner import Model, describe_share
from bias_pipeline.models.text_vectors import known_names, vectors_by_block, vectors_of_names

if TYPE_CHECKING:
    from bias_pipeline.models.picture_text import Question

Regions = npt.NDArray[np.float16]


class RegionExtractor(Protocol):
    """A frozen network that reads square pictures, ``side`` pixels wide and high."""

    @property
    def side(self) -> int: ...

    @property
    def batch_size(self) -> int: ...

    def extract(self, pixels: Pixels, /) -> Regions:
        """Map (B, side, side, 3) pictures to (B, ...) features."""


class _Picture(NamedTuple):
    pictures: Pictures
    row: int


class _ExtractionModel:
    """A frozen network with the interface that :mod:`~bias_pipeline.models.runner` needs."""

    def __init__(self, extractor: RegionExtractor) -> None:
        self._extractor = extractor

    def read(self, picture: _Picture) -> Pixels:
        return read_pixels(picture.pictures, picture.row, self._extractor.side)

    def describe(self, pixels: Sequence[Pixels]) -> list[Regions]:
        return list(self._extractor.extract(np.stack(pixels)).reshape(len(pixels), -1))


def regions_of(
    pictures: Pictures,
    cache: str | None,
    settings: Mapping[str, object],
    model: str,
    load: Callable[[], RegionExtractor],
) -> Regions:
    """(N, ...) features of N pictures, memory-mapped if there is a cache."""
    spec = {"job": "regions", **settings}
    key = f"regions {spec} {pictures.pixels_digest}"

    def make() -> Filling:
        extractor = load()
        blank = np.zeros((1, extractor.side, extractor.side, 3), np.uint8)
        shape = extractor.extract(blank).shape[1:]
        rows = _rows(pictures, cache, spec, model, extractor)
        shaped = ((row, flat.reshape(shape)) for row, flat in rows)
        return Filling((len(pictures), *shape), np.float16, shaped)

    return mapped_table(cache, key, make)


def _rows(
    pictures: Pictures,
    cache: str | None,
    spec: Mapping[str, object],
    model: str,
    extractor: RegionExtractor,
) -> Iterator[tuple[int, Regions]]:
    rows: dict[str, list[int]] = {}
    for row in range(len(pictures)):
        rows.setdefault(pictures.digest_of_row(row), []).append(row)
    with store_in(cache, spec, model) as store:
        wanted = {name: _Picture(pictures, copies[0]) for name, copies in rows.items()}
        model_of = partial(_ExtractionModel, extractor)
        _compute_missing(wanted, known_names(store), store, model_of, extractor.batch_size)
        for names, vectors in vectors_by_block(list(rows), store):
            for name, vector in zip(names, vectors, strict=True):
                yield from ((row, vector) for row in rows[name])


def _compute_missing(
    wanted: Mapping[str, Any],
    known: Container[str],
    store: BlockStore,
    load: Callable[[], Model],
    batch: int,
) -> bool:
    """Compute and store the wanted values that are missing; returns whether some were missing."""
    missing = {name: source for name, source in wanted.items() if name not in known}
    if missing:
        how = Namespace(shard="0/1", batch=batch, threads=n_threads())
        describe_share(missing, by_name, store, load, how)
    return bool(missing)


BATCH = 16  # pictures at once


def labels_in(
    pictures: Mapping[str, Path], store: BlockStore, load: Callable[[], Model]
) -> tuple[dict[str, Labels], dict[str, str]]:
    """The labels of pictures; cached labels are not computed again."""
    known = _stored_labels(store)
    if _compute_missing(pictures, known, store, load, BATCH):
        known = _stored_labels(store, lasting=False)
    labels: dict[str, Labels] = {}
    unreadable: dict[str, str] = {}
    for digest in pictures:
        value, reason = known[digest]
        if reason is None:
            labels[digest] = tuple((label, confidence) for label, confidence in json.loads(value))
        else:
            unreadable[digest] = reason
    return labels, unreadable


def _stored_labels(store: BlockStore, *, lasting: bool = True) -> dict[str, tuple[str, str | None]]:
    """The value and reason of each picture, by digest; ``lasting`` leaves out brief failures."""
    results = {}
    for path in store.index():
        table = read_block(path)
        if table is None:
            continue
        columns = (table[name].to_pylist() for name in ("id", "stamp", "value", "reason"))
        for digest, stamp, value, reason in zip(*columns, strict=True):
            if stamp >= 0 or not (lasting or digest in results):
                results[digest] = (value, reason)
    return results


def answers_to(
    questions: Sequence[Question], store: BlockStore, load: Callable[[], Model], batch: int
) -> Float32Array:
    """(N, K) log-probabilities of K answers for each picture; cached answers are read."""
    names = []
    for question in questions:
        shown = question.pictures.digest_of_row(question.row)
        question_text = repr((shown, question.before, question.follows))
        names.append(hashlib.sha256(question_text.encode()).hexdigest())
    question_of = dict(zip(names, questions, strict=True))
    _compute_missing(question_of, known_names(store), store, load, batch)
    place = {name: row for row, name in enumerate(question_of)}
    return vectors_of_names(list(question_of), store)[[place[name] for name in names]]
