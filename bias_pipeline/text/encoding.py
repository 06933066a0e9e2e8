"""Repairs characters that programs changed: wrong encodings, escaped and invisible characters."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from urllib.parse import unquote

from bias_pipeline.corpus.encoding import without_half_pairs, without_mojibake


def mend_mojibake(texts: Iterable[str]) -> dict[str, str]:
    """Map each text that is mojibake to the intended text."""
    if isinstance(texts, Texts) and texts.joined_texts.isascii() and texts.joined_texts:
        return {}
    return changes((text for text in texts if not text.isascii()), without_mojibake)


_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrt]|\\([\"'])")
_BYTES = re.compile(r"(?:<0x[0-9A-Fa-f]{2}>)+|(?:\\x[0-9A-Fa-f]{2})+")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});")
_MOST_ESCAPED = 2  # how many times in a row HTML may have escaped a sign


def unescape_signs(texts: Sequence[str]) -> dict[str, str]:
    r"""Map each text with escaped characters (HTML, JSON or bytes) to the intended text.

    Example:
        >>> texts = [r"a man\u2019s dog", "a man&#39;s dog", "a dog<0x0A>", "a dog & a cat"]
        >>> list(unescape_signs(texts).values())
        ['a man’s dog', "a man's dog", 'a dog\n']
    """
    return changes(holding(texts, "\\", "&", "<0", "%20"), _plain_signs)


def _plain_signs(text: str) -> str:
    if "%20" in text and len(text.split()) == 1:
        text = unquote(text)
    for _ in range(_MOST_ESCAPED):
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    text = _BYTES.sub(lambda match: _from_bytes(match[0]), text)
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2] or " ", text)
    return without_half_pairs(text)  # two escapes of one sign beyond 16 bits (an emoji)


def _from_bytes(written: str) -> str:
    return bytes.fromhex(re.sub(r"<0x|>|\\x", "", written)).decode("utf-8", "ignore")


_HIDDEN_BLANK = re.compile(r"[^\s\u200b]+(?:\u200b+[^\s\u200b]+)+")


def with_blanks(texts: Sequence[str]) -> dict[str, str]:
    """Map each text with U+200B (no width) between words to the text with ordinary blanks.

    U+200B separates two parts if each part is a word in these texts, but the joined parts are not.
    In a text without other blanks, it is enough that the joined parts are no word.

    Example:
        >>> zero = chr(0x200B)
        >>> texts = [f"a{zero}man", "a man near", f"a man{zero}near"]
        >>> list(with_blanks(texts).values())
        ['a man', 'a man near']
    """
    hidden = holding(texts, "\u200b")
    if not hidden:
        return {}
    known = words_known(texts)

    def show_blanks(match: re.Match[str]) -> str:
        parts = re.split("\u200b+", match[0])
        if len(match.string.split()) == 1 and "".join(parts).lower() not in known:
            return " ".join(parts)
        words = whole_or_parts(parts, " ", known)
        return words if " " in words else match[0]

    return changes(hidden, lambda text: _HIDDEN_BLANK.sub(show_blanks, text))


def may_hide_blanks(texts: Sequence[str]) -> bool:
    """Whether some text has U+200B in a form that :func:`with_blanks` may change."""
    return any(map(_HIDDEN_BLANK.search, holding(texts, "\u200b")))


class Texts(list[str]):
    """All texts of a file, in which many characters can be searched at once."""

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> Texts:
        return texts if isinstance(texts, Texts) else cls(texts)

    @cached_property
    def words(self) -> Collection[str]:
        """The distinct words of the texts, perhaps among other words."""
        return dict.fromkeys(" ".join(self).split())

    @cached_property
    def lines_of_words(self) -> str:
        return "\n".join([*self.words, ""])

    def may_have(self, sign: str) -> bool:
        """Whether a text may contain a sign, as its words tell much faster than the texts."""
        begin = sign.split()[0]
        return (begin if begin == sign else f"{begin}\n") in self.lines_of_words

    @cached_property
    def joined_texts(self) -> str:
        """All texts joined by NUL characters, or empty if some text contains NUL."""
        together = "\0".join(self)
        return together if together.count("\0") == len(self) - 1 else ""


def holding(texts: Sequence[str], *signs: str) -> list[str]:
    """The texts that contain at least one of the characters."""
    read = Texts.from_texts(texts)
    signs = tuple(filter(read.may_have, signs))
    if not signs:
        return []
    everything = read.joined_texts
    if not everything:
        return [text for text in read if any(sign in text for sign in signs)]
    ends: dict[int, int] = {}  # where a text begins to where it ends
    for sign in signs:
        place = everything.find(sign)
        while place >= 0:
            end = everything.find("\0", place)
            end = len(everything) if end < 0 else end
            ends[everything.rfind("\0", 0, place) + 1] = end
            place = everything.find(sign, end)
    return [everything[begin:end] for begin, end in sorted(ends.items())]


def words_known(texts: Iterable[str]) -> frozenset[str]:
    """The words of some texts, in lower case and without punctuation at their ends."""
    words = {word for text in texts for word in text.lower().split()}
    return frozenset(word.strip("\"'“”’.,:;!?()[]") for word in words)


def whole_or_parts(parts: Sequence[str], between: str, known: frozenset[str]) -> str:
    """The parts with a blank between them if only the parts are known words; otherwise one word.

    Example:
        >>> known = frozenset(["woman", "well", "known"])
        >>> whole_or_parts(["wo", "man"], "-", known), whole_or_parts(["well", "known"], "-", known)
        ('woman', 'well-known')
    """
    whole = "".join(parts)
    apart = between.join(parts)
    known_apart = apart.lower() in known or all(part.lower() in known for part in parts)
    return apart if known_apart and whole.lower() not in known else whole


def changes(texts: Iterable[str], rule: Callable[[str], str]) -> dict[str, str]:
    return {text: changed for text in dict.fromkeys(texts) if (changed := rule(text)) != text}
