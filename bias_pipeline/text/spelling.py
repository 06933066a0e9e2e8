"""Words that are spelled so that a part of them is another word: "wo-" and "man" on two lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from bias_pipeline.text.encoding import changes, holding, whole_or_parts, words_known

_CUT = re.compile(r"([^\W\d_]+)[-\u00ad][ \t]*\r?\n\s*([^\W\d_]+)")


def with_whole_words(texts: Sequence[str]) -> dict[str, str]:
    r"""The texts with words that a line's end cuts, with these words whole.

    A compound ("well-known") stays one: both of its parts are words of the texts.

    Example:
        >>> list(with_whole_words(["a wo-\nman sits", "a police-\nman", "a police man"]).values())
        ['a woman sits', 'a police-man']
    """
    cut = [text for text in holding(texts, "-\n", "-\r", "- \n", "\u00ad") if _CUT.search(text)]
    if not cut:
        return {}
    known = words_known(texts)

    def whole(match: re.Match[str]) -> str:
        return whole_or_parts(match.groups(), "-", known)

    return changes(cut, lambda text: _CUT.sub(whole, text))


_EITHER = re.compile(
    r"(?<![\w-])\(?(?:(wo)-?[()/|*]+-?(m[ae]n)|(fe)-?[()/|*]+-?(males?)|(s)[()/|*]+(he))\)?(?!\w)",
    re.IGNORECASE,
)
_APART = re.compile(
    r"(?<![\w-])(?:(wo)(?:-? |-)(m[ae]n)|(fe)(?:-? |-)(males?))(?!\w)", re.IGNORECASE
)
# One of these is in every such text.
_SIGNS = (*"()/|*", *map("".join, product(("wo", "Wo", "fe", "Fe"), (" ", "-", "- "), "mM")))


def with_both_words(texts: Sequence[str]) -> dict[str, str]:
    """The texts that write two words of gender as one, such as "(wo)man", with both words.

    Example:
        >>> list(with_both_words(["a (wo)man", "S/he sits", "the wo/men", "a wo man"]).values())
        ['a man/woman', 'he/she sits', 'the men/women', 'a woman']
    """
    return changes(
        holding(texts, *_SIGNS), lambda text: _APART.sub(_write_one, _EITHER.sub(_write_both, text))
    )


def _write_both(match: re.Match[str]) -> str:
    begun, word = (part.lower() for part in match.groups() if part)
    return f"{word}/{begun}{word}"


def _write_one(match: re.Match[str]) -> str:
    return "".join(part for part in match.groups() if part)
