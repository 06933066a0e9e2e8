"""Answers about pictures, each question asked once of a model, whoever asks.

The blocks of :mod:`bias_pipeline.inference.blocks`, a question under the digest of its picture, as
it is shown, and its words.
"""

from __future__ import annotations

import hashlib
from argparse import Namespace
from collections.abc import Callable, Sequence

from bias_pipeline.inference.blocks import BlockStore
from bias_pipeline.inference.runner import Model, describe_share
from bias_pipeline.inference.stamps import by_name
from bias_pipeline.inference.texts import FloatArray, known_names, vectors_of_names
from bias_pipeline.io.cores import n_cores
from bias_pipeline.models.picture_text import Question


def answers_to(
    questions: Sequence[Question], store: BlockStore, load: Callable[[], Model], batch: int
) -> FloatArray:
    """(N, K) logarithms of how likely each of K answers is; what is known is not asked again.

    Args:
        questions: N of K answers each, repeated ones too.
        store: of the model with its settings.
        load: gives the model; not called where nothing is missing.
        batch: questions at once.

    Raises:
        BiasPipelineError: if the model cannot be loaded, a question cannot be asked, or a block
            cannot be kept.
    """
    names = [_name(own) for own in questions]
    asked = dict(zip(names, questions, strict=True))
    known = known_names(store)
    missing = {name: own for name, own in asked.items() if name not in known}
    if missing:
        how = Namespace(shard="0/1", batch=batch, threads=n_cores())
        describe_share(missing, by_name, store, load, how)
    place = {name: row for row, name in enumerate(asked)}
    return vectors_of_names(list(asked), store)[[place[name] for name in names]]


def _name(question: Question) -> str:
    shown = question.pictures.shown(question.row)
    return hashlib.sha256(repr((shown, question.before, question.follows)).encode()).hexdigest()
