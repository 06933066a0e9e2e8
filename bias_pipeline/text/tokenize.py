"""The project's tokenizer, which is fast, has a version, and works the same on every system."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from bias_pipeline.corpus.attribute import Context
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus, Side
from bias_pipeline.text.scored_text import JOINERS, Declined, Preambles, ScoredText, Stock, Unit
from bias_pipeline.text.transform import TextTransform

VERSION = 1  # raise it whenever any caption comes out differently

_UNKNOWN = "<unk>"
_ASCII = re.compile(
    r"[A-Za-z0-9]+?(?=n't(?![A-Za-z0-9]))|n't(?![A-Za-z0-9])|'(?:s|m|d|re|ve|ll)(?![A-Za-z0-9])"
    r"|[A-Za-z0-9]+|\S",
    re.IGNORECASE,
)
_JOINERS = frozenset(f"{JOINERS}\ufe0e\ufe0f")  # and variation selectors of emoji
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


class Tokenize(TextTransform):
    """Splits captions into words and punctuation.

    A token is a run of letters and digits, or a single other character, in Unicode NFC. English
    clitics are separate tokens ("man's" is ``man 's``, "isn't" is ``is n't``), so that masking
    finds the word. Words are split at hyphens for the same reason ("police-woman" is three tokens).
    In scripts without blanks, each character is a token.

    The captions of sides in ``lowercase`` become lower case. The published LIC protocol does this
    only for ``human``. A literal ``<unk>`` is one special token if ``keep_unknown`` is true. The
    published protocol splits ``<unk>`` into three tokens.

    Example:
        >>> tokenize_word("man's", keep_punctuation=True, keep_unknown=True)
        ['man', "'s"]
    """

    def __init__(
        self,
        lowercase: Sequence[Side] = SIDES,
        keep_punctuation: bool = True,
        keep_unknown: bool = True,
        version: int = VERSION,
        preambles: Preambles = "keep",
        declined: Declined = "absent",
        stock: Stock = "drop",
        unit: Unit = "caption",
        subjects: Context | None = None,
    ) -> None:
        super().__init__()
        self.scored = ScoredText(preambles, declined, stock, unit, subjects)
        if version != VERSION:
            raise ValueError(f"text.version: this is tokenizer version {VERSION}, not {version}")
        self.lowercase = tuple(lowercase)
        self.keep_punctuation = keep_punctuation
        self.keep_unknown = keep_unknown

    def rewrite(self, corpus: Corpus, side: str) -> Captions:
        """The captions of one side, split into tokens."""
        lower = side in self.lowercase

        def tokens(word: str) -> list[str]:
            return tokenize_word(
                word.lower() if lower else word,
                keep_punctuation=self.keep_punctuation,
                keep_unknown=self.keep_unknown,
            )

        return corpus.side(side).rewrite(tokens)


def tokenize_word(word: str, *, keep_punctuation: bool, keep_unknown: bool) -> list[str]:
    """Split one word (text without white space) into tokens by the rules of :class:`Tokenize`."""
    if keep_unknown and _UNKNOWN in word:
        first, *others = (
            tokenize_word(part, keep_punctuation=keep_punctuation, keep_unknown=False)
            for part in word.split(_UNKNOWN)
        )
        return [*first, *(token for part in others for token in (_UNKNOWN, *part))]
    if word.isascii():
        tokens = [match.group() for match in _ASCII.finditer(word)]
    else:
        tokens = _unicode_tokens(unicodedata.normalize("NFC", word))
    return tokens if keep_punctuation else [t for t in tokens if any(map(str.isalnum, t))]


@lru_cache(maxsize=1 << 14)  # metrics ask for the same lists again and again
def as_tokens(phrase: str, *, keep_punctuation: bool = True) -> str:
    """A listed word or phrase in the form of tokenised captions.

    Example:
        >>> as_tokens("dark-skinned"), as_tokens("catcher's mitt")
        ('dark - skinned', "catcher 's mitt")
        >>> as_tokens("dark-skinned", keep_punctuation=False)
        'dark skinned'
    """
    return " ".join(
        token
        for word in phrase.split()
        for token in tokenize_word(word, keep_punctuation=keep_punctuation, keep_unknown=True)
    )


def _unicode_tokens(word: str) -> list[str]:
    """Runs of letters, digits and accents, and every other character as its own token."""
    tokens: list[str] = []
    in_word = False
    for sign in word:
        category = unicodedata.category(sign)
        if category == "Cf" and sign not in _JOINERS:
            continue  # direction overrides and other invisible marks carry no word
        after_joiner = bool(tokens) and tokens[-1][-1] == "\u200d"
        attaches = category[0] == "M" or sign in _JOINERS or after_joiner
        letter = category[0] in "LN"
        if tokens and (attaches or (letter and in_word and not _UNSPACED.match(sign))):
            tokens[-1] += sign
        else:
            tokens.append(sign)
        in_word = letter or (attaches and in_word)
        in_word = in_word and not _UNSPACED.match(sign)
    return tokens
