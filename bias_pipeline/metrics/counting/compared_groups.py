"""The base of metrics that compare groups on comparable pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.errors import NotApplicableError, inflect
from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.metrics.base import Metric, Number
from bias_pipeline.metrics.corpus_view import has_captions
from bias_pipeline.metrics.counting.comparable_images import ComparableImages
from bias_pipeline.metrics.functional.comparable import Comparison
from bias_pipeline.metrics.functional.described_differences import (
    CONCEPT_ERRORS,
    SCORE_ERRORS,
    Amounts,
    Differences,
)
from bias_pipeline.metrics.value_names import SCORE, PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Draws, quantile
from bias_pipeline.text.descriptions import ConceptTable
from bias_pipeline.text.mentions import neutral_rate

FEWEST_IMAGES, FEWEST_OF_GROUP = 100, 30  # with fewer images nothing is computed
MOST_IMAGES = 20_000  # the most images that are read, chosen by their ids: more would take minutes
_NULL = PartName("null")


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupContrast:
    """One group, and the groups with which this group is compared."""

    label: str  # in names of parts: the group, empty if this is the only contrast
    group: str  # a difference above 0 means more of this group
    other_groups: Sequence[str]  # the groups that it is compared with

    @property
    def others(self) -> str:
        return self.other_groups[0] if len(self.other_groups) == 1 else "the others"


@dataclass(frozen=True, eq=False, kw_only=True)
class Contrast(GroupContrast):
    """The differences between captions of one group and captions of the other groups."""

    differences: Differences
    rates: Float64Array  # (2, Q) shares of captions: of the group, of the others
    # How alike the groups' pictures are: `overlap` and `accuracy` of the Comparison
    pictures: Mapping[str, float]


@dataclass(eq=False, kw_only=True)
class ComparedGroups(Metric):
    """A metric that compares the captions of groups on comparable pictures."""

    attribute: Attribute  # whose groups are compared
    stats: Bootstrap  # level of intervals; resamples are only used to compare captioners
    concepts: ConceptTable  # words that describe persons; they are no features of the picture

    def counted_rows(self, corpus: Corpus) -> IntArray:
        """(M,): the rows of the images that count; too few images raise an error."""
        rows = np.flatnonzero(self.comparable(corpus))
        if len(rows) > MOST_IMAGES:
            rows = np.sort(rows[np.argsort(corpus.keys[rows], kind="stable")[:MOST_IMAGES]])
        if len(rows) < FEWEST_IMAGES:
            raise NotApplicableError(
                f"{self.info.name} needs {FEWEST_IMAGES} images and has {len(rows)}, with a group "
                f"of {self.attribute.name!r}, {self.image_needs(corpus)}; caption more images"
            )
        return rows

    def image_needs(self, corpus: Corpus) -> str:
        """A phrase that says what an image needs, besides a group, in order to count."""
        return "a caption and annotators' captions" if len(corpus.human) else "a caption"

    def comparable(self, corpus: Corpus) -> BoolArray:
        """(N,) flags: true for labelled images that the captioner and any annotators describe."""
        sides = [side for side in SIDES if len(corpus.side(side))]
        return np.logical_and.reduce(
            [self.scope(corpus), *(has_captions(corpus, side) for side in sides)]
        )

    def left_out(self, corpus: Corpus, counted: Corpus) -> list[str]:
        """Notes on the images that do not count."""
        comparable, notes = int(self.comparable(corpus).sum()), []
        captioned = self.scope(corpus) & has_captions(corpus, "model")
        lacking = int((captioned & ~has_captions(corpus, "human")).sum())
        if lacking and len(corpus.human):
            notes.append(
                f"{inflect(lacking, 'images')} without annotators' captions: {self.info.name} "
                "leaves them out"
            )
        if comparable > len(counted):
            notes.append(
                f"{self.info.name} reads {MOST_IMAGES:,} of {comparable:,} images, chosen by their "
                "ids"
            )
        return notes

    def group_contrasts(self, images: ComparableImages) -> list[tuple[GroupContrast, BoolArray]]:
        """Each group against all others, with flags of its images.

        For two groups, only the second is compared.
        """
        grouping = images.corpus.groupings[self.attribute.name]
        names, codes = grouping.names, grouping.codes
        sizes = np.bincount(codes, minlength=len(names))
        large = np.flatnonzero(sizes >= FEWEST_OF_GROUP).tolist()
        if len(large) < 2:
            listed = ", ".join(f"{n} of {name}" for n, name in zip(sizes, names, strict=True))
            raise NotApplicableError(
                f"{self.info.name} compares groups of at least {FEWEST_OF_GROUP} images, and there "
                f"are {listed}; caption more images"
            )
        present = [names[k] for k in np.flatnonzero(sizes)]
        several = len(present) > 2
        return [
            (
                GroupContrast(
                    label=names[k] if several else "",
                    group=names[k],
                    other_groups=[name for name in present if name != names[k]],
                ),
                codes == k,
            )
            for k in (large if several else large[1:])
        ]

    def comparison(self, images: ComparableImages, members: BoolArray) -> Comparison:
        """Compare a group's images, flagged in ``members`` (M,), with all others by features."""
        groups, keys = members.astype(np.float64), images.corpus.keys
        return Comparison.fit(groups, images.features, images.folds, keys)


def by_group(shares: Float64Array, members: BoolArray) -> Float64Array:
    """(2, Q): the means over the group, and the means over all other images."""
    return np.stack([shares[members].mean(axis=0), shares[~members].mean(axis=0)])


class ComparedParts:
    def __init__(self, metric: ComparedGroups, images: ComparableImages, corpus: Corpus) -> None:
        """``images`` are the images that count."""
        self.images, self.n_images = images, len(images.corpus)
        self.attribute, self.stats, self.level = metric.attribute, metric.stats, metric.stats.level
        self.coverage = self.n_images / max(int(metric.scope(corpus).sum()), 1)

    def scores(self, contrasts: Sequence[Contrast]) -> Iterator[tuple[PartName, Number]]:
        """The score and the null.

        For several contrasts, the means over contrasts and each group's score.
        """
        every = [contrast.differences for contrast in contrasts]
        value = float(np.mean([one.score for one in every])) if every else math.nan
        error = math.sqrt(np.mean([one.score_error**2 for one in every])) if every else math.nan
        score = self._score(value, error)
        if every:
            influence = np.mean([one.score_influence for one in every], axis=0)
            score = replace(score, draws=self._draws(score, influence))
        yield SCORE, score
        null = float(np.mean([one.null for one in every])) if every else math.nan
        yield _NULL, self.part(null, math.nan)
        for contrast, one in zip(contrasts, every, strict=True):
            if contrast.label:
                name = PartName(group=contrast.label)
                yield name, self._score(one.score, one.score_error)

    def _score(self, value: float, error: float) -> Number:
        """A score whose interval never ends below 0, because the true score is never negative."""
        return self.part(value, SCORE_ERRORS * error, corrected=max(value, 0.0))

    def _draws(self, score: Number, influence: Float64Array) -> Draws:
        """The draws of the score under resampled images.

        Resampling images explains a part of the score's error. The rest of the error is drawn as
        noise. This noise depends only on the captions, so equal captions have equal noise.
        """
        keys = self.images.corpus.keys
        moved = np.concatenate([(counts - 1) @ influence for counts in self.stats.weights(keys)])
        rest = math.sqrt(max(score.error**2 - float(influence @ influence), 0.0))
        seed = hash_ids([np.round(influence, 9).tobytes().hex()])
        noise = np.random.default_rng(seed).standard_normal(len(moved))
        values = score.value + moved + rest * noise
        return Draws(np.array([score.value]), values[:, None], trained=False)

    def difference(self, amounts: Amounts, number: int) -> Number:
        error = CONCEPT_ERRORS * float(amounts.errors[number])
        return self.part(float(amounts.values[number]), error)

    def part(
        self,
        value: float,
        error: float,
        range: tuple[float, float] = (-math.inf, math.inf),
        side: str = "model",
        corrected: float | None = None,
    ) -> Number:
        """A number with a symmetric interval."""
        half = quantile(self.level) * error
        highest = value if corrected is None else corrected
        captions = self.images.corpus.side(side)
        return Number(
            value,
            image_std=error,
            ci_low=value - half,
            ci_high=highest + half,
            corrected=highest,
            error=error,
            n_images=self.n_images,
            coverage=self.coverage,
            neutral_rate=neutral_rate(captions, self.attribute),
            range=range,
        )
