"""Decides which tasks (objects) a caption names; every metric uses it.

Words are split as for attributes (:mod:`bias_pipeline.text.mentions`). A task is named where one of
its listed words or phrases occurs; the longest phrase wins, so "hot dog" is not a dog. Naming a
task twice counts once.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from bias_pipeline.corpus.attribute import TaskVocabulary
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.text.tokenize import tokenize_word


def task_mentions(
    captions: Captions, vocabulary: TaskVocabulary, tasks: tuple[str, ...]
) -> sparse.csr_array:
    """Which tasks each caption names, by any of their words; the longest phrase wins.

    "hot dog" does not name a dog.

    Args:
        captions: raw captions; they are tokenised and lower-cased here.
        vocabulary: words of all tasks.
        tasks: the T tasks of the columns; longer phrases of other tasks still win.

    Returns:
        (N, T) indicators.
    """
    column = {word: i for i, task in enumerate(tasks) for word in vocabulary.tasks[task]}
    return captions.read(_mentions, vocabulary.all_words, tuple(column.items()), len(tasks))


def _mentions(
    captions: Captions,
    all_words: tuple[str, ...],
    columns: tuple[tuple[str, int], ...],
    n_tasks: int,
) -> sparse.csr_array:
    tokens = captions.rewrite(
        lambda word: tokenize_word(word.lower(), keep_punctuation=True, keep_unknown=True)
    ).join(all_words)
    column = dict(columns)
    named = np.array([column.get(word, -1) for word in tokens.types], np.int64)[tokens.tokens]
    ends = np.concatenate([[0], np.cumsum(named >= 0)])[tokens.starts]
    columns_named = named[named >= 0]
    shape = (len(captions), n_tasks)
    incidence = sparse.csr_array((np.ones(len(columns_named)), columns_named, ends), shape=shape)
    incidence.sum_duplicates()
    incidence.data = np.ones_like(incidence.data)
    return incidence
