"""Neutral captions, by whose Gender Score those of the groups are divided (Table 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import Sums
from bias_pipeline.metrics.counting.caption_sides import CaptionSides, mean_of
from bias_pipeline.metrics.functional.counts import share
from bias_pipeline.metrics.functional.gender_score import ratio_to_neutral
from bias_pipeline.metrics.language.caption_scoring import (
    CaptionScorer,
    Judged,
    judge,
    mean_over,
    summed,
)
from bias_pipeline.metrics.language.contexts import Contexts
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.text.counterfactual_captions import told_of_nobody
from bias_pipeline.text.mentions import NO_GROUP

NeutralCaptions = Literal["retold", "nobody"]
TO_NEUTRAL = "to_neutral"
TABLE = "neutral:"  # how names of its tables begin


@dataclass(frozen=True)
class Neutral:
    """Which captions are neutral.

    Attributes:
        word: replaces the groups' words.
        words: listed word to its own neutral one, such as ``his`` to ``their``.
        captions: ``retold``: those that name one group, rewritten without a group; ``nobody``:
            those that name no group.
    """

    word: str
    words: Mapping[str, str] = field(default_factory=dict)
    captions: NeutralCaptions = "retold"

    def rests_on_names(self, part: PartName) -> bool:
        """Whether a number is about captions that name a group."""
        return self.captions == "retold" or (part.what, part.group) != ("gs", self.word)

    def judged(
        self, how: CaptionScorer, named: Judged, view: CorpusView, contexts: Contexts
    ) -> NeutralJudged:
        """The neutral captions of a side.

        Args:
            how: judges captions.
            named: the side's captions that name one group.
            view: of the corpus.
            contexts: of the pictures.
        """
        captions = view.corpus.side(named.side)
        rows = named.rows
        if self.captions == "nobody":
            shown = (view.labelled & contexts.shown(len(view.corpus)))[captions.image_rows]
            rows = np.flatnonzero(
                shown & (named.named == NO_GROUP) & (captions.positions < how.positions)
            )
        rewritten = told_of_nobody(captions, view.attribute, self.word, self.words)
        texts = [[rewritten.text(row) for row in rows.tolist()]]
        images = captions.image_rows[rows]
        pairs, of = contexts.beside(images)
        _, _, score = judge(how, texts, contexts, pairs, of)
        n_objects = np.bincount(of, minlength=len(rows)).astype(np.float64)
        weight = n_objects if how.weigh == "pairs" else np.ones(len(rows))
        means = mean_over(of, score, len(rows))[:, 0]
        return NeutralJudged(rows, images, means, weight, len(view.corpus))

    def numbers(
        self, sums: Sums, sides: CaptionSides, groups: Mapping[PartName, Float64Array]
    ) -> dict[PartName, Float64Array]:
        """The neutral mean of a side, and each group's as a multiple of it (eq. 2).

        Args:
            sums: of the tables.
            sides: the images of each part.
            groups: the groups' means by the names of their parts, (B,) each.
        """
        tables = {name.removeprefix(TABLE): v for name, v in sums.items() if name.startswith(TABLE)}
        values: dict[PartName, Float64Array] = {}
        for part in [part for part in sides.images if not part.detail]:
            people = part.side if part.side == "human" else ""
            neutral = mean_of([share(t[:, 0], t[:, 1]) for t in sides.each(part, tables)])
            values[PartName("gs", group=self.word, side=people)] = neutral
            values |= {
                PartName(TO_NEUTRAL, group=name.group, side=part.side): ratio_to_neutral(
                    mean, neutral
                )
                for name, mean in groups.items()
                if name.what == "gs" and name.side == people
            }
        return values


@dataclass(frozen=True, eq=False)
class NeutralJudged:
    """Scores of the neutral captions of a side.

    Attributes:
        rows: (R,) the captions.
        images: (R,) rows of their images.
        score: (R,) means over the objects of their pictures, in [0, 1].
        weight: (R,) how much each counts.
        n_images: N of the corpus.
    """

    rows: IntArray
    images: IntArray
    score: Float64Array
    weight: Float64Array
    n_images: int

    def table(self, chosen: BoolArray) -> sparse.csr_array:
        """(N, 2) sums of scores, and of weights, of the chosen captions of each image."""
        weight = self.weight * chosen[self.rows]
        return summed(np.stack([self.score * weight, weight], 1), self.images, self.n_images)
