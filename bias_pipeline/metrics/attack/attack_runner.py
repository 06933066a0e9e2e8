"""Trains attackers on transformed captions, once for each set of images.

If several choices are equally good, such as several word vectors, their scores are averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Grouping
from bias_pipeline.corpus.predictions import LabelledCaptions, Predictions
from bias_pipeline.corpus.split import SMALLEST_GROUP, Split, seeds_in, with_fewer_images
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.metrics.base import HEADLINES, Number, Score
from bias_pipeline.metrics.value_names import HUMAN, MODEL, PartName
from bias_pipeline.stats.choices import mean_over_choices
from bias_pipeline.stats.scoring import Scoring
from bias_pipeline.text.transform import Transform, alternatives, is_special

WORDLESS_WARNING = 0.05
_SEVERAL = 3  # groups; from this number on, chance and balance are reported

_UNKNOWN = "<unk>"  # alignment writes it for human words that the captioner does not use


def _range(counts: IntArray) -> str:
    """The smallest and the largest count in words, such as "2 to 5"; equal counts give one number.

    Example:
        >>> _range(np.array([3, 3])), _range(np.array([3, 5, 4]))
        ('3', '3 to 5')
    """
    low, high = int(counts.min()), int(counts.max())
    return str(low) if low == high else f"{low} to {high}"


def _holding(captions: Captions, types: BoolArray) -> BoolArray:
    """(N,) flags: true where a caption contains a word that is flagged in ``types`` (V,)."""
    rows = np.repeat(np.arange(len(captions)), captions.lengths)
    return np.bincount(rows, weights=types[captions.tokens], minlength=len(captions)) > 0


def _wordless(side: str, captions: Captions, share: float) -> DataError:
    """The error to raise if too many captions of a side contain no word.

    The error is a NotApplicableError if the human captions may be in another language, else a
    DataError.
    """
    unknown = np.array([word == _UNKNOWN for word in captions.types], bool)
    if side == "human" and _holding(captions, unknown).mean() >= share:
        return NotApplicableError(
            f"{share:.0%} of the human captions contain no word that the captioner uses, once "
            "masked; the captioner may write another language, or almost no words (alignment=none "
            "keeps the annotators' words)"
        )
    if side == "human":  # alignment may remove human words that the captioner does not use
        return NotApplicableError(
            f"{share:.0%} of the human captions contain no word once masked and aligned; the "
            "captioner may write another language, or almost no words"
        )
    return DataError(
        f"{share:.0%} of the {side} captions contain no word once masked; there is nothing to "
        "learn from"
    )


def label_captions(
    part: PartName, captions: Captions, grouping: Grouping, positions: int
) -> Iterator[LabelledCaptions]:
    """The captions at each position and the groups of their images, from which attackers learn."""
    n_classes = len(grouping.names)
    for k, in_position in enumerate(captions.by_position(positions)):
        labels = grouping.codes[in_position.image_rows]
        if np.bincount(labels, minlength=n_classes).min() >= SMALLEST_GROUP:
            name = f"{part}:{k}" if part.side == "human" else part
            yield LabelledCaptions(name, in_position, labels, n_classes, grouping.names)


@dataclass(frozen=True)
class AttackSettings:
    """The settings and functions of a metric that uses attackers."""

    attribute: str  # the name of what is guessed
    positions: int  # how many human captions of an image are used
    # The share of captions without a word above which there is nothing to learn
    wordless_limit: float
    # Adds pictures or objects to the captions, for attackers that use them
    with_inputs: Callable[[LabelledCaptions, Corpus], LabelledCaptions]
    # Trains attackers of several sets of splits and returns the predictions of each set
    predict: Callable[[LabelledCaptions, Sequence[Sequence[Split]]], list[Predictions]]


class AttackRunner:
    """Attackers of one corpus.

    Attributes:
        trained: all predictions so far.
        notes: sentences for readers of the result.
        wordless_share: by side, the share of captions without a word.
    """

    def __init__(
        self, settings: AttackSettings, transformed: Corpus, splits: Sequence[Split]
    ) -> None:
        self.settings = settings
        self.transformed = transformed
        self.splits = splits
        self.trained: list[Predictions] = []
        self.notes: list[str] = []
        self.wordless_share: dict[str, float] = {}
        self._done: dict[tuple[str, bytes, tuple[float, ...]], list[list[Predictions]]] = {}
        self._verbatim: dict[PartName, list[float]] = {}

    def attack_images(
        self, part: PartName, images: BoolArray, shares: Sequence[float] = ()
    ) -> list[list[Predictions]]:
        """Predictions of all attackers, and of those with fewer images, by caption position."""
        key = (part.side, images.tobytes(), tuple(shares))
        if key not in self._done:
            tables = self._label_side(part, images)
            by_table = [self.attack(table, shares) for table in tables]
            self._done[key] = [list(each) for each in zip(*by_table, strict=True)]
            self._verbatim[part] = [_verbatim_share(table, self.splits) for table in tables]
        return self._done[key]

    def attack(self, data: LabelledCaptions, shares: Sequence[float] = ()) -> list[Predictions]:
        """Predictions of all attackers, and of attackers that learn from a share of the images."""
        check_tested(data, self.splits)
        fewer = [with_fewer_images(self.splits, share) for share in shares]
        predictions = self.settings.predict(data, [self.splits, *fewer])
        self.trained.append(predictions[0])
        return predictions

    def group_note(self, images: BoolArray, scoring: Scoring) -> list[str]:
        """A note: the score of chance, and how many images each group has after balancing."""
        grouping = self.transformed.groupings[self.settings.attribute]
        n_groups, rows = len(grouping.names), np.flatnonzero(images)
        if n_groups < _SEVERAL or not len(rows):
            return []
        labels = grouping.codes[rows]
        train, test = self.splits[0].select(rows, labels)
        learnt, tested = (np.bincount(labels[part], minlength=n_groups) for part in (train, test))
        fewest = grouping.names[int(np.bincount(labels, minlength=n_groups).argmin())]
        chance = scoring.chance(n_groups)
        shown = f"{100 * chance:.3g} %" if scoring.unit == "fraction" else f"{chance:.3g}"
        return [
            f"{n_groups} groups: a uniform guess scores {shown}; an attacker learns "
            f"from {_range(learnt)} images of each group and is tested on {_range(tested)} (the "
            f"smallest group is {fewest})"
        ]

    def _label_side(self, part: PartName, images: BoolArray) -> list[LabelledCaptions]:
        side, captions = part.side, self.transformed.side(part.side)
        captions = captions.take(images[captions.image_rows])
        self._check_words(side, captions)
        grouping = self.transformed.groupings[self.settings.attribute]
        tables = list(label_captions(part, captions, grouping, self.settings.positions))
        if not tables:
            codes = grouping.codes[np.unique(captions.image_rows)]
            sizes = np.bincount(codes, minlength=len(grouping.names)).tolist()
            listed = ", ".join(f"{name} {n}" for name, n in zip(grouping.names, sizes, strict=True))
            raise NotApplicableError(
                f"{side} captions: attackers need two groups or more, and at least "
                f"{SMALLEST_GROUP} captioned images of each; found {listed}"
            )
        return [self.settings.with_inputs(table, self.transformed) for table in tables]

    def _check_words(self, side: str, captions: Captions) -> None:
        special = [is_special(word) or not any(map(str.isalnum, word)) for word in captions.types]
        wordless = ~_holding(captions, ~np.array(special, bool))
        share = float(wordless.mean())
        self.wordless_share[side] = share
        if share > self.settings.wordless_limit:
            raise _wordless(side, captions, share)
        if share > WORDLESS_WARNING:
            self.notes.append(f"{share:.0%} of the {side} captions contain no word once masked")

    def verbatim_share(self) -> dict[str, float]:
        """The share of a side's test captions whose text also occurs in training."""
        shares = {str(name): self._verbatim.get(name) for name in (MODEL, HUMAN)}
        return {
            side: float(np.mean(values)) if values else np.nan for side, values in shares.items()
        }


def check_tested(data: LabelledCaptions, splits: Sequence[Split]) -> None:
    """Raise an error if some seed tests no caption, since the metric then has no score."""
    groups = np.zeros(len(data.labels), np.int64) if data.multi_label else data.labels
    tested = dict.fromkeys(seeds_in(splits), 0)
    for split in splits:
        tested[split.seed] += len(split.select(data.captions.image_rows, groups)[1])
    for seed, count in tested.items():
        if not count:
            raise NotApplicableError(
                f"none of {len(data.captions)} captions ({data.name}) can be tested with seed "
                f"{seed}; score more images of each group"
            )


def _verbatim_share(data: LabelledCaptions, splits: Sequence[Split]) -> float:
    """The share of test captions whose text also occurs in training. Only images are kept apart."""
    identities = data.captions.identities
    verbatim = []
    for split in splits:
        train, test = split.select(data.captions.image_rows, data.labels)
        learnt = np.zeros(len(identities), bool)
        learnt[identities[train]] = True
        verbatim.append(learnt[identities[test]])
    return float(np.concatenate(verbatim).mean())


CHOICES = "choices"  # the table's name


def over_alternatives(
    transforms: Sequence[Transform], level: float, compute: Callable[[Sequence[Transform]], Score]
) -> Score:
    """The mean score over all alternative transforms."""
    scores = {name: compute(chosen) for name, chosen in alternatives(transforms).items()}
    return next(iter(scores.values())) if len(scores) == 1 else _mean(scores, level)


def _mean(scores: Mapping[str, Score], level: float) -> Score:
    """The means of the numbers that all scores have, together with all predictions and tables."""
    all_scores = list(scores.values())
    shared = [
        name for name in all_scores[0].parts if all(name in other.parts for other in all_scores)
    ]
    parts: dict[str, Number] = {}
    for name in shared:
        of_choices = [score.parts[name] for score in all_scores]
        parts[name] = replace(of_choices[0], **vars(mean_over_choices(of_choices, level)))
    tables = {
        table: [
            {"choice": name, **line}
            for name, score in scores.items()
            for line in score.tables.get(table, ())
        ]
        for table in all_scores[0].tables
    }
    return Score(
        parts=parts,
        predictions=[
            replace(predictions, name=f"{name}:{predictions.name}")
            for name, score in scores.items()
            for predictions in score.predictions
        ],
        audit={
            key: {n: one.audit.get(key) for n, one in scores.items()} for key in all_scores[0].audit
        },
        notes=[
            *dict.fromkeys(note for one in all_scores for note in one.notes),
            *[
                f"{name} is the mean over {', '.join(scores)}, between which it varies by "
                f"{part.choice_std:.2g} (standard deviation)"
                for name, part in parts.items()
                if name in HEADLINES
            ],
        ],
        tables={**tables, CHOICES: list(_values(scores, shared))},
    )


def _values(scores: Mapping[str, Score], shared: Sequence[str]) -> list[dict[str, object]]:
    """Table lines: the values of each number that depends on the choice."""
    return [
        {"choice": name, "part": str(part), "value": estimate.value, "seed_std": estimate.seed_std}
        for part in shared
        if len({score.parts[part].value for score in scores.values()}) > 1
        for name, score in scores.items()
        for estimate in [score.parts[part]]
    ]
