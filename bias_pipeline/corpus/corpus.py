"""Defines the corpus: images, their groups, and captions by annotators and by a model."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Literal, get_args

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.attribute import LabelMap
from bias_pipeline.corpus.captions import Captions, ReadCache, add_numbers
from bias_pipeline.corpus.image_ids import sorting_order
from bias_pipeline.corpus.object_names import is_odd
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.records import (
    LONGEST,
    RecordColumns,
    collapse_repeated,
    read_captions,
)
from bias_pipeline.corpus.records import Record as Record
from bias_pipeline.errors import DataError, inflect
from bias_pipeline.io.hashing import UIntArray, hash_ids

Side = Literal["model", "human"]
SIDES: tuple[Side, ...] = get_args(Side)
# Codes of images without a group: UNSURE if annotators could not tell the group, else NO_GROUP.
NO_GROUP, UNSURE = -1, -2
# Shares of blank captions: a warning above the first, a refusal above the second.
BLANK_WARNING, BLANK_LIMIT = 0.05, 0.5
_AT_ONCE = 1 << 16  # ids that are hashed at once
BLANK_WORDS = "are blank"  # in every note on blank captions


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of all N images for one attribute.

    Attributes:
        names: the K group names.
        codes: (N,) int64, the index into ``names``. It is below 0 for images of no group:
            ``UNSURE`` if annotators could not tell the group, else ``NO_GROUP``.
        strata: for images of no group, how many images have each raw label.
    """

    names: tuple[str, ...]
    codes: IntArray
    strata: Mapping[str, int]

    @property
    def labelled(self) -> BoolArray:
        """(N,) flags: true for images that belong to a group."""
        return self.codes >= 0

    @property
    def unsure(self) -> BoolArray:
        """(N,) flags: true for images whose group annotators could not tell.

        Example:
            >>> Grouping(("male", "female"), np.array([0, NO_GROUP, UNSURE]), {}).unsure.tolist()
            [False, False, True]
        """
        return self.codes == UNSURE

    @property
    def sizes(self) -> dict[str, int]:
        """The number of images of each group, by name.

        Example:
            >>> Grouping(("male", "female"), np.array([0, -1, 1, 1]), {}).sizes
            {'male': 1, 'female': 2}
        """
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))
        return dict(zip(self.names, counts.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Corpus(ReadCache, Sequence[Record]):
    """Images in the order of their ids, as columns. Indexing gives :class:`Record` views.

    The order of the input never matters. Two corpora of the same images are equal column by column
    and have the same digest.

    Attributes:
        dataset: the data set's name.
        captioner: the captioner's name.
        ids: the N canonical ids, ascending.
        model: the captioner's captions, at most one per image.
        human: the annotators' captions, any number per image.
        marked: (C,) flags: true for human captions that are marked in their file as describing
            nothing. Empty if none are marked. Not part of the digest.
        groupings: the images' groups, by attribute name.
        objects: the objects of each image, under the data set's names. An image whose objects are
            unknown has None. If no objects are known at all, the attribute is None.
        objects_file: the user's own file of objects, in which only few names may be unknown. Empty:
            there is no such file, and any number of names may be unknown. Not part of the digest.
        pictures: the pictures of the images, or None if the data set has no pictures.
        source_order: (N,) int64, the position of each image in the captioner's own file.
        vocabulary: the captioner's published vocabulary, None if there is none.
        trained_on_reference: whether the captioner was trained on captions of this data set;
            None if unknown.
        notes: what readers of the result must know about how files were read.
        prompts: the distinct prompts that the captioner's file has besides captions. Not part of
            the digest.
        file_share: the share of labelled images that the captioner's file covers. Not part of the
            digest.
        file: the user's own file from which captions were read, else empty. Not part of the digest.
        blank_counts: by side, (N,) int64: how many captions of each image were blank and left out
            (:func:`~bias_pipeline.corpus.captions.is_blank`).
        declined: (N,) int64, how many of the captioner's captions of each image declined to
            describe it and were left out. Empty if none declined.
        samples: if the captioner wrote several captions of each image, a corpus for each further
            caption.
        edits: captions of edited pictures, such as crops, with one corpus for each edit. Only
            metrics of sets of pictures use them.
        tables: by name, table rows in which transforms record their changes. Not part of the
            digest.
        shown_under: the terms under which the pictures may be shown to others. Empty: pictures may
            not be shown. Not part of the digest.
        picture_ids: the picture of each of N records, if several records share a picture (one
            record per utterance). Records of one picture stay in one part of a split and are
            resampled together. None: each record has its own picture.
        set_ids: for each of N images, the set of pictures that differ only in a person's group.
            Empty for an image in no set. None if there are no sets.
    """

    dataset: str
    captioner: str
    ids: Sequence[str]
    model: Captions
    human: Captions
    groupings: Mapping[str, Grouping]
    objects: tuple[frozenset[str] | None, ...] | None = None
    pictures: Pictures | None = None
    source_order: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    vocabulary: frozenset[str] | None = None
    trained_on_reference: bool | None = None
    notes: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    file_share: float = 1.0
    file: str = ""
    objects_file: str = ""
    marked: BoolArray = field(default_factory=lambda: np.empty(0, bool))
    blank_counts: Mapping[str, IntArray] = field(default_factory=dict)
    declined: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    tables: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    shown_under: str = ""
    picture_ids: tuple[str, ...] | None = None
    set_ids: tuple[str, ...] | None = None
    samples: tuple[Corpus, ...] = ()
    edits: tuple[Corpus, ...] = ()

    @classmethod
    def build(
        cls,
        records: Iterable[Record] | RecordColumns,
        *,
        dataset: str,
        captioner: str,
        groups: Mapping[str, tuple[Sequence[str], LabelMap]],
        vocabulary: Iterable[str] | None = None,
        trained_on_reference: bool | None = None,
        notes: Sequence[str] = (),
        file: str = "",
        objects_file: str = "",
        blank_limit: float = BLANK_LIMIT,
    ) -> Corpus:
        """Sort records by id, check the records, and turn them into columns.

        Blank captions of both sides are left out. An image whose only caption is blank is then not
        described, so coverage falls and no metric rewards silence. Blank captions are counted and
        noted. Captions of more than 10,000 characters are cut after the last whole word.

        Args:
            records: the images, in the order of the captioner's file. In columns no id may occur
                twice.
            dataset: the data set's name.
            captioner: the captioner's name.
            groups: group names and label map, by attribute name.
            vocabulary: the captioner's published vocabulary.
            trained_on_reference: see the class.
            notes: see the class.
            file: see the class.
            objects_file: see the class.
            blank_limit: the largest accepted share of blank captions of a side, in [0, 1].

        Raises:
            DataError: on no records, two different records of one id, an unknown label, or too
                many blank captions.
        """
        repeated: list[str] = []
        if isinstance(records, RecordColumns):
            columns = records
        else:
            rows, repeated = collapse_repeated(records, dataset)
            columns = RecordColumns.from_records(rows)
        if not columns.ids:
            none = "no images; its files list none of the chosen part"
            raise DataError(f"dataset {dataset!r}, captioner {captioner!r}: {none}")
        order = sorting_order(columns.ids)
        model, human = (read_captions(columns, side, order) for side in SIDES)
        n_cut = model.n_cut + human.n_cut
        if order != list(range(len(order))):
            columns = columns.take(order)
        pictures, nobody = columns.picture_ids or (), [None] * len(order)
        corpus = cls(
            dataset=dataset,
            captioner=captioner,
            ids=tuple(columns.ids),
            model=model.captions,
            human=human.captions,
            groupings={
                name: _grouping(columns.labels.get(name, nobody), tuple(names), labels)
                for name, (names, labels) in groups.items()
            },
            objects=tuple(columns.objects)
            if columns.objects and any(names is not None for names in columns.objects)
            else None,
            pictures=Pictures.from_files(columns.images or (), columns.regions or ()),
            source_order=np.array(order, np.int64),
            vocabulary=None if vocabulary is None else frozenset(vocabulary),
            trained_on_reference=trained_on_reference,
            notes=(*notes, *repeated, *cut_note(n_cut)),
            file=file,
            objects_file=objects_file,
            marked=human.marked if human.marked.any() else np.empty(0, bool),
            blank_counts={"model": model.blanks, "human": human.blanks},
            picture_ids=tuple(pictures[row] or image for row, image in enumerate(columns.ids))
            if any(pictures)
            else None,
            set_ids=tuple(columns.set_ids or ()) if any(columns.set_ids or ()) else None,
        )
        return corpus.noting_blanks(blank_limit)

    def noting_blanks(self, limit: float) -> Corpus:
        """The corpus with notes on blank captions. A share above ``limit`` raises an error."""
        notes = [note for side in SIDES for note in _check_blanks(self, side, limit)]
        return replace(self, notes=(*self.notes, *notes))

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, row: int) -> Record:  # type: ignore[override]
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        row %= len(self)
        model = self.model.of_image(row)
        return Record(
            id=self.ids[row],
            model=model[0] if model else None,
            human=self.human.of_image(row),
            labels={
                name: g.names[g.codes[row]]
                for name, g in self.groupings.items()
                if g.codes[row] >= 0
            },
            objects=None if self.objects is None else self.objects[row],
            image=None if self.pictures is None else self.pictures.files[row],
            regions=None if self.pictures is None else self.pictures.regions_of(row),
            picture_id="" if self.picture_ids is None else self.picture_ids[row],
            set_id="" if self.set_ids is None else self.set_ids[row],
        )

    def __iter__(self) -> Iterator[Record]:
        return (self[row] for row in range(len(self)))

    def side(self, name: str) -> Captions:
        """The captions of one side, ``model`` or ``human``."""
        return {"model": self.model, "human": self.human}[name]

    @property
    def in_memory(self) -> bool:
        """Whether the words of all captions are in memory."""
        return self.model.in_memory and self.human.in_memory

    @property
    def each_sample(self) -> tuple[Corpus, ...]:
        """One corpus for each of the captioner's samples, or only this corpus."""
        return (replace(self, samples=()), *self.samples) if self.samples else (self,)

    @property
    def blanks(self) -> dict[str, int]:
        """How many captions were blank, by side."""
        return {side: int(counts.sum()) for side, counts in self.blank_counts.items()}

    def absent_share(self, side: str) -> float:
        """The share of a side's captions that were blank or declined; 0 without captions."""
        absent = self.blanks.get(side, 0) + (int(self.declined.sum()) if side == "model" else 0)
        return absent / (absent + len(self.side(side))) if absent else 0.0

    def rewrite(self, sides: Mapping[str, Captions]) -> Corpus:
        """The same corpus, in which some sides have other captions."""
        human = sides.get("human", self.human)
        marked = self.marked if human is self.human else np.empty(0, bool)
        return replace(self, model=sides.get("model", self.model), human=human, marked=marked)

    def take(self, rows: IntArray) -> Corpus:
        """The corpus with only some images, in memory. Counts of ``strata`` do not change.

        Args:
            rows: (M,) the indices of the images, ascending.
        """
        if len(rows) == len(self) and self.in_memory:
            return self
        place = np.full(len(self), -1, np.int64)
        place[rows] = np.arange(len(rows))
        sides = {str(name): self.side(name).of_images_at(place) for name in SIDES}
        order = self.source_order[rows] if len(self.source_order) else self.source_order
        marked = self.marked[place[self.human.image_rows] >= 0] if len(self.marked) else self.marked
        return replace(
            self.rewrite(sides),
            marked=marked,
            ids=tuple(self.ids[row] for row in rows),
            groupings={n: replace(g, codes=g.codes[rows]) for n, g in self.groupings.items()},
            objects=None if self.objects is None else tuple(self.objects[row] for row in rows),
            pictures=None if self.pictures is None else self.pictures.take(rows),
            source_order=np.argsort(np.argsort(order, kind="stable"), kind="stable"),
            blank_counts={side: counts[rows] for side, counts in self.blank_counts.items()},
            picture_ids=self.picture_ids and tuple(self.picture_ids[row] for row in rows),
            set_ids=self.set_ids and tuple(self.set_ids[row] for row in rows),
            declined=self.declined[rows] if len(self.declined) else self.declined,
            samples=tuple(sample.take(rows) for sample in self.samples),
            edits=tuple(edit.take(rows) for edit in self.edits),
        )

    @cached_property
    def images_by_object(self) -> Mapping[str, int]:
        """By object name, how many images have the object."""
        counts: Counter[str] = Counter()
        for names, n in Counter(self.objects or ()).items():  # many images have the same objects
            for name in names or ():
                counts[name] += n
        return counts

    @cached_property
    def keys(self) -> UIntArray:
        """(N,): a hash of each picture id, so draws for one picture do not depend on others."""
        return _keys_of(self.picture_ids or self.ids)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of everything that is scored, whatever the order of the input."""
        sha = hashlib.sha256()
        for first in range(0, len(self), _AT_ONCE):
            ids = "\n".join(self.ids[first : first + _AT_ONCE])
            sha.update(("\n" * (first > 0) + ids).encode("utf-8", "surrogatepass"))
        sha.update(self.model.compact().digest.encode())
        sha.update(self.human.compact().digest.encode())
        for name in sorted(self.groupings):
            sha.update(f"{name}:{self.groupings[name].names}".encode())
            add_numbers(sha, self.groupings[name].codes)
        words = None if self.vocabulary is None else sorted(self.vocabulary)
        sha.update(f"[{_written_objects(self.objects)}, {json.dumps(words)}]".encode())
        # The meaning of an odd name depends on the other names
        if any(map(is_odd, self.images_by_object)):
            sha.update(b"object names")
        if self.pictures is not None:
            sha.update(f"pictures:{self.pictures.digest}".encode())
        if any(self.blanks.values()):  # an image without a caption need not have a blank caption
            sha.update(json.dumps(sorted(self.blanks.items())).encode())
        if self.picture_ids is not None:
            sha.update("\n".join(self.picture_ids).encode("utf-8", "surrogatepass"))
        if self.set_ids is not None:
            sha.update(f"sets:{json.dumps(self.set_ids)}".encode())
        if self.declined.any():
            sha.update(f"declined:{np.flatnonzero(self.declined).tolist()}".encode())
        for sample in self.samples:
            sha.update(sample.digest.encode())
        for edit in self.edits:
            sha.update(f"edit:{edit.digest}".encode())
        return sha.hexdigest()

    @cached_property
    def reference(self) -> str:
        """SHA-256 (hex) of everything except what the captioner wrote."""
        none, no = Captions.from_texts([]), np.empty(0, np.int64)
        people = replace(self, model=none, vocabulary=None, declined=no, samples=(), edits=())
        return replace(people, blank_counts={}).digest


def _written_objects(objects: Sequence[frozenset[str] | None] | None) -> str:
    """The objects of all images as JSON.

    An image without objects has null, unknown objects are [].
    """
    if objects is None:
        return "null"
    written = {
        names: json.dumps([] if names is None else sorted(names) or None) for names in set(objects)
    }
    return f"[{', '.join(map(written.__getitem__, objects))}]"


def _check_blanks(corpus: Corpus, side: str, limit: float) -> list[str]:
    """The note on a side's blank captions, if it has any."""
    blanks, share = corpus.blanks[side], corpus.absent_share(side)
    if not blanks:
        return []
    fault = (
        f"{blanks} of {blanks + len(corpus.side(side))} {side} captions ({share:.1%}) "
        f"{BLANK_WORDS} (empty, without a word, or NaN, None, null){_blanks_by_group(corpus, side)}"
    )
    if share > limit:
        raise DataError(
            f"dataset {corpus.dataset!r}, captioner {corpus.captioner!r}: {fault}, above the limit "
            f"of {limit:.0%}; complete the captions, or raise dataset.blank_limit"
        )
    warning = "warning: " if share > BLANK_WARNING else ""
    return [f"{warning}{fault}: they count as absent, and coverage falls"]


@lru_cache(maxsize=4)  # transforms make many corpora of the same images
def _keys_of(ids: Sequence[str]) -> UIntArray:
    keys = hash_ids(ids)
    keys.flags.writeable = False
    return keys


def _blanks_by_group(corpus: Corpus, side: str) -> str:
    """A text on how many images of each group have a blank caption, if there is one attribute."""
    if len(corpus.groupings) != 1:
        return ""
    (grouping,) = corpus.groupings.values()
    blank = corpus.blank_counts[side] > 0
    shares = [
        f"{int(blank[grouping.codes == code].sum())} of {size} ({name})"
        for code, (name, size) in enumerate(grouping.sizes.items())
    ]
    return f", by images {', '.join(shares)}"


def _grouping(raw: Sequence[str | None], names: tuple[str, ...], labels: LabelMap) -> Grouping:
    place = {value: number for number, value in enumerate(dict.fromkeys(raw))}
    written = np.fromiter(map(place.__getitem__, raw), np.int64, len(raw))
    return grouping_of([*place], written, names, labels)


def grouping_of(
    written: Sequence[str | None], numbers: IntArray, names: tuple[str, ...], labels: LabelMap
) -> Grouping:
    """The groups of N images.

    ``written`` has the distinct labels, and ``numbers`` (N,) has the index of each image's label in
    ``written``.
    """
    codes = np.full(len(written), NO_GROUP, np.int64)
    for number, value in enumerate(written):
        group = None if value is None else labels.group_of(value)
        if group is not None:
            codes[number] = names.index(group)
        elif value is not None and labels.is_unsure(value):
            codes[number] = UNSURE
    counts = np.bincount(numbers, minlength=len(written)).tolist()
    strata = {
        value: counts[number]
        for number, value in enumerate(written)
        if value is not None and codes[number] < 0
    }
    return Grouping(names, codes[numbers], strata)


def cut_note(n_cut: int) -> list[str]:
    """A note on captions that were cut."""
    note = inflect(n_cut, f"captions of more than {LONGEST:,} characters were cut")
    return [note] if n_cut else []
