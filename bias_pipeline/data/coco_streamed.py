"""``audit --stream``: files that do not fit into memory, read in ranges of image ids.

Decisions on single images are made within a range, by the functions that read whole files.
Decisions that need all captions of a file are refused where they might change a caption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import SIDES, Corpus, Grouping, Side, cut_note, grouping_of
from bias_pipeline.corpus.image_ids import NumberedIds, id_key, sorting_order
from bias_pipeline.corpus.records import RecordColumns, read_captions
from bias_pipeline.corpus.streamed_captions import CaptionsWriter
from bias_pipeline.data.base import Dataset
from bias_pipeline.data.binary_tables import stem
from bias_pipeline.data.captioner_files import ImageMatch, check_any_labelled
from bias_pipeline.data.coco import (
    COPIES,
    CocoDataset,
    Contents,
    is_copied,
    records,
)
from bias_pipeline.data.coco_files import (
    CAPTIONS,
    RESULTS,
    CaptionerFile,
    captions_of_model,
    captions_of_people,
    layout_of_people,
    objects_of_rows,
    open_captions,
    open_objects,
)
from bias_pipeline.data.columns import DECODING, HUMAN, MODEL, SAMPLE, Layout
from bias_pipeline.data.image_ranges import ImageRanges, check_annotations, first_rows, image_ids
from bias_pipeline.data.joined_captions import may_be_joined
from bias_pipeline.data.label_files import (
    MAJORITY,
    LabelColumns,
    Labels,
    named_sets,
    open_label_columns,
    repetition_note,
    strata_note,
)
from bias_pipeline.data.picture_files import PictureFiles
from bias_pipeline.data.tables import Rows, check_file
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.io.paths import safe_name
from bias_pipeline.text.mending import Mends, mend_columns, mends_of_sides

_LEAVE_OUT = "or leave out --stream"


class StreamedCocoDataset(CocoDataset):
    """``dataset=coco`` of Parquet files, with only a range of images in memory at once."""

    def samples(self, captioner: str) -> Sequence[Dataset]:
        del captioner
        return [self]

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        path = self._file_of(captioner)
        if path is None or self.split or self.images or self.regions or self.annotator != MAJORITY:
            raise UsageError(
                "--stream reads captions, labels and objects of all images, and no pictures, parts "
                f"of a split or single annotators' labels; leave these out, {_LEAVE_OUT}"
            )
        if self.layout.separator not in (None, "none"):
            raise UsageError(
                f"--stream reads one caption a cell, so not --separator {self.layout.separator}; "
                f"write a row for each caption, {_LEAVE_OUT}"
            )
        layout = self.layout.blank_copy()
        files = self._open_files(path, attribute, layout)
        with TemporaryDirectory(prefix="ranges-", ignore_cleanup_errors=True) as folder:
            images = image_ids(files.labels.rows, files.labels.key)
            ranges = ImageRanges.of_images(images, Path(folder))
            labels = _ReadLabels.of_ranges(files.labels, ranges, layout)
            reading = _Reading(files, labels, ImageMatch(path, attribute.name, self.strict))
            for part in files.parts(ranges, layout):
                reading.add(part)
        for rows in files.captions:
            rows.note_printed(layout)
        layout.check_used()
        objects = self.files["instances"]
        notes = [
            *layout.notes(),
            *labels.notes,
            *repetition_note(reading.repeated["model"], "captions of the captioner"),
            *repetition_note(reading.repeated["human"], "human captions"),
            *(COPIES if reading.copies else ()),
            *self._note_on_choice(reading.unused),
            *reading.match_notes(self.files["captions"], objects),
            *(note for mends in reading.mends.values() for note in mends.notes()),
            *cut_note(reading.n_cut),
        ]
        corpus = Corpus(
            dataset=self.name,
            captioner=safe_name(stem(path)),
            ids=NumberedIds(labels.images),
            model=reading.writers["model"].finish(),
            human=reading.writers["human"].finish(),
            groupings={attribute.name: labels.grouping},
            objects=tuple(reading.objects) if reading.has_objects else None,
            trained_on_reference=self.trained_on_reference,
            notes=tuple(notes),
            prompts=tuple(sorted(reading.prompts)),
            file_share=reading.match.file_share,
            file=str(path.resolve()),
            objects_file=str(objects or "") if self.strict else "",
            marked=reading.marked_captions,
            blank_counts={side: reading.blanks_of(side) for side in SIDES},
        )
        return corpus.noting_blanks(self.blank_limit)

    def _open_files(self, path: Path, attribute: Attribute, layout: Layout) -> _Files:
        place = self.files["attributes"]
        if place is None:
            raise UsageError("--stream needs a table of labels (--attributes LABELS.parquet)")
        check_file(place, "dataset.attributes")
        labels = open_label_columns(place, self.name, attribute, self.labels, layout, first_rows)
        if labels is None:
            raise DataError(
                f"{place}: a row for each image, attribute and annotator is {_NOT_READ}; write a "
                f"row for each image with a column {attribute.name!r}, {_LEAVE_OUT}"
            )
        model, image, (text, *_) = open_captions(path, RESULTS, MODEL, layout, first_rows)
        people, objects = self.files["captions"], self.files["instances"]
        human = people and open_captions(
            check_file(people, "dataset.captions"),
            CAPTIONS,
            HUMAN,
            layout_of_people(layout),
            first_rows,
        )
        things = objects and open_objects(
            check_file(objects, "dataset.instances"), layout, first_rows
        )
        table = _Columns(labels.rows, labels.key, [labels.field]).as_in_file(layout)
        return _Files(
            replace(labels, rows=table.rows),
            _Columns(model, image, [text]).as_in_file(layout),
            _Columns(*human, _annotations(*human[:2])).as_in_file(layout) if human else None,
            _Columns(*things, []).as_in_file(layout) if things else None,
            self.caption_index,
        )


_ANNOTATION = "id"
_NOT_READ = "not read with --stream"


class _Columns(NamedTuple):
    """The columns of ids and of captions in a file."""

    rows: Rows
    image: str
    texts: Sequence[str]  # columns of captions or labels
    annotations: str = ""  # column of annotations' ids

    def as_in_file(self, layout: Layout) -> _Columns:
        """The same columns; refuses forms of other programs, numbered captions and file names."""
        path, columns = self.rows.path, set(self.rows.columns or ())
        first = next(self.rows.blocks, None)
        if not {self.image, *self.texts} <= columns or self.rows.people:
            raise DataError(
                f"{path}: another program's form is {_NOT_READ}; write a table with a column of "
                f"image ids and one of captions or labels, {_LEAVE_OUT}"
            )
        if self.annotations:
            check_annotations(self.rows, self.image, self.annotations)
        if {SAMPLE, DECODING} <= columns:
            raise DataError(
                f"{path}: several numbered captions an image are {_NOT_READ}; keep one, "
                f"{_LEAVE_OUT}"
            )
        if layout.names.get(path):
            raise DataError(
                f"{path}: {self.image!r} and another column may both name the pictures, and "
                f"such files are {_NOT_READ}; drop the other column, {_LEAVE_OUT}"
            )
        return self._replace(rows=replace(self.rows, blocks=iter([first] if first else [])))


def _annotations(rows: Rows, image: str) -> str:
    """The column of annotations' ids in a file of human captions; empty if it has none."""
    return _ANNOTATION if image != _ANNOTATION and _ANNOTATION in (rows.columns or ()) else ""


class _Part(NamedTuple):
    """The contents of the files for the images of one range."""

    model: CaptionerFile
    human: Mapping[str, tuple[str, ...]]
    repeated: int  # human captions that repeat others
    objects: Mapping[str, frozenset[str]] | None


@dataclass(frozen=True)
class _Files:
    """The first rows of the files, and their columns."""

    labels: LabelColumns
    model: _Columns
    human: _Columns | None
    objects: _Columns | None
    index: int | None  # which of several captions of an image is scored

    @property
    def captions(self) -> list[Rows]:
        return [self.model.rows, *([self.human.rows] if self.human else [])]

    def parts(self, ranges: ImageRanges, layout: Layout) -> Iterator[_Part]:
        """The contents of the files for each range of images."""
        nothing = [None] * len(ranges)
        human, objects = self.human, self.objects
        for model, people, things in zip(
            ranges.split(self.model.rows, self.model.image),
            ranges.split(human.rows, human.image) if human else nothing,
            ranges.split(objects.rows, objects.image) if objects else nothing,
            strict=True,
        ):
            yield _Part(
                self._of_model(model, layout),
                *self._of_people(people, layout),
                None if things is None or not objects else objects_of_rows(things, objects.image),
            )

    def _of_model(self, rows: Rows, layout: Layout) -> CaptionerFile:
        first, rows = rows.peek()
        if not first:
            return CaptionerFile({}, 0, 0, {})
        (text,) = self.model.texts
        return captions_of_model(rows, self.model.image, text, self.index, layout)

    def _of_people(
        self, rows: Rows | None, layout: Layout
    ) -> tuple[Mapping[str, tuple[str, ...]], int]:
        if rows is None or self.human is None:
            return {}, 0
        return captions_of_people(rows, self.human.image, self.human.texts, layout)


@dataclass(frozen=True)
class _ReadLabels:
    """The labels of all images, ascending by id."""

    images: IntArray  # (N,) ids
    codes: IntArray  # (N,) which label each image has
    names: Sequence[str]  # the labels as the file writes them
    map: LabelMap
    groups: tuple[str, ...]
    edges: IntArray
    repeated: int  # labels that repeat others

    @classmethod
    def of_ranges(cls, columns: LabelColumns, ranges: ImageRanges, layout: Layout) -> _ReadLabels:
        number: dict[str, int] = {}
        examples: dict[str, str] = {}
        images, codes, repeated = [], [], 0
        for rows in ranges.split(columns.rows, columns.key):
            read = columns.read(rows)
            if named_sets(read.sets):
                raise UsageError(f"{rows.path}: sets of pictures are not read with --stream")
            ids = np.fromiter(map(int, read.raw), np.int64, len(read.raw))
            for image, label in read.raw.items():
                if label not in number:
                    number[label] = len(number)
                    examples[label] = image
            written = np.fromiter(map(number.__getitem__, read.raw.values()), np.int64, len(ids))
            order = np.argsort(ids)
            images.append(ids[order])
            codes.append(written[order])
            repeated += read.repeated
        of_images = np.concatenate(codes)
        counts = Counter(dict(zip(number, np.bincount(of_images).tolist(), strict=True)))
        label_map = columns.interpret(counts, examples.__getitem__, layout)
        return cls(
            np.concatenate(images),
            of_images,
            [*number],
            label_map,
            columns.groups,
            ranges.edges,
            repeated,
        )

    @property
    def grouping(self) -> Grouping:
        return grouping_of(self.names, self.codes, self.groups, self.map)

    @property
    def notes(self) -> list[str]:
        counts = np.bincount(self.codes, minlength=len(self.names)).tolist()
        strata = Counter(dict(zip(self.names, counts, strict=True)))
        return [*repetition_note(self.repeated, "labels"), *strata_note(strata, self.map)]

    def of_range(self, number: int) -> Labels:
        ends = [0, *np.searchsorted(self.images, self.edges).tolist(), len(self.images)]
        some = slice(ends[number], ends[number + 1])
        labels = map(self.names.__getitem__, self.codes[some].tolist())
        raw = dict(zip(map(str, self.images[some].tolist()), labels, strict=True))
        return Labels(raw, self.map, self.groups, {}, ())


@dataclass
class _Reading:
    """The contents of all ranges that were read so far."""

    files: _Files
    labels: _ReadLabels
    match: ImageMatch
    n_read: int = 0  # ranges
    writers: Mapping[Side, CaptionsWriter] = field(
        default_factory=lambda: {side: CaptionsWriter() for side in SIDES}
    )
    mends: Mapping[Side, Mends] = field(default_factory=mends_of_sides)
    blanks: dict[Side, list[IntArray]] = field(default_factory=lambda: {s: [] for s in SIDES})
    marks: list[BoolArray] = field(default_factory=list)
    objects: list[frozenset[str] | None] = field(default_factory=list)
    known_sets: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)
    prompts: set[str] = field(default_factory=set)
    repeated: Counter[str] = field(default_factory=Counter)
    unused: int = 0
    n_cut: int = 0
    copies: bool = True  # whether all human captions are the captioner's
    # Of each side: the first images with captions, and whether one of them is labelled
    firsts: dict[Side, list[str]] = field(default_factory=lambda: {s: [] for s in SIDES})
    labelled: set[Side] = field(default_factory=set)

    def add(self, part: _Part) -> None:
        """Add the images of the next range."""
        labels = self.labels.of_range(self.n_read)
        people = chain.from_iterable(part.human.values())
        _check_single(self.files.model.rows.path, part.model.captions.values())
        if self.files.human:
            _check_single(self.files.human.rows.path, [*people])
        contents = Contents(
            labels, part.model.captions, part.human, part.objects, {}, PictureFiles()
        )
        images = [*labels.raw]
        contents.match(images, self.match)
        by_side: Mapping[Side, Mapping[str, object]] = {
            "model": contents.model,
            "human": contents.human,
        }
        for side, described in by_side.items():
            self.firsts[side] = self.firsts[side] or nsmallest(5, described, key=id_key)
            if not described.keys().isdisjoint(images):
                self.labelled.add(side)
        self.copies &= not contents.model or is_copied(contents.model, contents.human)
        self.repeated.update(model=part.model.repeated, human=part.repeated)
        self.unused += part.model.unused
        self.prompts.update(part.model.prompts)
        columns = records(images, contents, self.match.attribute)
        columns = columns.take(sorting_order(columns.ids))
        self._add_columns(columns)
        self.n_read += 1

    def _add_columns(self, columns: RecordColumns) -> None:
        paths: Mapping[Side, Path | None] = {
            "model": self.match.path,
            "human": self.files.human.rows.path if self.files.human else None,
        }
        first = sum(map(len, self.blanks["model"]))
        columns = mend_columns(columns, paths, self.mends)
        for side in SIDES:
            if self.mends[side].by_all_texts:
                raise DataError(
                    f"{paths[side]}: has words in parts (cut at a line's end, by blanks of no "
                    "width, or sub-words), and only all captions of a file tell how to join "
                    f"them; join them in the file, {_LEAVE_OUT}"
                )
            read = read_captions(columns, side, range(len(columns.ids)))
            self.writers[side].add(read.captions, first)
            self.blanks[side].append(read.blanks)
            self.n_cut += read.n_cut
            if side == "human":
                self.marks.append(read.marked)
        if columns.objects is not None:
            one = self.known_sets.setdefault
            self.objects += [names and one(names, names) for names in columns.objects]

    @property
    def has_objects(self) -> bool:
        return any(names is not None for names in self.objects)

    @property
    def marked_captions(self) -> BoolArray:
        """(C,) flags of human captions that their file marks; empty if it marks no captions."""
        marks = np.concatenate(self.marks)
        return marks if marks.any() else np.empty(0, bool)

    def blanks_of(self, side: Side) -> IntArray:
        each = self.blanks[side]
        some = any(map(np.any, each))
        return np.concatenate(each) if some else np.zeros(sum(map(len, each)), np.int64)

    def match_notes(self, people: Path | None, objects: Path | None) -> Iterator[str]:
        """Refuse, or note, images that are not in all files."""
        first = [str(image) for image in self.labels.images[:5].tolist()]
        paths: Mapping[Side, Path | None] = {"human": people, "model": self.match.path}
        for side, path in paths.items():
            if path and side not in self.labelled:
                if not self.firsts[side]:
                    raise DataError(f"{path}: holds no captions")
                check_any_labelled(path, self.firsts[side], first)
        yield from self.match.caption_notes()
        yield from self.match.object_notes(objects)


def _check_single(path: Path, texts: Collection[str]) -> None:
    """Refuse cells that may have several captions, since only the whole file could decide this."""
    if texts and may_be_joined(texts, Layout()):
        raise DataError(
            f"{path}: a cell may have several captions with a separator between them, and "
            f"only all cells of a file tell; write a row for each caption, {_LEAVE_OUT}"
        )
