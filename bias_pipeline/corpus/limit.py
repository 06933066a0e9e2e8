"""A quick first run on some of the images, always the same ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.io.hashing import random_words


def limited(corpus: Corpus, limit: int | None) -> Corpus:
    """A corpus of at most ``limit`` images, without those of no group.

    Which images these are depends on their ids alone: they are the same for all captioners and
    seeds, and a lower limit gives a subset of a higher one. The data set's name contains the limit,
    so every row, table and run shows it.

    Args:
        corpus: what is read.
        limit: images that belong to a group; None: all.

    Returns:
        The corpus itself if it has no more images.

    Example:
        >>> from bias_pipeline.corpus.attribute import LabelMap
        >>> from bias_pipeline.corpus.corpus import Record
        >>> labels = LabelMap("sex", {"m": "male", "f": "female"})
        >>> records = [Record(str(i), "a dog", labels={"sex": "mf"[i % 2]}) for i in range(9)]
        >>> whole = Corpus.build(records, dataset="toy", captioner="mine",
        ...                      groups={"sex": (("male", "female"), labels)})
        >>> limited(whole, 4).dataset, len(limited(whole, 4)), limited(whole, 9) is whole
        ('toy (limit 4)', 4, True)
    """
    scored = np.flatnonzero(_in_a_group(corpus))
    if limit is None or len(scored) <= limit:
        return corpus
    drawn = random_words("limit", 0, corpus.keys[scored])
    rows = np.sort(scored[np.argsort(drawn, kind="stable")[:limit]])
    chosen = corpus.take(rows)
    note = (
        f"limit={limit}: {limit} of the {len(scored)} labelled images, chosen by their ids; a "
        "first look, no result on the data set"
    )
    return replace(
        chosen,
        dataset=f"{corpus.dataset} (limit {limit})",
        groupings={
            name: replace(grouping, strata={}) for name, grouping in chosen.groupings.items()
        },
        notes=(*chosen.notes, note),
    )


def _in_a_group(corpus: Corpus) -> np.ndarray:
    """(N,) whether an image belongs to a group of any attribute."""
    return np.any([grouping.codes >= 0 for grouping in corpus.groupings.values()], axis=0)
