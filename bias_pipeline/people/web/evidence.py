"""Collects the images behind a run's numbers, with captions, marks, guesses and shares."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from starlette.exceptions import HTTPException

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.errors import DataError
from bias_pipeline.io.digests import sha256_of
from bias_pipeline.people.image_scores import ImageScores, image_scores
from bias_pipeline.people.web.captions_behind import NO_CAPTION, CaptionsBehind
from bias_pipeline.people.web.views import View
from bias_pipeline.report.explain.linear import Gram, word_parts
from bias_pipeline.report.table import Weighted
from bias_pipeline.report.word_attribution import read_words
from bias_pipeline.results.parquet import EXCLUSIVE
from bias_pipeline.results.rows import Result, mapping_in
from bias_pipeline.stats import scoring
from bias_pipeline.text.descriptions import ConceptTable
from bias_pipeline.text.mentions import NO_GROUP, SEVERAL_GROUPS

MOST_GUESSES = 10_000_000  # most guesses of a run that are added up; some 2 GB
SUMS = ("score", "model", "human")  # parts that may be sums over images
GUESSES = ("right", "wrong")
FILTERS = ("group", "names", "guess", "object", "word", "concept", "class")
NAMES = ("right", "wrong", "none", "several")
ORDERS = {
    "-share": "raises the number most",
    "share": "lowers it most",
    "-sure": "attackers surest of the group",
    "sure": "attackers least sure",
    "image": "image",
}
_SCORINGS: Mapping[str, Callable[..., scoring.Scoring]] = {
    kind.__name__: kind for kind in (scoring.Accuracy, scoring.Lic, scoring.Confidence)
}


@dataclass(frozen=True, eq=False)
class Evidence:
    result: Result  # the result of the run
    # The scores of attackers' guesses; None if the run has no such sums over images
    scores: ImageScores | None
    captions: CaptionsBehind | None  # the captions that were scored, None if they cannot be read
    reason: str = ""  # why `captions` is None; empty otherwise

    @cached_property
    def rows(self) -> IntArray:
        """(N,) the row of each image in the corpus; -1 if the row is unknown."""
        if self.captions is None:
            return np.full(0 if self.scores is None else len(self.scores.ids), -1)
        if self.scores is None:
            return np.arange(len(self.captions.corpus))
        known = pa.array(self.captions.corpus.ids, pa.string())
        places = pc.fill_null(pc.index_in(self.scores.ids, value_set=known), -1)
        return np.asarray(places.to_numpy(), np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    def id_of(self, place: int) -> str:
        if self.scores is not None:
            return str(self.scores.ids[place].as_py())
        assert self.captions is not None  # or there is no image
        return self.captions.corpus.ids[self.rows[place]]

    @property
    def groups(self) -> tuple[str, ...]:
        if self.captions is not None:
            return self.captions.groups
        return () if self.scores is None else self.scores.groups

    @cached_property
    def group(self) -> IntArray:
        """(N,) the group of each image, which is below 0 for images of no group."""
        if self.captions is None:
            return np.empty(0, np.int64) if self.scores is None else self.scores.truth
        codes = self.captions.corpus.groupings[self.captions.attribute.name].codes
        return codes[self.rows]

    def places_of(self, ids: Sequence[str]) -> IntArray:
        """The places of images in this run; -1 for an image that the run lacks."""
        places: Iterable[int] = range(len(self))
        if self.scores is not None:
            wanted = pa.array(ids, pa.string())
            hits = pc.is_in(self.scores.ids, value_set=wanted).to_numpy(False)
            places = np.flatnonzero(hits).tolist()
        of_id = {self.id_of(place): place for place in places}
        return np.array([of_id.get(image, -1) for image in ids], np.int64)

    def shares(self, part: str) -> Float64Array | None:
        """(N,) how much each image adds to a part, or None if the part is not a sum over images."""
        relation = self.result.facts.config.get("relation", "difference")
        if self.scores is None or (part == "score" and relation != "difference"):
            return None
        return self.scores.shares(part)

    def part(self, view: View) -> str:
        """The part whose images a view shows, without ``paired``; the score by default."""
        usual = "model" if self.shares("score") is None and self.scores is not None else "score"
        part = (view["part"] or usual).removesuffix(":paired")
        _index_of(part, SUMS)
        return part

    def value(self, part: str) -> float:
        values = {row.part: row.value for row in self.result.rows}
        return values.get(f"{part}:paired", values.get(part, math.nan))

    def places(self, view: View) -> IntArray:
        """The images that a view shows, in the order of the view."""
        part = self.part(view)
        keep = np.ones(len(self), bool)
        for name in FILTERS:
            if view[name]:
                keep &= self._fitting(name, view[name])
        order = self._order(view["sort"] or self.usual_order(part), part)
        return np.flatnonzero(keep) if order is None else order[keep[order]]

    def usual_order(self, part: str) -> str:
        return "image" if self.shares(part) is None else "-share"

    def _order(self, name: str, part: str) -> IntArray | None:
        """(N,) the places of all images in a given order, or None for the order of their ids."""
        if name not in ORDERS:
            raise HTTPException(400, f"sort={name} is unknown; choose {', '.join(ORDERS)}")
        if name == "image":
            return None
        by = "sure" if name.endswith("sure") else part
        shared = by == "sure" or self.shares(part) is not None
        if self.scores is None or not shared:
            raise HTTPException(400, "this number is not a mean of guesses; choose sort=image")
        return self.scores.order(by, descending=name.startswith("-"))

    def _fitting(self, name: str, wanted: str) -> BoolArray:
        """(N,) whether a filter leaves each image."""
        if name == "group":
            return self.group == _index_of(wanted, self.groups)
        if name == "guess":
            _index_of(wanted, GUESSES)
            if self.scores is None:
                raise HTTPException(400, "this run has no guesses of attackers from captions")
            right = self.scores.right
            return right >= 0.5 if wanted == "right" else right < 0.5
        captions = self.captions
        if captions is None:
            raise HTTPException(409, self.reason)
        if name == "names":
            return self._naming(wanted, captions.group_named[self.rows])
        if name == "object":
            return captions.with_object(wanted)[self.rows]
        if name == "word":
            return captions.holding(wanted)[self.rows]
        table = captions.concepts
        _index_of(wanted, table.concepts if name == "concept" else table.classes)
        concepts = [wanted] if name == "concept" else _of_class(table, wanted)
        return captions.describing(concepts)[self.rows]

    def _naming(self, which: str, named: IntArray) -> BoolArray:
        _index_of(which, NAMES)
        codes = {"none": NO_GROUP, "several": SEVERAL_GROUPS}
        if which in codes:
            return named == codes[which]
        return (named >= 0) & (self.group >= 0) & ((named == self.group) == (which == "right"))

    def concepts(self, view: View) -> frozenset[str]:
        """The concepts by which a view filters captions; empty without such a filter."""
        if self.captions is None:
            return frozenset()
        table = self.captions.concepts
        return frozenset(
            {view["concept"]} & table.class_of.keys() | _of_class(table, view["class"])
        )


def _of_class(table: ConceptTable, name: str) -> set[str]:
    return {concept for concept, kind in table.class_of.items() if kind == name}


def _index_of(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise HTTPException(400, f"{name} is unknown; choose {', '.join(names)}")
    return names.index(name)


def scores_of(result: Result, root: Path) -> ImageScores | None:
    """The guesses of a run's attackers, added up by image, or None if scores are not sums."""
    node = mapping_in(result.facts.config, "scoring")
    kind = _SCORINGS.get(str(node.get("_target_", "")).rpartition(".")[2])
    if kind is None:
        return None
    with contextlib.suppress(OSError, ValueError):  # damage is noticed below
        n_guesses = pq.read_metadata(root / result.run_id / EXCLUSIVE).num_rows
        if n_guesses > MOST_GUESSES:
            raise DataError(
                f"{root / result.run_id / EXCLUSIVE}: has {n_guesses:,} guesses of attackers, "
                f"more than the {MOST_GUESSES:,} that are added up by image, so guesses and "
                "shares are not shown"
            )
    path = predictions_path(result, root)
    if path is None:
        return None
    try:
        return image_scores(path, kind(node.get("average", "captions")))
    except ValueError:  # there are no guesses from captions, as in DBAC
        return None
    except (ArithmeticError, LookupError, OSError, RuntimeError, TypeError) as error:
        raise DataError(f"{path}: cannot be read ({error}); run the job again") from error


def predictions_path(result: Result, root: Path) -> Path | None:
    written = (result.facts.files or {}).get(EXCLUSIVE)
    if written is None:
        return None
    path = root / result.run_id / EXCLUSIVE
    try:
        about = path.stat()
        checksum = _checksum(path, about.st_mtime_ns, about.st_size, about.st_ino)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); run the job again") from error
    if checksum != written:
        raise DataError(
            f"{path}: is damaged (its checksum does not fit), so its guesses are not shown; run "
            "the job again"
        )
    return path


@lru_cache(64)
def _checksum(path: Path, *_: int) -> str:
    """The checksum of a file, read once for each version (time of writing, size, inode)."""
    return sha256_of(path)


_NO_ONE_GROUP = {NO_GROUP: "no group", SEVERAL_GROUPS: "several groups", NO_CAPTION: "no caption"}


@dataclass(frozen=True)
class ShownCaption:
    captioner: str  # who wrote the caption
    words: Sequence[tuple[str, int]]  # each with the number of the group that it names, else -1
    describing: Sequence[bool]  # whether each word says a concept that the view filters by
    read: Marked  # the caption as attackers read it, with the words that told them; may be empty
    named: str  # the group that the caption names, in words
    right: float  # share of the attackers' guesses that were right; NaN without guesses
    sure: float  # mean probability of the true group in these guesses; NaN without guesses
    share: float  # what the image adds to the number; NaN if the number is not a sum


@dataclass(frozen=True)
class ShownImage:
    id: str  # the image's id
    row: int  # the image's row in the corpus, -1 if there is no corpus
    group: str  # the image's label, or empty
    picture: bool  # whether the image has a picture
    captions: Sequence[ShownCaption]  # of the run, and of the run beside it
    people: Sequence[Sequence[tuple[str, int]]]  # human captions, marked like the captioner's
    objects: Sequence[str]  # the objects in the picture


@dataclass(frozen=True)
class ShownImages:
    evidence: Evidence  # what is known of the run's images
    part: str  # the part whose sum is shown
    word_votes: WordVotes | None  # the words that told attackers, if that is known
    concepts: frozenset[str] = frozenset()  # the concepts that are marked in captions

    def images(self, places: IntArray, beside: ShownImages | None) -> list[ShownImage]:
        evidence, captions = self.evidence, self.evidence.captions
        ids = [evidence.id_of(place) for place in places.tolist()]
        columns = [self.captions(places)]
        if beside is not None:
            columns.append(beside.captions(beside.evidence.places_of(ids)))
        people = self._people(places)
        rows, groups = evidence.rows[places].tolist(), evidence.group[places].tolist()
        return [
            ShownImage(
                id=ids[n],
                row=rows[n],
                group=evidence.groups[groups[n]] if groups[n] >= 0 else "",
                picture=captions is not None and captions.has_picture(rows[n]),
                captions=[one for column in columns if (one := column[n]) is not None],
                people=people[n],
                objects=[] if captions is None else captions.objects_of(rows[n]),
            )
            for n in range(len(ids))
        ]

    def captions(self, places: IntArray) -> list[ShownCaption | None]:
        """The captioner's caption of each image, or None for an image without a caption."""
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
        named = [""] * len(places)
        if captions is not None:
            codes = captions.group_named[rows].tolist()
            named = [_NO_ONE_GROUP.get(code) or evidence.groups[code] for code in codes]
        shares, scores = evidence.shares(self.part), evidence.scores
        captioner = evidence.result.rows[0].captioner
        return [
            ShownCaption(
                captioner=captioner,
                words=words[n],
                describing=describing[n],
                read=self._with_votes(read[n], place),
                named=named[n],
                right=math.nan if scores is None else float(scores.right[place]),
                sure=math.nan if scores is None else float(scores.confidence[place]),
                share=math.nan if shares is None else float(shares[place]),
            )
            for n, place in enumerate(places.tolist())
        ]

    def _with_votes(self, words: Sequence[str], place: int) -> Marked:
        if self.word_votes is None:
            return [(word, 0) for word in words]
        code = int(self.evidence.group[place])
        group = self.evidence.groups[code] if code >= 0 else ""
        return self.word_votes.mark(words, group)

    def _people(self, places: IntArray) -> list[list[list[tuple[str, int]]]]:
        """The human captions of each image, in which words that name a group are marked."""
        captions = self.evidence.captions
        if captions is None:
            return [[] for _ in places]
        human = captions.corpus.human
        texts = [human.of_image(row) for row in self.evidence.rows[places].tolist()]
        marked = iter(captions.naming_words([text for each in texts for text in each]))
        return [[next(marked) for _ in each] for each in texts]


Marked = Sequence[tuple[str, int]]  # words with their strength, -2 to 2; 0 is not marked


@dataclass(frozen=True)
class WordVotes:
    """How much each n-gram adds to the log-odds of a group, read from ``analysis words``."""

    groups: tuple[str, ...]  # the groups of the attribute
    # By n-gram, (1,) towards the second of two groups, or (K,) towards each group
    votes: Mapping[Gram, Float64Array]
    order: int  # of the longest n-gram

    def mark(self, words: Sequence[str], group: str) -> Marked:
        """A caption's words, with marks that say how much they add to the log-odds.

        If there are two groups, a negative mark means the first group and a positive mark means the
        second group. If there are more groups, a positive mark means the given group.
        """
        parts = word_parts(words, self.votes, self.order)
        of_group = len(self.groups) > 2 and group in self.groups
        column = self.groups.index(group) if of_group else 0
        return Weighted(tuple(zip(words, parts[:, column].tolist(), strict=True))).levels()


def read_word_votes(root: Path, run_id: str) -> WordVotes | None:
    """The words that ``analysis words`` wrote for a run, or None if there is no such file."""
    path = root / f"words-{run_id}.csv"
    if not path.is_file():
        return None
    try:
        words = read_words(path)
    except (ValueError, LookupError) as error:
        raise DataError(f"{path}: is not a complete file of words ({error})") from error
    votes = {
        word.gram: np.array([interval.value for interval in word.coefficients.values()])
        for word in words.words
        if word.side == "model" and word.gram
    }
    return WordVotes(words.groups, votes, max(map(len, votes), default=1)) if votes else None
