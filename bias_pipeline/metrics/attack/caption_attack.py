"""What LIC and Leakage share: attack the model's captions and the human ones, then compare.

Nothing but the score of a guess differs between them, so it is their only parameter.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bias_pipeline.attackers.probe import Probe
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus, Grouping
from bias_pipeline.corpus.predictions import Labelled, Predictions
from bias_pipeline.corpus.split import SMALLEST_GROUP, Split, SplitRule
from bias_pipeline.declared import Count, Share
from bias_pipeline.errors import DataError, NotApplicableError, UsageError, did_you_mean
from bias_pipeline.metrics.attack.choices import over_alternatives
from bias_pipeline.metrics.attack.worst_group import NO_LESS_THAN_NONE, gap_of, sentence
from bias_pipeline.metrics.base import Metric, Part, Score
from bias_pipeline.metrics.functional import RELATIONS, accuracy_and_confidence_parts
from bias_pipeline.metrics.functional.attack import expected_calibration_error
from bias_pipeline.metrics.parts import (
    HUMAN,
    HUMAN_PAIRED,
    MODEL,
    MODEL_PAIRED,
    SCORE,
    PartName,
)
from bias_pipeline.scoring import Accuracy, Lic, Scoring
from bias_pipeline.stats.bootstrap import Bootstrap, Combination, Estimate, steady
from bias_pipeline.stats.scores import ScoreTable
from bias_pipeline.text.mentions import neutral_rate
from bias_pipeline.text.transform import Transform, applied, is_special

FloatArray = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
WORDLESS_WARNING = 0.05
GAP = PartName("gap")


class CaptionAttack(Metric, ABC):
    """Guess the attribute from captions, on both sides, with the same splits.

    Three image sets, never mixed: ``model`` is every labelled image with a model caption,
    ``human`` every one with human captions, ``score`` only images with both (whose sides are
    ``model:paired`` and ``human:paired``). Every caption position of the human side has its own
    fresh attackers; the side's score is the mean over positions.

    Args:
        attribute: whose groups are guessed.
        transforms: applied to the corpus in order; mask-then-align is not align-then-mask.
        probe: trains the attackers.
        split: how splits are drawn.
        scoring: how a guess is scored.
        relation: how the sides are compared: ``difference``, ``ratio`` or ``normalised``.
        stats: how intervals are made.
        positions: how many human captions of an image are used; an image with fewer contributes
            to the first positions alone.
        sides: which sides are attacked; ``[model]`` gives LIC_M alone, without a score, at a
            sixth of the cost.
        wordless_limit: the share of captions without a word, once transformed, above which there
            is nothing to score.

    Raises:
        UsageError: on an unknown relation or side, or a number out of its range.
    """

    def __init__(
        self,
        attribute: Attribute,
        transforms: Sequence[Transform],
        probe: Probe,
        split: SplitRule,
        scoring: Scoring,
        stats: Bootstrap,
        relation: str = "difference",
        positions: Count = 5,
        sides: Sequence[str] = SIDES,
        wordless_limit: Share = 0.5,
    ) -> None:
        if relation not in RELATIONS:
            raise UsageError(
                f"metric.relation: {relation!r} is unknown; {did_you_mean(relation, RELATIONS)}"
            )
        if positions < 1 or not 0 <= wordless_limit <= 1:
            raise UsageError(
                f"metric: positions={positions} must be at least 1 and "
                f"wordless_limit={wordless_limit} between 0 and 1"
            )
        if not sides or not set(sides) <= set(SIDES):
            raise UsageError(f"metric.sides={list(sides)}: name one or both of {', '.join(SIDES)}")
        self.attribute = attribute
        self.transforms = tuple(transforms)
        self.probe = probe
        self.split = split
        self.scoring = scoring
        self.stats = stats
        self.relation = RELATIONS[relation]
        self.positions = positions
        self.sides = tuple(sides)
        self.wordless_limit = wordless_limit

    def draw_splits(self, corpus: Corpus, seeds: Sequence[int]) -> list[Split]:
        """One split a seed over all labelled images."""
        return self.split.draw(corpus, self.attribute.name, seeds)

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        """See :class:`CaptionAttack`."""
        return over_alternatives(
            self.transforms,
            self.stats.level,
            lambda own: self._score(corpus, applied(own, corpus), splits),
        )

    def _score(self, corpus: Corpus, ready: Corpus, splits: Sequence[Split]) -> Score:
        """The score of raw captions, which attackers read as they are made ready."""
        grouping = corpus.groupings[self.attribute.name]
        labelled = grouping.codes >= 0
        has_model, has_human = (
            labelled & (side in self.sides) & _described(corpus.side(side), len(corpus))
            for side in SIDES
        )
        attack = _Attack(self, ready, splits)
        parts = self._parts(attack, corpus, {MODEL: has_model, HUMAN: has_human})
        paired = self._pair(attack, has_model, has_human)
        parts |= self._paired_parts(paired, corpus, has_model & has_human)
        groups = self._groups(paired, corpus, has_model & has_human)
        parts |= groups.parts
        return Score(
            parts=parts,
            predictions=attack.trained,
            audit={
                "verbatim_share": attack.verbatim_share(),
                "wordless_share": attack.wordless_share,
                "chance": self.scoring.chance(len(grouping.names)),
                "groups": {**grouping.sizes, **grouping.strata},
            },
            notes=[
                *ready.notes,
                *attack.notes,
                *self._missing(has_model, has_human),
                *self._unnamed(parts),
                *groups.notes,
            ],
            tables=ready.tables,
        )

    def _pair(self, attack: _Attack, has_model: Mask, has_human: Mask) -> _Pair | None:
        both = has_model & has_human
        if not both.any():
            return None
        return _Pair(*(attack.on(side, both) for side in (MODEL_PAIRED, HUMAN_PAIRED)))

    def _parts(
        self, attack: _Attack, corpus: Corpus, sets: Mapping[PartName, Mask]
    ) -> dict[str, Part]:
        parts: dict[str, Part] = {}
        for name, images in sets.items():
            if images.any():
                table = ScoreTable.of(attack.on(name, images), self.scoring)
                estimate = self.stats.estimate([table], {name: lambda own: own}, corpus.keys)[name]
                parts[name] = self._scored(self._part(estimate, corpus, name.side, images))
        return parts

    def _paired_parts(self, pair: _Pair | None, corpus: Corpus, both: Mask) -> dict[str, Part]:
        if pair is None:
            return {}
        estimates = self.stats.estimate(
            pair.tables(self.scoring), self._combinations(), corpus.keys
        )
        for side, predictions in (("model", pair.model), ("human", pair.human)):
            estimates[PartName("ece", side=side)] = _calibration(predictions)
        parts: dict[str, Part] = {
            name: self._part(estimate, corpus, name.side or "model", both)
            for name, estimate in estimates.items()
        }
        for name in (MODEL_PAIRED, HUMAN_PAIRED):
            parts[name] = self._scored(parts[name])
        parts[SCORE] = self._compared(parts[SCORE])
        return parts

    def _groups(self, pair: _Pair | None, corpus: Corpus, both: Mask) -> Score:
        """The score of each group of an intersection, and the largest gap between two."""
        if pair is None or not self.attribute.crossed:
            return Score({})
        grouping = corpus.groupings[self.attribute.name]
        images = {name: both & (grouping.codes == k) for k, name in enumerate(grouping.names)}
        sides = pair.tables(self.scoring)[:2]
        found = {}
        for name, own in images.items():
            tables = [table.at(np.flatnonzero(own)) for table in sides]
            estimate = self.stats.estimate(tables, {name: self.relation.of}, corpus.keys)[name]
            found[name] = steady(estimate, self.stats.level)
        parts: dict[str, Part] = {
            PartName(group=name): self._part(estimate, corpus, "model", images[name])
            for name, estimate in found.items()
        }
        gap = gap_of(found, self.stats.level)
        if gap is not None:
            two = images[gap.worst] | images[gap.best]
            parts[GAP] = self._part(gap.estimate, corpus, "model", two)
        notes = [] if gap is None else [sentence(self.info.name, found, gap)]
        compared = {name: self._compared(part) for name, part in parts.items()}
        if GAP in compared:
            compared[GAP] = replace(compared[GAP], range=NO_LESS_THAN_NONE)
        return Score(compared, notes=notes)

    def _scored(self, part: Part) -> Part:
        """A side: what the scoring function gives."""
        unit = self.scoring.unit
        return replace(part, unit=unit, range=(0.0, 1.0 if unit == "fraction" else math.inf))

    def _compared(self, part: Part) -> Part:
        """The headline: a difference of fractions is one, in the metric's own range."""
        difference = self.relation is RELATIONS["difference"]
        unit = self.scoring.unit if difference else self.relation.unit
        unbounded = None if unit == "fraction" else (-math.inf, math.inf)
        return replace(part, unit=unit, range=unbounded, neutral=self.relation.neutral)

    def _combinations(self) -> dict[PartName, Combination]:
        """Functions of (model, human) under own scoring, accuracy and LIC, in that order."""

        def decomposed(which: int) -> Combination:
            return lambda m, h, m_right, h_right, m_lic, h_lic: accuracy_and_confidence_parts(
                (m_right, m_lic), (h_right, h_lic)
            )[which]

        return {
            SCORE: lambda m, h, *_: self.relation.of(m, h),
            MODEL_PAIRED: lambda m, *_: m,
            HUMAN_PAIRED: lambda m, h, *_: h,
            PartName("lic_from", detail="accuracy"): decomposed(0),
            PartName("lic_from", detail="confidence"): decomposed(1),
        }

    def _unnamed(self, parts: Mapping[str, Part]) -> list[str]:
        return [
            f"no {side} caption holds a word of attribute {self.attribute.name!r}; is its list in "
            "the captions' language?"
            for side in SIDES
            if side in parts and parts[side].neutral_rate == 1
        ]

    def _missing(self, has_model: Mask, has_human: Mask) -> list[str]:
        if set(self.sides) < set(SIDES):
            return [f"the {self.sides[0]} side alone was attacked: there is no score"]
        if not has_human.any():
            return ["no human captions: nothing can be said of amplification"]
        lacking = int((has_model & ~has_human).sum())
        if lacking:
            return [f"{lacking} images with a model caption have no human captions: not scored"]
        return []

    def _part(self, estimate: Estimate, corpus: Corpus, side: str, images: Mask) -> Part:
        grouping = corpus.groupings[self.attribute.name]
        return Part(
            estimate=estimate,
            unit="fraction",
            n_images=int(images.sum()),
            coverage=float(images.sum() / (grouping.codes >= 0).sum()),
            neutral_rate=neutral_rate(corpus.side(side), self.attribute, images),
        )


@dataclass(frozen=True, eq=False)
class _Pair:
    """Predictions on both sides of the same images."""

    model: Sequence[Predictions]
    human: Sequence[Predictions]

    def tables(self, scoring: Scoring) -> list[ScoreTable]:
        """Model and human, under the metric's own scoring, accuracy and LIC."""
        return [
            ScoreTable.of(side, how)
            for how in (scoring, Accuracy(), Lic())
            for side in (self.model, self.human)
        ]


_UNKNOWN = "<unk>"  # what alignment puts for people's words that the captioner does not use


def _holding(captions: Captions, types: Mask) -> Mask:
    """(N,) whether each caption holds one of the distinct words that are flagged, (V,)."""
    rows = np.repeat(np.arange(len(captions)), captions.lengths)
    return np.bincount(rows, weights=types[captions.tokens], minlength=len(captions)) > 0


def _wordless(side: str, captions: Captions, share: float) -> str:
    """Why nothing can be learnt from captions of which this share holds no word."""
    unknown = np.array([word == _UNKNOWN for word in captions.types], bool)
    if side == "human" and _holding(captions, unknown).mean() >= share:
        return (
            f"{share:.0%} of the human captions hold no word that the captioner uses, once masked; "
            "it may write another language, or next to no words (alignment=none keeps people's)"
        )
    return (
        f"{share:.0%} of the {side} captions hold no word once masked; there is nothing to learn "
        "from"
    )


def labelled(
    part: PartName, captions: Captions, grouping: Grouping, positions: int
) -> Iterator[Labelled]:
    """What attackers learn from: captions of each position with the groups of their images.

    Args:
        part: whose captions they are; people's are named by position too.
        captions: of labelled images.
        grouping: the images' groups.
        positions: how many are taken; those with too few images of a group are left out.
    """
    n_classes = len(grouping.names)
    for k, own in enumerate(captions.by_position(positions)):
        labels = grouping.codes[own.image_rows]
        if np.bincount(labels, minlength=n_classes).min() >= SMALLEST_GROUP:
            name = f"{part}:{k}" if part.side == "human" else part
            yield Labelled(name, own, labels, n_classes, grouping.names)


class _Attack:
    """Attackers on prepared captions, each set of images attacked once."""

    def __init__(self, metric: CaptionAttack, ready: Corpus, splits: Sequence[Split]) -> None:
        self.metric = metric
        self.ready = ready
        self.splits = splits
        self.trained: list[Predictions] = []
        self.notes: list[str] = []
        self.wordless_share: dict[str, float] = {}
        self._done: dict[tuple[str, bytes], list[Predictions]] = {}
        self._verbatim: dict[PartName, list[float]] = {}

    def on(self, part: PartName, images: Mask) -> list[Predictions]:
        """Predictions on one side of some images, one item a caption position.

        Args:
            part: a side, as it is or ``paired``; names the predictions.
            images: the part's images; a set that was attacked before is not attacked again.
        """
        key = (part.side, images.tobytes())
        if key not in self._done:
            tables = self._labelled(part, images)
            self._done[key] = [self._attack(table) for table in tables]
            self._verbatim[part] = [_verbatim_share(table, self.splits) for table in tables]
        return self._done[key]

    def _attack(self, data: Labelled) -> Predictions:
        self._check_tested(data)
        predictions = self.metric.probe.fit_predict(data, self.splits)
        self.trained.append(predictions)
        return predictions

    def _labelled(self, part: PartName, images: Mask) -> list[Labelled]:
        side, captions = part.side, self.ready.side(part.side)
        captions = captions.take(images[captions.image_rows])
        self._check_words(side, captions)
        grouping = self.ready.groupings[self.metric.attribute.name]
        tables = list(labelled(part, captions, grouping, self.metric.positions))
        if not tables:
            raise NotApplicableError(
                f"captioner {self.ready.captioner!r}, {side} captions: attackers need two groups "
                f"or more with at least {SMALLEST_GROUP} captioned images each"
            )
        return tables

    def _check_tested(self, data: Labelled) -> None:
        """A seed without a test caption of every group has no score, and with it the metric."""
        for split in self.splits:
            _, test = split.select(data.captions.image_rows, data.labels)
            if not len(test):
                raise NotApplicableError(
                    f"captioner {self.ready.captioner!r}: none of {len(data.captions)} captions "
                    f"({data.name}) can be tested with seed {split.seed}; score more images of "
                    "each group"
                )

    def _check_words(self, side: str, captions: Captions) -> None:
        special = [is_special(word) or not any(map(str.isalnum, word)) for word in captions.types]
        wordless = ~_holding(captions, ~np.array(special, bool))
        share = float(wordless.mean())
        self.wordless_share[side] = share
        if share > self.metric.wordless_limit:
            raise DataError(
                f"captioner {self.ready.captioner!r}: {_wordless(side, captions, share)}"
            )
        if share > WORDLESS_WARNING:
            self.notes.append(f"{share:.0%} of the {side} captions hold no word once masked")

    def verbatim_share(self) -> dict[str, float]:
        """Share of test captions that stand verbatim in training, of all images of a side."""
        shares = {str(name): self._verbatim.get(name) for name in (MODEL, HUMAN)}
        return {side: float(np.mean(own)) if own else np.nan for side, own in shares.items()}


def _verbatim_share(data: Labelled, splits: Sequence[Split]) -> float:
    """Mean over splits; the split is by image, so captions may repeat across its parts."""
    identities = data.captions.identities
    shares = []
    for split in splits:
        train, test = split.select(data.captions.image_rows, data.labels)
        shares.append(float(np.isin(identities[test], identities[train]).mean()))
    return float(np.mean(shares))


def _calibration(predictions: Sequence[Predictions]) -> Estimate:
    """Expected calibration error: mean over positions, then over seeds."""
    per_seed = np.mean(
        [[expected_calibration_error(p, t) for _, t, p in own] for own in predictions], axis=0
    )
    std = float(np.std(per_seed, ddof=1)) if len(per_seed) > 1 else float("nan")
    nan = float("nan")
    return Estimate(float(per_seed.mean()), std, nan, nan, nan, nan, len(per_seed))


def _described(captions: Captions, n_images: int) -> Mask:
    return np.bincount(captions.image_rows, minlength=n_images) > 0
