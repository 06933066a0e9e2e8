"""Numbers besides the headline: scores of groups, learning curves, and scores for equal styles.

Scores of single groups show which group is worst and how far the groups are apart. A learning curve
shows how a score grows with the number of images: the same attackers learn from half and from a
quarter of their images, and are tested on all images. If the curve still rises or falls, a score
means nothing without the number of images. If styles are made equal, two numbers are added: the
share of vocabulary that matching covers, and the score of one annotator compared with the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import Number, Score
from bias_pipeline.metrics.value_names import (
    ALIKE,
    BEYOND,
    COMPARED,
    CURVE,
    SCORE,
    UNEVEN,
    PartName,
)
from bias_pipeline.stats.bootstrap import Estimate, summary
from bias_pipeline.text.alike import alike_annotators
from bias_pipeline.text.matched import MatchedAlignment
from bias_pipeline.text.transform import CHANGES, Transform

NO_LESS_THAN_NONE = (0.0, math.inf)  # the range of a gap


@dataclass(frozen=True)
class Gap:
    """The largest difference between two groups' scores."""

    worst: str  # the group with the highest score; lower is fairer
    best: str  # the group with the lowest
    # Worst minus best. As the two are chosen from all groups, the interval is corrected for all
    # pairs of groups (Bonferroni).
    estimate: Estimate


def gap_of(groups: Mapping[str, Estimate], level: float) -> Gap | None:
    """The largest gap between two groups. There is no gap if fewer than two groups have a score."""
    known = {name: e for name, e in groups.items() if math.isfinite(e.value)}
    if len(known) < 2:
        return None
    ordered = sorted(known, key=lambda name: known[name].value)
    best, worst = known[ordered[0]].draws, known[ordered[-1]].draws
    assert best is not None
    assert worst is not None
    corrected = 1 - (1 - level) / math.comb(len(known), 2)
    gap = summary(worst - best, corrected)
    at_least = float(np.maximum(gap.ci_low, NO_LESS_THAN_NONE[0]))
    return Gap(ordered[-1], ordered[0], replace(gap, ci_low=at_least))


def gap_sentence(of: str, groups: Mapping[str, Estimate], gap: Gap, unit: str = "fraction") -> str:
    """A sentence on the worst group and the largest gap; fractions are in per cent."""
    worst, largest = (
        f"{_format(e.value, unit)} [{_format(e.ci_low, unit)}, {_format(e.ci_high, unit)}]"
        for e in (groups[gap.worst], gap.estimate)
    )
    return f"{of}: worst group {gap.worst} {worst}; largest gap {largest}, to {gap.best}"


def _format(value: float, unit: str) -> str:
    return f"{100 * value:z.1f}" if unit == "fraction" else f"{value:z.2f}"


SHARES = {"half": 1 / 2, "quarter": 1 / 4}
LEAST_TO_LEARN_FROM = 20  # images of each group
_OF_THEM = {"all": "all training images", "half": "half of them", "quarter": "a quarter of them"}
# By how many errors the score of a share differs from the score by chance, in about one of twenty
# captioners without a bias (LIC, Leakage, DBAC of ``faithful``, 400 to 4,000 images; DPA of
# captions that name the other group in one image of ten: one of twelve).
_NOISE = {"half": 2, "quarter": 3}
_SHOWN = 0.0005  # a fraction that changes by less looks the same in the note
_WHOSE = {"": "", "a_to_t": " of A→T", "t_to_a": " of T→A"}


def learning_parts(curve: Mapping[str, Number], direction: str = "") -> dict[str, Number]:
    """The numbers of a learning curve, by names such as ``learning:half``."""
    return {
        PartName("learning", direction=direction, detail=share): part
        for share, part in curve.items()
    }


def smaller_shares(codes: IntArray) -> dict[str, float]:
    """The shares of images that leave every group enough images to learn from.

    ``codes`` (N,) are the images' groups; a group without images does not count.

    Example:
        >>> smaller_shares(np.repeat([0, 1], 50))
        {'half': 0.5}
    """
    fewest = np.unique(codes, return_counts=True)[1].min()
    return {name: share for name, share in SHARES.items() if fewest * share >= LEAST_TO_LEARN_FROM}


def learning_note(curve: Mapping[str, Number], error: float, direction: str = "") -> list[str]:
    """A sentence that says whether a score changes with the number of training images."""
    if not curve:
        return []
    values, fewest = [part.value for part in curve.values()], [*curve][-1]
    unit = next(iter(curve.values())).unit
    texts = ", ".join(
        f"{_format(value, unit)} with {_OF_THEM[share]}"
        for share, value in zip(curve, values, strict=True)
    )
    shown = _SHOWN if unit == "fraction" else 10 * _SHOWN
    level = abs(values[0] - values[-1]) <= max(_NOISE[fewest] * error, shown)
    meaning = "level" if level else f"{UNEVEN}, so {COMPARED}"
    return [f"{CURVE}{_WHOSE[direction]}: {texts}: {meaning}"]


def error_of_first_seed(score: Estimate) -> float:
    """Standard deviation of the first seed's score when images are resampled."""
    assert score.draws is not None
    return float(np.std(score.draws.resampled[:, 0], ddof=1))


TURNS = 4  # how often annotators take the captioner's place if attackers are quick

NO_SECOND_PERSON = (
    "annotators wrote one caption an image, so one annotator cannot be compared with another: "
    "there is no matched:people"
)


def at_equal_speech(transforms: Sequence[Transform]) -> MatchedAlignment | None:
    return next((each for each in transforms if isinstance(each, MatchedAlignment)), None)


def score_of_people(corpus: Corpus, attribute: str, score: Callable[[Corpus], Score]) -> Score:
    """The score if one annotator is the captioner, or a note that says why there is no score."""
    people = one_person_as_captioner(corpus, attribute)
    if people is None:
        return Score({}, notes=[NO_SECOND_PERSON])
    try:
        return score(people)
    except NotApplicableError as error:
        return Score({}, notes=[f"there is no matched:people: {error}"])


def one_person_as_captioner(corpus: Corpus, attribute: str) -> Corpus | None:
    """The corpus with one annotator as captioner, or None if no image has two annotators."""
    human = corpus.human
    several = np.bincount(human.image_rows, minlength=len(corpus)) > 1
    images = several & (corpus.groupings[attribute].codes >= 0)
    if not images.any():
        return None
    human = human.take(images[human.image_rows])
    first = human.positions == 0
    people = corpus.rewrite({"model": human.take(first), "human": human.take(~first)})
    return replace(people, captioner="one person", vocabulary=None, notes=(), tables={})


def mean_reach(matched: Corpus) -> float:
    """The mean share of the captioner's words that matched human captions contain.

    The mean is over caption positions, weighted by their number of images as in the score.
    """
    lines = matched.tables.get(CHANGES, ())
    reach, images = (np.array([line[key] for line in lines], float) for key in ("reach", "images"))
    known = np.isfinite(reach)
    return float(np.average(reach[known], weights=images[known])) if known.any() else math.nan


def equal_speech_parts(
    headline: PartName, part: Number, matched: Corpus, people: Number | None
) -> dict[str, Number]:
    """``matched:reach`` and ``matched:people`` of a headline.

    If words of the captioner were removed, ``matched:retained`` is the share that remains.
    """
    estimate = Estimate(mean_reach(matched))
    reach = replace(part, **vars(estimate), unit="fraction", range=(0.0, 1.0), neutral=None)
    named = {"reach": reach} | ({} if people is None else {"people": people})
    retained = min(
        (float(str(line["retained"])) for line in matched.tables.get(CHANGES, ())), default=1.0
    )
    if retained < 1:
        named["retained"] = replace(reach, value=retained)
    direction = headline.direction
    return {
        PartName("matched", direction=direction, detail=detail): extra
        for detail, extra in named.items()
    }


def alike_corpora(
    corpus: Corpus, align: MatchedAlignment, matched: Callable[[Corpus], Corpus], n_turns: int
) -> Iterator[Corpus]:
    """Corpora in which annotators, one after the other, replace the captioner with equal length.

    Each corpus also has one human caption of every image, for comparison.
    """
    alike = alike_annotators(corpus, align.seed)
    turns = range(min(n_turns, int(corpus.human.positions.max()) + 1))
    aligned = (matched(alike.turn(number)) for number in turns)
    return (each.rewrite({"human": each.human.position(0)}) for each in aligned)


def alike_parts(score: Number, alike: Number | None, level: float) -> dict[str, Number]:
    """The numbers ``matched:alike`` and ``matched:beyond``.

    Both are NaN if annotators with captions as long as the captioner's have no score.
    """
    if alike is None or alike.draws is None or score.draws is None:
        unknown = Estimate(math.nan)
        absent = replace(score, **vars(unknown), n_images=0, coverage=0.0)
        return {ALIKE: replace(absent, neutral_rate=math.nan), BEYOND: replace(absent, neutral=0.0)}
    width = score.range[1] - score.range[0] if score.range else math.inf
    beyond = replace(
        score,
        **vars(summary(score.draws - alike.draws, level)),
        range=(-width, width),
        neutral=0.0,
        n_images=alike.n_images,
        coverage=alike.coverage,
    )
    return {ALIKE: replace(alike, neutral_rate=math.nan), BEYOND: beyond}


def with_annotators(
    score: Score, matched: Corpus, people: Score, alike: Score, level: float
) -> Score:
    """A score for equal styles, together with scores of annotators who replace the captioner."""
    headline = score.parts[SCORE]
    return replace(
        score,
        parts={
            **score.parts,
            **equal_speech_parts(SCORE, headline, matched, people.parts.get(SCORE)),
            **alike_parts(headline, alike.parts.get(SCORE), level),
        },
        predictions=[
            *score.predictions,
            *people.predictions,
            *alike.predictions,
        ],
        notes=[*score.notes, *people.notes, *alike.notes],
    )


def rename_predictions(predictions: Sequence[Predictions], whose: str) -> list[Predictions]:
    """Predictions from annotators' captions, under names that begin with ``WHOSE:``."""
    return [replace(item, name=f"{whose}:{item.name}") for item in predictions]
