"""How tasks (objects) are read from captions."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from bias_pipeline.attribute import TaskVocabulary
from bias_pipeline.captions import Captions
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
    tokens = captions.rewrite(
        lambda word: tokenize_word(word.lower(), keep_punctuation=True, keep_unknown=True)
    ).join(vocabulary.all_words)
    column = {word: i for i, task in enumerate(tasks) for word in vocabulary.tasks[task]}
    named = np.array([column.get(word, -1) for word in tokens.types], np.int64)[tokens.tokens]
    caption = np.repeat(np.arange(len(tokens)), tokens.lengths)
    cells = np.unique(caption[named >= 0] * len(tasks) + named[named >= 0])
    shape = (len(captions), len(tasks))
    indices = np.divmod(cells, max(len(tasks), 1))
    return sparse.csr_array((np.ones(len(cells)), indices), shape=shape)


def group_mentions(captions: Captions, words: dict[str, frozenset[str]]) -> sparse.csr_array:
    """Which groups of an attribute each caption names.

    Args:
        captions: raw captions; they are tokenised and lower-cased here.
        words: group name to its words, in the order of the columns.

    Returns:
        (N, K) indicators; a caption that names two groups counts for both.
    """
    tokens = captions.rewrite(
        lambda word: tokenize_word(word.lower(), keep_punctuation=False, keep_unknown=True)
    )
    return sparse.csr_array(
        np.stack([tokens.mentions(own) for own in words.values()], axis=1).astype(np.float64)
    )
