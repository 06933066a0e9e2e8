"""Word deletion: which words of captions make one group's version likelier?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.captions import ranges
from bias_pipeline.io.hashing import UIntArray, random_words
from bias_pipeline.metrics.functional.gender_score import bias_ratio
from bias_pipeline.metrics.language.caption_scoring import CaptionScorer, Judged, judge, mean_over
from bias_pipeline.metrics.language.contexts import Contexts

Deleted = tuple[int, str, list[str]]  # index of the caption, word, K versions without the word


def word_effects(
    how: CaptionScorer, judged: Judged, contexts: Contexts, keys: UIntArray, n_captions: int
) -> list[Mapping[str, object]]:
    """How much each word of some captions adds to the first group's share in their scores.

    A caption's share is the score of its version about the first group over the scores of all its
    versions; the effect of a word is that share minus the share without the word. Words that name a
    group stay. (The paper says that single words such as "hitting" lean to men, without numbers.)

    Args:
        how: judges captions.
        judged: the captions.
        contexts: of the pictures.
        keys: (N,) hashes of the images' ids, from which captions are drawn.
        n_captions: in how many captions words are deleted.

    Returns:
        A line a word: how often it occurs, the mean share with it and without it, the mean effect;
        the largest effect first.
    """
    drawn = random_words("deletion", 0, keys[judged.images[judged.rows]])
    chosen = np.sort(np.argsort(drawn, kind="stable")[:n_captions])
    deleted = [deletion for row in chosen.tolist() for deletion in without_each(judged.texts, row)]
    if not deleted:
        return []
    rows = np.array([row for row, _, _ in deleted])
    starts = np.searchsorted(judged.of, rows, "left")
    counts = np.searchsorted(judged.of, rows, "right") - starts
    pairs, of = judged.pairs[ranges(starts, counts)], np.repeat(np.arange(len(rows)), counts)
    versions = list(zip(*(texts for _, _, texts in deleted), strict=True))
    _, _, scores = judge(how, versions, contexts, pairs, of)
    whole = bias_ratio(mean_over(judged.of, judged.score, len(judged.rows)))[rows]
    rest = bias_ratio(mean_over(of, scores, len(rows)))
    return _by_word([word for _, word, _ in deleted], whole, rest)


def without_each(texts: Sequence[Sequence[str]], row: int) -> list[Deleted]:
    """A caption without each of the words that all of its versions share.

    Example:
        >>> without_each([["a man rides"], ["a woman rides"]], 0)
        [(0, 'a', ['man rides', 'woman rides']), (0, 'rides', ['a man', 'a woman'])]
    """
    versions = [texts_of_group[row].split() for texts_of_group in texts]
    if len({len(version) for version in versions}) > 1:
        return []  # a group is named with more words in one of them
    return [
        (row, words[0], [" ".join(version[:place] + version[place + 1 :]) for version in versions])
        for place, words in enumerate(zip(*versions, strict=True))
        if len(set(words)) == 1
    ]


def _by_word(
    words: Sequence[str], whole: Float64Array, rest: Float64Array
) -> list[Mapping[str, object]]:
    names, number = np.unique(np.array(words), return_inverse=True)
    counts: IntArray = np.bincount(number)
    with_it, without = (np.bincount(number, shares) / counts for shares in (whole, rest))
    effect = with_it - without
    return [
        {
            "word": str(names[k]),
            "times": int(counts[k]),
            "share with": round(float(with_it[k]), 6),
            "share without": round(float(without[k]), 6),
            "effect": round(float(effect[k]), 6),
        }
        for k in np.argsort(-effect, kind="stable").tolist()
    ]
