"""Descriptions measures whether a captioner describes groups differently for similar pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bias_pipeline.array_types import BoolArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import Split
from bias_pipeline.metrics.base import Cost, EvidenceRule, MetricInfo, Number, Score
from bias_pipeline.metrics.counting.compared_groups import (
    ComparedGroups,
    ComparedParts,
    GroupContrast,
    by_group,
)
from bias_pipeline.metrics.counting.described_examples import example_tables
from bias_pipeline.metrics.counting.described_images import DescribedImages
from bias_pipeline.metrics.counting.description_answer import (
    DescriptionContrast,
    answer_of,
    facts,
    lines,
)
from bias_pipeline.metrics.counting.large_set import LargeSet
from bias_pipeline.metrics.functional.described_differences import described_differences
from bias_pipeline.metrics.functional.descriptions import Annotators
from bias_pipeline.metrics.references import NICOLAS_2021, ROBINSON_1988
from bias_pipeline.metrics.value_names import HUMAN, MODEL, PartName
from bias_pipeline.text.descriptions import Descriptions

_LEAST_SPELLED = 10  # how many captions must have a spelling for it to be listed


@dataclass(eq=False, kw_only=True)
class GroupDescriptions(ComparedGroups):
    """How differently captions describe persons of different groups, beyond what annotators do.

    Words with the same meaning form a concept (``conf/concepts``). For each concept, groups are
    compared on pictures that have the same objects and that annotators describe with the same
    words. The difference that annotators would show at the captioner's rate is subtracted.

    * ``concept:NAME``, ``class:NAME``: the second group's rate minus the first group's rate, beyond
      annotators.
    * ``own:NAME``: the captioner's own difference.
    * ``score``: half the sum of the concepts' differences. Each difference is multiplied by its
      sign on other images. ``null``: the effect of noise on the score, already subtracted.
    * ``model``, ``human``: the shares of captions that describe a person. ``counted``: among the
      words that the captioner uses more often than annotators, the share that count as
      descriptions.
    * ``word:SPELLING:GROUP``: the share of a group's captions that contain a spelling.

    With more than two groups, each group is compared with all others (``concept:NAME:GROUP``,
    ``group:NAME``).
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="descriptions",
        title="Descriptions of people",
        version=2,
        unit="fraction",
        range=(-math.inf, math.inf),
        neutral=0.0,
        direction="lower is fairer; above 0, descriptions depend on the group more than "
        "annotators' descriptions do",
        family="counting",
        question="describing",
        sources={ROBINSON_1988: "residual on residual", NICOLAS_2021: "dimensions"},
        ours="the concepts, the comparison with annotators and the score are",
        without={"human captions": MODEL},
        streams=True,
        cost=Cost(per_caption=1e-5),
        says={
            "score": "its descriptions of people go with the {attribute} more than annotators' "
            "descriptions"
        },
        readings={"score": EvidenceRule("score")},
    )

    annotators: LargeSet

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        del splits
        counted = corpus.take(self.counted_rows(corpus))
        images = DescribedImages(counted, self.attribute, self.concepts)
        contrasts = self.contrasts(images)
        answer = answer_of(contrasts, len(counted), bool(len(corpus.human)))
        return Score(
            dict(_Parts(self, images, corpus, contrasts)),
            audit={"descriptions": facts(answer, contrasts)},
            notes=[*corpus.notes, *self.left_out(corpus, counted), *answer.sentences],
            tables={"descriptions": lines(contrasts), **example_tables(images, contrasts)}
            if contrasts
            else {},
        )

    def contrasts(self, images: DescribedImages) -> list[DescriptionContrast]:
        """A contrast of each group with all others; with two groups, only the second group's."""
        compared = self.group_contrasts(images)
        if not len(images.concepts):
            return []
        return [self._contrast(images, members, one) for one, members in compared]

    def _contrast(
        self, images: DescribedImages, members: BoolArray, compared: GroupContrast
    ) -> DescriptionContrast:
        table, names = self.concepts, images.names
        people = None
        human_rates = np.full((2, len(names)), np.nan)
        if len(images.corpus.human):
            ratios = self.annotators.ratios(
                self.attribute, [*compared.other_groups, compared.group]
            )
            people = Annotators(
                images.counts,
                images.numbers,
                {q: ratios[name] for q, name in enumerate(names) if name in ratios},
                np.array([self.annotators.is_rare(name) for name in names], bool),
            )
            human_rates = by_group(images.counts / images.numbers[:, None], members)
        classes = [table.classes.index(table.class_of[name]) for name in names]
        alone = self.annotators.single_group_concepts(self.attribute)
        comparison = self.comparison(images, members)
        differences = described_differences(
            comparison,
            images.says,
            people,
            np.array(classes, np.int64),
            [q for q, name in enumerate(names) if name in alone],
        )
        return DescriptionContrast(
            **vars(compared),
            differences=differences,
            concepts=names,
            classes=table.classes,
            rates=by_group(images.says, members),
            human_rates=human_rates,
            alike=images.likeness,
            pictures={"overlap": comparison.overlap, "accuracy": comparison.accuracy},
        )


class _Parts(ComparedParts):
    def __init__(
        self,
        metric: GroupDescriptions,
        images: DescribedImages,
        corpus: Corpus,
        contrasts: Sequence[DescriptionContrast],
    ) -> None:
        super().__init__(metric, images, corpus)
        self.described, self.contrasts = images, contrasts
        self.annotated = bool(len(images.corpus.human))

    def __iter__(self) -> Iterator[tuple[PartName, Number]]:
        yield from self.scores(self.contrasts if self.annotated else ())
        yield MODEL, self._share("model", self.described.model)
        if self.annotated:
            yield HUMAN, self._share("human", self.described.human)
            yield PartName("counted"), self.part(self.described.counted_share, math.nan, (0.0, 1.0))
        for contrast in self.contrasts:
            yield from self._concepts(contrast)
        yield from self._spellings()

    def _concepts(self, contrast: DescriptionContrast) -> Iterator[tuple[PartName, Number]]:
        differences = contrast.differences
        for q in differences.listed_concepts.tolist():
            name, group = contrast.concepts[q], contrast.label
            shown = differences.shown
            yield PartName(f"own:{name}", group=group), self.difference(shown, q)
            if self.annotated and q in differences.tested_concepts:
                part = self.difference(differences.excess, q)
                yield PartName(f"concept:{name}", group=group), part
        for k in differences.tested_classes.tolist():
            name, group = contrast.classes[k], contrast.label
            yield PartName(f"own:{name}", group=group), self.difference(differences.class_shown, k)
            if self.annotated:
                part = self.difference(differences.class_excess, k)
                yield PartName(f"class:{name}", group=group), part

    def _spellings(self) -> Iterator[tuple[PartName, Number]]:
        """For each spelling, the share of each group's captions that contain it."""
        corpus, descriptions = self.images.corpus, self.described.model
        grouping = corpus.groupings[self.attribute.name]
        of_captions = grouping.codes[corpus.model.image_rows]
        counts = np.asarray(descriptions.spellings.sum(axis=0)).ravel()
        for s in np.flatnonzero(counts >= _LEAST_SPELLED).tolist():
            column = descriptions.spellings[:, [s]].toarray().ravel()
            for group, name in enumerate(grouping.names):
                chosen = of_captions == group
                if chosen.any():
                    share = self.part(float(column[chosen].mean()), math.nan, (0.0, 1.0))
                    yield PartName(f"word:{descriptions.words[s]}", group=name), share

    def _share(self, side: str, descriptions: Descriptions) -> Number:
        """The share of a side's captions that describe a person. Each image counts once."""
        rows = self.images.corpus.side(side).image_rows
        says = np.diff(descriptions.concepts.indptr) > 0
        share = np.bincount(rows, says) / np.bincount(rows)
        error = float(share.std() / math.sqrt(len(share)))
        return self.part(float(share.mean()), error, (0.0, 1.0), side)
