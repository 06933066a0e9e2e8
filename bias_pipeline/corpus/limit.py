"""A first look: some of the images, chosen once and for all, never taken for the whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.io.hashing import stream


def limited(corpus: Corpus, limit: int | None) -> Corpus:
    """A corpus of at most so many images, those of no group left out.

    Which images these are depends on their ids alone: they are the same for all captioners and
    seeds, and those of a lower limit are among those of a higher one. The data set's name says
    that it is not the whole, so every row, table and run of it does.

    Args:
        corpus: what is read.
        limit: images that belong to a group; None: all.

    Returns:
        The corpus itself if it has no more of them.

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
    drawn = stream("limit", 0, corpus.keys[scored])
    rows = np.sort(scored[np.argsort(drawn, kind="stable")[:limit]])
    chosen = corpus.take(rows)
    note = (
        f"limit={limit}: {limit} of the {len(scored)} labelled images, chosen by their ids; a "
        "first look, no result on the data set"
    )
    return replace(
        chosen,
        dataset=f"{corpus.dataset} (limit {limit})",
        groupings={name: replace(own, strata={}) for name, own in chosen.groupings.items()},
        notes=(*chosen.notes, note),
    )


def _in_a_group(corpus: Corpus) -> np.ndarray:
    """(N,) whether an image belongs to a group of any attribute."""
    return np.any([own.codes >= 0 for own in corpus.groupings.values()], axis=0)
