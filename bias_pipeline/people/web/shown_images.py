"""Images behind a number, as they are shown: captions with marked words, guesses, shares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.pictures import MissingPicture
from bias_pipeline.errors import DataError
from bias_pipeline.people.web.captions_behind import CaptionsBehind
from bias_pipeline.people.web.evidence import Evidence, named_text
from bias_pipeline.report.explain.linear import Gram, word_parts
from bias_pipeline.report.table import Weighted
from bias_pipeline.report.word_attribution import read_words


@dataclass(frozen=True)
class ShownCaption:
    """A captioner's caption of an image."""

    captioner: str  # who wrote it
    words: Sequence[tuple[str, int]]  # each with the number of the group that it names, else -1
    describing: Sequence[bool]  # whether each word says a concept that is filtered by
    read: Marked  # as attackers read it, words that told them marked; empty if that is not known
    named: str  # the group that it names, in words
    right: float  # share of the attackers' guesses that were right; NaN if there are none
    sure: float  # mean probability of the true group; NaN likewise
    share: float  # what the image adds to the number; NaN if the number is no sum


@dataclass(frozen=True)
class ShownImage:
    """An image behind a number."""

    id: str  # of the image
    row: int  # in the corpus, -1 if that is not at hand
    group: str  # its label; empty if it has none
    picture: bool  # whether there is one
    captions: Sequence[ShownCaption]  # of the run, and of the run beside it
    people: Sequence[Sequence[tuple[str, int]]]  # human captions, marked as the captioner's
    objects: Sequence[str]  # in it


@dataclass(frozen=True)
class ShownImages:
    """A run's images as they are shown."""

    evidence: Evidence  # on them
    part: str  # whose sum is shown
    word_votes: WordVotes | None  # the words that told attackers, if that is known
    concepts: frozenset[str] = frozenset()  # those that are marked in captions

    def images(self, places: IntArray, beside: ShownImages | None) -> list[ShownImage]:
        """Images as they are shown."""
        evidence, captions = self.evidence, self.evidence.captions
        ids = [evidence.id_of(place) for place in places.tolist()]
        columns = [self.captions(places)]
        if beside is not None:
            columns.append(beside.captions(beside.places(ids)))
        people = self._people(places)
        rows, groups = evidence.rows[places].tolist(), evidence.group[places].tolist()
        return [
            ShownImage(
                id=ids[n],
                row=rows[n],
                group=evidence.groups[groups[n]] if groups[n] >= 0 else "",
                picture=captions is not None and _has_picture(captions, rows[n]),
                captions=[one for column in columns if (one := column[n]) is not None],
                people=people[n],
                objects=_objects(captions, rows[n]),
            )
            for n in range(len(ids))
        ]

    def places(self, ids: Sequence[str]) -> IntArray:
        """Where images are in this run, -1 for one that it lacks."""
        evidence = self.evidence
        if evidence.scores is None:
            known = () if evidence.captions is None else evidence.captions.corpus.ids
            of_id = {known[row]: place for place, row in enumerate(evidence.rows.tolist())}
            return np.array([of_id.get(image, -1) for image in ids], np.int64)
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = pa.array(ids, pa.string())
        hits = np.flatnonzero(pc.is_in(evidence.scores.ids, value_set=wanted).to_numpy(False))
        of_id = {evidence.id_of(place): place for place in hits.tolist()}
        return np.array([of_id.get(image, -1) for image in ids], np.int64)

    def captions(self, places: IntArray) -> list[ShownCaption | None]:
        """The captioner's caption of each image; None where it has none."""
        present = places[places >= 0]
        made = iter(self._captions(present))
        return [next(made) if place >= 0 else None for place in places.tolist()]

    def _captions(self, places: IntArray) -> list[ShownCaption]:
        evidence, captions = self.evidence, self.evidence.captions
        rows = evidence.rows[places]
        texts, read = [""] * len(places), [list[str]()] * len(places)
        if captions is not None:
            texts = [(captions.corpus.model.of_image(row) or ("",))[0] for row in rows.tolist()]
            if captions.transforms and (rows >= 0).all():
                read = captions.as_attackers_read(rows)
        words = captions.naming_words(texts) if captions is not None else [[]] * len(places)
        describing = [list[bool]()] * len(places)
        if captions is not None and self.concepts:
            describing = captions.describing_words(texts, self.concepts)
        named = None if evidence.named is None else evidence.named[places].tolist()
        shares, scores = evidence.shares(self.part), evidence.scores
        captioner = evidence.result.rows[0].captioner
        return [
            ShownCaption(
                captioner=captioner,
                words=words[n],
                describing=describing[n],
                read=self._marked(read[n], place),
                named="" if named is None else named_text(named[n], evidence.groups),
                right=math.nan if scores is None else float(scores.right[place]),
                sure=math.nan if scores is None else float(scores.confidence[place]),
                share=math.nan if shares is None else float(shares[place]),
            )
            for n, place in enumerate(places.tolist())
        ]

    def _marked(self, words: Sequence[str], place: int) -> Marked:
        if self.word_votes is None:
            return [(word, 0) for word in words]
        code = int(self.evidence.group[place])
        group = self.evidence.groups[code] if code >= 0 else ""
        return self.word_votes.marked(words, group)

    def _people(self, places: IntArray) -> list[list[list[tuple[str, int]]]]:
        """Human captions of each image, marked."""
        captions = self.evidence.captions
        if captions is None:
            return [[] for _ in places]
        human = captions.corpus.human
        texts = [human.of_image(row) for row in self.evidence.rows[places].tolist()]
        marked = iter(captions.naming_words([text for each in texts for text in each]))
        return [[next(marked) for _ in each] for each in texts]


def _has_picture(captions: CaptionsBehind, row: int) -> bool:
    pictures = captions.corpus.pictures
    return pictures is not None and not isinstance(pictures.files[row], MissingPicture | None)


def _objects(captions: CaptionsBehind | None, row: int) -> list[str]:
    known = None if captions is None else captions.corpus.objects
    return [] if known is None or row < 0 else sorted(known[row] or ())


Marked = Sequence[tuple[str, int]]  # words with their strength, -2 to 2; 0 is not marked


@dataclass(frozen=True)
class WordVotes:
    """What each n-gram adds to the log-odds of a group, as ``analysis words`` wrote it."""

    groups: tuple[str, ...]  # of the attribute
    # N-gram to (1,) towards the second of two groups, or (K,) towards each group
    votes: Mapping[Gram, Float64Array]
    order: int  # of the longest n-gram

    def marked(self, words: Sequence[str], group: str) -> Marked:
        """A caption's words with what they add.

        Of two groups, below 0 towards the first and above it towards the second; of more, towards
        the given group.
        """
        parts = word_parts(words, self.votes, self.order)
        of_group = len(self.groups) > 2 and group in self.groups
        column = self.groups.index(group) if of_group else 0
        return Weighted(tuple(zip(words, parts[:, column].tolist(), strict=True))).levels()


def read_word_votes(root: Path, run_id: str) -> WordVotes | None:
    """The words that ``analysis words`` wrote for a run; None if it was not asked."""
    path = root / f"words-{run_id}.csv"
    if not path.is_file():
        return None
    try:
        words = read_words(path)
    except (ValueError, LookupError) as error:
        raise DataError(f"{path}: is no complete file of words ({error})") from error
    votes = {
        word.gram: np.array([interval.value for interval in word.coefficients.values()])
        for word in words.words
        if word.side == "model" and word.gram
    }
    return WordVotes(words.groups, votes, max(map(len, votes), default=1)) if votes else None
