"""Leaves out groups that are too small for attackers, if two or more groups remain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.corpus import Corpus, Grouping

# Balanced attackers get as many images of every group as the smallest group has; with fewer than
# twenty, a tenth is one test image. Ours.
FEWEST_OF_SEVERAL = 20


def without_small_groups(corpus: Corpus, attribute: str) -> Corpus:
    """A corpus whose small groups are removed (their images become strata), with a note.

    Unchanged if fewer than two groups would remain.

    Args:
        corpus: what is scored.
        attribute: whose groups attackers guess.
    """
    grouping = corpus.groupings[attribute]
    sizes = np.array(list(grouping.sizes.values()))
    large = np.flatnonzero(sizes >= FEWEST_OF_SEVERAL)
    if not 2 <= len(large) < len(sizes):
        return corpus
    small = {name: n for name, n in grouping.sizes.items() if n < FEWEST_OF_SEVERAL}
    listing = ", ".join(f"{name} ({n})" for name, n in small.items())
    note = f"attackers leave out groups of fewer than {FEWEST_OF_SEVERAL} images: {listing}"
    return replace(
        corpus,
        groupings={**corpus.groupings, attribute: _only(grouping, large)},
        notes=(*corpus.notes, note),
    )


def _only(grouping: Grouping, groups: IntArray) -> Grouping:
    """A grouping with some of its groups; images of the others are counted as strata."""
    place = np.full(len(grouping.names) + 1, -1, np.int64)  # the last is of code -1
    place[groups] = np.arange(len(groups))
    names = tuple(grouping.names[group] for group in groups)
    left_out = {name: n for name, n in grouping.sizes.items() if name not in names}
    return Grouping(names, place[grouping.codes], {**grouping.strata, **left_out})
