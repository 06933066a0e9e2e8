"""What ``metric=objects`` says of published captioners, of a null, and of planted inventions.

Usage: python -m experiments.objects.study [DATA]

With DATA every draw that is missing in rows.csv is computed and appended, so a stopped study goes
on where it was. Without, the tables are made from rows.csv.
"""

from __future__ import annotations

import csv
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics.base import NOT_SHOWN, Score
from bias_pipeline.metrics.functional.comparable import BLOCK
from bias_pipeline.run import compose
from experiments.descriptions.pictures import Pictures, corpus_of
from experiments.objects.tables import ROWS, write_tables

CAPTIONERS = ("nic", "sat", "fc", "att2in", "transformer", "oscar", "oscar_cider", "nicplus")
PERMUTED = ("nic", "fc")  # whose groups are permuted among images of equal expected group
DRAWS, DRAWN = 50, 1500  # draws, and the images of each
# What is added to captions of oscar, of whom, in how many of 100
PLANTED = {"planted 2 %": 0.02, "planted 3 %": 0.03, "planted 5 %": 0.05, "planted 10 %": 0.1}
ALIKE, BY_SCENE = "alike 10 %", "by scene"
PARTS = (
    *("invented", "invented:mentions", "gap", "gap:number", "gap:alike", "gap:words"),
    *("gap:recall", "score", "null"),
)
_INDOORS = frozenset({"dining table", "cake", "oven", "umbrella"})
_OUTDOORS = frozenset({"surfboard", "skis", "snowboard", "bench"})


@dataclass(frozen=True)
class Case:
    """One draw of one speaker."""

    speaker: str
    n_images: int  # 0 for all
    seed: int


def cases() -> Iterator[Case]:
    """All draws."""
    for speaker in (*CAPTIONERS, *PLANTED, ALIKE):
        yield Case(speaker, 0, 0)
    for seed in range(DRAWS):
        for speaker in (*(f"{name} permuted" for name in PERMUTED), BY_SCENE, "planted 3 %", "nic"):
            yield Case(speaker, DRAWN, seed)


class Study:
    """Draws from the folder of data."""

    def __init__(self, data: Path) -> None:
        self.pictures = Pictures.read(data)
        cell = compose.cell(["metric=objects", "dataset=scenes"])
        self.metric, self.attribute = cell.build("metric"), cell.build("attribute")
        self.captions = {name: _captions(data, name) for name in CAPTIONERS}
        self.pool = [i for i in self.pictures.pool if all(i in of for of in self.captions.values())]

    def row(self, case: Case) -> dict[str, object]:
        """What the metric says of a draw."""
        corpus = self.corpus(case)
        started = time.process_time()
        score: Score = self.metric.compute(corpus, splits=[])
        facts: dict[str, Any] = score.audit["objects"]  # type: ignore[assignment]
        numbers = {}
        for part in PARTS:
            estimate = score.parts[part]
            numbers[part] = f"{estimate.value:.5f}"
            numbers[f"{part} low"] = f"{estimate.ci_low:.5f}"
            numbers[f"{part} high"] = f"{estimate.ci_high:.5f}"
        return {
            **vars(case),
            "answer": "not_shown" if facts["reason"] == NOT_SHOWN else facts["answer"],
            "p": f"{facts['p_value']:.4g}",
            "named": "; ".join(
                f"{name} {100 * score.parts[f'object:{name}'].value:+.1f}"
                for name in facts["named"]
            ),
            **numbers,
            "seconds": f"{time.process_time() - started:.1f}",
        }

    def corpus(self, case: Case) -> Corpus:
        """The captions of one draw."""
        generator = _random(f"objects {case.seed}")
        chosen = sorted(generator.sample(self.pool, case.n_images)) if case.n_images else self.pool
        name, change = self._speaker(case)
        model = {i: change(i, self.captions[name][i]) for i in chosen}
        corpus = corpus_of(model, self.pictures.captions, self.pictures, self.attribute)
        return (
            self._permute_groups(corpus, case.seed) if case.speaker.endswith("permuted") else corpus
        )

    def _speaker(self, case: Case) -> tuple[str, Callable[[int, str], str]]:
        """The captioner, and how each of its captions is changed."""
        if case.speaker in PLANTED:
            rate = PLANTED[case.speaker]
            return "oscar", lambda i, text: text + self._by_group(i, case.seed, rate)
        if case.speaker == ALIKE:
            return "oscar", lambda i, text: text + _invent_alike(i, case.seed, 0.1)
        if case.speaker == BY_SCENE:
            return "oscar", lambda i, text: text + self._by_scene(i, case.seed, 0.3)
        return case.speaker.split()[0], lambda i, text: text

    def _by_group(self, picture: int, seed: int, rate: float) -> str:
        """A handbag of women, a tie of men."""
        if _random(f"{seed} {picture}").random() >= rate:
            return ""
        return " with a handbag" if self.pictures.group(picture) == "Female" else " with a tie"

    def _by_scene(self, picture: int, seed: int, rate: float) -> str:
        """A handbag at the table, a skateboard out of doors, whoever is shown."""
        if _random(f"{seed} {picture}").random() >= rate:
            return ""
        objects = self.pictures.objects[picture]
        if objects & _INDOORS:
            return " with a handbag"
        return " with a skateboard" if objects & _OUTDOORS else ""

    def _permute_groups(self, corpus: Corpus, seed: int) -> Corpus:
        """The corpus with groups permuted among images whose pictures let expect the same one."""
        grouping, images = corpus.groupings[self.attribute.name], self.metric.images(corpus)
        rows = self.metric.counted_rows(corpus)
        comparison = self.metric.comparison(images, grouping.codes[rows] == 1)
        codes, generator = grouping.codes.copy(), np.random.default_rng(seed)
        order = rows[np.argsort(comparison.expected_group, kind="stable")]
        for block in np.array_split(order, len(order) // BLOCK):
            codes[block] = generator.permutation(codes[block])
        return replace(corpus, groupings={self.attribute.name: replace(grouping, codes=codes)})


def _invent_alike(picture: int, seed: int, rate: float) -> str:
    """A handbag or a tie, whoever is shown."""
    generator = _random(f"{seed} {picture}")
    if generator.random() >= rate:
        return ""
    return generator.choice([" with a handbag", " with a tie"])


def _captions(data: Path, name: str) -> Mapping[int, str]:
    lines = json.loads((data / "captioners" / f"{name}.json").read_text())
    return {int(line["image_id"]): line["caption"] for line in lines}


def _random(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311 - nothing is secret


def known_cases() -> set[Case]:
    """The draws of rows.csv."""
    if not ROWS.is_file():
        return set()
    with ROWS.open(newline="") as file:
        return {
            Case(row["speaker"], int(row["n_images"]), int(row["seed"]))
            for row in csv.DictReader(file)
        }


def main(data: Path) -> None:
    """Append all missing rows."""
    study, known = Study(data), known_cases()
    for case in cases():
        if case in known:
            continue
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
