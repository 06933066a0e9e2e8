"""Captioners with a known share of planted bias, on as many images as a trial has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.run import compose
from bias_pipeline.run.audit import EQUAL_SPEECH
from experiments.flatness.speakers import People
from experiments.inference.designs import Source, source, words

WORDS, TYPICAL, WRONG = "people words", "scenes a_to_t", "scenes t_to_a"
_EQUAL_SPEECH = tuple(f"{key}={value}" for key, value in EQUAL_SPEECH.items())


@dataclass(frozen=True)
class Scoring:
    """A metric as ``audit`` runs it.

    Attributes:
        metric: its name.
        alignment: of human captions.
        slow: whether it is scored in a few trials only.
    """

    metric: str
    alignment: str = "constant"
    slow: bool = False

    @property
    def words(self) -> list[str]:
        """Its overrides."""
        matched = _EQUAL_SPEECH if self.alignment == "matched" else ()
        return [f"metric={self.metric}", "seeds=2", *matched]


_ATTACKERS = (Scoring("lic", "matched"), Scoring("leakage", "matched"))
_COUNTED = tuple(
    map(Scoring, ("cooccurrence", "differential_fairness", "ba_mals", "ba_directional"))
)
# What is planted, and the metrics that are asked whether they see it.
SCORED: Mapping[str, Sequence[Scoring]] = {
    WORDS: _ATTACKERS,
    TYPICAL: (*_ATTACKERS, *_COUNTED, Scoring("dbac", slow=True)),
    WRONG: (Scoring("gender_error"), *_COUNTED),
}


def corpus(data: Path, design: str, n_images: int, planted: int, trial: int) -> Corpus:
    """The captions of a trial; the same images whatever is planted.

    Args:
        data: the folder that holds ``lic/bias_data``.
        design: of :data:`SCORED`.
        n_images: how many.
        planted: per cent.
        trial: its number, from which the images follow.
    """
    if design == WORDS:
        return _people(data, n_images, planted, trial)
    dial = design.removeprefix("scenes ")
    return compose.cell(
        [
            f"dataset.n_images={n_images}",
            f"dataset.seed={1 + trial}",
            f"+dataset.captioners.speaker.{dial}={planted / 100}",
            "captioner=speaker",
        ]
    ).corpus()


def _people(data: Path, n_images: int, planted: int, trial: int) -> Corpus:
    """People's first captions, some with a word of their group, of images drawn for a trial."""
    records = _speaking(data, planted)
    random = np.random.default_rng([trial, n_images])
    chosen = random.choice(len(records), min(n_images, len(records)), replace=False)
    return _source(data).corpus([records[row] for row in chosen.tolist()], "person")


@cache
def _speaking(data: Path, planted: int) -> list[Record]:
    """All images, so that what is typical of a group does not depend on the trial."""
    attribute = compose.cell(words(data, "gender_error")).build("attribute")
    people = People(_source(data).records, frozenset(attribute.all_words), attribute.name)
    return list(people.speaking("whole", planted))


def _source(data: Path) -> Source:
    return source(data, "nic")  # whose captions are replaced; it has all labelled images
