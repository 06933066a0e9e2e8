"""How often ``metric=descriptions`` accuses a fair captioner, and how often it notices a bias.

Usage: python -m experiments.descriptions.study [DATA]

With DATA every draw that is missing in rows.csv is computed and appended, so a stopped study goes
on where it was. Without, the tables are made from rows.csv.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from bias_pipeline.array_types import BoolArray
from bias_pipeline.metrics.base import NOT_SHOWN
from bias_pipeline.metrics.counting.described_images import DescribedImages
from bias_pipeline.metrics.counting.description_answer import answer_of
from bias_pipeline.metrics.counting.descriptions import GroupDescriptions
from bias_pipeline.metrics.counting.large_set import GroupRatios, LargeSet
from bias_pipeline.metrics.functional.comparable import Comparison
from experiments.descriptions.pictures import (
    ANNOTATORS,
    Habits,
    Pictures,
    corpus_of,
    metric_and_attribute,
)
from experiments.descriptions.speakers import (
    ALIKE,
    FAIR,
    PLANTED,
    SPOKEN_BY_ANNOTATORS,
    STYLES,
    Speakers,
)
from experiments.descriptions.tables import ROWS, write_tables

# Draws of each size of sample with labels of gender: of fair captioners and of speakers alike, of
# large planted differences, and of those that are only measured.
DRAWS: Mapping[int, tuple[int, int, int]] = {
    1500: (100, 50, 20), 500: (100, 20, 20), 5000: (16, 16, 16),
}  # fmt: skip
LARGE = ("focus", "hair")
RACE: Mapping[int, int] = {
    1500: 50,
    5000: 16,
}  # draws with labels of skin tone, of annotators alone
_WHOLE = 40_000  # captions of which a concept that is said 40 times is not rare
_ROUND = 4  # draws of each kind before the next four
_SHARED = 2 * _ROUND  # draws of pictures that are remembered


@dataclass(frozen=True)
class Case:
    """One draw of one speaker."""

    speaker: str
    style: str
    n_images: int
    seed: int
    attribute: str = "gender"


def cases() -> Iterator[Case]:
    """All draws, a few of each kind at a time; planted differences in many images come last."""
    for number, first in enumerate(range(0, 100, _ROUND)):
        if number % _ROUND == 0:  # fewer of them, and they take longer
            yield from _round((*FAIR, *ALIKE), number, (5000,))
        yield from _round((*FAIR, *ALIKE, *PLANTED), first, (1500, 500))
    for n_images, draws in RACE.items():
        for seed in range(draws):
            for speaker in SPOKEN_BY_ANNOTATORS:
                yield Case(speaker, "", n_images, seed, "race")
    for first in range(0, 100, _ROUND):
        yield from _round(PLANTED, first, (5000,))


def _round(speakers: Sequence[str], first: int, sizes: Sequence[int]) -> Iterator[Case]:
    """The next draws of each speaker."""
    for speaker in speakers:
        for seed in range(first, first + _ROUND):
            for style in STYLES if speaker not in ALIKE else (STYLES[seed % 2],):
                for n_images in sizes:
                    if seed < _draws(speaker, n_images):
                        yield Case(speaker, style, n_images, seed)


def _draws(speaker: str, n_images: int) -> int:
    """How many draws there are."""
    fair, large, measured = DRAWS[n_images]
    if speaker in ALIKE:
        rated = speaker == "annotators' ratio"
        return fair if n_images == 1500 or (n_images == 5000 and rated) else 0
    return fair if speaker in FAIR else large if speaker in LARGE else measured


class CachedComparison(GroupDescriptions):
    """The metric; draws of the same pictures and annotators share what no captioner decides."""

    _known: ClassVar[dict[str, Comparison]] = {}

    def comparison(self, images: DescribedImages, members: BoolArray) -> Comparison:
        """See the metric."""
        key = images.corpus.human.digest
        if key not in self._known:
            while len(self._known) >= _SHARED:
                del self._known[next(iter(self._known))]
            self._known[key] = super().comparison(images, members)
        return self._known[key]


class Study:
    """Draws from the folder of data."""

    def __init__(self, data: Path, attribute: str = "gender") -> None:
        metric, self.attribute = metric_and_attribute(f"attribute={attribute}")
        self.pictures = Pictures.read(data, self.attribute.labels["coco"])
        self.metric = CachedComparison(**vars(metric))
        self.habits = Habits(self.pictures, self.metric.concepts, self.attribute)
        self.speakers = Speakers(data, self.pictures, self.habits)

    def row(self, case: Case) -> dict[str, object]:
        """What the metric says of a draw, with annotators' ratios from the other pictures."""
        started = time.process_time()
        drawn = self.speakers.draw(case.speaker, case.style, case.n_images, case.seed)
        corpus = corpus_of(drawn.model, drawn.human, self.pictures, self.attribute)
        metric = replace(self.metric, annotators=self.large_set(frozenset(drawn.model)))
        images = DescribedImages(corpus, self.attribute, metric.concepts)
        contrasts = metric.contrasts(images)
        answer = answer_of(contrasts, len(corpus), annotated=True)
        differences = contrasts[0].differences
        amounts = np.concatenate(differences.agreeing())
        low, high = differences.score_interval
        return {
            **vars(case),
            "answer": "not_shown" if answer.reason == NOT_SHOWN else answer.answer,
            "named": "; ".join(answer.named),
            "errors": f"{amounts.max(initial=0.0):.3f}",
            "tests": len(amounts),
            "spread_p": f"{differences.spread_p():.4g}",
            "score": f"{differences.score:.5f}",
            "ci_low": f"{low:.5f}",
            "ci_high": f"{high:.5f}",
            "seconds": f"{time.process_time() - started:.1f}",
        }

    @lru_cache(maxsize=2 * _SHARED)  # noqa: B019 - there is one study
    def large_set(self, drawn: frozenset[int]) -> LargeSet:
        """What annotators of all other pictures say."""
        pictures = [i for i in self.pictures.pool if i not in drawn]
        ratios, mentions = self.habits.ratios(pictures)
        captions = ANNOTATORS * len(pictures)
        known = self.metric.annotators.attributes[self.attribute.name]
        of_groups = {name: (r.log_ratio, r.error) for name, r in ratios.items()}
        groups = GroupRatios(tuple(self.attribute.groups), of_groups, known.alone)
        least = round(self.metric.annotators.least * captions / _WHOLE)
        return LargeSet(captions, mentions, {self.attribute.name: groups}, least)


def case_of(row: Mapping[str, str]) -> Case:
    """The case of a row of a file."""
    numbers = int(row["n_images"]), int(row["seed"])
    return Case(row["speaker"], row["style"], *numbers, row["attribute"])


def known_cases() -> set[Case]:
    """The draws of rows.csv."""
    if not ROWS.is_file():
        return set()
    with ROWS.open(newline="") as file:
        return set(map(case_of, csv.DictReader(file)))


def main(data: Path) -> None:
    """Append all missing rows."""
    known, study = known_cases(), None
    for case in cases():
        if case in known:
            continue
        if study is None or study.attribute.name != case.attribute:
            study = Study(data, case.attribute)
        row = study.row(case)
        new = not ROWS.is_file()
        with ROWS.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)


if __name__ == "__main__":
    if sys.argv[1:]:
        main(Path(sys.argv[1]))
    write_tables()
