"""What attackers trained from scratch read: numbered words, in batches of captions as long."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.attack.attacker import LengthBatches
from bias_pipeline.attack.encoder import PAD, UNKNOWN, WordInputs
from bias_pipeline.corpus.captions import Captions


def test_words_are_numbered_by_frequency_then_alphabet_after_the_special_ones():
    captions = Captions.from_texts(["e b a c a b a d", "f f f f", "a b c d e f"])
    inputs = WordInputs(captions, np.array([0]))
    tokens = inputs.batch(np.array([2]))["tokens"]
    assert tokens.tolist() == [[2, 3, 4, 5, 6, UNKNOWN]]
    assert inputs.size == 2 + 5


@pytest.mark.parametrize(
    ("texts", "rows", "tokens", "lengths"),
    [
        (["a a b", "a"], [0, 1], [[2, 2, 3], [2, PAD, PAD]], [3, 1]),
        (["a a", ""], [0, 1], [[2, 2], [PAD, PAD]], [2, 1]),
        (["a a b", "a", "b b a"], [2, 0], [[3, 3, 2], [2, 2, 3]], [3, 3]),
    ],
    ids=["a short caption", "one without words", "in the order asked for"],
)
def test_captions_are_padded(texts, rows, tokens, lengths):
    inputs = WordInputs(Captions.from_texts(texts), np.arange(len(texts)))
    batch = inputs.batch(np.array(rows))
    assert (batch["tokens"].tolist(), batch["lengths"].tolist()) == (tokens, lengths)


def batches(lengths: list[int], batch_size: int, pool: int = 100, seed: int = 0) -> LengthBatches:
    """Batches of captions whose targets are their rows."""
    rows = np.arange(len(lengths))
    inputs = WordInputs(Captions.from_texts([" ".join("a" * length) for length in lengths]), rows)
    return LengthBatches(inputs, rows, torch.arange(len(lengths)), batch_size, seed, pool)


LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=60)


@given(LENGTHS, st.integers(1, 9), st.integers(1, 4))
@settings(deadline=None)
def test_an_epoch_holds_every_caption_once_in_batches_as_wide_as_their_longest(lengths, size, pool):
    built_batches = batches(lengths, size, pool)
    for _ in range(2):
        epoch = list(built_batches)
        assert len(epoch) == len(built_batches)
        assert sorted(torch.cat([b.targets for b in epoch]).tolist()) == list(range(len(lengths)))
        for batch in epoch:
            longest = int(batch.inputs["lengths"].max())
            assert batch.inputs["tokens"].shape == (len(batch.targets), longest)


@given(LENGTHS, st.integers(1, 9))
@settings(deadline=None)
def test_a_pool_is_sorted_by_length(lengths, size):
    """Batches of one pool, the shortest first, never overlap in length."""
    ordered = sorted(
        (int(batch.inputs["lengths"].min()), int(batch.inputs["lengths"].max()))
        for batch in batches(lengths, size)
    )
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(ordered))


def test_batches_of_an_epoch_are_shuffled():
    lines = [int(batch.inputs["lengths"].max()) for batch in batches(list(range(1, 41)), 4)]
    assert lines != sorted(lines)


def test_a_seed_decides_the_batches_of_every_epoch():
    def epochs() -> list[list[list[int]]]:
        built_batches = batches([3] * 40, 8, seed=7)
        return [[batch.targets.tolist() for batch in built_batches] for _ in range(2)]

    one, two = epochs()
    assert one != two
    assert epochs() == [one, two]


def test_the_published_gender_training_has_94_steps_an_epoch_the_partial_one_of_the_longest():
    lengths = np.random.default_rng(0).integers(4, 20, 5966).tolist()
    sizes = [(len(b.targets), int(b.inputs["lengths"].max())) for b in batches(lengths, 64)]
    assert (len(sizes), min(sizes)) == (94, (14, 19))
