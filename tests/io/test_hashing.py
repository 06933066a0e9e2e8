"""Random numbers by name: purposes, seeds and parts do not share their numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.io.hashing import PURPOSES, derived_seed, hash_ids, mix, random_words
from bias_pipeline.scenes.world import uniforms

N = 4000
KEYS = hash_ids(map(str, range(N)))
SEEDS = st.integers(0, 2**32 - 1)
CHANCE = 5.5 / np.sqrt(N)  # sd of a correlation; 5.5 of them happen once in 26 million


def correlation(one: np.ndarray, two: np.ndarray) -> float:
    return float(np.corrcoef(one.astype(float), two.astype(float))[0, 1])


@given(seed=SEEDS)
def test_streams_of_two_purposes_are_unrelated(seed):
    words = np.stack([random_words(name, seed, KEYS) for name in PURPOSES]).astype(float)
    between = np.corrcoef(words) - np.eye(len(words))
    related = [(PURPOSES[i], PURPOSES[k]) for i, k in np.argwhere(np.abs(between) >= CHANCE)]
    assert related == []


@given(seed=SEEDS)
def test_no_purpose_chooses_among_those_that_the_split_has_chosen(seed):
    """Label noise once fell on test images alone: the tenth that the split had picked."""
    tested, *chosen = (
        np.argsort(random_words(name, seed, KEYS))[: N // 10]
        for name in ("split", *(name for name in PURPOSES if name != "split"))
    )
    expected, deviation = N / 100, np.sqrt(N / 100 * 0.9 * 0.9)
    shared = np.array([len(np.intersect1d(tested, few)) for few in chosen])
    assert np.abs(shared - expected).max() < 5.5 * deviation


@given(seed=SEEDS)
def test_streams_of_neighbouring_seeds_are_unrelated(seed):
    streams = {
        name: [random_words(name, item, KEYS) for item in (seed, seed + 1)] for name in PURPOSES
    }
    assert [name for name, pair in streams.items() if abs(correlation(*pair)) >= CHANCE] == []


@given(seed=SEEDS, part=st.integers(0, 2**32))
def test_parts_of_a_purpose_are_unrelated(seed, part):
    parts = np.array([part, part + 1], np.uint64)[:, None]
    assert abs(correlation(*random_words("resample", seed, KEYS, parts))) < CHANCE


@given(seed=SEEDS)
def test_the_embedded_data_are_drawn_apart_from_what_is_done_with_them(seed):
    rows = np.arange(N)
    drawn = uniforms(seed, rows.tolist(), 1, ["place"])[:, 0]
    streams = {name: random_words(name, seed, rows.astype(np.uint64)) for name in PURPOSES}
    related = [name for name, item in streams.items() if abs(correlation(drawn, item)) >= CHANCE]
    assert related == []


def test_the_split_keeps_the_stream_that_attackers_were_trained_by():
    seed = np.array([12], np.uint64)
    np.testing.assert_array_equal(random_words("split", 12, KEYS), mix(KEYS ^ mix(seed)))


def test_words_fill_their_range_evenly():
    result = random_words("noise", 0, KEYS) >> np.uint64(60)
    assert np.bincount(result.astype(int), minlength=16) == pytest.approx(N / 16, abs=90)


@given(seed=SEEDS, number=st.integers(1, 9))
def test_derived_seeds_are_no_seed_that_a_user_names(seed, number):
    assert 2**32 < derived_seed("retry", seed, number) < 2**63


def test_an_unknown_purpose_has_no_stream():
    with pytest.raises(KeyError):
        random_words("luck", 0, KEYS)
