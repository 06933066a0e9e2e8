"""Answers about pictures; each question is computed once per model and cached.

The blocks of :mod:`bias_pipeline.inference.blocks`, a question has the digest of its edited picture
and its words.
"""

from __future__ import annotations

import hashlib
from argparse import Namespace
from collections.abc import Callable, Sequence

from bias_pipeline.array_types import Float32Array
from bias_pipeline.inference.blocks import BlockStore
from bias_pipeline.inference.runner import Model, describe_share
from bias_pipeline.inference.stamps import by_name
from bias_pipeline.inference.texts import known_names, vectors_of_names
from bias_pipeline.io.cores import n_threads
from bias_pipeline.models.picture_text import Question


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
