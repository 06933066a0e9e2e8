"""The sentences of a caption."""

from __future__ import annotations

import re

# Where a sentence ends: behind its last sign and any quotes and brackets, before a blank.
_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+")
_LAST = re.compile(r"[.!?][\"'”’)\]]*$")
_WORD = re.compile(r"[^\W_]+")
_SHORTENED = re.compile(
    r"(?:^|[\s(])(?:[a-z]|mr|mrs|ms|dr|st|no|vs|approx|etc|e\.g|i\.e|u\.s|a\.m|p\.m)\.$",
    re.IGNORECASE,
)


def ends_sentence(word: str) -> bool:
    """Whether a word of a caption, with its punctuation, ends a sentence.

    Example:
        >>> [word for word in ("rides.", "he!”", "Mr.", "3.5", "a") if ends_sentence(word)]
        ['rides.', 'he!”']
    """
    return bool(_LAST.search(word)) and not _SHORTENED.search(word)


def sentences_of(text: str) -> list[str]:
    """The sentences of a caption; empty for a text without words.

    A full stop after a known abbreviation ("Mr.", "e.g.") or a single letter does not end a
    sentence.

    Example:
        >>> sentences_of("A man rides. He wears a hat! Mr. Smith, 3.5 m tall")
        ['A man rides.', 'He wears a hat!', 'Mr. Smith, 3.5 m tall']
    """
    sentences, begun = [], 0
    for end in _END.finditer(text):
        sentence = text[begun : end.end()].strip()
        if not _SHORTENED.search(sentence) and any(map(str.isalnum, sentence)):
            sentences.append(sentence)
            begun = end.end()
    rest = text[begun:].strip()
    if any(map(str.isalnum, rest)):
        return [*sentences, rest]
    return [*sentences[:-1], f"{sentences[-1]} {rest}".strip()] if sentences else []


def first_sentence(text: str) -> str:
    """The first sentence of a caption, or the whole text."""
    return next(iter(sentences_of(text)), text)


def sentences_with(text: str, words: frozenset[str]) -> str:
    """The sentences of a caption that contain one of the words, or else the first sentence.

    Example:
        >>> sentences_with("A hall. A man sits. It is dark.", frozenset(["man"]))
        'A man sits.'
    """
    holding = [s for s in sentences_of(text) if not words.isdisjoint(_WORD.findall(s.lower()))]
    return " ".join(holding) if holding else first_sentence(text)
