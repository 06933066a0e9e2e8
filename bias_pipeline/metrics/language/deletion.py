"""Word deletion: which words of captions make one group's version the likelier?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bias_pipeline.corpus.captions import ranges
from bias_pipeline.io.hashing import UIntArray, stream
from bias_pipeline.metrics.counting.tally import FloatArray, IntArray
from bias_pipeline.metrics.functional.gender_score import bias_ratio
from bias_pipeline.metrics.language.contexts import Contexts
from bias_pipeline.metrics.language.judging import Judge, Judged, judge, mean_over

Deleted = tuple[int, str, list[str]]  # which caption, the word, its K versions without the word


def word_effects(
    how: Judge, judged: Judged, contexts: Contexts, keys: UIntArray, n_captions: int
) -> list[Mapping[str, object]]:
    """How much each word of some captions adds to the first group's share in their scores.

    A caption's share is that of its version told of the first group in the scores of all its
    versions; the effect of a word is that share less the share of the caption without the word.
    Words that name a group stay. (The paper says of single words that they lean to men, its example
    is "hitting", and gives no numbers.)

    Args:
        how: who judges.
        judged: the captions.
        contexts: what the pictures show.
        keys: (N,) hashes of the images' ids, which decide whose captions are taken.
        n_captions: of how many captions words are deleted.

    Returns:
        A line a word: how often it stands there, their mean share with it and without it, the mean
        effect; what leans most to the first group first.
    """
    drawn = stream("deletion", 0, keys[judged.images[judged.rows]])
    chosen = np.sort(np.argsort(drawn, kind="stable")[:n_captions])
    deleted = [own for row in chosen.tolist() for own in without_each(judged.texts, row)]
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
    versions = [own[row].split() for own in texts]
    if len({len(own) for own in versions}) > 1:
        return []  # a group is named by more words in one of them
    return [
        (row, words[0], [" ".join(own[:place] + own[place + 1 :]) for own in versions])
        for place, words in enumerate(zip(*versions, strict=True))
        if len(set(words)) == 1
    ]


def _by_word(
    words: Sequence[str], whole: FloatArray, rest: FloatArray
) -> list[Mapping[str, object]]:
    names, number = np.unique(np.array(words), return_inverse=True)
    counts: IntArray = np.bincount(number)
    with_it, without = (np.bincount(number, own) / counts for own in (whole, rest))
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
