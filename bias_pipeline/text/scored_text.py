"""Selects the text of captions that is scored, before any metric and equally for all metrics.

Language models also write preambles and refusals, which are no captions.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.attribute import Context, words_of
from bias_pipeline.corpus.captions import Captions, each_caption, is_blank
from bias_pipeline.corpus.corpus import BLANK_LIMIT, BLANK_WARNING, SIDES, Corpus
from bias_pipeline.errors import DataError, UsageError, inflect
from bias_pipeline.text.phrases import phrase_pattern, plain_text, plain_texts
from bias_pipeline.text.prompts import captions_without_prompts, echoes, prompts_in
from bias_pipeline.text.sentences import first_sentence, sentences_with
from bias_pipeline.text.stock_captions import without_stock

OPENING = 16  # a preamble or a refusal begins within so many words
SHARED = 1 / 3  # share of the captions that have an opening in common
_FEWEST_SHARED = 100  # captions; among fewer captions some share an opening by chance
_EXAMPLES = 3  # how many prompts a note shows
_LEAST_WORDS = 3  # "a man" opens many human captions too

# What stands before or between the phrases of a preamble: signs of headings, lists, bold text.
_SIGNS = re.compile(r"(?:[#*_>•\-–—:,.!\s\"“”']|\d{1,2}[.)]\s)*")
_MARKED = re.compile(r"\s*(?:#+\s|\*\*|[*•\-–—]\s|\d{1,2}[.)]\s)")
_BOLD = re.compile(r"\*\*|__|(?<!\S)(?:#+|[*•])(?!\S)")
JOINERS = "\u200c\u200d"  # glue inside one written sign (emoji), or inside a word (Persian)
_LOOSE = re.compile(
    rf"(?<![^\x00-\x7f])[{JOINERS}]+|[{JOINERS}]+(?![^\x00-\x7f])|(?<=[A-Za-z])[\ufe0e\ufe0f]+"
)


def declines(texts: Sequence[str]) -> BoolArray:
    """(N,) flags: true for texts that are a refusal or a service's error message.

    Only the beginning of a text counts, even if a description follows.

    Example:
        >>> declines(["I'm sorry, but I can't say.", "ERROR: 429", "a sorry dog"]).tolist()
        [True, True, False]
    """
    return _find_declining(plain_texts(texts))


def _find_declining(plain: Sequence[str]) -> BoolArray:
    match = phrase_pattern("decline").match
    return np.fromiter((match(*_start(text)) is not None for text in plain), bool)


def _may_have_preamble(plain: Sequence[str]) -> BoolArray:
    """(N,) flags: true for plain texts that may have a preamble; a fast check."""
    match = phrase_pattern("preamble").match
    return np.fromiter((not text[:1].isalpha() or match(text) is not None for text in plain), bool)


def preamble_of(text: str) -> str:
    """The phrases and punctuation before the content of a caption, in lower case; may be empty.

    If the whole text looks like a preamble, the result is empty.

    Example:
        >>> preamble_of("**Caption:** The image depicts a man.")
        '**caption:** the image depicts'
        >>> preamble_of("a man in the image"), preamble_of("The image shows.")
        ('', '')
    """
    plain = plain_text(text)
    end = len(_MARKED.match(plain)[0]) if _MARKED.match(plain) else 0  # type: ignore[index]
    while match := phrase_pattern("preamble").match(plain, _SIGNS.match(plain, end).end()):  # type: ignore[union-attr]
        end = match.end()
    rest = plain[end:]
    return plain[:end].strip() if end and any(map(str.isalnum, rest)) else ""


def without_preamble(text: str) -> str:
    """A caption without its preamble and without marks of headings, lists and bold text.

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


def after_thoughts(text: str) -> str:
    """The answer of a reasoning model without its reasoning; empty if the reasoning does not end.

    Example:
        >>> after_thoughts("<think>Is it a man?</think> A dog."), after_thoughts("<think>Is it")
        ('A dog.', '')
        >>> after_thoughts("perhaps a man</think><answer>A dog.</answer>")
        'A dog.'
    """
    if "<" not in text and "[" not in text and "◁" not in text:
        return text
    ends = [match.end() for match in _signs_of("answer").finditer(text)]
    answer = text[ends[-1] :] if ends else text
    begun = _signs_of("thought").search(answer)
    spoken = answer[: begun.start()] if begun else answer
    plain = _signs_of("sign").sub(" ", spoken)
    return text if plain == text else plain.strip()


@cache
def _signs_of(kind: str) -> re.Pattern[str]:
    return re.compile(phrase_pattern(kind).pattern, re.IGNORECASE)


def openings(captions: Captions) -> list[str]:
    """(N,): the first words of each caption."""
    ends = np.minimum(captions.starts[1:], captions.starts[:-1] + OPENING)
    bounds = zip(captions.starts[:-1].tolist(), ends.tolist(), strict=True)
    tokens, types = captions.tokens.tolist(), captions.types
    return [" ".join([types[t] for t in tokens[a:b]]) for a, b in bounds]


def distinct_openings(captions: Captions) -> tuple[list[str], IntArray]:
    """The distinct beginnings of captions, and for each caption the index of its beginning, (N,).

    Example:
        >>> texts, places = distinct_openings(Captions.from_texts(["a dog", "a cat", "a dog"]))
        >>> texts, places.tolist()
        (['a dog', 'a cat'], [0, 1, 0])
    """
    places = captions.identities
    first = np.unique(places, return_index=True)[1]
    return openings(captions.take(first)), places


def shared_opening(captions: Captions) -> tuple[str, int]:
    """The longest beginning that at least a third of captions share, and how many share it.

    Example:
        >>> texts = ["A detailed view of a man"] * 50 + ["a man"] * 50
        >>> shared_opening(Captions.from_texts(texts))
        ('a detailed view of a man', 50)
    """
    if len(captions) < _FEWEST_SHARED:
        return "", 0
    # What a third of all captions share, a third of the captions of some block share
    frequent = {opening for block in captions.blocks() for opening in _shared_openings(block)}
    counts = {
        opening: sum(_n_opening(block, opening) for block in captions.blocks())
        for opening in frequent
    }
    shared = {opening: n for opening, n in counts.items() if n >= SHARED * len(captions)}
    longest = max(shared, key=lambda opening: (len(opening), shared[opening]), default=())
    return " ".join(longest), shared.get(longest, 0)


def _shared_openings(captions: Captions) -> list[tuple[str, ...]]:
    """The beginnings of three or more words that at least a third of captions share."""
    words = captions.rewrite(_letters)
    needed = SHARED * len(words)
    shared = []
    branches = [(tuple[str, ...](), np.arange(len(words)))]
    while branches:
        begun, rows = branches.pop()
        if len(begun) >= _LEAST_WORDS:
            shared.append(begun)
        if len(begun) < OPENING:
            branches += [
                ((*begun, words.types[t]), left)
                for t, left in _next_words(words, rows, len(begun), needed)
            ]
    return shared


def _n_opening(captions: Captions, opening: Sequence[str]) -> int:
    words = captions.rewrite(_letters)
    rows = np.arange(len(words))
    number = {word: place for place, word in enumerate(words.types)}
    for place, word in enumerate(opening):
        rows = rows[words.lengths[rows] > place]
        rows = rows[words.tokens[words.starts[rows] + place] == number.get(word, -1)]
    return len(rows)


def _next_words(
    words: Captions, rows: IntArray, place: int, needed: float
) -> list[tuple[int, IntArray]]:
    """The next words that enough captions have at a position, with the captions of each word."""
    rows = rows[words.lengths[rows] > place]
    tokens = words.tokens[words.starts[rows] + place]
    counts = np.bincount(tokens, minlength=1)
    return [(int(t), rows[tokens == t]) for t in np.flatnonzero(counts >= max(needed, 1))]


def most_common(preambles: Iterable[str]) -> str:
    return Counter(preambles).most_common(1)[0][0]


def _letters(word: str) -> list[str]:
    """A word in lower case, without punctuation at its ends; may be empty."""
    bare = word.lower().strip("\"'“”’.,:;!?()[]*_#-–—")
    return [bare] if bare else []


def _start(plain: str) -> tuple[str, int]:
    """A text and the position of its first letter or digit."""
    if plain[:1].isalnum():
        return plain, 0
    return plain, next((i for i, sign in enumerate(plain) if sign.isalnum()), len(plain))


Preambles = Literal["keep", "cut"]
Declined = Literal["absent", "keep"]
Stock = Literal["drop", "keep"]
Unit = Literal["caption", "sentence", "subject"]


@dataclass(frozen=True)
class ScoredText:
    """Rewrites the captions of a corpus so that they contain only the text to be scored."""

    # Whether phrases before the content ("The image depicts") stay; `cut` removes them from the
    # captioner's captions and from human captions alike
    preambles: Preambles = "keep"
    # Whether the captioner's captions that decline to describe are `absent`, as blank captions are.
    # Human captions that decline stay: there are ten in 40,000 of LIC's data.
    declined: Declined = "absent"
    # Whether human captions that describe nothing are left out, as blank captions are: a
    # sentence
    # that many images share, captions that their file marks, and copies of an image's captions
    stock: Stock = "drop"
    # What of each caption is scored, on both sides alike: all of it, its first `sentence`, or the
    # sentences with a word for a person (`subject`; a heuristic: the first sentence if none has
    # one)
    unit: Unit = "caption"
    subjects: Context | None = None  # the words for persons

    def __post_init__(self) -> None:
        if self.unit == "subject" and not (self.subjects and self.subjects.words):
            raise UsageError("text.unit=subject needs words for persons in text.subjects")

    def apply(self, corpus: Corpus, blank_limit: float = BLANK_LIMIT) -> Corpus:
        """The corpus, reduced to the text that is scored.

        Blank and declined captions are left out, and also human captions that describe nothing. If
        more than the share ``blank_limit`` of a side's captions, in [0, 1], is left out, an error
        is raised.
        """
        if self.stock == "drop":
            persons = words_of(self.subjects.words) if self.subjects else ()
            corpus = without_stock(corpus, persons, blank_limit)
        sides: dict[str, Captions] = {s: without_invisible(corpus.side(s)) for s in SIDES}
        if any(sides[side] is not corpus.side(side) for side in SIDES):
            corpus = corpus.rewrite(sides)
        corpus = _without_prompts(_without_thoughts(corpus))
        answered = self._without_declined(corpus, blank_limit)
        notes = _opening_notes(answered, self.preambles)
        rules: list[Callable[[str], str]] = [without_preamble] if self.preambles == "cut" else []
        if self.unit == "sentence":
            rules.append(first_sentence)
        if self.unit == "subject" and self.subjects:
            rules.append(partial(sentences_with, words=frozenset(words_of(self.subjects.words))))
        for rule in rules:
            rewritten = answered.rewrite(
                {side: _rewrite(answered.side(side), rule) for side in SIDES}
            )
            answered = self._without_declined(rewritten, blank_limit)
        if self.unit != "caption":
            notes.append(_length_note(corpus, answered, self.unit))
        return replace(answered, notes=(*answered.notes, *notes))

    def _without_declined(self, corpus: Corpus, limit: float) -> Corpus:
        flags = corpus.read(_declining)
        if self.declined == "keep" or not flags.any():
            return corpus
        declined = np.bincount(corpus.model.image_rows[flags], minlength=len(corpus))
        declined += corpus.declined if len(corpus.declined) else 0
        left = replace(corpus, model=corpus.model.take(~flags), declined=declined)
        share = left.absent_share("model")
        if share > limit:
            raise DataError(
                f"dataset {corpus.dataset!r}, captioner {corpus.captioner!r}: "
                f"{declined.sum()} captions decline to describe or are errors of a service; with "
                f"blank captions {share:.1%} are absent, above the limit of {limit:.0%}; caption "
                "these images again, score the refusals as captions with text.declined=keep, or "
                "raise dataset.blank_limit"
            )
        return left


def _without_thoughts(corpus: Corpus) -> Corpus:
    """The corpus without the reasoning that a model wrote before captions."""
    model, words = corpus.model, "\n".join(corpus.model.types)
    if not any(_signs_of(kind).search(words) for kind in ("thought", "answer", "sign")):
        return corpus
    thinking = sum(
        (text := block.text(row)) != _answer_of(text)
        for block in model.blocks()
        for row in range(len(block))
    )
    note = (
        f"{inflect(thinking, f'of {len(model)} captions hold')} a model's thoughts "
        f"(<think>...</think>), which "
        "are not scored"
    )
    rewritten = corpus.rewrite({"model": _rewrite(model, _answer_of)})
    return replace(rewritten, notes=(*corpus.notes, note))


def _answer_of(text: str) -> str:
    """The caption without reasoning.

    If no text remains, the result is ``<think>``, which counts as declined.
    """
    answer = after_thoughts(text)
    return "<think>" if text and is_blank(answer) else answer


def _without_prompts(corpus: Corpus) -> Corpus:
    """The corpus without prompts around captions, with notes on the prompts."""
    described, n_cut = captions_without_prompts(corpus)
    flags = described.read(echoes)
    notes = []
    if n_cut:
        notes.append(
            f"{inflect(n_cut, f'of {len(corpus.model)} captions hold')} a prompt beside the "
            f"description, which is not scored: {_quote(corpus.read(prompts_in))}"
        )
    if flags.any():
        texts = Counter(described.model.text(row) for row in np.flatnonzero(flags).tolist())
        shown = ", ".join(f"{text[:60]!r} {n} times" for text, n in texts.most_common(_EXAMPLES))
        notes.append(
            f"{inflect(int(flags.sum()), f'of {len(corpus.model)} captions hold')} only a prompt "
            f"or a request, which counts as declined: {shown}"
        )
    return replace(described, notes=(*described.notes, *notes))


def _quote(texts: Iterable[str]) -> str:
    return ", ".join(map(repr, sorted(texts)[:_EXAMPLES]))


def declined_images(corpus: Corpus) -> BoolArray:
    """(N,) flags: true for images that the captioner declines, even if refusals are scored."""
    flags = corpus.declined > 0 if len(corpus.declined) else np.zeros(len(corpus), bool)
    flags[corpus.model.image_rows[corpus.read(_declining)]] = True
    return flags


def _declining(corpus: Corpus) -> BoolArray:
    """(C,) flags: true for the captioner's captions that decline."""
    return corpus.model.read(_openings_read)[0] | corpus.read(echoes)


def _preambles(captions: Captions) -> Counter[str]:
    return captions.read(_openings_read)[1]


@each_caption
def _openings_read(captions: Captions) -> tuple[BoolArray, Counter[str]]:
    """Flags (C,) of captions that decline, and the number of captions with each preamble."""
    texts, places = distinct_openings(captions)
    plain = plain_texts(texts)
    flags = _find_declining(plain)
    preambles: Counter[str] = Counter()
    counts = np.bincount(places).tolist()
    for place in np.flatnonzero(_may_have_preamble(plain)).tolist():
        if preamble := preamble_of(texts[place]):
            preambles[preamble] += counts[place]
    return flags[places], preambles


def _rewrite(captions: Captions, rule: Callable[[str], str]) -> Captions:
    """Rewrite all texts of captions. Unchanged texts are not tokenised again."""

    def rewrite_block(block: Captions) -> Captions:
        texts = [rule(block.text(row)) for row in range(len(block))]
        return Captions.from_texts(texts, block.image_rows)

    return captions.by_block(rewrite_block)


def _opening_notes(corpus: Corpus, done_with: Preambles) -> list[str]:
    preambles = _preambles(corpus.model)
    begun, n_captions = preambles.total(), len(corpus.model)
    notes = []
    if begun and begun > BLANK_WARNING * n_captions:
        human = _preambles(corpus.human).total()
        people = f" and {human} of {len(corpus.human)} human captions" if len(corpus.human) else ""
        done = (
            "they are scored with the captions; text.preambles=cut removes them on both sides"
            if done_with == "keep"
            else "they were cut"
        )
        notes.append(
            f"{inflect(begun, f'of {n_captions} captions{people} open')} with a preamble, "
            f"most often {most_common(preambles)!r}: {done}"
        )
    phrase, shared = shared_opening(corpus.model)
    if phrase and not preamble_of(f"{phrase} x"):
        notes.append(
            f"{inflect(shared, f'of {n_captions} captions open')} with {phrase!r}, which is in no "
            "list of preambles: it is not cut, and may affect attackers and caption lengths"
        )
    return notes


def _length_note(raw: Corpus, scored: Corpus, unit: Unit) -> str:
    """A note on the number of words that remain in captions."""
    lengths = [
        f"{_mean_length(scored.side(side)):.1f} of {_mean_length(raw.side(side)):.1f} ({whose})"
        for side, whose in (("model", "model"), ("human", "annotators"))
        if len(raw.side(side))
    ]
    return f"text.unit={unit}: words a caption that are scored: {', '.join(lengths)}"


def _mean_length(captions: Captions) -> float:
    return float(captions.lengths.mean()) if len(captions) else float("nan")


def visible(word: str) -> str:
    """A word without format characters (Unicode Cf) such as zero-width characters and soft hyphens.

    A zero-width joiner between two non-ASCII characters is kept, since it is part of the spelling.

    Example:
        >>> visible("wo" + chr(0x200B) + "man" + chr(0x200D))
        'woman'
        >>> chef = chr(0x1F469) + chr(0x200D) + chr(0x1F373)
        >>> visible(chef) == chef
        True
    """
    if word.isascii():
        return word
    signs = (s for s in word if s in JOINERS or unicodedata.category(s) != "Cf")
    return _LOOSE.sub("", "".join(signs))


def without_invisible(captions: Captions) -> Captions:
    """Apply :func:`visible` to all words. If no word changes, the same object is returned."""
    shown = {word: visible(word) for word in captions.types}
    if all(word == new for word, new in shown.items()):
        return captions
    return captions.rewrite(lambda word: [shown[word]] if shown[word] else [])
