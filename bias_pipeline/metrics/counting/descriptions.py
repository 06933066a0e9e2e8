"""Descriptions: does a captioner describe the groups differently, beyond what pictures show?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import NotApplicableError, counted
from bias_pipeline.metrics.base import Cost, Metric, MetricInfo, Part, Score
from bias_pipeline.metrics.counting.described_examples import example_tables
from bias_pipeline.metrics.counting.described_images import DescribedImages
from bias_pipeline.metrics.counting.description_answer import Contrast, answer_of, facts, lines
from bias_pipeline.metrics.counting.large_set import LargeSet
from bias_pipeline.metrics.functional.comparable import Comparison
from bias_pipeline.metrics.functional.described_differences import (
    CONCEPT_ERRORS,
    SCORE_ERRORS,
    Amounts,
    described_differences,
)
from bias_pipeline.metrics.functional.descriptions import Annotators
from bias_pipeline.metrics.references import NICOLAS_2021, ROBINSON_1988
from bias_pipeline.metrics.value_names import HUMAN, MODEL, SCORE, PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate, quantile
from bias_pipeline.text.descriptions import ConceptTable, Descriptions
from bias_pipeline.text.mentions import neutral_rate

FEWEST_IMAGES, FEWEST_OF_GROUP = 100, 30  # with fewer nothing is computed
MOST_IMAGES = 20_000  # read at most, chosen by their ids: more would take minutes
_LEAST_SPELLED = 10  # captions with a spelling that is listed
_NULL = PartName("null")


@dataclass(eq=False, kw_only=True)
class GroupDescriptions(Metric):
    """How differently captions describe the groups' persons, beyond what annotators would show.

    Words are joined to concepts (``conf/concepts``): "handsome" and "pretty" are both
    *good-looking*. A concept's difference is taken on comparable pictures: those with the same
    objects and the same words of annotators (residual on residual, Robinson 1988). Annotators
    differ, too, and the more often they say something: what they would show if they described as
    often as the captioner is subtracted, by their own captions, or where the captioner says more
    than all of them together by their ratio in a large set (``conf/annotators``).

    ``concept:NAME`` and ``class:NAME`` are the differences beyond annotators, the second group
    minus the first, as shares of captions; ``own:NAME`` is the captioner's own difference.
    ``score`` is half the sum of the concepts' absolute amounts with signs from other images: of
    100 captions, so many describe their person by a word that goes with the group. ``null`` is what
    noise would add to it, and is already subtracted. ``model`` and ``human`` are the shares of
    captions that describe a person at all; ``word:SPELLING:GROUP`` the share of the group's
    captions with a spelling.

    With more than two groups each is compared with the rest: ``concept:NAME:GROUP`` and so on,
    ``group:NAME`` is its score, and ``score`` the mean.

    Only images with a label, a caption and, if there are any, annotators' captions count. Below 500
    images, without annotators, or where they say a concept too rarely, no conclusion is drawn.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="descriptions",
        title="Descriptions of people",
        version=1,
        unit="fraction",
        range=(-math.inf, math.inf),
        neutral=0.0,
        direction="lower is fairer; above 0 more descriptions go with the group than annotators' "
        "would",
        family="counting",
        question="describing",
        sources={ROBINSON_1988: "residual on residual", NICOLAS_2021: "dimensions"},
        ours="the concepts, annotators at the captioner's rate and the score are",
        without={"human captions": MODEL},
        cost=Cost(per_caption=4e-5),
        says={"score": "its descriptions of people go with the {attribute} more than annotators'"},
    )

    attribute: Attribute  # whose groups are compared
    stats: Bootstrap  # the level of intervals; nothing is resampled
    concepts: ConceptTable
    annotators: LargeSet

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        """See the class; nothing is trained.

        Raises:
            NotApplicableError: on too few images.
        """
        del splits
        rows = self._rows(corpus)
        images = DescribedImages(corpus, self.attribute, self.concepts, rows)
        contrasts = self.contrasts(images)
        answer = answer_of(contrasts, len(rows), bool(len(corpus.human)))
        return Score(
            dict(_Parts(self, images, contrasts)),
            audit={"descriptions": facts(answer, contrasts)},
            notes=[*corpus.notes, *self._left_out(corpus, rows), *answer.sentences],
            tables={"descriptions": lines(contrasts), **example_tables(images, contrasts)}
            if contrasts
            else {},
        )

    def contrasts(self, images: DescribedImages) -> list[Contrast]:
        """Each group against the others; of two groups the second against the first.

        Args:
            images: those that count.

        Raises:
            NotApplicableError: if fewer than two groups have 30 images.
        """
        grouping = images.corpus.groupings[self.attribute.name]
        codes = grouping.codes[images.rows]
        chosen = _compared(images.corpus, grouping.names, codes)
        if not len(images.concepts):
            return []
        present = [grouping.names[k] for k in np.unique(codes)]
        return [self._contrast(images, codes == k, grouping.names[k], present) for k in chosen]

    def comparison(self, images: DescribedImages, members: BoolArray) -> Comparison:
        """The images of a group and all others by what they show, whatever a model says of them.

        Args:
            images: those that count.
            members: (M,) flags of the group's.
        """
        keys = images.corpus.keys[images.rows]
        return Comparison.of(members.astype(np.float64), images.features, images.folds, keys)

    def _contrast(
        self,
        images: DescribedImages,
        members: BoolArray,
        group: str,
        present: Sequence[str],
    ) -> Contrast:
        others = [name for name in present if name != group]
        table, names = self.concepts, images.names
        people = None
        human_rates = np.full((2, len(names)), np.nan)
        if len(images.corpus.human):
            ratios = self.annotators.ratios(self.attribute, [*others, group])
            people = Annotators(
                images.counts,
                images.numbers,
                {q: ratios[name] for q, name in enumerate(names) if name in ratios},
                np.array([self.annotators.rare(name) for name in names], bool),
            )
            human_rates = _by_group(images.counts / images.numbers[:, None], members)
        classes = [table.classes.index(table.class_of[name]) for name in names]
        alone = self.annotators.alone(self.attribute)
        comparison = self.comparison(images, members)
        differences = described_differences(
            comparison,
            images.says,
            people,
            np.array(classes, np.int64),
            [q for q, name in enumerate(names) if name in alone],
        )
        return Contrast(
            group if len(present) > 2 else "",
            group,
            others[0] if len(others) == 1 else "the others",
            differences,
            names,
            table.classes,
            _by_group(images.says, members),
            human_rates,
            images.alike,
            {"overlap": comparison.overlap, "accuracy": comparison.accuracy},
        )

    def _rows(self, corpus: Corpus) -> IntArray:
        """The images that count."""
        rows = self._described(corpus)
        if len(rows) > MOST_IMAGES:
            rows = np.sort(rows[np.argsort(corpus.keys[rows], kind="stable")[:MOST_IMAGES]])
        if len(rows) < FEWEST_IMAGES:
            of_people = " and annotators' captions" if len(corpus.human) else ""
            raise NotApplicableError(
                f"captioner {corpus.captioner!r}: {counted(len(rows), 'images have')} a group of "
                f"{self.attribute.name!r}, a caption{of_people}, and descriptions needs "
                f"{FEWEST_IMAGES}; caption more images"
            )
        return rows

    def _described(self, corpus: Corpus) -> IntArray:
        """The labelled images with a caption, and with annotators' if there are any."""
        flags = self.scope(corpus).copy()
        for side in ("model", "human"):
            captions = corpus.side(side)
            if len(captions):
                flags &= np.bincount(captions.image_rows, minlength=len(corpus)) > 0
        return np.flatnonzero(flags)

    def _left_out(self, corpus: Corpus, rows: IntArray) -> list[str]:
        """Notes on images that do not count."""
        captioned = self.scope(corpus)[corpus.model.image_rows].sum()
        comparable = len(self._described(corpus))
        notes = []
        if captioned > comparable:
            notes.append(
                f"{counted(captioned - comparable, 'images')} without annotators' captions: "
                "descriptions leaves them out"
            )
        if comparable > len(rows):
            notes.append(
                f"descriptions reads {MOST_IMAGES:,} of {comparable:,} images, chosen by their ids"
            )
        return notes


def _compared(corpus: Corpus, names: Sequence[str], codes: IntArray) -> list[int]:
    """The groups that are compared with all others: those with enough images."""
    sizes = np.bincount(codes, minlength=len(names))
    large = np.flatnonzero(sizes >= FEWEST_OF_GROUP).tolist()
    if len(large) < 2:
        listed = ", ".join(f"{n} of {name}" for n, name in zip(sizes, names, strict=True))
        raise NotApplicableError(
            f"captioner {corpus.captioner!r}: descriptions compares groups of at least "
            f"{FEWEST_OF_GROUP} images, and there are {listed}; caption more images"
        )
    return large if np.count_nonzero(sizes) > 2 else large[1:]


def _by_group(shares: Float64Array, members: BoolArray) -> Float64Array:
    """(2, Q) means over the group and over the others."""
    return np.stack([shares[members].mean(axis=0), shares[~members].mean(axis=0)])


class _Parts:
    """The numbers of a score, by name."""

    def __init__(
        self, metric: GroupDescriptions, images: DescribedImages, contrasts: Sequence[Contrast]
    ) -> None:
        self.images, self.contrasts = images, contrasts
        self.attribute, self.level = metric.attribute, metric.stats.level
        self.annotated = bool(len(images.corpus.human))
        corpus, scope = images.corpus, metric.scope(images.corpus)
        self.coverage = len(images.rows) / max(int(scope.sum()), 1)
        self.flags = np.zeros(len(corpus), bool)
        self.flags[images.rows] = True

    def __iter__(self) -> Iterator[tuple[PartName, Part]]:
        yield from self._scores()
        yield MODEL, self._share("model", self.images.model)
        if self.annotated:
            yield HUMAN, self._share("human", self.images.human)
        for contrast in self.contrasts:
            yield from self._concepts(contrast)
        yield from self._spellings()

    def _scores(self) -> Iterator[tuple[PartName, Part]]:
        """The score and the null; of several groups those of each, and their mean."""
        every = [contrast.differences for contrast in self.contrasts] if self.annotated else []
        value = float(np.mean([one.score for one in every])) if every else math.nan
        error = math.sqrt(np.mean([one.score_error**2 for one in every])) if every else math.nan
        yield SCORE, self._score(value, error)
        null = float(np.mean([one.null for one in every])) if every else math.nan
        yield _NULL, self._part(null, math.nan)
        for contrast, one in zip(self.contrasts, every, strict=False):
            if contrast.label:
                name = PartName(group=contrast.label)
                yield name, self._score(one.score, one.score_error)

    def _score(self, value: float, error: float) -> Part:
        """A score; the amounts that it estimates are never below 0, so the upper end is not."""
        return self._part(value, SCORE_ERRORS * error, corrected=max(value, 0.0))

    def _concepts(self, contrast: Contrast) -> Iterator[tuple[PartName, Part]]:
        """Differences of concepts and classes."""
        differences = contrast.differences
        for q in differences.listed.tolist():
            name, group = contrast.concepts[q], contrast.label
            shown = differences.shown
            yield PartName(f"own:{name}", group=group), self._difference(shown, q)
            if self.annotated and q in differences.tested:
                part = self._difference(differences.excess, q)
                yield PartName(f"concept:{name}", group=group), part
        for k in differences.tested_classes.tolist():
            name, group = contrast.classes[k], contrast.label
            yield PartName(f"own:{name}", group=group), self._difference(differences.class_shown, k)
            if self.annotated:
                part = self._difference(differences.class_excess, k)
                yield PartName(f"class:{name}", group=group), part

    def _difference(self, amounts: Amounts, number: int) -> Part:
        error = CONCEPT_ERRORS * float(amounts.errors[number])
        return self._part(float(amounts.values[number]), error)

    def _spellings(self) -> Iterator[tuple[PartName, Part]]:
        """The shares of each group's captions with a spelling."""
        corpus, descriptions = self.images.corpus, self.images.model
        codes = np.where(self.flags, corpus.groupings[self.attribute.name].codes, -1)
        of_captions = codes[corpus.model.image_rows]
        counts = np.asarray(descriptions.spellings[of_captions >= 0].sum(axis=0)).ravel()
        for s in np.flatnonzero(counts >= _LEAST_SPELLED).tolist():
            column = descriptions.spellings[:, [s]].toarray().ravel()
            for group, name in enumerate(corpus.groupings[self.attribute.name].names):
                chosen = of_captions == group
                if chosen.any():
                    share = self._part(float(column[chosen].mean()), math.nan, (0.0, 1.0))
                    yield PartName(f"word:{descriptions.words[s]}", group=name), share

    def _share(self, side: str, descriptions: Descriptions) -> Part:
        """The share of a side's captions that describe a person, each image counted once."""
        rows = self.images.corpus.side(side).image_rows
        says = np.diff(descriptions.concepts.indptr) > 0
        n_images = len(self.images.corpus)
        number = np.bincount(rows, minlength=n_images)[self.flags]
        share = np.bincount(rows, says, n_images)[self.flags] / number
        error = float(share.std() / math.sqrt(len(share)))
        return self._part(float(share.mean()), error, (0.0, 1.0), side)

    def _part(
        self,
        value: float,
        error: float,
        range: tuple[float, float] = (-math.inf, math.inf),
        side: str = "model",
        corrected: float | None = None,
    ) -> Part:
        nan, half = math.nan, quantile(self.level) * error
        highest = value if corrected is None else corrected
        estimate = Estimate(
            value, nan, error, value - half, highest + half, nan, 0, corrected=highest, error=error
        )
        captions = self.images.corpus.side(side)
        rate = neutral_rate(captions, self.attribute, self.flags)
        return Part(estimate, "fraction", len(self.images.rows), self.coverage, rate, range)
