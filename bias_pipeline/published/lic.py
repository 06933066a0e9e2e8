"""``dataset=lic`` reads the pickles of LIC and RELIC in their published form.

``dataset=relic`` is the table of captions and ages that RELIC published.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import BLANK_LIMIT, Corpus, Record
from bias_pipeline.data.base import Dataset, check_folder
from bias_pipeline.data.picture_files import PictureFiles, readable_pictures
from bias_pipeline.data.tables import Rows, check_file, open_rows
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.published.pickles import load_pickle
from bias_pipeline.text.mending import mended_records


def load_vocabulary(path: Path) -> list[str] | None:
    """The words of a vocabulary list, or None if there is no such file."""
    if not path.is_file():
        return None
    words = load_pickle(path)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise DataError(f"{path}: a vocabulary must be a list of words")
    return words


_OBJECTS = "rmdup_object_list"


class LicDataset(Dataset):
    """The folder ``bias_data``, with one pickle for each captioner and attribute.

    If human captions cover only a part of the images, only this part is scored, with a note.
    """

    name = "lic"

    def __init__(
        self,
        root: str,
        human: Mapping[str, str],
        captioners: Mapping[str, Mapping[str, str]],
        vocabularies: str,
        all: Sequence[str],
        trained_on_reference: bool | None = None,
        blank_limit: float = BLANK_LIMIT,
        images: str | None = None,
        regions: str | None = None,
        strict: bool = True,
    ) -> None:
        inside = Path(root) / "bias_data"
        self.root = inside if inside.is_dir() else Path(root)
        self.human = human
        self.files = captioners
        self.vocabularies = vocabularies
        self.listed = tuple(all)
        self.trained_on_reference = trained_on_reference
        self.blank_limit = blank_limit
        self.images = Path(images) if images else None
        self.regions = Path(regions) if regions else None
        self.strict = strict

    def captioners(self) -> Sequence[str]:
        return tuple(self.files)

    def all_captioners(self, attribute: Attribute) -> Sequence[str]:
        check_folder(self.root, self.name)
        return [
            name for name in self.listed if (self.root / self._file(name, attribute.name)).is_file()
        ]

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        self.check_captioner(captioner)
        check_folder(self.root, self.name)
        names, labels = attribute.groups_of(self.name)
        path = self.root / self._file(captioner, attribute.name)
        if not path.is_file():
            raise ResourceError(
                f"captioner {captioner!r} of dataset 'lic': {path} is absent; copy it from the "
                "bias_data folder that LIC published"
            )
        model = _by_id(path, "pred", labels)
        name = self.human.get(attribute.name.partition("_")[0])
        human_path = self.root / name if name and (self.root / name).is_file() else None
        human = _by_id(human_path, "caption_list", labels) if human_path else {}
        files = PictureFiles.read(self.images, self.regions, None)
        pictures, notes = readable_pictures(
            files, [*{**model, **human}], self.images, strict=self.strict
        )
        records, mends = mended_records(
            _records(model, human, attribute.name, labels.field, pictures),
            {"model": path, "human": human_path},
        )
        return Corpus.build(
            records,
            dataset=self.name,
            captioner=captioner,
            groups={attribute.name: (names, labels)},
            vocabulary=self._vocabulary(captioner),
            trained_on_reference=self.trained_on_reference,
            blank_limit=self.blank_limit,
            notes=[*notes, *mends],
        )

    def _file(self, captioner: str, attribute: str) -> str:
        files = {k: v for k, v in self.files[captioner].items() if k != "vocabulary"}
        key = attribute.partition("_")[0]  # race_unsure reads the race file
        if key not in files:
            raise UsageError(
                f"captioner {captioner!r} of dataset 'lic' has no file for attribute "
                f"{attribute!r}; it has: {', '.join(files)}"
            )
        return files[key]

    def _vocabulary(self, captioner: str) -> list[str] | None:
        name = self.files[captioner].get("vocabulary", captioner)
        return load_vocabulary(self.root / self.vocabularies.format(vocabulary=name))


def _by_id(path: Path, captions: str, labels: LabelMap) -> dict[str, dict[str, Any]]:
    """The entries of a pickle by canonical id, in the order of the file."""
    entries = load_pickle(path)
    if not isinstance(entries, list) or not entries:
        raise DataError(f"{path}: expected a non-empty list of entries")
    by_id: dict[str, dict[str, Any]] = {}
    rows = Rows(path, "entry", None, iter(()))
    for number, entry in enumerate(entries):
        _check_entry(entry, captions, labels, f"{path}, entry {number}")
        identifier = rows.id(number, entry, "img_id")
        if by_id.setdefault(identifier, entry) != entry:
            raise DataError(
                f"{path}, entry {number}: image id {identifier} occurs twice with different "
                "contents; keep one of the two"
            )
    return by_id


def _check_entry(entry: object, captions: str, labels: LabelMap, where: str) -> None:
    if not isinstance(entry, dict):
        raise DataError(f"{where}: expected a mapping, found {type(entry).__name__}")
    absent = [key for key in ("img_id", captions, labels.field) if key not in entry]
    if absent:
        raise DataError(f"{where}: key {absent[0]!r} is absent; found {', '.join(map(str, entry))}")
    texts = entry[captions] if captions == "caption_list" else [entry[captions]]
    if not _all_text(texts):
        raise DataError(f"{where}: {captions!r} contains something that is not a caption")
    if entry.get(_OBJECTS) is not None and not _all_text(entry[_OBJECTS]):
        raise DataError(f"{where}: {_OBJECTS!r} is not a list of names")
    if not isinstance(entry[labels.field], str):
        raise DataError(f"{where}: label {entry[labels.field]!r} is not text")
    try:
        labels.group_of(entry[labels.field])
    except DataError as error:
        raise DataError(f"{where}, image {entry['img_id']}: {error}") from error


def _all_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _records(
    model: Mapping[str, dict[str, Any]],
    human: Mapping[str, dict[str, Any]],
    attribute: str,
    field: str,
    pictures: PictureFiles,
) -> Iterator[Record]:
    for identifier in {**model, **human}:
        generated, people = model.get(identifier, {}), human.get(identifier, {})
        if generated and people and generated[field] != people[field]:
            raise DataError(
                f"image {identifier}: {field} is {generated[field]!r} in the captioner's file and "
                f"{people[field]!r} in the file of human captions; correct one of the two"
            )
        yield Record(
            id=identifier,
            model=generated.get("pred"),
            human=tuple(people.get("caption_list", ())),
            labels={attribute: (generated or people)[field]},
            objects=None if people.get(_OBJECTS) is None else frozenset(people[_OBJECTS]),
            image=pictures.photo(identifier),
            regions=pictures.regions_of(identifier),
        )


_WHAT = "RELIC's table: img_id, caption_list, pred_<captioner>, bb_age"
# Characters of a list of captions: to parse Python costs far more than to read
_LONGEST = 1 << 16


class RelicDataset(Dataset):
    """One CSV file: five human captions, every captioner's caption and the label of each image."""

    name = "relic"

    def __init__(
        self,
        root: str,
        file: str,
        captioners: Mapping[str, str],
        vocabularies: Sequence[str] = (),
        trained_on_reference: bool | None = None,
        blank_limit: float = BLANK_LIMIT,
    ) -> None:
        self.root = Path(root)
        self.path = self.root / file
        self.columns = captioners
        # Paths of a captioner's published vocabulary; the first path that exists is read
        self.vocabularies = tuple(vocabularies)
        self.trained_on_reference = trained_on_reference
        self.blank_limit = blank_limit

    def captioners(self) -> Sequence[str]:
        return tuple(self.columns)

    def all_captioners(self, attribute: Attribute) -> Sequence[str]:
        del attribute
        rows = self._rows()
        return [name for name, column in self.columns.items() if rows.has(column)]

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        self.check_captioner(captioner)
        names, labels = attribute.groups_of(self.name)
        rows = self._rows()
        column = self.columns[captioner]
        if not rows.has(column):
            raise ResourceError(
                f"captioner {captioner!r} of dataset 'relic': {self.path} has no column "
                f"{column!r}; use RELIC's own file, or one of the captioners "
                f"{', '.join(self.all_captioners(attribute))}"
            )
        rows.require("img_id", "caption_list", labels.field)
        records, mends = mended_records(
            _relic_records(rows, column, attribute.name, labels),
            {"model": self.path, "human": self.path},
        )
        vocabularies = (
            load_vocabulary(self.root / place.format(vocabulary=captioner))
            for place in self.vocabularies
        )
        return Corpus.build(
            records,
            dataset=self.name,
            captioner=captioner,
            groups={attribute.name: (names, labels)},
            vocabulary=next((words for words in vocabularies if words is not None), None),
            trained_on_reference=self.trained_on_reference,
            blank_limit=self.blank_limit,
            notes=mends,
        )

    def _rows(self) -> Rows:
        check_folder(self.root, self.name)
        return open_rows(check_file(self.path, "dataset.root"), what=_WHAT)


def _relic_records(rows: Rows, column: str, attribute: str, labels: LabelMap) -> Iterator[Record]:
    for number, row in rows.items:
        label = rows.text(number, row, labels.field)
        try:
            labels.group_of(label)
        except DataError as error:
            rows.refuse(number, str(error))
        yield Record(
            id=rows.id(number, row, "img_id"),
            model=rows.text(number, row, column),
            human=_captions(rows, number, row),
            labels={attribute: label},
        )


def _captions(rows: Rows, number: int, row: Mapping[str, Any]) -> tuple[str, ...]:
    """The list in a cell, which is a Python literal; nothing is executed."""
    text = rows.text(number, row, "caption_list")
    if len(text) > _LONGEST:
        rows.refuse(number, f"'caption_list' has {len(text):,} characters, over {_LONGEST:,}")
    try:
        captions = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        captions = None
    if not isinstance(captions, list) or not all(isinstance(caption, str) for caption in captions):
        rows.refuse(number, f"'caption_list' must be a Python list of texts, found {text[:80]!r}")
    return tuple(captions)
