"""Repairs captions whose text was damaged by programs before it was written to a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product, starmap
from pathlib import Path

from bias_pipeline.corpus.corpus import Record, Side
from bias_pipeline.corpus.records import RecordColumns
from bias_pipeline.errors import DataError
from bias_pipeline.text.decoder_marks import (
    UncertainTextError,
    joined_subwords,
    without_marks,
    written_on,
)
from bias_pipeline.text.encoding import (
    Texts,
    changes,
    holding,
    may_hide_blanks,
    mend_mojibake,
    unescape_signs,
    whole_or_parts,
    with_blanks,
    words_known,
)

_CUT = re.compile(r"([^\W\d_]+)[-\u00ad][ \t]*\r?\n\s*([^\W\d_]+)")


def with_whole_words(texts: Sequence[str]) -> dict[str, str]:
    r"""Map each text in which line ends cut words to the text with whole words.

    A compound ("well-known") keeps its hyphen if the parts, but not the whole, are words in the
    texts.

    Example:
        >>> list(with_whole_words(["a wo-\nman sits", "a police-\nman", "a police man"]).values())
        ['a woman sits', 'a police-man']
    """
    cut = [text for text in holding(texts, "-\n", "-\r", "- \n", "\u00ad") if _CUT.search(text)]
    if not cut:
        return {}
    known = words_known(texts)

    def join_parts(match: re.Match[str]) -> str:
        return whole_or_parts(match.groups(), "-", known)

    return changes(cut, lambda text: _CUT.sub(join_parts, text))


_EITHER = re.compile(
    r"(?<![\w-])\(?(?:(wo)-?[()/|*]+-?(m[ae]n)|(fe)-?[()/|*]+-?(males?)|(s)[()/|*]+(he))\)?(?!\w)",
    re.IGNORECASE,
)
_APART = re.compile(
    r"(?<![\w-])(?:(wo)(?:-? |-)(m[ae]n)|(fe)(?:-? |-)(males?))(?!\w)", re.IGNORECASE
)
# A word of every text in which one of these patterns matches
_HINT = re.compile(rf"{_EITHER.pattern}|(?<![\w-])(?:wo|fe)-?(?:$|m)", re.IGNORECASE | re.MULTILINE)
# Every text that writes two words of gender as one contains one of these signs.
_SIGNS = (*"()/|*", *map("".join, product(("wo", "Wo", "fe", "Fe"), (" m", " M", "-"))))


def with_both_words(texts: Sequence[str]) -> dict[str, str]:
    """Map each text with two gender words in one word ("(wo)man") to the text with both words.

    Example:
        >>> list(with_both_words(["a (wo)man", "S/he sits", "the wo/men", "a wo man"]).values())
        ['a man/woman', 'he/she sits', 'the men/women', 'a woman']
    """
    if not _HINT.search(Texts.from_texts(texts).lines_of_words):
        return {}
    return changes(
        holding(texts, *_SIGNS), lambda text: _APART.sub(_write_one, _EITHER.sub(_write_both, text))
    )


def _write_both(match: re.Match[str]) -> str:
    begun, word = (part.lower() for part in match.groups() if part)
    return f"{word}/{begun}{word}"


def _write_one(match: re.Match[str]) -> str:
    return "".join(part for part in match.groups() if part)


_EXAMPLES = 3
_SHOWN = 40  # characters of each text in an example

# Each kind of mend to its rule, in the order of their use. A rule takes all texts of a file and
# returns those that it changes.
_MENDS: Mapping[str, Callable[[Sequence[str]], Mapping[str, str]]] = {
    "signs written out for HTML, JSON or bytes were decoded": unescape_signs,
    "mojibake (text read in another encoding) was mended": mend_mojibake,
    "marks of a decoder or a chat were taken out": without_marks,
    "sub-words were joined": joined_subwords,
    "words cut at a line's end were joined": with_whole_words,
    "blanks of no width between words were made ordinary": with_blanks,
    "words such as (wo)man were written out": with_both_words,
}


def mended_records(
    records: Iterable[Record], files: Mapping[Side, Path | None]
) -> tuple[list[Record], list[str]]:
    """The records with repaired captions, and a note on each kind of repair."""
    rows = list(records)
    columns, notes = mended_columns(RecordColumns.from_records(rows), files)
    pairs = zip(rows, columns.model, columns.human, strict=True)
    return [replace(row, model=model, human=tuple(human)) for row, model, human in pairs], notes


# Rules that decide by all texts of a file
_BY_ALL_TEXTS = (joined_subwords, with_whole_words, with_blanks)


@dataclass
class Mends:
    """Counts what was repaired in the captions of a file, which may be read in parts."""

    whose: str = "captions"
    n_texts: int = 0
    # Each kind of mend to how many texts have it, and to a few examples of old and new text
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, dict[tuple[str, ...], None]] = field(default_factory=dict)
    n_behind: int = 0  # texts with words behind a mark that ends a caption
    by_all_texts: bool = False  # whether a rule that decides by all texts may change one

    def mend(self, texts: Sequence[str]) -> dict[str, str]:
        """Map each text that changes to its repaired form."""
        read = now = Texts.from_texts(texts)
        for what, rule in _MENDS.items():
            changed = rule(now)
            if changed:
                self.counts[what] += sum(text in changed for text in now)
                words = [*now.words, *Texts(changed.values()).words]
                now = Texts(changed.get(text, text) for text in now)
                now.words = words
                shown = self.examples.setdefault(what, {})
                shown |= dict.fromkeys(starmap(_around_change, changed.items()))
                self.examples[what] = dict.fromkeys(islice(shown, _EXAMPLES))
                self.by_all_texts |= rule in _BY_ALL_TEXTS
        self.by_all_texts |= may_hide_blanks(now)
        self.n_behind += len(written_on(read))
        self.n_texts += len(texts)
        return {} if now is read else {a: b for a, b in zip(texts, now, strict=True) if a != b}

    def notes(self) -> list[str]:
        """A note on each kind of repair."""
        notes = [
            f"{what} in {self.counts[what]} of {self.n_texts} {self.whose}: "
            + ", ".join(f"{old!r} is {new!r}" for old, new in self.examples[what])
            for what in _MENDS
            if what in self.counts
        ]
        if self.n_behind:
            notes.append(
                f"words follow a mark that ends a caption in {self.n_behind} of {self.n_texts} "
                f"{self.whose}, and are scored; if the model wrote on, cut the captions at the mark"
            )
        return notes


def mends_of_sides() -> dict[Side, Mends]:
    return {"model": Mends(), "human": Mends("human captions")}


def mended_columns(
    columns: RecordColumns, files: Mapping[Side, Path | None]
) -> tuple[RecordColumns, list[str]]:
    """The columns with repaired captions, and a note on each kind of repair."""
    mends = mends_of_sides()
    columns = mend_columns(columns, files, mends)
    return columns, [note for of_side in mends.values() for note in of_side.notes()]


def mend_columns(
    columns: RecordColumns, files: Mapping[Side, Path | None], mends: Mapping[Side, Mends]
) -> RecordColumns:
    """The columns with repaired captions. ``mends`` counts the repairs."""
    corrected: dict[Side, Mapping[str, str]] = {}
    for side, of_side in mends.items():
        texts = Texts(columns.texts(side))
        texts.words = columns.read(RecordColumns.captions, side).types
        try:
            corrected[side] = of_side.mend(texts)
        except UncertainTextError as error:
            image = columns.ids[columns.rows(side)[texts.index(error.text)]]
            place = f"{files.get(side) or side}, image {image}"
            raise DataError(f"{place}: {error}") from error
    model, human = corrected["model"], corrected["human"]
    if model:
        spoken = [text if text is None else model.get(text, text) for text in columns.model]
        columns = replace(columns, model=spoken)
    if human:
        written = [tuple(human.get(text, text) for text in texts) for texts in columns.human]
        columns = replace(columns, human=written)
    return columns


def _around_change(old: str, new: str) -> tuple[str, ...]:
    """The parts in which two texts differ, with the neighbouring words."""
    start = _n_alike(old, new)
    same = _n_alike(old[start:][::-1], new[start:][::-1])
    first = old.rfind(" ", 0, max(0, start - 1)) + 1
    word, *others = old[len(old) - same :].split(" ")
    dropped = same - len(word) if others else 0
    return tuple(_shorten(text[first : len(text) - dropped].strip()) for text in (old, new))


def _shorten(text: str) -> str:
    half = _SHOWN // 2
    return text if len(text) <= _SHOWN else f"{text[:half]}...{text[-half:]}"


def _n_alike(old: str, new: str) -> int:
    """The number of characters that two texts have in common at their beginning."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(old), len(new)))
