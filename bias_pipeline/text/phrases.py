"""Phrases of language models: preambles, texts that decline to describe, and hedges.

``phrases.csv`` has them all: a line a phrase, as a pattern of lower-case text, and its source.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.io.files import read_csv

OPENING = 16  # words in which a preamble or a refusal begins
SHARED = 1 / 3  # of all captions
_FEWEST_SHARED = 100  # captions; of fewer, some share an opening by chance
_LEAST_WORDS = 3  # "a man" opens many people's captions too

# What stands before or between the phrases of a preamble: signs of headings, lists, bold text.
_SIGNS = re.compile(r"(?:[#*_>•\-–—:,.!\s\"“”']|\d{1,2}[.)]\s)*")
_MARKED = re.compile(r"\s*(?:#+\s|\*\*|[*•\-–—]\s|\d{1,2}[.)]\s)")
_BOLD = re.compile(r"\*\*|__|(?<!\S)(?:#+|[*•])(?!\S)")


@cache
def phrase_pattern(kind: str) -> re.Pattern[str]:
    """One pattern of all phrases of a kind: ``decline``, ``preamble`` or ``hedge``."""
    lines = read_csv(files("bias_pipeline.text").joinpath("phrases.csv").read_text("utf-8"))
    phrases = [line["pattern"] for line in lines if line["kind"] == kind]
    return re.compile("|".join(f"(?:{phrase})" for phrase in phrases))


def declines(texts: Iterable[str]) -> BoolArray:
    """Which texts decline to describe, or are errors of a service, instead of captions.

    The beginning decides, also of a text that goes on with a description.

    Returns:
        (N,) flags.

    Example:
        >>> declines(["I'm sorry, but I can't say.", "ERROR: 429", "a sorry dog"]).tolist()
        [True, True, False]
    """
    pattern = phrase_pattern("decline")
    return np.fromiter((_at_start(pattern, text) is not None for text in texts), bool)


def preamble_of(text: str) -> str:
    """The phrases and signs before a caption's content, in lower case; empty if there are none.

    A text of nothing else has no preamble.

    Example:
        >>> preamble_of("**Caption:** The image depicts a man.")
        '**caption:** the image depicts'
        >>> preamble_of("a man in the image"), preamble_of("The image shows.")
        ('', '')
    """
    plain = _plain(text)
    end = len(_MARKED.match(plain)[0]) if _MARKED.match(plain) else 0  # type: ignore[index]
    while match := phrase_pattern("preamble").match(plain, _SIGNS.match(plain, end).end()):  # type: ignore[union-attr]
        end = match.end()
    rest = plain[end:]
    return plain[:end].strip() if end and any(map(str.isalnum, rest)) else ""


def without_preamble(text: str) -> str:
    """A caption without its preamble, and without the signs of headings, lists and bold text.

    Example:
        >>> without_preamble("Sure! Here is a caption: **A man** rides.")
        'A man rides.'
    """
    end = len(preamble_of(text))
    if not end:
        return text
    rest = " ".join(text.split())[end:]
    start = _SIGNS.match(rest).end()  # type: ignore[union-attr]
    content = (
        rest[start:].rstrip('"”') if '"' in rest[:start] or "“" in rest[:start] else rest[start:]
    )
    return " ".join(_BOLD.sub(" ", content).split())


def openings(captions: Captions) -> list[str]:
    """(N,) the first words of each caption."""
    ends = np.minimum(captions.starts[1:], captions.starts[:-1] + OPENING)
    bounds = zip(captions.starts[:-1].tolist(), ends.tolist(), strict=True)
    tokens, types = captions.tokens.tolist(), captions.types
    return [" ".join([types[t] for t in tokens[a:b]]) for a, b in bounds]


def shared_opening(captions: Captions) -> tuple[str, int]:
    """The longest beginning that at least a third of the captions share, and how many do.

    Args:
        captions: any; of fewer than 100 nothing is said.

    Returns:
        At least three words, in lower case; empty and 0 if there is none.

    Example:
        >>> texts = ["A detailed view of a man"] * 50 + ["a man"] * 50
        >>> shared_opening(Captions.from_texts(texts))
        ('a detailed view of a man', 50)
    """
    words = captions.rewrite(_letters)
    needed = SHARED * len(words)
    longest: tuple[list[int], int] = ([], 0)
    branches = [(list[int](), np.arange(len(words)))] if len(words) >= _FEWEST_SHARED else []
    while branches:
        begun, rows = branches.pop()
        if (len(begun), len(rows)) > (len(longest[0]), longest[1]):
            longest = (begun, len(rows))
        if len(begun) < OPENING:
            branches += [([*begun, t], left) for t, left in _next(words, rows, len(begun), needed)]
    phrase, n = longest
    return (" ".join(words.types[t] for t in phrase), n) if len(phrase) >= _LEAST_WORDS else ("", 0)


def _next(words: Captions, rows: IntArray, place: int, needed: float) -> list[tuple[int, IntArray]]:
    """The words that enough captions have at a place, and the captions."""
    rows = rows[words.lengths[rows] > place]
    tokens = words.tokens[words.starts[rows] + place]
    counts = np.bincount(tokens, minlength=1)
    return [(int(t), rows[tokens == t]) for t in np.flatnonzero(counts >= max(needed, 1))]


def most_common(preambles: Iterable[str]) -> str:
    """The most frequent of some preambles."""
    return Counter(preambles).most_common(1)[0][0]


def _letters(word: str) -> list[str]:
    """A word in lower case without the signs at its ends; none if it is only signs."""
    bare = word.lower().strip("\"'“”’.,:;!?()[]*_#-–—")
    return [bare] if bare else []


def _at_start(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    plain = _plain(text)
    start = next((i for i, sign in enumerate(plain) if sign.isalnum()), len(plain))
    return pattern.match(plain, start)


def _plain(text: str) -> str:
    """Lower case, with straight apostrophes and single blanks, each sign at its place."""
    single = " ".join(text.split()).replace("’", "'")
    lower = single.lower()
    return lower if len(lower) == len(single) else single
