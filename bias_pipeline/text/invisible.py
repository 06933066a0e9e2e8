"""Invisible characters, with which a program's captions hide words from the word lists."""

from __future__ import annotations

import re
import unicodedata

from bias_pipeline.corpus.captions import Captions

_JOINERS = "\u200c\u200d"  # glue inside one written sign (emoji), or inside a word (Persian)
_LOOSE = re.compile(
    rf"(?<![^\x00-\x7f])[{_JOINERS}]+|[{_JOINERS}]+(?![^\x00-\x7f])|(?<=[A-Za-z])[\ufe0e\ufe0f]+"
)


def visible(word: str) -> str:
    """A word without format characters (Unicode's Cf): zero-width, soft hyphens, byte order marks.

    A joiner stays between two characters beyond ASCII, where it is part of what is written.

    Example:
        >>> visible("wo" + chr(0x200B) + "man" + chr(0x200D))
        'woman'
        >>> chef = chr(0x1F469) + chr(0x200D) + chr(0x1F373)
        >>> visible(chef) == chef
        True
    """
    if word.isascii():
        return word
    signs = (s for s in word if s in _JOINERS or unicodedata.category(s) != "Cf")
    return _LOOSE.sub("", "".join(signs))


def without_invisible(captions: Captions) -> Captions:
    """Captions with every word as :func:`visible` has it; the same object if all are so already."""
    shown = {word: visible(word) for word in captions.types}
    if all(word == new for word, new in shown.items()):
        return captions
    return captions.rewrite(lambda word: [shown[word]] if shown[word] else [])
