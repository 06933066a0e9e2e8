"""How attributes are read from captions: the one place that decides which group a caption names.

A caption is cut into words as our tokenizer does, in lower case, and a group is named where one
of its listed words stands as a whole word: "man's hat" and "the man." name a man, "mandate" does
not. Plurals count where the list has them. A caption that names two groups names each of them, and
is of neither where one group is asked for (:func:`named_group`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bias_pipeline.attribute import Attribute
from bias_pipeline.captions import Captions
from bias_pipeline.intersection import Intersection
from bias_pipeline.text.tokenize import tokenize_word

IntArray = npt.NDArray[np.int64]
_Words = tuple[tuple[str, frozenset[str]], ...]

NO_GROUP = -1
SEVERAL_GROUPS = -2
_KEPT = 8  # columns whose reading is remembered: several metrics read the same captions


def group_mentions(captions: Captions, words: Mapping[str, Iterable[str]]) -> sparse.csr_array:
    """Which groups of an attribute each caption names.

    Args:
        captions: raw captions; they are tokenised and lower-cased here.
        words: group name to its words, in the order of the columns.

    Returns:
        (N, K) indicators; a caption that names two groups counts for both.
    """
    return _mentions(captions, _listed(words))


def attribute_mentions(
    captions: Captions, attribute: Attribute, groups: Sequence[str]
) -> sparse.csr_array:
    """Which of some groups each caption names; two attributes' where it names a group of each.

    Args:
        captions: as in :func:`group_mentions`.
        attribute: whose own words are counted.
        groups: names of its groups, in the order of the columns.

    Returns:
        (N, K) indicators.
    """
    if not isinstance(attribute, Intersection):
        return group_mentions(captions, {name: attribute.words.get(name, ()) for name in groups})
    first, second = (
        group_mentions(captions, {name: part.words.get(name, ()) for name in part.groups})
        for part in attribute.both
    )
    columns = {
        f"{a}-{b}": first[:, [i]] * second[:, [j]]
        for (i, a), (j, b) in product(*(list(enumerate(part.groups)) for part in attribute.both))
    }
    return sparse.csr_array(sparse.hstack([columns[name] for name in groups]))


def named_group(captions: Captions, words: Mapping[str, Iterable[str]]) -> IntArray:
    """The one group that each caption names.

    Args:
        captions: as in :func:`group_mentions`.
        words: as there.

    Returns:
        (N,) the group's number, ``NO_GROUP`` or ``SEVERAL_GROUPS``; read-only.

    Example:
        >>> words = {"male": ["man"], "female": ["woman"]}
        >>> texts = ["a man", "a Woman's hat", "a person", "a man and a woman"]
        >>> named_group(Captions.from_texts(texts), words).tolist()
        [0, 1, -1, -2]
    """
    return _named(captions, _listed(words))


def one_of(mentions: sparse.csr_array) -> IntArray:
    """(N,) the one group that each row of (N, K) mentions names; see :func:`named_group`."""
    groups = np.arange(mentions.shape[1])
    counts = np.asarray((mentions > 0).sum(axis=1)).astype(np.int64)
    first = np.asarray((mentions > 0).astype(np.float64) @ groups).astype(np.int64)
    return np.where(counts == 1, first, np.where(counts == 0, NO_GROUP, SEVERAL_GROUPS))


def neutral_rate(captions: Captions, attribute: Attribute) -> float:
    """Share of captions that name no group of the attribute, in [0, 1]; NaN without captions.

    A captioner that always says "person" is neutral throughout and must not look fair for free.

    Args:
        captions: raw captions; they are tokenised and lower-cased here.
        attribute: whose groups' words count.
    """
    if not len(captions):
        return float("nan")
    words = [word for group in attribute.words.values() for word in group]
    return float(1 - group_mentions(captions, {"any": words}).sum() / len(captions))


def _listed(words: Mapping[str, Iterable[str]]) -> _Words:
    return tuple((name, frozenset(own)) for name, own in words.items())


@lru_cache(maxsize=_KEPT)
def _named(captions: Captions, words: _Words) -> IntArray:
    named = one_of(_mentions(captions, words))
    named.setflags(write=False)  # all who ask get the same array
    return named


@lru_cache(maxsize=_KEPT)
def _mentions(captions: Captions, words: _Words) -> sparse.csr_array:
    tokens = lowered_words(captions)
    flags = [tokens.mentions(own) for _, own in words]
    return sparse.csr_array(np.stack(flags, axis=1).astype(np.float64))


@lru_cache(maxsize=_KEPT // 2)
def lowered_words(captions: Captions) -> Captions:
    """Raw captions as lower-case words, without signs."""
    return captions.rewrite(
        lambda word: tokenize_word(word.lower(), keep_punctuation=False, keep_unknown=True)
    )
