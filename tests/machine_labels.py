"""Corpora whose labels are a machine's, and gold labels of some images."""

from dataclasses import replace

import numpy as np

from bias_pipeline.corpus.corpus import NO_GROUP, UNSURE, Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels


def with_errors(corpus: Corpus, shares: tuple[float, float], seed: int = 0) -> Corpus:
    """The corpus as labelled by a machine that errs for these shares of its two groups."""
    (attribute,) = corpus.groupings
    grouping = corpus.groupings[attribute]
    errs = np.random.default_rng(seed).random(len(corpus)) < np.take(shares, grouping.codes)
    codes = np.where(errs & grouping.labelled, 1 - grouping.codes, grouping.codes)
    return replace(corpus, groupings={attribute: replace(grouping, codes=codes)})


def gold_labels(
    corpus: Corpus, rows: np.ndarray, chances: dict[str, float] | None = None
) -> GoldLabels:
    """The labels of some rows as people's labels."""
    (attribute,) = corpus.groupings
    grouping = corpus.groupings[attribute]
    codes = {corpus.ids[row]: int(grouping.codes[row]) for row in rows.tolist()}
    return GoldLabels(
        file="gold.csv",
        attribute=attribute,
        groups={image: grouping.names[code] for image, code in codes.items() if code >= 0},
        unsure=frozenset(image for image, code in codes.items() if code == UNSURE),
        others=frozenset(image for image, code in codes.items() if code == NO_GROUP),
        chances=chances or {},
    )


def drawn_rows(corpus: Corpus, n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).choice(len(corpus), n, replace=False)
