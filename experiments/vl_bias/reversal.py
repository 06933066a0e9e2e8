"""Neurons of pictures put to the other group's: does the picture become one of the other group?

Usage: python -m experiments.vl_bias.reversal [OUTPUTS]

With OUTPUTS, where the small CLIP of scenes is kept, everything is computed and reversal.csv is
written; without it, the table is made from that. After Figure 10 of Chen and Dou, who show edited
faces; here it is asked how often attackers and texts take a reversed vector for the other group's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from bias_pipeline.array_types import Float64Array
from bias_pipeline.retrieval.debias.base import Examples, means_of, of_length_1
from bias_pipeline.retrieval.debias.methods import most_relevant, relevance, reversed_neurons
from bias_pipeline.run import compose
from experiments.study import markdown, rows_at, write_page

HERE = Path(__file__).resolve().parent
ROWS, PAGE = HERE / "reversal.csv", HERE / "REVERSAL.md"
CELL = ("metric=retrieval_fairness", "dataset=scenes", "debias=none")
SEEDS = (0, 12, 456)
SIZES = (0, 1, 10, 50)  # the paper's, of vectors of 64 numbers here
QUERIES = ("a photo of a man", "a photo of a woman")
TITLES = {
    "linear attacker": "a linear attacker, fitted to other pictures, names the other group",
    "text": "the other group's text is nearer",
    "alike": "cosine to the unchanged picture",
}


def run(outputs: Path) -> pd.DataFrame:
    """One line a seed and size."""
    return pd.DataFrame(_lines(outputs))


def _lines(outputs: Path) -> Iterator[dict[str, object]]:
    cell = compose.cell([*CELL, f"paths.outputs={outputs}"])
    metric, corpus = cell.build("metric"), cell.corpus()
    codes, names = (getattr(corpus.groupings["gender"], key) for key in ("codes", "names"))
    for split in metric.draw_splits(corpus, SEEDS):
        dual = metric.debiased_encoder(corpus, split)
        queries = dual.texts.embed(list(QUERIES)).astype(np.float64)

        def show_examples(rows: np.ndarray) -> Examples:
            pictures = corpus.pictures.take(rows)
            vectors = dual.images.embed(pictures).astype(np.float64)  # noqa: B023 - used at once
            return Examples(vectors, codes[rows], np.full(len(rows), -1), names, 0)

        learnt, test = show_examples(split.train), show_examples(split.test)
        attacker = LogisticRegression(max_iter=1000).fit(learnt.vectors, learnt.groups)
        for size in SIZES:
            neurons = most_relevant(relevance(learnt), size)
            vectors = of_length_1(reversed_neurons(test, means_of(learnt), neurons))
            shares = _shares(vectors, test, attacker, queries)
            version = {"metric": metric.info.name, "metric_version": metric.info.version}
            yield {**version, "seed": split.seed, "neurons": size, **shares}


def _shares(
    vectors: Float64Array, test: Examples, attacker: LogisticRegression, queries: Float64Array
) -> dict[str, float]:
    """How often reversed vectors are taken for those of the other group, each group alike."""
    guesses = {
        "linear attacker": attacker.predict(vectors),
        "text": np.argmax(vectors @ queries.T, axis=1),
    }
    shares = {
        name: float(np.mean([(predicted != test.groups)[test.groups == k].mean() for k in (0, 1)]))
        for name, predicted in guesses.items()
    }
    return {**shares, "alike": float((vectors * test.vectors).sum(axis=1).mean())}


def write(rows: pd.DataFrame) -> None:
    """Write the table: means over seeds, and the largest and smallest."""
    lines = {
        size: {
            title: f"{group[key].mean():.3f} ({group[key].min():.3f} to {group[key].max():.3f})"
            for key, title in TITLES.items()
        }
        for size, group in rows.groupby("neurons")
    }
    table = pd.DataFrame(lines).T.rename_axis("neurons reversed")
    title = "Shares, each group with equal weight; mean over three seeds (smallest to largest)"
    write_page(PAGE, "Reversed neurons", __file__, {title: markdown(table)})


if __name__ == "__main__":
    write(rows_at(ROWS, run, sys.argv[1:]))
