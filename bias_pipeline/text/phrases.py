"""Finds phrases that language models write besides captions: preambles, refusals, hedges, requests.

``phrases.csv`` lists the phrases. Each phrase is a pattern in lower case, with its source.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from bias_pipeline.io.files import read_csv

_ODD_BLANKS = ("  ", *"\t\n\r\v\f\x1c\x1d\x1e\x1f")  # ASCII blanks other than a single space


@cache
def phrase_pattern(kind: str) -> re.Pattern[str]:
    """One pattern for all phrases of a kind, such as ``decline``."""
    lines = read_csv(files("bias_pipeline.text").joinpath("phrases.csv").read_text("utf-8"))
    phrases = [line["pattern"] for line in lines if line["kind"] == kind]
    return re.compile("|".join(f"(?:{phrase})" for phrase in phrases))


def plain_text(text: str) -> str:
    """A text in lower case, with straight apostrophes and single blanks."""
    single = " ".join(text.split()).replace("’", "'")
    lower = single.lower()
    return lower if len(lower) == len(single) else single


def plain_texts(texts: Sequence[str]) -> list[str]:
    """Apply :func:`plain_text` to many texts.

    Example:
        >>> plain_texts(["A  dog’s", "Sorry"])
        ["a dog's", 'sorry']
    """
    together = "|".join(texts)
    if any(blanks in together for blanks in _ODD_BLANKS):
        return [plain_text(text) for text in texts]
    return [text.strip().lower() if text.isascii() else plain_text(text) for text in texts]
