"""Makes tables of examples: spellings by group, captions, and words that belong to no concept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product, zip_longest

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.io.hashing import UIntArray, random_words
from bias_pipeline.metrics.counting.described_images import DescribedImages
from bias_pipeline.metrics.counting.description_answer import DescriptionContrast
from bias_pipeline.text.description_words import Marked, describing_words, open_slots
from bias_pipeline.text.descriptions import Descriptions

SPELLINGS, CAPTIONS, SLOTS = "described_words", "described_captions", "described_slots"
_MOST_SPELLINGS = 6  # the most spellings of a concept, a side and a group
_MOST_CAPTIONS = 4  # the most captions of a concept, half of them of each side
_MOST_SLOTS = 12
_FEWEST = 2  # captions with a word of no concept

Line = dict[str, object]


def example_tables(
    images: DescribedImages, contrasts: Sequence[DescriptionContrast]
) -> dict[str, list[Line]]:
    """Three tables: spellings with counts, captions with marked words, words without a concept."""
    examples = _Examples(images, contrasts)
    tables = {
        SPELLINGS: list(examples.spellings()),
        CAPTIONS: list(examples.captions()),
        SLOTS: list(examples.slots()),
    }
    return {name: lines for name, lines in tables.items() if lines}


class _Examples:
    """Examples of concepts that occur often enough in captions to be listed."""

    def __init__(self, images: DescribedImages, contrasts: Sequence[DescriptionContrast]) -> None:
        self.images = images
        grouping = images.corpus.groupings[images.attribute.name]
        self.codes, self.groups = grouping.codes, grouping.names
        listed = {contrast.concepts[q] for contrast in contrasts
                  for q in contrast.differences.listed_concepts.tolist()}  # fmt: skip
        self.concepts = [k for k, name in enumerate(images.table.concepts) if name in listed]

    def _captions_of(self, side: str) -> tuple[Captions, Descriptions, IntArray]:
        """A side's captions, their descriptions, and each caption's group."""
        captions = self.images.corpus.side(side)
        descriptions = self.images.model if side == "model" else self.images.human
        return captions, descriptions, self.codes[captions.image_rows]

    def spellings(self) -> Iterator[Line]:
        """The most frequent spellings of each concept, by side and group."""
        names = self.groups
        for side in [side for side in SIDES if len(self.images.corpus.side(side))]:
            _, descriptions, groups = self._captions_of(side)
            by_caption = descriptions.spellings
            counts = [by_caption[groups == group].sum(axis=0) for group in range(len(names))]
            for concept, group in product(self.concepts, range(len(names))):
                columns = np.flatnonzero((descriptions.concept_of == concept) & (counts[group] > 0))
                order = np.argsort(-counts[group][columns], kind="stable")
                for column in columns[order[:_MOST_SPELLINGS]].tolist():
                    yield {
                        "concept": self.images.table.concepts[concept],
                        "side": side,
                        "group": names[group],
                        "spelling": descriptions.words[column],
                        "captions": int(counts[group][column]),
                        "of": int((groups == group).sum()),
                    }

    def captions(self) -> Iterator[Line]:
        """A few captions for each concept, drawn by image id, with alternating groups."""
        captions, descriptions, groups = self._captions_of("model")
        keys = self.images.corpus.keys[captions.image_rows]
        drawn = random_words("examples", 0, keys)
        columns = descriptions.concepts.tocsc()
        chosen = []
        for concept in self.concepts:
            first, last = columns.indptr[concept : concept + 2].tolist()
            rows = columns.indices[first:last].astype(np.int64)
            chosen += [(concept, row) for row in take_in_turn(rows, groups, drawn)]
        words = describing_words(
            captions.take(np.array([row for _, row in chosen], np.int64)), self.images.table
        )
        for number, (concept, row) in enumerate(chosen):
            yield {
                "concept": self.images.table.concepts[concept],
                "group": self.groups[groups[row]],
                "image_id": self.images.corpus.ids[captions.image_rows[row]],
                **_caption_line(words.of_concept(number, concept)),
            }

    def slots(self) -> Iterator[Line]:
        """The most frequent words that belong to no concept, with an example of each word."""
        captions, _, groups = self._captions_of("model")
        group_words = frozenset(self.images.attribute.all_words)
        for slot in open_slots(captions, self.images.table, group_words, _FEWEST)[:_MOST_SLOTS]:
            counts = np.bincount(groups[slot.rows], minlength=len(self.groups))
            yield {
                "word": slot.word,
                **{f"captions:{g}": int(n) for g, n in zip(self.groups, counts, strict=True)},
                "image_id": self.images.corpus.ids[captions.image_rows[slot.rows[0]]],
                **_caption_line(slot.mark_words(captions.words(int(slot.rows[0])))),
            }


def take_in_turn(rows: IntArray, groups: IntArray, drawn: UIntArray) -> list[int]:
    """At most four rows, sorted by their random numbers, with alternating groups."""
    ordered = rows[np.argsort(drawn[rows], kind="stable")]
    turns = zip_longest(
        *(ordered[groups[ordered] == g].tolist() for g in np.unique(groups[ordered]).tolist())
    )
    taken = (row for turn in turns for row in turn if row is not None)
    return list(islice(taken, _MOST_CAPTIONS))


def _caption_line(marked: Marked) -> Line:
    """A caption, and the positions of its marked words, counted from 0."""
    places = [str(place) for place, (_, is_marked) in enumerate(marked) if is_marked]
    return {"caption": " ".join(word for word, _ in marked), "marked": " ".join(places)}
