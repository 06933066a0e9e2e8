"""Captions per second through tokenising, masking and aligning, on one core.

Usage: python -m benchmarks.text
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.record import publish, real_data, table
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.run.compose import cell

CAPTIONS = 200_000
REPEATS = 5
TARGET = 250_000
STEPS = ("split", "tokenise", "mask", "align")

Transforms = Mapping[str, Callable[[Corpus], Corpus]]


@dataclass(frozen=True)
class Texts:
    """Raw captions of both sides."""

    name: str
    model: Sequence[str]
    human: Sequence[str]

    def __len__(self) -> int:
        return len(self.model) + len(self.human)

    def repeat(self, size: int) -> Texts:
        """The same captions repeated, at least ``size`` of them."""
        times = -(-size // len(self))
        name = f"{self.name}, {times} times over"
        return Texts(name, [*self.model] * times, [*self.human] * times)


def texts_of(name: str, *overrides: str) -> tuple[Texts, Transforms]:
    """The captions of a cell, and its own transforms."""
    with tempfile.TemporaryDirectory() as folder:
        built = cell([*overrides, f"paths.outputs={folder}"])
        corpus = built.corpus()
        keys = {"tokenise": "text", "mask": "masking", "align": "alignment"}
        transforms = {step: built.build(key) for step, key in keys.items()}
    sides = ([c.text(i) for i in range(len(c))] for c in (corpus.model, corpus.human))
    return Texts(name, *sides), transforms


def measure(texts: Texts, transforms: Transforms) -> dict[str, float]:
    """Seconds of each step, each the best of several runs."""
    runs = [_run(texts, transforms) for _ in range(REPEATS)]
    return {step: min(run[step] for run in runs) for step in STEPS}


def _run(texts: Texts, transforms: Transforms) -> dict[str, float]:
    """From lists of text to aligned tokens, once."""
    started = time.perf_counter()
    sides = (Captions.from_texts(texts.model), Captions.from_texts(texts.human))
    corpus = Corpus("bench", "bench", (), *sides, groupings={})
    seconds = {"split": time.perf_counter() - started}
    for name, transform in transforms.items():
        started = time.perf_counter()
        corpus = transform(corpus)
        seconds[name] = time.perf_counter() - started
    return seconds


def _line(texts: Texts, seconds: dict[str, float], words: int) -> list[str]:
    total = sum(seconds.values())
    rate = len(texts) / total
    verdict = "met" if rate >= TARGET else "missed"
    each = [f"{1000 * seconds[step]:.0f}" for step in STEPS]
    return [texts.name, f"{len(texts):,}", f"{words:,}", *each, f"{rate:,.0f}", verdict]


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    text_sets = [texts_of("scenes")]
    data = real_data()
    if data is not None:
        text_sets.append(
            texts_of("lic, sat", "dataset=lic", f"dataset.root={data}", "captioner=sat")
        )
    lines = []
    for once, transforms in text_sets:
        words = len(Captions.from_texts([*once.model, *once.human]).types)
        both = (once, once.repeat(CAPTIONS))
        lines += [_line(texts, measure(texts, transforms), words) for texts in both]
    steps = [f"{step} (ms)" for step in STEPS]
    header = ["captions", "number", "distinct words", *steps, "captions a second"]
    body = table([*header, f"target {TARGET:,}"], lines)
    body += f"\nFrom lists of text to aligned tokens, best of {REPEATS}, each step alone.\n"
    publish("Text, one core", "python -m benchmarks.text", body)


if __name__ == "__main__":
    main()
