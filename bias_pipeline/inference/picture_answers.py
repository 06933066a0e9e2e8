"""Labels of pictures and answers about them by networks; each is computed once and cached.

They are blocks of :mod:`bias_pipeline.inference.blocks`. A picture counts by the digest of its
file, so its path does not matter; a question has the digest of its edited picture and its words.
"""

from __future__ import annotations

import hashlib
import json
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bias_pipeline.array_types import Float32Array
from bias_pipeline.inference.blocks import BlockStore
from bias_pipeline.inference.runner import Model, describe_share
from bias_pipeline.inference.shards import by_name
from bias_pipeline.inference.texts import known_names, vectors_of_names
from bias_pipeline.io.cores import n_threads
from bias_pipeline.models.picture_text import Question
from bias_pipeline.vision.people import Labels

BATCH = 16  # pictures at once


def seen_in(
    pictures: Mapping[str, Path], store: BlockStore, load: Callable[[], Model]
) -> tuple[dict[str, Labels], dict[str, str]]:
    """The labels of pictures; cached ones are not computed again.

    Args:
        pictures: digest of a file to its path.
        store: of the network with its settings.
        load: returns the network; not called if nothing is missing.

    Returns:
        Digest to labels and confidences; and digest to the reason for unreadable pictures.

    Raises:
        BiasPipelineError: if the network cannot be loaded, or a block cannot be kept.
    """
    known = _kept(store)
    missing = {digest: path for digest, path in pictures.items() if digest not in known}
    if missing:
        how = Namespace(shard="0/1", batch=BATCH, threads=n_threads())
        describe_share(missing, by_name, store, load, how)
        known = _kept(store, lasting=False)
    labels: dict[str, Labels] = {}
    unreadable: dict[str, str] = {}
    for digest in pictures:
        value, reason = known[digest]
        if reason is None:
            labels[digest] = tuple((label, confidence) for label, confidence in json.loads(value))
        else:
            unreadable[digest] = reason
    return labels, unreadable


def _kept(store: BlockStore, *, lasting: bool = True) -> dict[str, tuple[str, str | None]]:
    """Digest to value and reason; temporary failures only on request."""
    results = {}
    for path in store.index():
        table = store.table(path)
        if table is None:
            continue
        columns = (table[name].to_pylist() for name in ("id", "stamp", "value", "reason"))
        for digest, stamp, value, reason in zip(*columns, strict=True):
            if stamp >= 0 or not lasting:
                results[digest] = (value, reason)
    return results


def answers_to(
    questions: Sequence[Question], store: BlockStore, load: Callable[[], Model], batch: int
) -> Float32Array:
    """(N, K) log-probabilities of each of K answers; cached ones are not computed again.

    Args:
        questions: N of K answers each, repeated ones too.
        store: of the model with its settings.
        load: returns the model; not called if nothing is missing.
        batch: questions per batch.

    Raises:
        BiasPipelineError: if the model cannot be loaded, a question cannot be asked, or a block
            cannot be kept.
    """
    names = [_name(question) for question in questions]
    question_of = dict(zip(names, questions, strict=True))
    known = known_names(store)
    missing = {name: question for name, question in question_of.items() if name not in known}
    if missing:
        how = Namespace(shard="0/1", batch=batch, threads=n_threads())
        describe_share(missing, by_name, store, load, how)
    place = {name: row for row, name in enumerate(question_of)}
    return vectors_of_names(list(question_of), store)[[place[name] for name in names]]


def _name(question: Question) -> str:
    shown = question.pictures.shown(question.row)
    return hashlib.sha256(repr((shown, question.before, question.follows)).encode()).hexdigest()
