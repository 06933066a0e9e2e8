"""Finds the columns of a file by the format's name, by a usual name, or by the user's choice.

A usual name counts only if it fits exactly one column. Otherwise nothing is guessed: the error
lists the columns and the option that names the right column.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from bias_pipeline.corpus.attribute import words_of
from bias_pipeline.corpus.encoding import plain_name_of
from bias_pipeline.declared import ConfiguredAs
from bias_pipeline.errors import DataError, UsageError, did_you_mean

# What labels mean: a mapping, or texts such as "M=male".
LabelWords = Annotated[
    Mapping[str, str], ConfiguredAs(Mapping[str | int | float | bool, str] | list[str])
]

_SHOWN = 30  # characters of a value in a message
_COLUMNS = 12  # columns in a message
_MOST_NUMBERED = 100  # columns of one name
_PUNCTUATION = str.maketrans("", "", " _-.")


def plain_name(name: str) -> str:
    """A column's name in lower case, with punctuation between words removed.

    Example:
        >>> plain_name("Image ID"), plain_name("img_id")
        ('imageid', 'imgid')
    """
    return name.casefold().translate(_PUNCTUATION)


# In files of ``caption --gather``: a caption's number within its image, from 0, how it was
# decoded, and what was hidden in the photo.
SAMPLE, DECODING, MASKED = "sample", "decoding", "image_masking"
# Keys for the question that a model was asked
PROMPTS = ("prompt", "question", "instruction", "query")
_NUMBERED = re.compile(r"(\D+?)(\d{1,2})")


@dataclass(frozen=True)
class Kind:
    name: str  # the column of the format itself
    what: str  # a description for messages
    key: str  # configuration key by which a user names the column; the option has the same name
    # Plain names that are recognised, in tiers; the first tier in the file wins
    usual: tuple[frozenset[str], ...]
    # Plain names that may be numbered, such as `cap1` to `cap5`, one text each
    several: frozenset[str] = frozenset()

    @property
    def option(self) -> str:
        """How a user names the column on the command line and in a configuration."""
        return f"--{self.key.replace('_', '-')} COLUMN (dataset.{self.key}=COLUMN)"

    @cached_property
    def names(self) -> frozenset[str]:
        """Every plain name that is recognised."""
        numbers = {form for k in range(_MOST_NUMBERED) for form in (str(k), f"{k:02}")}
        numbered = {f"{stem}{number}" for stem in self.several for number in numbers}
        return frozenset({plain_name(self.name)}).union(numbered, *self.usual)

    def numbered_columns(self, columns: Collection[str]) -> list[str]:
        """Columns with one name and different numbers, sorted; empty unless there are several.

        Example:
            >>> HUMAN.numbered_columns(["image_id", "Cap 2", "cap1"])
            ['cap1', 'Cap 2']
            >>> HUMAN.numbered_columns(["caption1"])
            []
        """
        by_prefix: dict[str, dict[int, str]] = {}
        for column in columns:
            match = _NUMBERED.fullmatch(plain_name(str(column)))
            if match and match[1] in self.several:
                by_prefix.setdefault(match[1], {})[int(match[2])] = column
        longest = max(by_prefix.values(), key=len, default={})
        return [longest[number] for number in sorted(longest)] if len(longest) > 1 else []


_ID_NAMES = frozenset({"imageid", "imgid", "cocoid", "cocoimageid", "photoid"})
_FILE_NAMES = frozenset(
    words_of(
        "id, image, img, photo, picture, filename, file, imagename, imgname, imagefile, "
        "imgfile, imagepath, imgpath, filepath, path, uid"
    )
)
_LOOSE = frozenset(
    words_of("text, sentence, sentences, sent, captions, description, descriptions, raw")
)
_WRITTEN = frozenset(
    words_of(
        "pred, preds, predcaption, prediction, predictions, predicted, predictedcaption, "
        "generated, generatedcaption, generatedtext, modelcaption, modeloutput, output, "
        "hypothesis, hyp"
    )
)
_PEOPLES = frozenset(
    words_of(
        "humancaption, humancaptions, reference, references, ref, refs, groundtruth, gt, "
        "gtcaption, captionlist"
    )
)

IMAGE = Kind("image_id", "image ids", "id_column", (_ID_NAMES, _FILE_NAMES))
MODEL = Kind(
    "caption", "the captioner's captions", "caption_column", (_WRITTEN | {"caption"}, _LOOSE)
)
HUMAN = Kind(
    "caption",
    "human captions",
    "human_caption_column",
    (_PEOPLES | {"caption"}, _LOOSE | {"comment"}),
    _PEOPLES | {"caption", "cap", "human", "text", "sentence", "sent", "comment", "description"},
)


@dataclass(frozen=True)
class Layout:
    """The user's column names, and notes on how files were read."""

    id_column: str | None = None  # the column of image ids, in every file that has it
    caption_column: str | None = None  # the column of captions in the captioner's file
    human_caption_column: str | None = None  # the column of captions in the file of human captions
    label_column: str | None = None  # the column of the attribute's labels
    # By label, its group or a known label of no group
    label_map: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None  # between the captions of a cell; `none`: each cell is one caption
    # By file name, what was recognised in the file; filled while reading
    facts: dict[str, list[str]] = field(default_factory=dict)
    # The named columns that a file had; filled while reading
    used: set[str] = field(default_factory=set)
    # By file, its own numbers of images with the names of their files; filled while reading
    names: dict[Path, dict[str, str]] = field(default_factory=dict)

    def blank_copy(self) -> Layout:
        return replace(self, facts={}, used=set(), names={})

    def check_used(self) -> None:
        """Refuse a column of ids that no file has."""
        if self.id_column and self.id_column not in self.used:
            raise UsageError(f"dataset.id_column={self.id_column}: no file has such a column")

    def add_note(self, path: Path, fact: str) -> None:
        """Note once how a file was read."""
        facts = self.facts.setdefault(path.name, [])
        if fact not in facts:
            facts.append(fact)

    def take_notes(self, other: Layout) -> None:
        for name, facts in other.facts.items():
            noted = self.facts.setdefault(name, [])
            noted += [fact for fact in facts if fact not in noted]
        self.used.update(other.used)
        self.names.update(other.names)

    def notes(self) -> list[str]:
        """One line for each file that deviates from its format."""
        return [f"{name}: {', '.join(facts)}" for name, facts in self.facts.items()]

    def column_named(self, kind: Kind) -> str | None:
        """The column that the user has named for this kind of content."""
        column: str | None = getattr(self, kind.key)
        return column

    def columns_wanted(self, *kinds: Kind) -> list[str]:
        """Every column that may be read."""
        names = [name for kind in kinds if (name := self.column_named(kind))]
        return [*names, *(name for kind in kinds for name in kind.names)]

    def columns(self, path: Path, row: Mapping[str, Any], kind: Kind) -> list[str]:
        """A file's columns of one kind: one column, or several numbered columns."""
        numbered = kind.numbered_columns(row)
        plain = {plain_name(str(name)) for name in row}
        if self.column_named(kind) or not numbered or plain & frozenset().union(*kind.usual):
            return [self.column(path, row, kind)]
        self.add_note(path, f"{kind.what} from {len(numbered)} columns, {numbered[0]!r} and so on")
        return numbered

    def column(self, path: Path, row: Mapping[str, Any], kind: Kind) -> str:
        chosen = self.column_named(kind)
        if chosen is not None and chosen in row:
            self.used.add(chosen)
            return chosen
        if chosen is not None and kind is not IMAGE:  # ids may be in any file that has the column
            raise UsageError(
                f"{path}: dataset.{kind.key}={chosen} is absent; {did_you_mean(chosen, row)}"
            )
        column = _usual_column(path, row, kind)
        if column is None:
            raise DataError(
                f"{path}: {kind.name!r} is absent, and no other column is known for {kind.what}; "
                f"found {quoted_columns(row)}. Name yours with {kind.option}"
            )
        if column != kind.name:
            self.add_note(path, f"{kind.what} from {column!r}")
        return column


def _usual_column(path: Path, row: Mapping[str, Any], kind: Kind) -> str | None:
    if "sentids" in row:  # Karpathy's file, or a table of it, whose imgid is a line's number
        row = {name: value for name, value in row.items() if plain_name(str(name)) != "imgid"}
    for tier in kind.usual:
        matches = [name for name in row if plain_name(str(name)) in tier]
        if kind is IMAGE and kind.name in matches:
            return kind.name
        if len(matches) > 1:
            listed = " and ".join(quoted_columns({name: row[name]}) for name in matches)
            raise DataError(
                f"{path}: {listed} may both be {kind.what}; choose one with {kind.option}"
            )
        if matches:
            return matches[0]
    return None


def quoted_columns(row: Mapping[str, Any] | Collection[str]) -> str:
    """Names of columns for a message, each with its first value if known.

    Example:
        >>> quoted_columns({"photo": "7.jpg", "sex": "M"})
        "photo ('7.jpg'), sex ('M')"
    """
    values = row if isinstance(row, Mapping) else dict.fromkeys(row)
    listed = [
        str(name) if value is None else f"{name} ({str(value)[:_SHOWN]!r})"
        for name, value in list(values.items())[:_COLUMNS]
    ]
    return ", ".join([*listed, *(["..."] if len(values) > _COLUMNS else [])]) or "none"


def same_name(name: str, columns: Sequence[str]) -> str | None:
    """The only column with this name; case is ignored if no column has the exact name."""
    if name in columns:
        return name
    near = [column for column in columns if str(column).casefold() == name.casefold()]
    return near[0] if len(near) == 1 else None


def label_words(given: Mapping[Any, Any] | Sequence[str]) -> dict[str, str]:
    """The meaning of each label, given as a mapping or as texts; spellings are repaired.

    Example:
        >>> label_words({0: "male"}), label_words(["F=female", "no idea=Unsure"])
        ({'0': 'male'}, {'F': 'female', 'no idea': 'Unsure'})
    """
    if isinstance(given, Mapping):
        return {plain_name_of(str(label)): str(meaning) for label, meaning in given.items()}
    words: dict[str, str] = {}
    for text in given:
        label, equals, meaning = (part.strip() for part in text.rpartition("="))
        if not equals:
            raise UsageError(f"dataset.label_map: {text!r} must be LABEL=GROUP, such as M=male")
        if words.setdefault(plain_name_of(label), meaning) != meaning:
            raise UsageError(
                f"dataset.label_map: {label!r} cannot be both {words[label]} and {meaning}; "
                "keep one"
            )
    return words
