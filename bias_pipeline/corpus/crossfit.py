"""Cross-fitting: every image is tested once in each repetition, by attackers that never saw it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import Copies, Split, SplitRule, originals, reunited, rows_by_group
from bias_pipeline.declared import Count, Range
from bias_pipeline.errors import UsageError
from bias_pipeline.io.hashing import random_words

_NONE = np.empty(0, np.int64)
Folds = Annotated[int, Range(low=2, high=1000)]


@dataclass(frozen=True)
class CrossFit(SplitRule):
    """K folds a seed: each fold is tested by attackers that learn from the others (ours).

    An image's fold follows from its id and the seed alone, so both sides and all captioners have
    the same ones. A hold-out tests a fifth or a tenth of the images, and the score depends on
    which; here every image is tested once per seed.

    Attributes:
        folds: K, at least 2.
        tested: how many of the folds are tested, at most K. For slow networks use 1: then this is a
            hold-out of a Kth of the images.
        balanced: whether every group is cut to the size of the smallest in the training part; each
            fold leaves other images out. The test part is never cut.
        together: keep images that are copies of one another in one fold
            (:func:`~bias_pipeline.corpus.split.originals`).

    Example:
        >>> CrossFit(folds=5).tested
        5
    """

    folds: Folds = 5
    tested: Count | None = None
    balanced: bool = True
    together: bool = True

    def __post_init__(self) -> None:
        """Check the number of folds.

        Raises:
            UsageError: if more folds are to be tested than there are, or there are fewer than two.
        """
        if self.tested is None:
            object.__setattr__(self, "tested", self.folds)
        assert self.tested is not None
        if not 1 <= self.tested <= self.folds or self.folds < 2:
            raise UsageError(
                f"split: folds={self.folds} must be at least 2 and tested={self.tested} between 1 "
                "and folds"
            )

    def draw(self, corpus: Corpus, attribute: str, seeds: Sequence[int]) -> list[Split]:
        """One split for each tested fold of each seed."""
        groups = rows_by_group(corpus, attribute)
        splits = [split for seed in seeds for split in self._folds(corpus, groups, seed)]
        for split in splits:
            for name, rows in groups.items():
                if not np.isin(rows, split.train).any():
                    raise UsageError(
                        f"split.folds={self.folds}: with seed {split.seed} all {len(rows)} images "
                        f"of group {name} are in one fold; choose another number of folds"
                    )
        return splits

    def _folds(self, corpus: Corpus, groups: Mapping[str, IntArray], seed: int) -> Iterator[Split]:
        keys = random_words("split", seed, corpus.keys)
        orders = [group[np.argsort(keys[group], kind="stable")] for group in groups.values()]
        # Use the hash, not its rank, so that an image's fold does not depend on which other images
        # a captioner describes.
        drawn_folds = ((keys >> np.uint64(32)) * np.uint64(self.folds)) >> np.uint64(32)
        fold_of = np.full(len(corpus), -1)
        for order in orders:
            fold_of[order] = drawn_folds[order]
        first = originals(corpus)
        if self.together:
            fold_of = reunited(fold_of, first)
        drawn = first[fold_of >= 0]
        copies = Copies(len(drawn) - len(np.unique(drawn)), self.together)
        assert self.tested is not None
        for fold in range(self.tested):
            # The folds after the tested one come first, so each fold's cut leaves other images out.
            train = [_after(order, fold_of[order], fold) for order in orders]
            test = np.concatenate([order[fold_of[order] == fold] for order in orders])
            if len(test):
                yield Split(
                    seed, np.concatenate(train), test, _NONE, self.balanced, copies, whole_test=True
                )


def _after(order: IntArray, fold_of: IntArray, fold: int) -> IntArray:
    """The rows of all folds except one; those of later folds come first.

    Example:
        >>> _after(np.array([7, 8, 9]), np.array([0, 1, 2]), 1).tolist()
        [9, 7]
    """
    return np.concatenate([order[fold_of > fold], order[fold_of < fold]])
