"""Repairs text that was written in one encoding and read in another (mojibake)."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

# What is left of mojibake that lost a byte: "manÂ" had a no-break space, and "â€" had a quotation
# mark. "Ä " before a word is the mark of GPT-2, "womanÕs" has MacRoman's apostrophe.
_REMNANTS = (
    (re.compile(r"(?<=[a-z])Â(?!\w)"), " "),
    (re.compile(r"â€(?!\w)"), '"'),
    (re.compile(r"Ä\xa0(?=[A-Za-z])"), "Ġ"),
    (re.compile(r"(?<=[a-z])[ÕÆ](?=(?:s|t|d|m|ll|re|ve)\b)"), "’"),
)


def without_mojibake(text: str) -> str:
    """The intended text, if UTF-8 was read as CP1252, Latin-1, CP437 or MacRoman.

    Text that was misread several times is repaired too. Other text does not change.

    Example:
        >>> without_mojibake("the cafÃ© isnâ€™t open"), without_mojibake("eug├¿ne")
        ('the café isn’t open', 'eugène')
        >>> without_mojibake("a café")
        'a café'
    """
    if text.isascii():
        return text
    import ftfy

    text = ftfy.fix_encoding(text)
    for remnant, sign in _REMNANTS:
        text = remnant.sub(sign, text)
    return text


def without_half_pairs(text: str) -> str:
    """The text, in which surrogate pairs become one character and half pairs become U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@cache
def plain_name_of(text: str) -> str:
    """A name in Unicode NFC, without mojibake and invisible characters.

    Example:
        >>> plain_name_of("MÃ¤nnlich"), plain_name_of("male" + chr(0x200B))
        ('Männlich', 'male')
    """
    if text.isascii():
        return text
    signs = (sign for sign in without_mojibake(text) if unicodedata.category(sign) != "Cf")
    return unicodedata.normalize("NFC", " ".join("".join(signs).split()))
