"""Files in COCO's formats and their plain tables: captions, objects, splits.

Formats: Lin et al., Microsoft COCO (ECCV 2014), and Chen et al., Microsoft COCO Captions (2015);
splits: Karpathy and Fei-Fei, Deep Visual-Semantic Alignments (CVPR 2015).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from bias_pipeline.corpus.records import StockCaption
from bias_pipeline.data.columns import (
    DECODING,
    HUMAN,
    IMAGE,
    MASKED,
    MODEL,
    PROMPTS,
    SAMPLE,
    Kind,
    Layout,
)
from bias_pipeline.data.file_names import listed_names
from bias_pipeline.data.image_numbers import noting_names
from bias_pipeline.data.joined_captions import check_chosen, split_cells
from bias_pipeline.data.program_outputs import COLUMNS, program_output
from bias_pipeline.data.tables import Rows, is_json, open_rows
from bias_pipeline.data.text_folders import is_text_folder
from bias_pipeline.errors import DataError
from bias_pipeline.io.json_files import expect, load_json

RESULTS = "captions: [{image_id, caption}, ...], {id: caption}, or a table with these columns"
CAPTIONS = "COCO captions: {annotations: [{image_id, caption}, ...]}, or a table with these columns"
INSTANCES = (
    "COCO instances: {images, categories, annotations: [{image_id, category_id}, ...]}, "
    "or a table with the columns image_id, category"
)
SPLITS = "Karpathy's {images: [{cocoid, split}, ...]}, or a table with the columns image_id, split"

_SPLIT_KEYS = ("image_id", "cocoid", "id", "filename", "file_name")  # the first there has ids
# VizWiz's marks of captions that describe nothing: one sentence for all, and rejected texts
MARKS, _TRUE = ("is_precanned", "is_rejected"), ("True", "true", "TRUE", "1", "1.0")
_MOST_DIGITS = 1000  # of an annotation id
_MOST_SAMPLE_DIGITS, _MOST_SAMPLES = 9, 100


class CaptionerFile(NamedTuple):
    """What a captioner's file contains."""

    captions: dict[str, str]  # canonical id to caption, in the file's order
    repeated: int  # equal repetitions that were collapsed
    unused: int  # captions that were not taken
    # Canonical id to people's captions, where the file has them beside the captioner's
    human: dict[str, tuple[str, ...]]
    prompts: tuple[str, ...] = ()  # the distinct prompts that the file has beside its captions


def model_captions(
    path: Path, index: int | None = None, layout: Layout | None = None
) -> CaptionerFile:
    """The captions of one captioner."""
    layout = layout or Layout()
    rows, image, (text, *_) = _captions(path, RESULTS, MODEL, layout)
    captions: dict[str, str] = {}
    more: dict[str, list[str]] = {}  # second and later captions, which most files do not have
    human: dict[str, tuple[str, ...]] = {}
    prompts: set[str] = set()
    repeated = 0
    numbered = _Numbered(rows, index or 0)
    for number, row in numbered.taken():
        prompts.update(prompt for key in PROMPTS if isinstance(prompt := row.get(key), str))
        identifier = rows.id(number, row, image)
        if rows.people and row[rows.people]:
            human.setdefault(identifier, tuple(row[rows.people]))
        for caption in rows.captions(number, row, text):
            if identifier not in captions:
                captions[identifier] = caption
            elif caption == captions[identifier] or caption in more.get(identifier, ()):
                repeated += 1
            elif index is None or numbered.others:
                rows.refuse(
                    number,
                    f"image id {identifier} occurs twice with different captions "
                    f"({captions[identifier][:80]!r} and {caption[:80]!r}); keep one of the two, "
                    f"or choose one with dataset.multi_caption=true{_as_samples(row)}",
                )
            else:
                more.setdefault(identifier, []).append(caption)
    if not captions:
        raise DataError(f"{path}: holds no captions{numbered.which}; expected {RESULTS}")
    captions, more = _of_cells(path, captions, more, index, layout)
    numbered.note_origins(layout)
    rows.note_printed(layout)
    chosen = captions if numbered.others else _numbered(captions, more, index or 0)
    unused = len(captions) + sum(map(len, more.values())) - len(chosen) + numbered.others
    return CaptionerFile(chosen, repeated, unused, human, tuple(sorted(prompts)))


def _of_cells(
    path: Path,
    cells: dict[str, str],
    more: dict[str, list[str]],
    index: int | None,
    layout: Layout,
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The first caption of each cell, and the others of cells that have several."""
    if more:
        return cells, more
    lists = split_cells(path, {image: (text,) for image, text in cells.items()}, layout, MODEL)
    if not any(len(texts) > 1 for texts in lists.values()):
        return cells, more
    check_chosen(path, lists, index)
    first = {image: texts[0] for image, texts in lists.items()}
    return first, {image: list(texts[1:]) for image, texts in lists.items() if len(texts) > 1}


def _as_samples(row: Mapping[str, Any]) -> str:
    """What is missing in a row whose caption has a number of a sample."""
    if SAMPLE not in row or DECODING in row:
        return ""
    return (
        f"; to score all samples, add {DECODING!r} to every entry, a text such as 'temperature 1'"
    )


def sample_numbers(path: Path, layout: Layout) -> Sequence[int]:
    """The numbers of a file's samples, ascending; 0 alone if the first row has no number."""
    rows, *_ = _captions(path, RESULTS, MODEL, layout)
    first, rows = rows.peek()
    if not first or SAMPLE not in first:
        return [0]
    numbered = _Numbered(rows, 0)
    numbers = {numbered.sample(number, row) or 0 for number, row in rows.items}
    if len(numbers) > _MOST_SAMPLES:
        raise DataError(
            f"{path}: has {len(numbers)} captions an image, more than {_MOST_SAMPLES}; keep fewer"
        )
    return sorted(numbers)


@dataclass
class _Numbered:
    """The rows of one number, in files of ``caption --gather`` that number an image's captions."""

    rows: Rows  # of the file
    index: int  # the wanted number, from 0; all rows of other files are taken
    others: int = 0  # how many rows were not taken
    # How captions were decoded, and how photos were masked, as far as the file says it
    origins: set[tuple[str, str]] = field(default_factory=set)

    def taken(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Number and content of each row that is taken."""
        for number, row in self.rows.items:
            if isinstance(row.get(DECODING), str):
                self.origins |= {(key, str(row.get(key) or "")) for key in (DECODING, MASKED)}
            if self.sample(number, row) not in (None, self.index):
                self.others += 1
                continue
            yield number, row

    @property
    def which(self) -> str:
        """The wanted number in words, if the file numbers captions."""
        return f" of {SAMPLE} {self.index}" if self.others else ""

    def note_origins(self, layout: Layout) -> None:
        """Note how captions were decoded, and how photos were masked."""
        for key, value in sorted(self.origins):
            if value:
                layout.add_note(self.rows.path, f"{key}: {value}")

    def sample(self, number: int, row: Mapping[str, Any]) -> int | None:
        """The number of a row's caption, if the file says how captions were decoded."""
        if SAMPLE not in row or not isinstance(row.get(DECODING), str):
            return None
        sample = str(row[SAMPLE])
        if not sample.isascii() or not sample.isdigit() or len(sample) > _MOST_SAMPLE_DIGITS:
            fault = f"{SAMPLE!r} must be a whole number from 0, found {sample[:20]!r}"
            self.rows.refuse(number, fault)
        return int(sample)


def _captions(path: Path, what: str, kind: Kind, layout: Layout) -> tuple[Rows, str, list[str]]:
    """The rows of a file of captions, its column of ids and those of captions."""
    named = layout.wanted(IMAGE, kind)
    wanted = ["id", *MARKS, SAMPLE, DECODING, MASKED, *PROMPTS, *named, *COLUMNS]
    rows = open_rows(path, what=what, wanted=wanted, key="annotations", column=kind.name)
    if rows.shape:
        layout.add_note(path, rows.shape)
    if kind is HUMAN and is_text_folder(path):  # as data sets have them: a caption a line
        lines = ((n, {**row, kind.name: row[kind.name].splitlines()}) for n, row in rows.items)
        rows = replace(rows, items=lines)
    first, rows = rows.peek()
    if not first:
        return rows, IMAGE.name, [kind.name]
    written = None if layout.named(kind) in first else program_output(rows, first, layout)
    if written is not None:
        people = written.people if kind is HUMAN else ""
        return written, IMAGE.name, [people or MODEL.name]
    key = layout.column(path, first, IMAGE)
    return noting_names(rows, first, key, layout), key, layout.columns(path, first, kind)


def _numbered(first: dict[str, str], more: Mapping[str, list[str]], index: int) -> dict[str, str]:
    """The caption number ``index`` of every image that has so many."""
    if index == 0:
        return first
    return {image: more[image][index - 1] for image in first if len(more.get(image, ())) >= index}


def human_captions(
    path: Path, layout: Layout | None = None
) -> tuple[dict[str, tuple[str, ...]], int]:
    """The captions of people.

    An image's captions are sorted by their ids, or in file order without ids. (A caption's position
    decides which attacker reads it.)
    """
    layout = layout or Layout()
    if layout.id_column == "id":  # in people's files that numbers captions
        layout = replace(layout, id_column=None)
    rows, image, texts = _captions(path, CAPTIONS, HUMAN, layout)
    written: dict[str, list[tuple[int, str]]] = {}
    annotations: dict[int, tuple[str, Sequence[str]]] = {}
    repeated = 0
    for number, row in rows.items:
        identifier = rows.id(number, row, image)
        if rows.people and written.get(identifier):  # another caption of the captioner's
            continue
        captions = _with_marks(row, _of_columns(rows, number, row, texts))
        annotation_id = None if image == "id" else _annotation_id(rows, number, row)
        if annotation_id is not None and annotation_id in annotations:
            if annotations[annotation_id] != (identifier, captions):
                rows.refuse(
                    number, f"annotation id {annotation_id} occurs twice with different contents"
                )
            repeated += 1
            continue
        if annotation_id is not None:
            annotations[annotation_id] = (identifier, captions)
        place = number if annotation_id is None else annotation_id
        written.setdefault(identifier, []).extend((place, caption) for caption in captions)
    rows.note_printed(layout)
    if rows.people and not any(written.values()):
        raise DataError(f"{path}: has no captions of people in 'answer'; expected {CAPTIONS}")
    ordered = {image: _in_order(numbered) for image, numbered in written.items()}
    return {**split_cells(path, ordered, layout, HUMAN)}, repeated


def _of_columns(
    rows: Rows, number: int, row: Mapping[str, Any], columns: Sequence[str]
) -> Sequence[str]:
    """The captions of a row; of several columns some may be empty."""
    if len(columns) == 1:
        return rows.captions(number, row, columns[0])
    names = [
        name for name in columns if (value := row.get(name)) not in (None, "") and value == value
    ]
    return [text for name in names for text in rows.texts(number, row, name)]


def _with_marks(row: Mapping[str, Any], captions: Sequence[str]) -> Sequence[str]:
    """The captions of a row; stock captions if the row marks them as describing nothing."""
    marked = any(str(row.get(mark)) in _TRUE for mark in MARKS)
    return [*map(StockCaption, captions)] if marked else captions


def _annotation_id(rows: Rows, number: int, row: Mapping[str, Any]) -> int | None:
    identifier = row.get("id")
    if isinstance(identifier, str) and identifier.isascii() and identifier.isdigit():
        if len(identifier) > _MOST_DIGITS:
            rows.refuse(
                number, f"annotation id {identifier[:20]}... has {len(identifier):,} digits"
            )
        return int(identifier)
    return identifier if type(identifier) is int else None


def _in_order(captions: list[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(caption for _, caption in sorted(captions, key=lambda pair: pair[0]))


def objects_by_id(path: Path, layout: Layout | None = None) -> dict[str, frozenset[str]]:
    """The objects in each image by category name; boxes, if there are any, are not needed."""
    layout = layout or Layout()
    objects: dict[str, set[str]] = {}
    read = _json_objects if is_json(path) else _table_objects
    for image, category in read(path, layout):
        categories = objects.setdefault(image, set())
        if category is not None:
            categories.add(category)
    return {image: frozenset(names) for image, names in objects.items()}


def _json_objects(path: Path, layout: Layout) -> Iterator[tuple[str, str | None]]:
    data = expect(load_json(path, what=INSTANCES), dict, path, "")
    layout.names[path] = listed_names(path, data.get("images"))
    images, categories, annotations = (
        Rows(path, f"{key} entry", None, _listed(data, key, path))
        for key in ("images", "categories", "annotations")
    )
    for number, row in images.items:
        yield images.id(number, row, "id"), None
    names = {
        categories.id(number, row, "id"): categories.text(number, row, "name")
        for number, row in categories.items
    }
    for number, row in annotations.items:
        category = annotations.id(number, row, "category_id")
        if category not in names:
            annotations.refuse(number, f"category_id {category} is not among the categories")
        yield annotations.id(number, row, "image_id"), names[category]


def _listed(
    data: Mapping[str, Any], key: str, path: Path
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if key not in data:
        raise DataError(f"{path}: key {key!r} is absent; expected {INSTANCES}")
    for number, entry in enumerate(expect(data[key], list, path, key)):
        yield number, expect(entry, dict, path, f"{key}[{number}]")


def _table_objects(path: Path, layout: Layout) -> Iterator[tuple[str, str | None]]:
    rows = open_rows(path, what=INSTANCES, wanted=("category", *layout.wanted(IMAGE)))
    rows.require("image_id", "category")
    first, rows = rows.peek()
    rows = noting_names(rows, first, "image_id", layout)
    for number, row in rows.items:
        empty = rows.value(number, row, "category") in (None, "")  # an image without objects
        category = None if empty else rows.text(number, row, "category")
        yield rows.id(number, row, "image_id"), category


def splits_by_id(path: Path, layout: Layout | None = None) -> dict[str, str]:
    """The part (train, val, test, ...) that each image belongs to."""
    layout, karpathy = layout or Layout(), is_json(path)
    wanted = ("split", *layout.wanted(IMAGE))
    rows = open_rows(path, what=SPLITS, wanted=wanted, key="images" if karpathy else None)
    if not karpathy:
        rows.require("image_id", "split")
    first, rows = rows.peek()
    key = next((key for key in _SPLIT_KEYS if key in first), _SPLIT_KEYS[0])
    splits: dict[str, str] = {}
    for number, row in noting_names(rows, first, key, layout).items:
        identifier, part = rows.id(number, row, key), rows.text(number, row, "split")
        if splits.setdefault(identifier, part) != part:
            rows.refuse(number, f"image id {identifier} is in {splits[identifier]!r} and {part!r}")
    return splits
