"""Do intervals cover as well if blocks of images are resampled instead of single images?

Usage: python -m experiments.scaling.blocks [measure]

With ``measure`` the samples that blocks.csv lacks are drawn and appended (ten minutes of CPU in
all); without it BLOCKS.md is made anew from the blocks.csv that is there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.streamed import texts_of
from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Grouping
from bias_pipeline.corpus.object_names import CATEGORIES
from bias_pipeline.io.hashing import UIntArray
from bias_pipeline.metrics.base import Metric
from bias_pipeline.metrics.counting import resampling
from bias_pipeline.run.compose import cell
from experiments.study import markdown

HERE = Path(__file__).resolve().parent
DRAWN, PAGE = HERE / "blocks.csv", HERE / "BLOCKS.md"
IMAGES, SAMPLES = 10_000, 140  # images of a sample, and how many samples
POPULATION = 2_000_000  # images whose numbers count as true
PARTS: Mapping[str, tuple[str, ...]] = {
    "gender_error": ("named", "group:female"),
    "gender_ratio": ("model",),
    "cooccurrence": ("model",),
    "differential_fairness": ("model",),
}


class _EveryImage:
    """In place of ``ResamplingBlocks``: each image is a block of its own."""

    def __init__(self, rows: IntArray, keys: UIntArray, n_columns: int) -> None:
        del n_columns
        self.rows, self.keys = rows, keys[rows]

    def sums(self, table: sparse.csr_array) -> Float64Array:
        return np.asarray(table[self.rows].toarray())


def _limits(blocks: int) -> Mapping[str, object]:
    return {"MOST_BUNDLES": blocks, "FEWEST_BUNDLES": blocks}


WAYS: Mapping[str, Mapping[str, object]] = {
    "images": {"ResamplingBlocks": _EveryImage},
    "8,192 blocks": _limits(8_192),
    "1,024 blocks": _limits(1_024),
    "128 blocks": _limits(128),
}


@contextmanager
def resampling_by(way: str) -> Iterator[None]:
    """Resample as ``way`` says, until the end of the block."""
    before = {name: getattr(resampling, name) for name in WAYS[way]}
    try:
        for name, value in WAYS[way].items():
            setattr(resampling, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(resampling, name, value)


def corpus_of(images: int, seed: int) -> Corpus:
    """Images of one population, with a caption each."""
    draw = np.random.default_rng(seed)
    objects = np.array([name for name in CATEGORIES if name != "person"])
    popularity = 1 / np.arange(1, len(objects) + 1)
    female = (draw.random(images) < 0.4).astype(np.int64)
    shown = draw.choice(objects, (images, 2), p=popularity / popularity.sum())
    return Corpus(
        dataset="synthetic",
        captioner="synthetic",
        ids=tuple(f"{seed}-{row}" for row in range(images)),
        model=Captions.from_texts([*texts_of(draw, female, shown)]),
        human=Captions.from_texts([]),
        groupings={"gender": Grouping(("male", "female"), female, {})},
        objects=tuple(map(frozenset, shown.tolist())),
    )


@cache
def metric_of(name: str) -> Metric:
    metric: Metric = cell([f"metric={name}", "stats.resamples=500"]).build("metric")
    return metric


def intervals_of(corpus: Corpus) -> Iterator[dict[str, object]]:
    """Each studied number with its interval."""
    for metric, names in PARTS.items():
        parts = metric_of(metric).compute(corpus, splits=[]).parts
        for name in names:
            ends = {"low": parts[name].ci_low, "high": parts[name].ci_high}
            yield {"metric": metric, "part": name, "value": parts[name].value, **ends}


def measure() -> None:
    """Draw the samples that are missing, and append their numbers."""
    known = set(pd.read_csv(DRAWN)["seed"]) if DRAWN.exists() else set[int]()
    for seed in [seed for seed in (0, *range(IMAGES, IMAGES + SAMPLES)) if seed not in known]:
        corpus = corpus_of(IMAGES if seed else POPULATION, seed)
        lines = []
        for way in WAYS if seed else ["8,192 blocks"]:
            with resampling_by(way):
                lines += [{"seed": seed, "way": way, **each} for each in intervals_of(corpus)]
        pd.DataFrame(lines).round(5).to_csv(DRAWN, mode="a", header=not DRAWN.exists(), index=False)


def coverage(rows: pd.DataFrame) -> pd.DataFrame:
    """For each number, the share of intervals of each way that cover it, and their width."""
    keys = ["metric", "part"]
    truth = rows[rows["seed"] == 0].set_index(keys)["value"].rename("truth")
    drawn = rows[rows["seed"] > 0].join(truth, on=keys)
    drawn["covers"] = drawn["truth"].between(drawn["low"], drawn["high"])
    drawn["width"] = drawn["high"] - drawn["low"]
    means = drawn.groupby([*keys, "way"])[["covers", "width"]].mean().unstack()
    table = pd.DataFrame(index=means.index)
    for way in WAYS:
        width = means["width", way] / means["width", "images"]
        pairs = zip(means["covers", way], width, strict=True)
        table[way] = [f"{share:.1%}, {times:.3f}" for share, times in pairs]
    return table.reset_index().set_index("metric")


def main(*words: str) -> None:
    if words == ("measure",):
        measure()
    PAGE.write_text(
        "# Coverage of intervals if blocks of images are resampled\n\n"
        "Made by `blocks.py`; do not edit.\n\n"
        f"The share of intervals of 95 %, from {SAMPLES} samples of {IMAGES:,} images of a "
        f"synthetic population, that cover the number of {POPULATION:,} images; and their mean "
        "width, if that of resampled images is 1. All ways see the same samples. Counting metrics "
        "use 8,192 blocks, down to 1,024 for wide tables; with 128 blocks as many images share a "
        "block as with 8,192 blocks of 640,000 images.\n\n"
        + markdown(coverage(pd.read_csv(DRAWN))),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
