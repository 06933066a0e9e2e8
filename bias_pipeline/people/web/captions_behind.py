"""Reads the captions and pictures behind runs from the files that the runs' manifests name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.attribute import Attribute, Naming
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.corpus.object_names import coco_name
from bias_pipeline.corpus.pictures import MissingPicture, Pictures
from bias_pipeline.data.photos import draw_picture
from bias_pipeline.errors import DataError
from bias_pipeline.people.web.shared_reads import SharedReads
from bias_pipeline.results.rows import Result
from bias_pipeline.text.description_words import describing_words
from bias_pipeline.text.descriptions import ConceptTable, describe_captions
from bias_pipeline.text.mentions import Listed, listed_words, lowered_words, named_group
from bias_pipeline.text.tokenize import tokenize_word
from bias_pipeline.text.transform import Transform, apply_transforms

OTHER = 5  # the mark of a word that names no labelled group
NO_CAPTION = -3  # a code in addition to the codes of named_group
MOST_IMAGES = 1_000_000  # of a run, and of all runs whose captions stay in memory
_SIDE, _SMALL, _QUALITY = 900, 220, 85  # pixels of a picture and of a small one; of JPEG
_DRAWN = 256  # pixels of a picture that is drawn


@dataclass(frozen=True, eq=False)
class CaptionsBehind:
    corpus: Corpus  # as it was read
    attribute: Attribute  # whose groups are counted
    concepts: ConceptTable  # the concepts that captions say of persons
    transforms: Sequence[Transform] = ()  # applied to each caption before attackers read it
    # Photos by image id, for runs that scored only captions
    photos: Mapping[str, Path] = field(default_factory=dict)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        return self.corpus.groupings[self.attribute.name].names

    @cached_property
    def group_named(self) -> IntArray:
        """(N,) the only group that each image's caption names, or a code below 0."""
        captions = self.corpus.model
        codes = np.full(len(self.corpus), NO_CAPTION)
        codes[captions.image_rows] = named_group(captions, self.attribute, self.groups)
        return codes

    def holding(self, phrase: str) -> BoolArray:
        """(N,) whether each image's caption contains a word or phrase, in upper or lower case."""
        words = " ".join(_tokens(phrase))
        captions = lowered_words(self.corpus.model)
        joined = captions.join([words]) if " " in words else captions
        flags = np.zeros(len(self.corpus), bool)
        flags[captions.image_rows[joined.mentions([words])]] = True
        return flags

    @cached_property
    def _concepts_of_captions(self) -> sparse.csc_array:
        """(C, Q) which concepts each caption mentions about a person."""
        return describe_captions(self.corpus.model, self.concepts).concepts.tocsc()

    def describing(self, concepts: Collection[str]) -> BoolArray:
        """(N,) whether each image's caption mentions one of these concepts about a person."""
        columns = [k for k, name in enumerate(self.concepts.concepts) if name in concepts]
        captions = np.flatnonzero(self._concepts_of_captions[:, columns].sum(axis=1))
        flags = np.zeros(len(self.corpus), bool)
        flags[self.corpus.model.image_rows[captions]] = True
        return flags

    def describing_words(self, texts: Sequence[str], concepts: Collection[str]) -> list[list[bool]]:
        """For each caption's words, whether a word gives a person one of these concepts."""
        words = describing_words(Captions.from_texts(list(texts)), self.concepts)
        names = self.concepts.concepts
        return [
            [number >= 0 and names[number] in concepts for number in words.in_caption(row)]
            for row in range(len(texts))
        ]

    @cached_property
    def objects(self) -> list[str]:
        """The objects that some image has, with the most frequent first."""
        counts = Counter[str]()
        for name, n_images in self.corpus.images_by_object.items():
            counts[coco_name(name)] += n_images
        return sorted(counts, key=lambda name: (-counts[name], name))

    def with_object(self, name: str) -> BoolArray:
        known = self.corpus.objects or [None] * len(self.corpus)
        written = {one for one in self.corpus.images_by_object if coco_name(one) == name}
        return np.array([not written.isdisjoint(objects or ()) for objects in known], bool)

    def objects_of(self, row: int) -> list[str]:
        known = self.corpus.objects
        return [] if known is None or row < 0 else sorted(known[row] or ())

    def naming_words(self, texts: Sequence[str]) -> list[list[tuple[str, int]]]:
        """The words of each caption, with the number of the group that a word names, or -1.

        A word has ``OTHER`` if it names a group that the data set does not label, or any group of
        an intersection.
        """
        captions = Captions.from_texts(list(texts))
        named = [self._groups_of_tokens(captions, naming) for naming in self.attribute.namings()]
        marked = []
        for row, text in enumerate(texts):
            words = text.split()
            pieces = [_tokens(word) for word in words]
            size = sum(map(len, pieces))
            known = [groups[row] for groups in named if len(groups[row]) == size]
            codes = iter(np.max([[-1] * size, *known], axis=0).tolist())
            marked.append(
                [
                    (word, max((next(codes) for _ in piece), default=-1))
                    for word, piece in zip(words, pieces, strict=True)
                ]
            )
        return marked

    def _groups_of_tokens(self, captions: Captions, naming: Naming) -> list[list[int]]:
        """The group that each token of each caption names, or -1."""
        codes = [
            self.groups.index(group) if group in self.groups else OTHER for group, _ in naming.words
        ]
        listed = listed_words(captions, naming)
        return [_groups_at(listed, row, codes) for row in range(len(captions))]

    def as_attackers_read(self, rows: IntArray) -> list[list[str]]:
        """The words of each image's caption after the transforms; empty without a caption."""
        part = self.corpus.take(np.sort(rows))
        ready = apply_transforms(self.transforms, part).model
        words = {part.ids[ready.image_rows[row]]: ready.words(row) for row in range(len(ready))}
        return [words.get(self.corpus.ids[row], []) for row in rows.tolist()]

    @cached_property
    def pictures(self) -> Pictures | None:
        """The pictures that the run scored, or else the photos; None if no image has a picture."""
        if self.corpus.pictures is not None:
            return self.corpus.pictures
        return Pictures.from_files([self.photos.get(short_id(image)) for image in self.corpus.ids])

    def has_picture(self, row: int) -> bool:
        pictures = self.pictures
        return pictures is not None and not isinstance(pictures.files[row], MissingPicture | None)

    def picture(self, row: int, *, small: bool) -> bytes:
        """An image's picture as a JPEG without metadata."""
        from PIL import Image

        side = _SMALL if small else _SIDE
        if self.pictures is None or self.pictures.files[row] is None:
            raise DataError("this image has no picture")
        photo = Image.fromarray(draw_picture(self.pictures, row, _DRAWN).pixels)
        photo.thumbnail((side, side))
        content = BytesIO()
        photo.save(content, "JPEG", quality=_QUALITY)
        return content.getvalue()


def _tokens(text: str) -> list[str]:
    pieces = (
        tokenize_word(word.lower(), keep_punctuation=False, keep_unknown=True)
        for word in text.split()
    )
    return [token for piece in pieces for token in piece]


def _groups_at(listed: Listed, row: int, codes: Sequence[int]) -> list[int]:
    """The group that each token of a caption names, or -1; all tokens of a phrase count."""
    first, last = listed.captions.starts[row : row + 2].tolist()
    here = (listed.places >= first) & (listed.places < last) & listed.names
    named = dict(zip(listed.places[here].tolist(), listed.groups[here].tolist(), strict=True))
    groups: list[int] = []
    for place in range(first, last):
        width = len(listed.captions.types[listed.captions.tokens[place]].split())
        groups += [codes[named[place]] if place in named else -1] * width
    return groups


Reader = Callable[[Result], CaptionsBehind]


class Library:
    """Reads the captions and pictures behind each run once, for all pages that need them."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._reads: SharedReads[CaptionsBehind] = SharedReads(
            lambda behind: len(behind.corpus), MOST_IMAGES
        )

    def start(self, result: Result) -> Future[CaptionsBehind]:
        """Begin to read the data behind a run; an error says why they cannot be shown.

        A failed read is tried again, since the files may be there later.
        """
        key = (result.run_id, result.facts.corpus.digest)
        return self._reads.start(key, lambda: self._read_checked(result))

    def _read_checked(self, result: Result) -> CaptionsBehind:
        """Read and check the captions behind a run, and compute what its page shows first."""
        scored = result.facts.corpus
        if scored.n_images > MOST_IMAGES:
            raise DataError(
                f"this run scored {scored.n_images:,} images; captions and pictures are shown "
                f"only of runs with up to {MOST_IMAGES:,} images, so you see numbers alone"
            )
        behind = self._read(result)
        if behind.corpus.digest != scored.digest:
            raise DataError(
                f"the files of {behind.corpus.dataset} and {behind.corpus.captioner} hold other "
                "captions, labels or pictures than this run scored (their digest differs), so only "
                "numbers are shown; name a folder with the run's files: --data DIR"
            )
        _ = behind.group_named, behind.objects
        return behind
