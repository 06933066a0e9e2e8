"""Captions as lists of words: cut, read, masked and aligned, one caption at a time."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

UNKNOWN = "<unk>"
_CLITIC = re.compile(r"(?<=[a-z0-9])(n't|'(?:s|m|d|re|ve|ll))(?![a-z0-9])")
_PIECE = re.compile(r"<unk>|(?<= )(?:n't|'(?:s|m|d|re|ve|ll))(?= )|[^\W_]+|\S")

Words = list[str]


def cut(caption: str) -> Words:
    """Lower-case words, clitics and single signs.

    Example:
        >>> cut("A man's hot-dog isn't <unk>.")
        ['a', 'man', "'s", 'hot', '-', 'dog', 'is', "n't", '<unk>', '.']
    """
    text = unicodedata.normalize("NFC", caption.lower())
    return _PIECE.findall(_CLITIC.sub(r" \1 ", text))


class Lexicon:
    """Words and phrases that are looked for in captions, each under a name.

    Where phrases overlap the longest counts, of two as long the first by the alphabet.

    Example:
        >>> food = Lexicon({"dog": ["dog", "dogs"], "hot dog": ["hot dog"]})
        >>> sorted(food.names_in("Two dogs eat a hot dog"))
        ['dog', 'hot dog']
        >>> food.mask(cut("his hot dog"), "<task>")
        ['his', '<task>']
    """

    def __init__(self, lists: Mapping[str, Collection[str]]) -> None:
        self.owner = {word: name for name, words in lists.items() for word in words}
        self.widths = {len(phrase.split()) for phrase in self.owner} - {1}

    def join_phrases(self, words: Sequence[str]) -> Words:
        """Words with every listed phrase made one."""
        joined_words = list(words)
        free = [True] * len(joined_words)
        for width, phrase, start in sorted(self._phrases(words)):
            places = slice(start, start - width)
            if all(free[places]):
                free[places] = [False] * -width
                joined_words[places] = [phrase, *[""] * (-width - 1)]
        return [word for word in joined_words if word]

    def _phrases(self, words: Sequence[str]) -> Iterator[tuple[int, str, int]]:
        """Every phrase that stands somewhere: minus its width, itself and its place."""
        for width in self.widths:
            for start in range(len(words) - width + 1):
                if (phrase := " ".join(words[start : start + width])) in self.owner:
                    yield -width, phrase, start

    def names_in(self, caption: str) -> set[str]:
        """The names a caption holds a word of; a longer phrase hides the words in it."""
        return {self.owner[word] for word in self.join_phrases(cut(caption)) if word in self.owner}

    def mask(self, words: Sequence[str], token: str) -> Words:
        """Words with every listed one replaced."""
        return [token if word in self.owner else word for word in self.join_phrases(words)]


def align(words: Sequence[str], known: Collection[str]) -> Words:
    """Words with every one that the captioner never writes replaced; ``<...>`` stays.

    Example:
        >>> align(["<gender>", "juggles", "."], {"."})
        ['<gender>', '<unk>', '.']
    """
    return [word if word in known or _special(word) else UNKNOWN for word in words]


def vocabulary(captions: Iterable[Sequence[str]]) -> frozenset[str]:
    """All words of some captions."""
    return frozenset(word for words in captions for word in words)


def _special(word: str) -> bool:
    return word.startswith("<") and word.endswith(">")
