"""Extra parts of a score at equal speech: reach, and the score of people against people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.metrics.base import Part
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import Estimate
from bias_pipeline.text.matched import CHANGES, MatchedAlignment
from bias_pipeline.text.transform import Transform

NO_SECOND_PERSON = (
    "people wrote one caption an image, so one person cannot be compared with another: there is no "
    "matched:people"
)


def at_equal_speech(transforms: Sequence[Transform]) -> bool:
    """Whether people's captions are matched to the captioner's word by word."""
    return any(isinstance(transform, MatchedAlignment) for transform in transforms)


def one_person_as_captioner(corpus: Corpus, attribute: str) -> Corpus | None:
    """People against people: the first caption of each image is the captioner's.

    Args:
        corpus: raw captions; the captioner's are not used.
        attribute: only images of its groups are taken.

    Returns:
        None where no image has two captions.
    """
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
    """Share of the captioner's words that matching gives to people, mean over caption positions."""
    lines = matched.tables.get(CHANGES, ())
    reached = [float(line["reach"]) for line in lines if isinstance(line["reach"], float)]
    return float(np.mean(reached)) if reached else math.nan


def equal_speech_parts(
    headline: PartName, part: Part, matched: Corpus, people: Part | None
) -> dict[str, Part]:
    """``matched:reach`` and ``matched:people`` of a headline.

    Args:
        headline: ``score``, or a direction.
        part: the headline's.
        matched: the corpus as attackers read it.
        people: the headline where one person is the captioner, if there is one.
    """
    nan = math.nan
    estimate = Estimate(mean_reach(matched), nan, nan, nan, nan, nan, 0)
    reach = replace(part, estimate=estimate, unit="fraction", range=(0.0, 1.0), neutral=None)
    named = {"reach": reach} | ({} if people is None else {"people": people})
    direction = headline.direction
    return {
        PartName("matched", direction=direction, detail=detail): extra
        for detail, extra in named.items()
    }


def rename_predictions(predictions: Sequence[Predictions]) -> list[Predictions]:
    """Predictions of attackers of people, with ``people:`` before their names."""
    return [replace(item, name=f"people:{item.name}") for item in predictions]
