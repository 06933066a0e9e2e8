"""Quality measures whether captions are as good as human captions, for each group too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import ClassVar, Literal

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, Int32Array, IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.declared import Count, Positive
from bias_pipeline.metrics.base import Cost, EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import CountingMetric
from bias_pipeline.metrics.counting.numbers import (
    SHARE,
    CountedNumber,
    LargestGap,
    Numbers,
    Sums,
    Tally,
)
from bias_pipeline.metrics.counting.sides import by_group, cross_with_groups, key, mean_of
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.functional.quality import (
    CIDER_SCALE,
    METEOR_ABSENT,
    ORDERS,
    SIGMA,
    Ngrams,
    bleu,
    cider_d,
    clipped_counts,
    clipped_matches,
    closest_lengths,
    count_ngrams,
    document_frequencies,
    has_meteor,
    meteor,
)
from bias_pipeline.metrics.references import DENKOWSKI_2014, PAPINENI_2002, VEDANTAM_2015
from bias_pipeline.metrics.value_names import (
    HUMAN,
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    SCORE,
    PartName,
)
from bias_pipeline.text.caption_language import MOSTLY, english
from bias_pipeline.text.mentions import lowered_words

Documents = Literal["corpus", "scored"]
_UNIT = "CIDEr-D"
METEOR = PartName("meteor", side="model")
_N_COLUMNS = 4 + 2 * len(ORDERS)  # see _sums
_TOGETHER = 10_000  # how many candidates are compared at once; bounds memory
_METEOR_ENGLISH = "METEOR was not computed: its stems and synonyms are English, captions are not"
_TOO_FEW = (
    "no image has two human captions or more: human captions cannot be compared with each "
    "other, so there is no score"
)


@dataclass(eq=False, kw_only=True)
class Quality(CountingMetric):
    """CIDEr-D of the captioner minus the annotators' CIDEr-D, with the same references.

    For ``score``, one human caption at a time is left out. This caption (``human:paired``) and the
    captioner's caption (``model:paired``) are compared with the remaining human captions. A
    captioner that writes like one more annotator scores 0. ``model`` compares captions with all
    human captions, as papers do. ``human`` compares each human caption with the others.

    * ``bleu_1`` to ``bleu_4``: BLEU scores, each with ``:model``, ``:human`` and ``:score``.
    * ``group:NAME``: the score of a group's images. ``gap``: the largest of these scores minus the
      smallest. A large ``gap:model`` may only mean that one group's pictures are harder to
      describe.

    Rare words weigh more in a larger data set, so compare ``model`` only on equal images.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="quality",
        title="Caption quality (CIDEr-D)",
        version=2,
        unit=_UNIT,
        range=(-CIDER_SCALE, CIDER_SCALE),
        neutral=0.0,
        direction="higher is better; at 0, captions are as good as one more annotator's captions",
        family="language",
        question="quality",
        sources={
            VEDANTAM_2015: "section 5",
            PAPINENI_2002: "BLEU",
            DENKOWSKI_2014: "METEOR",
        },
        ours="the pairing is",
        needs=("human captions",),
        cost=Cost(per_caption=2e-5),
        responses={
            "score": ExpectedResponse(
                moves=("names no group",),
                stays=("negation", "synonym"),
            )
        },
        says={
            "score": "CIDEr-D, minus the CIDEr-D of one more annotator; higher is better",
        },
        readings={"score": EvidenceRule("score")},
    )

    # Which images' human captions give CIDEr's document frequencies: all images of the `corpus`, so
    # that frequencies are the same for all captioners and attributes, or only the `scored` images,
    # as in the published tool
    documents: Documents = "corpus"
    positions: Count = 5  # how many human captions are left out in turn
    sigma: Positive = SIGMA  # width of CIDEr-D's penalty on length, in words
    # Whether `meteor:model` is computed, at 60 captions a second; NaN where Java or the package
    # pycocoevalcap is missing
    meteor: bool = False

    def rests_on_names(self, part: PartName) -> bool:
        """False for every number, since groups come from labels."""
        return False

    def tally(self, view: CorpusView) -> Tally:
        described = _Described(view)
        sets = described.sets()
        documents = sets[MODEL] if self.documents == "scored" else view.has("human")
        folds = self._folds(described, sets, documents)
        tables = {name: table for of_side in folds.values() for name, table in of_side.items()}
        notes = [] if MODEL_PAIRED in sets else [_TOO_FEW]
        if self.meteor:
            fits = not len(view.corpus.model) or view.corpus.model.read(english).mean() >= MOSTLY
            tables["meteor"] = self._meteor(described, sets[MODEL], fits=fits)
            notes += [] if fits else [_METEOR_ENGLISH]
            notes += [] if has_meteor() else [METEOR_ABSENT]
        audit = {"documents": self.documents, "n_documents": int(documents.sum())}
        names = {part: tuple(of_side) for part, of_side in folds.items()}
        values = _Values(view.groups, names, sets, view.codes)
        return Tally(tables, values.numbers, audit, notes)

    def _folds(
        self, described: _Described, sets: Mapping[PartName, BoolArray], documents: BoolArray
    ) -> dict[PartName, dict[str, sparse.csr_array]]:
        """Tables of sums for each side; there is one table for each position that is left out.

        Document frequencies come from the captions of the images in ``documents`` (N,).
        """
        folds: dict[PartName, dict[str, sparse.csr_array]] = {part: {} for part in sets}
        frequencies = described.frequencies(documents, self.positions)
        for left_out, counts in zip((None, *range(self.positions)), frequencies, strict=True):
            done: dict[bytes, sparse.csr_array] = {}  # the same captions are often scored twice
            for part in [part for part in sets if (part == MODEL) == (left_out is None)]:
                scored = described.candidates(part, sets[part], left_out or 0)
                if not len(scored):
                    continue
                rows = scored.tobytes()
                if rows not in done:
                    sums = self._sums(described, scored, left_out, counts, int(documents.sum()))
                    done[rows] = described.crossing(sums)
                folds[part][key(part, left_out or 0)] = done[rows]
        return folds

    def _sums(
        self,
        described: _Described,
        scored: IntArray,
        left_out: int | None,
        frequencies: list[Int32Array],
        n_documents: int,
    ) -> Float64Array:
        """(N, 12): for each image 1, CIDEr-D, length, closest length, matches and n-grams."""
        images = described.images
        rows = described.references(images[scored], left_out)
        owner = np.searchsorted(images[scored], images[rows])
        table = np.zeros((described.n_images, _N_COLUMNS))
        for first in range(0, len(scored), _TOGETHER):
            block = scored[first : first + _TOGETHER]
            start, end = np.searchsorted(owner, [first, first + len(block)])
            candidates = described.ngrams.take(block)
            references = described.ngrams.take(rows[start:end])
            its_owner = owner[start:end] - first
            closest = closest_lengths(candidates.lengths, references.lengths, its_owner)
            pairs = candidates, references, its_owner
            clipped = clipped_counts(*pairs)
            cider = cider_d(*pairs, clipped, frequencies, n_documents, self.sigma)
            plain = np.stack([np.ones(len(block)), cider, candidates.lengths, closest], axis=-1)
            totals = np.stack([np.asarray(t.sum(axis=1)) for t in candidates.tables], axis=-1)
            matches = clipped_matches(clipped, its_owner, len(block))
            table[images[block]] = np.concatenate([plain, matches, totals], axis=-1)
        return table

    def _meteor(self, described: _Described, images: BoolArray, *, fits: bool) -> sparse.csr_array:
        """(N, 2): 1 and METEOR for each image, or NaN if METEOR does not fit the language."""
        scored = described.candidates(MODEL, images, 0)
        rows = described.references(described.images[scored], None)
        texts: dict[int, list[str]] = {}
        for row in rows:
            texts.setdefault(int(described.images[row]), []).append(described.text(int(row)))
        table = np.zeros((described.n_images, 2))
        candidates = [described.text(int(row)) for row in scored]
        scores = meteor(candidates, list(texts.values())) if fits else np.full(len(scored), np.nan)
        table[described.images[scored]] = np.stack([np.ones(len(scored)), scores], axis=-1)
        return sparse.csr_array(table)


@dataclass(frozen=True, eq=False)
class _Described:
    """The captions of both sides in one list. The model's captions come first."""

    view: CorpusView

    @cached_property
    def words(self) -> tuple[Captions, Captions]:
        """Model and human captions as lower-case words."""
        corpus = self.view.corpus
        return lowered_words(corpus.model), lowered_words(corpus.human)

    @cached_property
    def ngrams(self) -> Ngrams:
        """N-grams of all captions."""
        number: dict[str, int] = {}
        columns = []
        for side in self.words:
            types = np.array([number.setdefault(w, len(number)) for w in side.types], np.int32)
            columns.append((types[side.tokens], side.starts))
        starts = np.concatenate([columns[0][1], columns[0][1][-1] + columns[1][1][1:]])
        return count_ngrams([(np.concatenate([tokens for tokens, _ in columns]), starts)])[0]

    @cached_property
    def images(self) -> IntArray:
        """(C,): the image of each caption."""
        return np.concatenate([side.image_rows for side in self.words])

    @cached_property
    def positions(self) -> IntArray:
        """(C,): the position of each human caption in its image's list; -1 for model captions."""
        model, human = self.words
        return np.concatenate([np.full(len(model), -1), human.positions])

    @property
    def n_images(self) -> int:
        return len(self.view.corpus)

    def text(self, row: int) -> str:
        """A caption whose words are joined by blanks."""
        model, human = self.words
        return model.text(row) if row < len(model) else human.text(row - len(model))

    def sets(self) -> dict[PartName, BoolArray]:
        """For each part, its images among all images with references and a group."""
        n_human = np.bincount(self.words[1].image_rows, minlength=self.n_images)
        labelled, modelled = self.view.labelled, self.view.has("model")
        sets = {
            MODEL: labelled & modelled & (n_human > 0),
            HUMAN: labelled & (n_human > 1),
            MODEL_PAIRED: labelled & modelled & (n_human > 1),
        }
        sets[HUMAN_PAIRED] = sets[MODEL_PAIRED]
        return {part: mask for part, mask in sets.items() if mask.any()}

    def candidates(self, part: PartName, images: BoolArray, k: int) -> IntArray:
        """Rows of the captions to score when position k is left out, in the order of images."""
        position = k if part.side == "human" else -1
        chosen = images[self.images] & (self.positions == position)
        if part == MODEL_PAIRED:  # only images whose human caption is scored too
            has_human = np.zeros(self.n_images, bool)
            has_human[self.images[self.positions == k]] = True
            chosen &= has_human[self.images]
        return np.flatnonzero(chosen)

    def references(self, images: IntArray, left_out: int | None) -> IntArray:
        """Rows of the images' human captions, except those at one position."""
        wanted = np.zeros(self.n_images, bool)
        wanted[images] = True
        return np.flatnonzero(
            wanted[self.images] & (self.positions >= 0) & (self.positions != left_out)
        )

    def frequencies(self, documents: BoolArray, positions: int) -> list[list[Int32Array]]:
        """Frequencies in (N,) documents: of all human captions, and with each position left out."""
        rows = self.references(np.flatnonzero(documents), None)
        blocks = np.split(rows, np.flatnonzero(np.diff(self.images[rows] // _TOGETHER)) + 1)
        totals: list[list[Int32Array]] = []
        for block in blocks:
            left_out = [self.positions[block] == k for k in range(positions)]
            ngrams = self.ngrams.take(block)
            counts = document_frequencies(ngrams, self.images[block], left_out)
            totals = totals or [[np.zeros_like(n) for n in of_all] for of_all in counts]
            for total, count in zip(chain(*totals), chain(*counts), strict=True):
                total += count
        return totals

    def crossing(self, sums: Float64Array) -> sparse.csr_array:
        """(N, K * C): the sums, moved to the columns of each image's group."""
        table = sparse.csr_array(sums)
        return cross_with_groups(self.view.codes, table, len(self.view.groups))


@dataclass(frozen=True, eq=False)
class _Values:
    """Computes numbers from sums."""

    groups: tuple[str, ...]  # the K groups
    folds: Mapping[PartName, tuple[str, ...]]  # side to the names of its tables
    images: Mapping[PartName, BoolArray]  # side to (N,) its images
    codes: IntArray  # (N,) the group of each

    def numbers(self, sums: Sums) -> Numbers:
        cider: dict[PartName, CountedNumber] = {}
        bleus: dict[PartName, CountedNumber] = {}
        of_groups: dict[PartName, Float64Array] = {}
        for part, names in self.folds.items():
            tables = [by_group(sums[name], len(self.groups)) for name in names]
            whole = [table.sum(axis=1) for table in tables]
            number = partial(CountedNumber, images=self.images[part], side=part.side)
            cider[part] = number(
                values=mean_of([_cider(table) for table in whole]), unit=_UNIT, range=(0.0, np.inf)
            )
            bleus[part] = number(values=mean_of([_bleu(table) for table in whole]), range=SHARE)
            of_groups[part] = mean_of([_cider(table) for table in tables])
        if MODEL_PAIRED in cider:
            bleus[SCORE] = bleus.pop(MODEL_PAIRED) - bleus.pop(HUMAN_PAIRED)
            of_groups[MODEL_PAIRED] -= of_groups[HUMAN_PAIRED]
        values: dict[PartName, CountedNumber | LargestGap] = {**cider}
        for part, each in bleus.items():
            values |= each.split(
                PartName(f"bleu_{n}", side=part.side, detail=part.what) for n in ORDERS
            )
        values |= self._by_group(MODEL, of_groups[MODEL])
        if MODEL_PAIRED in cider:
            values[SCORE] = cider[MODEL_PAIRED] - cider[HUMAN_PAIRED]
            values |= self._by_group(MODEL_PAIRED, of_groups[MODEL_PAIRED])
        if "meteor" in sums:
            mean = share(sums["meteor"][:, 1], sums["meteor"][:, 0])
            values[METEOR] = CountedNumber(values=mean, images=self.images[MODEL])
        return values

    def _by_group(
        self, part: PartName, of_groups: Float64Array
    ) -> dict[PartName, CountedNumber | LargestGap]:
        """The numbers of groups and their largest gap.

        Only names of the model's numbers contain the side.
        """
        side, images = "model" if part == MODEL else "", self.images[part]
        number = CountedNumber(values=of_groups, images=images, unit=_UNIT)
        numbers = number.by_group(self.groups, codes=self.codes, side=side)
        gap = LargestGap(groups=[*numbers.values()], images=images, unit=_UNIT, range=(0.0, np.inf))
        return {**numbers, PartName("gap", side=side): gap}


def _cider(sums: Float64Array) -> Float64Array:
    return share(sums[..., 1], sums[..., 0])


def _bleu(sums: Float64Array) -> Float64Array:
    """(..., 4): BLEU-1 to BLEU-4, computed from (..., 12) sums."""
    first, last = 4, 4 + len(ORDERS)
    return bleu(sums[..., first:last], sums[..., last:], sums[..., 2], sums[..., 3])
