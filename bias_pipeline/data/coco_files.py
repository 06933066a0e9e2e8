"""Files in COCO's formats and their plain tables: captions, objects, splits.

Formats: Lin et al., Microsoft COCO (ECCV 2014), and Chen et al., Microsoft COCO Captions (2015);
splits: Karpathy and Fei-Fei, Deep Visual-Semantic Alignments (CVPR 2015).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.records import StockCaption
from bias_pipeline.data.binary_tables import file_of
from bias_pipeline.data.blocks import Block, blocks_of
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
from bias_pipeline.data.joined_captions import check_chosen, may_be_joined, split_cells
from bias_pipeline.data.json_columns import ObjectColumns, load_lists
from bias_pipeline.data.label_files import EDIT
from bias_pipeline.data.program_outputs import COLUMNS, program_output
from bias_pipeline.data.tables import Opener, Rows, entry_blocks, is_json, open_rows, places_of
from bias_pipeline.data.text_folders import is_text_folder
from bias_pipeline.errors import DataError, inflect
from bias_pipeline.io.json_files import MAX_BYTES, expect, open_input

RESULTS = "captions: [{image_id, caption}, ...], {id: caption}, or a table with these columns"
CAPTIONS = "COCO captions: {annotations: [{image_id, caption}, ...]}, or a table with these columns"
INSTANCES = (
    "COCO instances: {images, categories, annotations: [{image_id, category_id}, ...]}, "
    "or a table with the columns image_id, category"
)
SPLITS = "Karpathy's {images: [{cocoid, split}, ...]}, or a table with the columns image_id, split"

# The first key in the file has ids
_SPLIT_KEYS = ("image_id", "cocoid", "id", "filename", "file_name")
# VizWiz's marks of captions that describe nothing: one sentence for all, and rejected texts
MARKS, _TRUE = ("is_precanned", "is_rejected"), ("True", "true", "TRUE", "1", "1.0")
_LETTER = re.compile(rb"\\u00[67]")  # a letter of ASCII that is written as an escape
_MOST_DIGITS = 1000  # digits of an annotation id
_MOST_SAMPLE_DIGITS, _MOST_SAMPLES = 9, 100


class CaptionerFile(NamedTuple):
    """What a captioner's file contains."""

    captions: dict[str, str]  # captions by canonical id, in the file's order
    repeated: int  # equal repetitions that were collapsed
    unused: int  # captions that were not used
    # Human captions by canonical id, if the file has them beside the captioner's
    human: dict[str, tuple[str, ...]]
    prompts: tuple[str, ...] = ()  # the distinct prompts that the file has beside its captions
    # Captions of edits of the pictures, by canonical id of the picture: the first of each
    # picture, the second, and so on
    edits: Sequence[Mapping[str, str]] = ()


def model_captions(
    path: Path, index: int | None = None, layout: Layout | None = None
) -> CaptionerFile:
    layout = layout or Layout()
    rows, image, (text, *_) = open_captions(path, RESULTS, MODEL, layout)
    read = captions_of_model(rows, image, text, index, layout)
    rows.note_printed(layout)
    return read


def captions_with_edits(path: Path, index: int | None, layout: Layout) -> CaptionerFile:
    """A captioner's captions; rows whose column ``edit`` is not empty are of edited pictures."""
    rows, image, (text, *_) = open_captions(path, RESULTS, MODEL, layout)
    edits: dict[str, list[str]] = {}
    pictures = replace(rows, blocks=_rows_without_edits(rows, image, text, edits))
    read = captions_of_model(pictures, image, text, index, layout)
    rows.note_printed(layout)
    if edits:
        layout.add_note(path, f"{inflect(sum(map(len, edits.values())), 'captions are')} of edits")
    most = max(map(len, edits.values()), default=0)
    each = [{i: texts[n] for i, texts in edits.items() if n < len(texts)} for n in range(most)]
    return read._replace(edits=each)


def _rows_without_edits(
    rows: Rows, image: str, text: str, edits: dict[str, list[str]]
) -> Iterator[Block]:
    """The rows of pictures themselves; captions of edits are added to ``edits``."""
    for block in rows.blocks:
        cells = block.columns.get(EDIT, ())
        edited = [place for place, cell in enumerate(cells) if cell not in (None, "")]
        if not edited:
            yield block
            continue
        chosen = block.take(edited)
        for identifier, (number, row) in zip(rows.ids(chosen, image), chosen.rows(), strict=True):
            edits.setdefault(identifier, []).extend(rows.captions(number, row, text))
        if rest := sorted({*range(len(block))} - {*edited}):
            yield block.take(rest)


def captions_of_model(
    rows: Rows, image: str, text: str, index: int | None, layout: Layout
) -> CaptionerFile:
    """The captions of a captioner's rows, by the columns of ids and of captions."""
    path = rows.path
    numbered = _Numbered(rows, index or 0)
    spoken = _Spoken(rows, text, several=index is not None)
    human: dict[str, tuple[str, ...]] = {}
    prompts: set[str] = set()
    taken = replace(rows, blocks=numbered.blocks())
    for block, ids, texts in taken.read(
        partial(rows.ids, name=image), partial(rows.plain_texts, name=text)
    ):
        for key in PROMPTS:
            prompts.update(p for p in block.columns.get(key, ()) if isinstance(p, str))
        beside = block.columns[rows.people] if rows.people else ()
        for identifier, people in zip(ids, beside, strict=False):
            if people:
                human.setdefault(identifier, tuple(people))
        spoken.add(block, ids, texts, chosen=not numbered.others)
    captions, more = spoken.captions, spoken.more
    if not captions:
        raise DataError(f"{path}: holds no captions{numbered.which}; expected {RESULTS}")
    captions, more = _of_cells(path, captions, more, index, layout)
    for key, value in sorted(numbered.origins):
        if value:
            layout.add_note(numbered.rows.path, f"{key}: {value}")
    chosen = captions if numbered.others else _choose_caption(captions, more, index or 0)
    unused = len(captions) + sum(map(len, more.values())) - len(chosen) + numbered.others
    return CaptionerFile(chosen, spoken.repeated, unused, human, tuple(sorted(prompts)))


@dataclass
class _Spoken:
    rows: Rows  # rows of the file
    column: str  # the column of captions
    several: bool  # whether an image may have several captions
    captions: dict[str, str] = field(default_factory=dict)
    more: dict[str, list[str]] = field(default_factory=dict)  # second and later captions
    repeated: int = 0  # equal repetitions that were collapsed

    def add(
        self, block: Block, ids: Sequence[str], texts: Sequence[str] | None, *, chosen: bool
    ) -> None:
        """Add the rows of a block; unless ``chosen``, an image may not have different captions."""
        plain = {} if texts is None else dict(zip(ids, texts, strict=True))
        if len(plain) == len(ids) and self.captions.keys().isdisjoint(plain):
            self.captions |= plain
            return
        cells = block.columns[self.column]
        for number, identifier, cell in zip(block.numbers, ids, cells, strict=True):
            for caption in self.rows.captions(number, {self.column: cell}, self.column):
                known = [*self.captions_of(identifier)]
                if not known:
                    self.captions[identifier] = caption
                elif caption in known:
                    self.repeated += 1
                elif self.several and chosen:
                    self.more.setdefault(identifier, []).append(caption)
                else:
                    self.rows.refuse(
                        number,
                        f"image id {identifier} occurs twice with different captions "
                        f"({known[0][:80]!r} and {caption[:80]!r}); keep one of the two, or choose "
                        f"one with dataset.multi_caption=true{_as_samples(block.columns)}",
                    )

    def captions_of(self, image: str) -> Iterator[str]:
        if image in self.captions:
            yield self.captions[image]
            yield from self.more.get(image, ())


def _of_cells(
    path: Path,
    cells: dict[str, str],
    more: dict[str, list[str]],
    index: int | None,
    layout: Layout,
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The first caption of each cell, and the other captions of cells with several captions."""
    if more or not may_be_joined(cells.values(), layout):
        return cells, more
    lists = split_cells(path, {image: (text,) for image, text in cells.items()}, layout, MODEL)
    if not any(len(texts) > 1 for texts in lists.values()):
        return cells, more
    check_chosen(path, lists, index)
    first = {image: texts[0] for image, texts in lists.items()}
    return first, {image: list(texts[1:]) for image, texts in lists.items() if len(texts) > 1}


def _as_samples(columns: Collection[str]) -> str:
    """What rows lack to be numbered samples, for a message; empty if they lack nothing."""
    if SAMPLE not in columns or DECODING in columns:
        return ""
    return (
        f"; to score all samples, add {DECODING!r} to every entry (a text such as 'temperature 1')"
    )


def sample_numbers(path: Path, layout: Layout) -> Sequence[int]:
    """The numbers of a file's samples, ascending; only 0 if the first row has no number."""
    if is_json(file_of(path)) and not _may_have_keys(path, SAMPLE, "custom_id"):
        return [0]
    rows, *_ = open_captions(path, RESULTS, MODEL, layout)
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


def _may_have_keys(path: Path, *keys: str) -> bool:
    """Whether objects of a JSON file may have one of the keys; faster than reading the file."""
    with open_input(file_of(path), what=RESULTS, max_bytes=MAX_BYTES) as handle:
        data = handle.read()
    return any(f'"{key}"'.encode() in data for key in keys) or _LETTER.search(data) is not None


@dataclass
class _Numbered:
    """Chooses the rows with one number, in files of ``caption --gather`` that number captions."""

    rows: Rows  # rows of the file
    index: int  # the wanted number, from 0; all rows of other files are taken
    others: int = 0  # rows that were not taken
    # How captions were decoded and photos were masked, if the file says so
    origins: set[tuple[str, str]] = field(default_factory=set)

    def blocks(self) -> Iterator[Block]:
        for block in self.rows.blocks:
            if DECODING not in block.columns:
                yield block
                continue
            places = []
            for place, (number, row) in enumerate(block.rows()):
                if isinstance(row[DECODING], str):
                    self.origins |= {(key, str(row.get(key) or "")) for key in (DECODING, MASKED)}
                if self.sample(number, row) in (None, self.index):
                    places.append(place)
            self.others += len(block) - len(places)
            if places:
                yield block.take(places)

    @property
    def which(self) -> str:
        """The wanted number in words, if the file numbers captions."""
        return f" of {SAMPLE} {self.index}" if self.others else ""

    def sample(self, number: int, row: Mapping[str, Any]) -> int | None:
        """The number of a row's caption, if the file says how captions were decoded."""
        if SAMPLE not in row or not isinstance(row.get(DECODING), str):
            return None
        sample = str(row[SAMPLE])
        if not sample.isascii() or not sample.isdigit() or len(sample) > _MOST_SAMPLE_DIGITS:
            fault = f"{SAMPLE!r} must be a whole number from 0, found {sample[:20]!r}"
            self.rows.refuse(number, fault)
        return int(sample)


def open_captions(
    path: Path, what: str, kind: Kind, layout: Layout, opened: Opener = open_rows
) -> tuple[Rows, str, list[str]]:
    """The rows of a file of captions, its column of ids and its columns of captions."""
    named = layout.columns_wanted(IMAGE, kind)
    wanted = ["id", EDIT, *MARKS, SAMPLE, DECODING, MASKED, *PROMPTS, *named, *COLUMNS]
    rows = opened(path, what=what, wanted=wanted, key="annotations", column=kind.name)
    if rows.shape:
        layout.add_note(path, rows.shape)
    if kind is HUMAN and is_text_folder(path):  # data sets have files with a caption a line
        lines = ((n, {**row, kind.name: row[kind.name].splitlines()}) for n, row in rows.items)
        rows = replace(rows, blocks=blocks_of(lines))
    first, rows = rows.peek()
    if not first:
        return rows, IMAGE.name, [kind.name]
    written = None if layout.column_named(kind) in first else program_output(rows, first, layout)
    if written is not None:
        people = written.people if kind is HUMAN else ""
        return written, IMAGE.name, [people or MODEL.name]
    key = layout.column(path, first, IMAGE)
    return noting_names(rows, first, key, layout), key, layout.columns(path, first, kind)


def _choose_caption(
    first: dict[str, str], more: Mapping[str, list[str]], index: int
) -> dict[str, str]:
    """The caption with number ``index`` (from 0) of every image that has this caption."""
    if index == 0:
        return first
    return {image: more[image][index - 1] for image in first if len(more.get(image, ())) >= index}


def human_captions(
    path: Path, layout: Layout | None = None
) -> tuple[dict[str, tuple[str, ...]], int]:
    """The human captions.

    An image's captions are sorted by their ids, or in file order without ids. (A caption's position
    decides which attacker reads it.)
    """
    layout = layout_of_people(layout or Layout())
    rows, image, columns = open_captions(path, CAPTIONS, HUMAN, layout)
    read = captions_of_people(rows, image, columns, layout)
    rows.note_printed(layout)
    return read


def layout_of_people(layout: Layout) -> Layout:
    """The layout of a file of human captions in which `id` numbers captions."""
    return replace(layout, id_column=None) if layout.id_column == "id" else layout


def captions_of_people(
    rows: Rows, image: str, columns: Sequence[str], layout: Layout
) -> tuple[dict[str, tuple[str, ...]], int]:
    """The human captions of rows, by the columns of ids and of captions."""
    path = rows.path
    written = _Written(rows)
    for block, images, numbered, captions in rows.read(
        partial(rows.places, name=image, index=written.images),
        partial(_annotation_ids, rows, image=image),
        partial(_human_texts, rows, columns=columns),
    ):
        written.add(block, images, numbered, captions)
    if rows.people and not any(written.captions):
        raise DataError(f"{path}: has no human captions in 'answer'; expected {CAPTIONS}")
    by_image, repeated = written.by_image()
    return {**split_cells(path, by_image, layout, HUMAN)}, repeated


def _index() -> dict[str, int]:
    """A mapping that gives each new value the next number."""
    return defaultdict(count().__next__)


@dataclass
class _Written:
    """Human captions, by the rows of a file."""

    rows: Rows  # rows of the file
    images: dict[str, int] = field(default_factory=_index)  # the place of each image among all
    # The captions of each row; a single text if each cell of the column has one
    captions: list[str | Sequence[str]] = field(default_factory=list)
    # For the rows of each block: numbers, images, ids of annotations (0 for rows
    # without an id), and which rows have an id
    blocks: list[tuple[IntArray, IntArray, IntArray, BoolArray]] = field(default_factory=list)
    # Images with human captions beside a captioner's
    described: set[int] = field(default_factory=set)

    def add(
        self,
        block: Block,
        images: IntArray,
        annotations: tuple[IntArray, BoolArray],
        captions: Sequence[str | Sequence[str]],
    ) -> None:
        """Add the rows of a block; in captioners' files, an image's first human captions count."""
        numbers, (ids, known) = np.array(block.numbers, np.int64), annotations
        if self.rows.people:
            rows = np.array([*self._first_described(images.tolist(), captions)], np.int64)
            captions = [captions[row] for row in rows.tolist()]
            numbers, images, ids, known = numbers[rows], images[rows], ids[rows], known[rows]
        self.captions += captions
        self.blocks.append((numbers, images, ids, known))

    def _first_described(
        self, images: Sequence[int], captions: Sequence[str | Sequence[str]]
    ) -> Iterator[int]:
        """The first row with captions of each image."""
        for row, (image, texts) in enumerate(zip(images, captions, strict=True)):
            if image not in self.described:
                yield row
            if texts:
                self.described.add(image)

    def by_image(self) -> tuple[dict[str, tuple[str, ...]], int]:
        """Each image's captions in the order of their ids, and how many rows repeat others."""
        if not self.blocks:
            return {}, 0
        numbers, codes, ids, known = map(np.concatenate, zip(*self.blocks, strict=True))
        repeated = np.zeros(len(ids), bool)
        if not np.diff(np.sort(ids[known])).all():
            repeated = self._find_repeated(numbers, codes, ids, known)
        places = np.where(known, ids, numbers)
        next_image, later = np.diff(codes), np.diff(places) > 0
        texts = self.captions
        if repeated.any() or not np.all((next_image > 0) | ((next_image == 0) & later)):
            order = np.lexsort((np.unique(places, return_inverse=True)[1], codes))
            order = order[~repeated[order]]
            texts, codes = [texts[row] for row in order.tolist()], codes[order]
        ends = np.searchsorted(codes, np.arange(len(self.images) + 1)).tolist()
        parts: Iterator[Iterable[Any]] = (texts[begin:end] for begin, end in pairwise(ends))
        if not all(issubclass(kind, str) for kind in set(map(type, texts))):
            parts = (chain.from_iterable(map(_texts, part)) for part in parts)
        return dict(zip(self.images, map(tuple, parts), strict=True)), int(repeated.sum())

    def _find_repeated(
        self, numbers: IntArray, codes: IntArray, ids: IntArray, known: BoolArray
    ) -> BoolArray:
        """(N,) whether each row repeats an annotation; repetitions must have equal contents."""
        first: dict[int, int] = {}
        repeated = np.zeros(len(ids), bool)
        for row in np.flatnonzero(known).tolist():
            earlier = first.setdefault(ids[row], row)
            same = [*_texts(self.captions[earlier])] == [*_texts(self.captions[row])]
            if codes[earlier] != codes[row] or not same:
                self.rows.refuse(
                    numbers[row], f"annotation id {ids[row]} occurs twice with different contents"
                )
            repeated[row] = earlier != row
        return repeated


def _texts(captions: str | Sequence[str]) -> Sequence[str]:
    return (captions,) if isinstance(captions, str) else captions


def _human_texts(rows: Rows, block: Block, columns: Sequence[str]) -> Sequence[str | Sequence[str]]:
    """The captions of each row: a text per row if each cell has one caption, else a list."""
    plain = len(columns) == 1 and block.columns.keys().isdisjoint(MARKS)
    texts = rows.plain_texts(block, columns[0]) if plain else None
    return texts or [
        _with_marks(row, _of_columns(rows, number, row, columns)) for number, row in block.rows()
    ]


def _of_columns(
    rows: Rows, number: int, row: Mapping[str, Any], columns: Sequence[str]
) -> Sequence[str]:
    """The captions of a row in several columns, some of which may be empty."""
    if len(columns) == 1:
        return rows.captions(number, row, columns[0])
    names = [
        name for name in columns if (value := row.get(name)) not in (None, "") and value == value
    ]
    return [text for name in names for text in rows.texts(number, row, name)]


def _with_marks(row: Mapping[str, Any], captions: Sequence[str]) -> Sequence[str]:
    """The captions of a row; they are stock captions if the row says that they describe nothing."""
    marked = any(str(row.get(mark)) in _TRUE for mark in MARKS)
    return [*map(StockCaption, captions)] if marked else captions


def _annotation_ids(rows: Rows, block: Block, image: str) -> tuple[IntArray, BoolArray]:
    """The id of each row's annotation (0 if it has no id), and which rows have an id."""
    if image == "id" or "id" not in block.columns:
        return np.zeros(len(block), np.int64), np.zeros(len(block), bool)
    numbers = block.whole_numbers("id")
    if numbers is not None:
        return numbers, np.ones(len(block), bool)
    pairs = zip(block.numbers, block.columns["id"], strict=True)
    ids = [_annotation_id(rows, number, cell) for number, cell in pairs]
    large = max((abs(each) for each in ids if each is not None), default=0) >> 63
    return (
        np.array([each or 0 for each in ids], object if large else np.int64),
        np.array([each is not None for each in ids], bool),
    )


def _annotation_id(rows: Rows, number: int, identifier: object) -> int | None:
    if isinstance(identifier, str) and identifier.isascii() and identifier.isdigit():
        if len(identifier) > _MOST_DIGITS:
            rows.refuse(
                number, f"annotation id {identifier[:20]}... has {len(identifier):,} digits"
            )
        return int(identifier)
    return identifier if type(identifier) is int else None


def objects_by_id(path: Path, layout: Layout | None = None) -> dict[str, frozenset[str]]:
    """The objects in each image by category name; boxes are not needed."""
    read = _json_objects if is_json(path) else _table_objects
    images, names = _index(), _index()
    pairs = read(path, layout or Layout(), images, names)
    return _sets_of_objects(pairs, images, names)


def _sets_of_objects(
    read: _Pairs, images: Mapping[str, int], names: Mapping[str, int]
) -> dict[str, frozenset[str]]:
    pairs = [np.empty((2, 0), np.int64), *read]
    rows, kinds = np.concatenate(pairs, axis=1)
    pair = np.sort(rows * max(1, len(names)) + kinds)
    rows, kinds = np.divmod(pair[np.diff(pair, prepend=-1) > 0], max(1, len(names)))
    listed = Captions(
        tuple(names),
        kinds.astype(np.int32),
        np.searchsorted(rows, np.arange(len(images) + 1)),
        np.arange(len(images)),
    )
    first = np.unique(listed.identities, return_index=True)[1]
    sets = [frozenset(listed.words(row)) for row in first.tolist()]  # many images have equal sets
    return dict(zip(images, map(sets.__getitem__, listed.identities.tolist()), strict=True))


# For each object of some rows, the place of its image and of its category among all
_Pairs = Iterator[IntArray]


def _json_objects(
    path: Path, layout: Layout, images: dict[str, int], names: dict[str, int]
) -> _Pairs:
    wanted = ("id", "name", "image_id", "category_id", *IMAGE.names)
    contents = load_lists(path, what=INSTANCES, wanted=wanted)
    data = expect([] if isinstance(contents, ObjectColumns) else contents, dict, path, "")
    layout.names[path] = listed_names(path, data.get("images"))
    listed, categories, annotations = (
        Rows(path, f"{key} entry", None, _blocks_under(data, key, path))
        for key in ("images", "categories", "annotations")
    )
    for block in listed.blocks:
        listed.places(block, "id", images)
    known = {
        categories.id(number, row, "id"): names[categories.text(number, row, "name")]
        for number, row in categories.items
    }
    numbers = _index()  # ids of categories

    def kinds_of(block: Block) -> IntArray:
        places = annotations.places(block, "category_id", numbers)
        kinds = np.array([known.get(number, -1) for number in numbers], np.int64)[places]
        if kinds.min(initial=0) < 0:
            row = int(np.argmin(kinds))
            number = [*numbers][places[row]]
            annotations.refuse(
                block.numbers[row], f"category_id {number} is not among the categories"
            )
        return kinds

    for _, kinds, rows in annotations.read(
        kinds_of, partial(annotations.places, name="image_id", index=images)
    ):
        yield np.stack([rows, kinds])


def _blocks_under(data: Mapping[str, Any], key: str, path: Path) -> Iterator[Block]:
    if key not in data:
        raise DataError(f"{path}: key {key!r} is absent; expected {INSTANCES}")
    yield from entry_blocks(data[key], path, key)


def _table_objects(
    path: Path, layout: Layout, images: dict[str, int], names: dict[str, int]
) -> _Pairs:
    rows, image = open_objects(path, layout)
    return _objects_of(rows, image, images, names)


def open_objects(path: Path, layout: Layout, opened: Opener = open_rows) -> tuple[Rows, str]:
    """The rows of a table of objects, and its column of ids."""
    rows = opened(path, what=INSTANCES, wanted=("category", *layout.columns_wanted(IMAGE)))
    rows.require("category")
    first, rows = rows.peek()
    image = layout.column(path, first, IMAGE) if first else IMAGE.name
    return noting_names(rows, first, image, layout), image


def objects_of_rows(rows: Rows, image: str) -> dict[str, frozenset[str]]:
    """The objects in each image of a table's rows, by the column of ids."""
    images, names = _index(), _index()
    return _sets_of_objects(_objects_of(rows, image, images, names), images, names)


def _objects_of(rows: Rows, image: str, images: dict[str, int], names: dict[str, int]) -> _Pairs:
    def categories(block: Block) -> list[Sequence[str]]:
        cells = zip(block.numbers, rows.column(block, "category"), strict=True)
        return [_category_names(rows, number, cell) for number, cell in cells]

    for _, listed, places in rows.read(categories, partial(rows.places, name=image, index=images)):
        counts = [len(categories) for categories in listed]  # 0 for an image without objects
        yield np.stack([np.repeat(places, counts), places_of(chain(*listed), names)])


def _category_names(rows: Rows, number: int, cell: object) -> Sequence[str]:
    """The categories in a cell: no category, one category, or a list of categories."""
    if isinstance(cell, list):
        return [name for name in rows.texts(number, {"category": cell}, "category") if name]
    return [rows.text(number, {"category": cell}, "category")] if cell not in (None, "") else ()


def splits_by_id(path: Path, layout: Layout | None = None) -> dict[str, str]:
    """The part (train, val, test, ...) of each image."""
    layout, karpathy = layout or Layout(), is_json(path)
    wanted = ("split", *layout.columns_wanted(IMAGE))
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
