"""Rules by which images are split (hold-out, cross-fitting), and the limit on images.

A hold-out tests a share of the images. Under cross-fitting, every image is tested once for each
seed, by attackers that never saw the image.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import (
    Copies,
    Split,
    SplitRule,
    originals,
    reunite_copies,
    rows_by_group,
)
from bias_pipeline.declared import Count, PositiveShare, Range
from bias_pipeline.errors import UsageError
from bias_pipeline.io.hashing import hash_ids, random_words

_TEST, _VALIDATION, _TRAIN = range(3)


@dataclass(frozen=True)
class HoldOut(SplitRule):
    """One split for each seed. A share of images is tested, and attackers learn from the others.

    Attributes:
        test_share: share of each group that is tested, in (0, 1]. With 1, no images are left to
            learn from.
        validation_share: share of each group that is kept for validation, in [0, 1).
        balanced: whether every group is cut to the size of the smallest group.
        order: ``hashed`` draws each image by its id and the seed only, so captioners that lack a
            few images still have the same split. ``file`` takes images at random from the
            captioner's own file, as the published LIC code does. Then captioners get different
            splits for the same seed.
        together: whether copies of an image (:func:`~bias_pipeline.corpus.split.originals`) stay in
            one part. Otherwise attackers are tested on images that they memorised (ours). Without
            copies this changes nothing. Copies are separated, with a note, if a group would have no
            test or training images. The setting is ignored if ``order`` is ``file``, since the
            published code does not look for copies.
    """

    test_share: PositiveShare = 0.1
    validation_share: Annotated[float, Range(low=0, below=1)] = 0.0
    balanced: bool = True
    order: Literal["hashed", "file"] = "hashed"
    together: bool = True

    def __post_init__(self) -> None:
        """Check the shares.

        Raises:
            UsageError: if the shares do not fit together.
        """
        if self.validation_share and self.order == "file":
            raise UsageError(
                f"split: validation_share={self.validation_share}, but order=file draws no "
                "such part, like the published code; set split.validation_share=0 or "
                "split.order=hashed"
            )
        if self.validation_share and not self.trains:
            raise UsageError(
                f"split: test_share={self.test_share} and validation_share="
                f"{self.validation_share} must be positive and leave images to train on"
            )

    @property
    def trains(self) -> bool:
        """Whether the rule leaves images to learn from."""
        return 0 <= self.validation_share < 1 - self.test_share

    def check_trains(self) -> None:
        """Raise an error if the test share leaves no images to learn from."""
        if not self.trains:
            raise UsageError(
                f"split.test_share={self.test_share} leaves no images to train on; choose less "
                "than 1 (only metric=retrieval_fairness with debias=none does not train)"
            )

    def draw(self, corpus: Corpus, attribute: str, seeds: Sequence[int]) -> list[Split]:
        """One split for each seed."""
        rows = rows_by_group(corpus, attribute)
        self._check_sizes({name: len(group) for name, group in rows.items()})
        draw = _DRAWS[self.order]
        return [draw(self, corpus, list(rows.values()), seed) for seed in seeds]

    def _check_sizes(self, sizes: Mapping[str, int]) -> None:
        for name, size in sizes.items():
            tested = round(self.test_share * size)
            n_validation = round(self.validation_share * size)
            if tested < 1 or (self.trains and size - tested - n_validation < 1):
                raise UsageError(
                    f"split: test_share={self.test_share} and validation_share="
                    f"{self.validation_share} make {tested} of the {size} images of group {name} "
                    f"test images and leave {size - tested - n_validation} to train on; "
                    "each needs one"
                )


def _draw_hashed(rule: HoldOut, corpus: Corpus, groups: Sequence[IntArray], seed: int) -> Split:
    keys = random_words("split", seed, corpus.keys)
    orders = [group[np.argsort(keys[group], kind="stable")] for group in groups]
    part = np.full(len(corpus), -1)
    for order in orders:
        tested = round(rule.test_share * len(order))
        validation_end = tested + round(rule.validation_share * len(order))
        part[order] = np.repeat(
            [_TEST, _VALIDATION, _TRAIN],
            [tested, validation_end - tested, len(order) - validation_end],
        )
    first = originals(corpus)
    whole = reunite_copies(part, first) if rule.together else part
    needed = {_TEST, _TRAIN} if rule.trains else {_TEST}
    splits_copies = any(not needed <= set(whole[order].tolist()) for order in orders)
    test, held_out, train = (
        np.concatenate(
            [order[(part if splits_copies else whole)[order] == number] for order in orders]
        )
        for number in (_TEST, _VALIDATION, _TRAIN)
    )
    drawn = first[part >= 0]
    copies = Copies(len(drawn) - len(np.unique(drawn)), rule.together and not splits_copies)
    return Split(seed, train, test, held_out, rule.balanced, copies)


def _draw_from_file(rule: HoldOut, corpus: Corpus, groups: Sequence[IntArray], seed: int) -> Split:
    """Draw in the order of the published code: first the groups' training sets, then test sets."""
    generator = random.Random(seed)  # noqa: S311 - the published draws, not a secret
    pools = [group[np.argsort(corpus.source_order[group])].tolist() for group in groups]
    smallest = min(len(pool) for pool in pools)
    sizes = [smallest if rule.balanced else len(pool) for pool in pools]
    tested = [round(rule.test_share * size) for size in sizes]

    def pop(counts: Sequence[int]) -> IntArray:
        rows = [
            pool.pop(generator.randrange(len(pool)))
            for pool, count in zip(pools, counts, strict=True)
            for _ in range(count)
        ]
        return np.array(rows, np.int64)

    train = pop([size - test for size, test in zip(sizes, tested, strict=True)])
    return Split(seed, train, pop(tested), np.empty(0, np.int64), rule.balanced)


_DRAWS: Mapping[str, Callable[[HoldOut, Corpus, Sequence[IntArray], int], Split]] = {
    "hashed": _draw_hashed,
    "file": _draw_from_file,
}


def limit_images(corpus: Corpus, limit: int | None) -> Corpus:
    """A corpus of at most ``limit`` images. Each image belongs to a group and has a caption.

    Which images are kept depends only on ids. So all seeds, and all captioners that describe the
    same images, use the same images. A lower limit gives a subset. Sets of pictures are kept or
    left out as a whole, by their names. The name of the data set contains the limit, so that every
    row, table and run shows it.

    Args:
        corpus: what is read.
        limit: how many images; None: all. Without a captioner images need no caption.

    Returns:
        The corpus itself if it has no more images.

    Raises:
        UsageError: if the first set that is drawn has more images.

    Example:
        >>> from bias_pipeline.corpus.attribute import LabelMap
        >>> from bias_pipeline.corpus.corpus import Record
        >>> labels = LabelMap("sex", {"m": "male", "f": "female"})
        >>> records = [Record(str(i), "a dog", labels={"sex": "mf"[i % 2]}) for i in range(9)]
        >>> whole = Corpus.build(records, dataset="toy", captioner="mine",
        ...                      groups={"sex": (("male", "female"), labels)})
        >>> few = limit_images(whole, 4)
        >>> few.dataset, len(few), limit_images(whole, 9) is whole
        ('toy (limit 4)', 4, True)
    """
    codes = [grouping.codes for grouping in corpus.groupings.values()]
    labelled = (np.array(codes) >= 0).any(axis=0)  # in a group of at least one attribute
    # A blank caption counts
    described = np.zeros(len(corpus), bool)
    described[corpus.model.image_rows] = True
    captioned = described | (np.asarray(corpus.blank_counts.get("model", 0)) > 0)
    scored = np.flatnonzero(labelled & captioned if captioned.any() else labelled)
    if limit is None or len(scored) <= limit:
        return corpus
    rows = _first_drawn(corpus, scored, limit)
    chosen = corpus.take(rows)
    which = "labelled images" if len(scored) == labelled.sum() else "labelled images with a caption"
    note = (
        f"limit={limit}: {len(rows)} of the {len(scored)} {which}, chosen by their ids; a "
        "first look, not a result on the data set"
    )
    return replace(
        chosen,
        dataset=f"{corpus.dataset} (limit {limit})",
        groupings={
            name: replace(grouping, strata={}) for name, grouping in chosen.groupings.items()
        },
        notes=(*chosen.notes, note),
    )


def _first_drawn(corpus: Corpus, rows: IntArray, limit: int) -> IntArray:
    """At most ``limit`` of the rows. A set of pictures is drawn as a whole."""
    sets = corpus.set_ids or ("",) * len(corpus)
    keys = corpus.keys.copy()
    keys[[name != "" for name in sets]] = hash_ids([name for name in sets if name])
    drawn = rows[np.argsort(random_words("limit", 0, keys[rows]), kind="stable")]
    cut = sets[drawn[limit]]
    end = limit
    while cut and end and sets[drawn[end - 1]] == cut:
        end -= 1
    if not end:
        size = sum(sets[row] == cut for row in rows.tolist())
        raise UsageError(
            f"limit={limit}: sets are drawn whole, and set {cut!r} has {size} pictures; set "
            f"limit={size} or more"
        )
    return np.sort(drawn[:end])


_NONE = np.empty(0, np.int64)
Folds = Annotated[int, Range(low=2, high=1000)]


@dataclass(frozen=True)
class CrossFit(SplitRule):
    """K folds for each seed.

    Each fold is tested by attackers that learn from the other folds (ours).

    The fold of an image depends only on the id and the seed. So both sides and all captioners have
    the same folds. A hold-out tests a fifth or a tenth of the images, so the score depends on which
    images are drawn. Cross-fitting tests every image once per seed.

    Attributes:
        folds: K, at least 2.
        tested: how many folds are tested, at most K. For slow networks use 1, which gives a
            hold-out that tests 1/K of the images.
        balanced: whether every group is cut to the size of the smallest group in the training part.
            Each fold leaves out other images. The test part is never cut.
        together: whether images that are copies of each other stay in one fold
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
            UsageError: if more folds are to be tested than there are.
        """
        if self.tested is None:
            object.__setattr__(self, "tested", self.folds)
        assert self.tested is not None
        if self.tested > self.folds:
            raise UsageError(f"split.tested={self.tested} must be at most folds={self.folds}")

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
            fold_of = reunite_copies(fold_of, first)
        drawn = first[fold_of >= 0]
        copies = Copies(len(drawn) - len(np.unique(drawn)), self.together)
        assert self.tested is not None
        for fold in range(self.tested):
            # The folds after the tested one come first, so each fold's cut leaves other images out.
            train = [_other_folds(order, fold_of[order], fold) for order in orders]
            test = np.concatenate([order[fold_of[order] == fold] for order in orders])
            if len(test):
                yield Split(
                    seed, np.concatenate(train), test, _NONE, self.balanced, copies, whole_test=True
                )


def _other_folds(order: IntArray, fold_of: IntArray, fold: int) -> IntArray:
    """The rows of all folds except one. Rows of later folds come first.

    Example:
        >>> _other_folds(np.array([7, 8, 9]), np.array([0, 1, 2]), 1).tolist()
        [9, 7]
    """
    return np.concatenate([order[fold_of > fold], order[fold_of < fold]])


@dataclass(frozen=True)
class SameImages(SplitRule):
    """Attackers are tested on the same images from which they learn, as in DBAC's code.

    These attackers have already seen the test captions, so their quality says little.
    """

    def draw(self, corpus: Corpus, attribute: str, seeds: Sequence[int]) -> list[Split]:
        """One split for each seed."""
        rows = np.concatenate([*rows_by_group(corpus, attribute).values()])
        return [Split(seed, rows, rows, _NONE, balanced=False) for seed in seeds]
