"""How tasks (objects) are read from captions: the one place that decides what a caption names.

Words are cut as for attributes (:mod:`bias_pipeline.text.mentions`). A task is named where one of
its listed words or phrases stands; the longest phrase takes its words, so "hot dog" is no dog.
Naming a task twice counts once.
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

    "hot dog" names a hot dog and no dog.

    Args:
        captions: raw captions; they are tokenised and lower-cased here.
        vocabulary: words of all tasks.
        tasks: which T tasks are columns; phrases of the others still win over their words.

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
    found = sparse.csr_array((np.ones(len(columns_named)), columns_named, ends), shape=shape)
    found.sum_duplicates()
    found.data = np.ones_like(found.data)
    return found
