"""Splits, for any number and size of groups."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.attribute import LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.split import SMALLEST_GROUP, Split
from bias_pipeline.corpus.split_rules import HoldOut

ORDERS = ["hashed", "file"]
sizes = st.lists(st.integers(SMALLEST_GROUP, 60), min_size=2, max_size=5)
seeds = st.integers(0, 2**31)
thin = settings(max_examples=40, deadline=None)


def corpus(group_sizes: list[int], unsure: int = 3) -> Corpus:
    """Images of groups of the given sizes, and a few of none."""
    names = [f"g{k}" for k in range(len(group_sizes))]
    labels = [n for n, size in zip(names, group_sizes, strict=True) for _ in range(size)]
    labels += ["unsure"] * unsure
    records = [Record(str(7 * i + 1), "c", (), {"x": label}) for i, label in enumerate(labels)]
    how = LabelMap("x", {name: name for name in names}, ("unsure",))
    return Corpus.build(records, dataset="toy", captioner="toy", groups={"x": (names, how)})


@dataclass
class Drawn:
    split: Split
    codes: np.ndarray

    def count(self, rows: np.ndarray) -> list[int]:
        n_groups = int(self.codes.max()) + 1
        return np.bincount(self.codes[rows], minlength=n_groups).tolist()


def draw(group_sizes: list[int], seed: int, **options: object) -> Drawn:
    source = corpus(group_sizes)
    (split,) = HoldOut(**options).draw(source, "x", [seed])
    return Drawn(split, source.groupings["x"].codes)


@pytest.mark.parametrize(
    "options",
    [{"order": "hashed"}, {"order": "file"}, {"test_share": 0.2, "validation_share": 0.1}],
)
@given(group_sizes=sizes, seed=seeds)
@thin
def test_no_image_is_in_two_parts(options, group_sizes, seed):
    split = draw(group_sizes, seed, **options).split
    rows = np.concatenate([split.train, split.test, split.validation])
    assert len(set(rows.tolist())) == len(rows)


@pytest.mark.parametrize("order", ORDERS)
@given(group_sizes=sizes, seed=seeds)
@thin
def test_images_of_no_group_are_never_drawn(order, group_sizes, seed):
    drawn = draw(group_sizes, seed, order=order)
    assert drawn.codes[np.concatenate([drawn.split.train, drawn.split.test])].min() >= 0


@given(group_sizes=sizes, seed=seeds, balanced=st.booleans())
@thin
def test_hashed_splits_use_every_labelled_image(group_sizes, seed, balanced):
    split = draw(group_sizes, seed, balanced=balanced).split
    assert len(split.train) + len(split.test) == sum(group_sizes)


@pytest.mark.parametrize("order", ORDERS)
@given(group_sizes=sizes, seed=seeds)
@thin
def test_balanced_groups_are_equally_large_and_no_part_is_empty(order, group_sizes, seed):
    drawn = draw(group_sizes, seed, order=order)
    images = np.flatnonzero(drawn.codes >= 0)
    for part in drawn.split.select(images, drawn.codes[images]):
        (size,) = set(drawn.count(images[part]))
        assert size > 0


@given(group_sizes=sizes, seed=seeds, share=st.sampled_from([0.1, 0.2, 0.5]))
@thin
def test_natural_balance_tests_the_share_of_every_group(group_sizes, seed, share):
    drawn = draw(group_sizes, seed, test_share=share, balanced=False)
    assert drawn.count(drawn.split.test) == [round(share * size) for size in group_sizes]


@pytest.mark.parametrize("order", ORDERS)
@given(group_sizes=sizes, seed=seeds)
@thin
def test_the_same_seed_draws_the_same_split(order, group_sizes, seed):
    one, two = (draw(group_sizes, seed, order=order).split.digest for _ in range(2))
    assert one == two


@given(group_sizes=sizes, seed=seeds, data=st.data())
@thin
def test_selecting_from_fewer_images_never_moves_one(group_sizes, seed, data):
    drawn = draw(group_sizes, seed)
    n_images = sum(group_sizes)
    retained = data.draw(st.sets(st.integers(0, n_images - 1), min_size=1))
    images = np.array(sorted(retained))
    train, test = drawn.split.select(images, drawn.codes[images])
    assert set(images[train]) <= set(drawn.split.train.tolist())
    assert set(images[test]) <= set(drawn.split.test.tolist())
