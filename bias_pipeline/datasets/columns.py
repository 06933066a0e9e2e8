"""Which column holds what: the format's own name, a usual one if there is just one, or yours.

Where two columns could be meant, or none, nothing is guessed: the file is refused with its columns
and the option that names the right one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from bias_pipeline.corpus.attribute import words_of
from bias_pipeline.declared import Given
from bias_pipeline.errors import DataError, UsageError, did_you_mean

# What labels mean: a mapping, or texts such as "M=male".
LabelWords = Annotated[Mapping[str, str], Given(Mapping[str | int | float | bool, str] | list[str])]

_SHOWN = 30  # characters of a value in a message
_COLUMNS = 12  # columns in a message


def plain_name(name: str) -> str:
    """A column's name without case and signs between words.

    Example:
        >>> plain_name("Image ID"), plain_name("img_id")
        ('imageid', 'imgid')
    """
    return name.casefold().translate({ord(sign): None for sign in " _-."})


@dataclass(frozen=True)
class Kind:
    """What a column may hold.

    Attributes:
        name: the column of the format itself.
        what: in words.
        key: of the data set, by which a user names the column; its option is alike.
        usual: plain names that are understood, in tiers; the first that a file has counts.
    """

    name: str
    what: str
    key: str
    usual: tuple[frozenset[str], ...]

    @property
    def option(self) -> str:
        """How a user names the column, on the command line and in a configuration."""
        return f"--{self.key.replace('_', '-')} COLUMN (dataset.{self.key}=COLUMN)"

    @property
    def names(self) -> frozenset[str]:
        """Every plain name that may be meant."""
        return frozenset({plain_name(self.name)}).union(*self.usual)


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
    "caption", "people's captions", "human_caption_column", (_PEOPLES | {"caption"}, _LOOSE)
)


@dataclass(frozen=True)
class Layout:
    """What a user says of their files, and what is told of how they were read.

    Attributes:
        id_column: of image ids, wherever a file has it.
        caption_column: of captions in the captioner's file.
        human_caption_column: of captions in people's file.
        label_column: of the attribute's labels.
        label_map: label to group, or to a known label of no group.
        told: file name to what was recognised in it; filled while reading.
        used: the named columns that a file had; filled while reading.
    """

    id_column: str | None = None
    caption_column: str | None = None
    human_caption_column: str | None = None
    label_column: str | None = None
    label_map: Mapping[str, str] = field(default_factory=dict)
    told: dict[str, list[str]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def anew(self) -> Layout:
        """The same, of which nothing has been told yet."""
        return replace(self, told={}, used=set())

    def check_used(self) -> None:
        """Refuse a column of ids that no file has.

        Raises:
            UsageError: naming it.
        """
        if self.id_column and self.id_column not in self.used:
            raise UsageError(f"dataset.id_column={self.id_column}: no file has such a column")

    def tell(self, path: Path, fact: str) -> None:
        """Note, once, how a file was read."""
        own = self.told.setdefault(path.name, [])
        if fact not in own:
            own.append(fact)

    def notes(self) -> list[str]:
        """One line for each file that was not read by the letter of its format."""
        return [f"{name}: {', '.join(facts)}" for name, facts in self.told.items()]

    def named(self, kind: Kind) -> str | None:
        """The column that the user names for this kind."""
        found: str | None = getattr(self, kind.key)
        return found

    def wanted(self, *kinds: Kind) -> list[str]:
        """Every column that may be asked for."""
        own = [name for kind in kinds if (name := self.named(kind))]
        return [*own, *(name for kind in kinds for name in kind.names)]

    def column(self, path: Path, row: Mapping[str, Any], kind: Kind) -> str:
        """The column of a kind in a file.

        Args:
            path: the file.
            row: its columns, with the values of its first row where they are known.
            kind: what is looked for.

        Raises:
            DataError: if there is no such column, or two that may be meant.
            UsageError: if the user names one that is not there.
        """
        own = self.named(kind)
        if own is not None and own in row:
            self.used.add(own)
            return own
        if own is not None and kind is not IMAGE:  # ids: in whichever file has that column
            raise UsageError(
                f"{path}: dataset.{kind.key}={own} is absent; {did_you_mean(own, row)}"
            )
        found = _usual(path, row, kind)
        if found is None:
            raise DataError(
                f"{path}: {kind.name!r} is absent, and no other column is known to hold "
                f"{kind.what}; found {shown(row)}. Name yours with {kind.option}"
            )
        if found != kind.name:
            self.tell(path, f"{kind.what} from {found!r}")
        return found


def _usual(path: Path, row: Mapping[str, Any], kind: Kind) -> str | None:
    """The one column of a usual name."""
    for tier in kind.usual:
        found = [name for name in row if plain_name(str(name)) in tier]
        if kind is IMAGE and kind.name in found:
            return kind.name
        if len(found) > 1:
            told = " and ".join(shown({name: row[name]}) for name in found)
            raise DataError(
                f"{path}: {told} may both hold {kind.what}; choose one with {kind.option}"
            )
        if found:
            return found[0]
    return None


def shown(row: Mapping[str, Any] | Collection[str]) -> str:
    """Columns for a message, with the first value where it is known.

    Example:
        >>> shown({"photo": "7.jpg", "sex": "M"})
        "photo ('7.jpg'), sex ('M')"
    """
    values = row if isinstance(row, Mapping) else dict.fromkeys(row)
    listed = [
        str(name) if value is None else f"{name} ({str(value)[:_SHOWN]!r})"
        for name, value in list(values.items())[:_COLUMNS]
    ]
    return ", ".join([*listed, *(["..."] if len(values) > _COLUMNS else [])]) or "none"


def same_name(name: str, columns: Sequence[str]) -> str | None:
    """The one column of that name, or of that name but for case."""
    if name in columns:
        return name
    near = [column for column in columns if str(column).casefold() == name.casefold()]
    return near[0] if len(near) == 1 else None


def label_words(given: Mapping[Any, Any] | Sequence[str]) -> dict[str, str]:
    """What labels mean, given as a mapping or as texts.

    Raises:
        UsageError: if a text has no ``=``.

    Example:
        >>> label_words({0: "male"}), label_words(["F=female", "no idea=Unsure"])
        ({'0': 'male'}, {'F': 'female', 'no idea': 'Unsure'})
    """
    if isinstance(given, Mapping):
        return {str(label): str(meant) for label, meant in given.items()}
    for text in given:
        if "=" not in text:
            raise UsageError(f"dataset.label_map: {text!r} must be LABEL=GROUP, such as M=male")
    return {label.strip(): meant.strip() for label, _, meant in (t.rpartition("=") for t in given)}
