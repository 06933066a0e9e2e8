"""The formulas on sets of captions, each against a plain rewrite or a known law."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse, stats

from bias_pipeline.pairs.contrasts import Contrasts
from bias_pipeline.pairs.distances import (
    BeyondPictures,
    SetDistances,
    common_shift,
    cosine_distances,
    jaccard_distances,
    means_of_pictures,
    shift_p,
    tf_idf,
)
from bias_pipeline.pairs.group_gaps import (
    adjust_p_values,
    group_gap,
    share_difference_ends,
    word_gaps,
)
from bias_pipeline.stats.sign_flips import SignFlips, mean_p

N_SETS, N_WORDS, SAMPLES = 10, 14, 2


def crossed_sets(n_sets: int = N_SETS) -> Contrasts:
    """Four pictures a set: two groups in each of two contexts."""
    groups = np.tile([0, 1, 0, 1], n_sets)
    contexts = np.tile([0, 0, 1, 1], n_sets)
    sets = [f"set {row // 4:03}" for row in range(4 * n_sets)]
    return Contrasts.of_groups(sets, groups, contexts, (0, 1), np.ones(4 * n_sets, bool))


def drawn_words(seed: int = 0, n_sets: int = N_SETS) -> tuple[sparse.csr_array, np.ndarray]:
    """Random captions, two of each picture; the second group says the first word more often."""
    rng = np.random.default_rng(seed)
    pictures = np.repeat(np.arange(4 * n_sets), SAMPLES)
    chances = np.full((len(pictures), N_WORDS), 0.3)
    chances[pictures % 2 == 1, 0] = 0.9
    return sparse.csr_array((rng.random(chances.shape) < chances).astype(float)), pictures


def plain_jaccard(one: set[int], two: set[int]) -> float:
    return 1 - len(one & two) / len(one | two) if one | two else 0.0


def test_pairs_share_set_and_context():
    contrasts = crossed_sets(2)
    assert contrasts.set_of.tolist() == [0, 0, 1, 1]
    assert contrasts.first.tolist() == [0, 2, 4, 6]
    assert contrasts.second.tolist() == [1, 3, 5, 7]
    assert contrasts.crossings.tolist() == [[0, 1], [2, 3]]


def test_a_set_without_a_group_and_a_picture_without_a_set_are_left_out():
    used = np.ones(5, bool)
    contrasts = Contrasts.of_groups(
        ["a", "a", "b", "", "a"], np.array([0, 1, 0, 1, 0]), np.zeros(5, int), (0, 1), used
    )
    assert contrasts.sets == ("a",)
    assert (contrasts.first.tolist(), contrasts.second.tolist()) == ([0], [1])


def test_contexts_of_a_set_count_alike_however_many_pictures_they_have():
    contexts = np.array([0, 0, 0, 0, 1, 1])
    groups = np.array([0, 0, 1, 1, 0, 1])
    contrasts = Contrasts.of_groups(["a"] * 6, groups, contexts, (0, 1), np.ones(6, bool))
    assert contrasts.weights.tolist() == [0.25, 0.25, 0.5]


def test_jaccard_distances_are_those_of_sets():
    words, _ = drawn_words()
    rows = [set(np.flatnonzero(row)) for row in words.toarray()]
    expected = [[plain_jaccard(one, two) for two in rows] for one in rows]
    assert jaccard_distances(words) == pytest.approx(np.array(expected))


def test_two_captions_without_words_are_equal():
    none = sparse.csr_array((2, 3))
    assert jaccard_distances(none).tolist() == cosine_distances(none).tolist() == [[0, 0], [0, 0]]


def test_distances_between_pictures_are_means_over_their_captions():
    contrasts, (words, pictures) = crossed_sets(), drawn_words()
    distances = SetDistances.from_vectors(contrasts, words, pictures, jaccard_distances)
    rows = [set(np.flatnonzero(row)) for row in words.toarray()]

    def mean(one: int, two: int) -> float:
        each = itertools.product(np.flatnonzero(pictures == one), np.flatnonzero(pictures == two))
        return float(np.mean([plain_jaccard(rows[a], rows[b]) for a, b in each if a != b]))

    for pair, (one, two) in enumerate(zip(contrasts.first, contrasts.second, strict=True)):
        assert distances.pairs[pair] == pytest.approx(mean(one, two))
        assert distances.samples[pair] == pytest.approx((mean(one, one) + mean(two, two)) / 2)
    for number in range(N_SETS):
        a, b, c, d = range(4 * number, 4 * number + 4)
        value = (mean(a, d) + mean(b, c) - mean(a, c) - mean(b, d)) / 2
        assert distances.crossed[number] == pytest.approx(value)


def test_one_caption_of_a_picture_has_no_distance_of_samples():
    contrasts, (words, _) = crossed_sets(), drawn_words()
    distances = SetDistances.from_vectors(
        contrasts, words[::SAMPLES], np.arange(4 * N_SETS), jaccard_distances
    )
    assert np.isnan(distances.samples).all()
    assert np.isfinite(distances.crossed).all()


def test_the_crossed_value_of_the_cosine_is_half_the_inner_product_of_both_differences():
    contrasts, (words, pictures) = crossed_sets(), drawn_words()
    vectors = tf_idf(words)
    distances = SetDistances.from_vectors(contrasts, vectors, pictures, cosine_distances)
    means = means_of_pictures(vectors, pictures, 4 * N_SETS).toarray()
    shifts = means[contrasts.second] - means[contrasts.first]
    assert distances.crossed == pytest.approx((shifts[::2] * shifts[1::2]).sum(axis=1) / 2)


def test_exchanging_the_group_within_one_context_turns_every_crossed_value():
    contrasts, (words, pictures) = crossed_sets(), drawn_words()
    exchanged = Contrasts(
        contrasts.sets,
        contrasts.set_of,
        np.where(np.arange(2 * N_SETS) % 2, contrasts.first, contrasts.second),
        np.where(np.arange(2 * N_SETS) % 2, contrasts.second, contrasts.first),
        contrasts.weights,
    )
    both = [
        SetDistances.from_vectors(each, words, pictures, jaccard_distances).crossed
        for each in (contrasts, exchanged)
    ]
    assert both[0] == pytest.approx(-both[1])


def all_signs(n: int) -> np.ndarray:
    return np.array(list(itertools.product([1, -1], repeat=n)))


def test_the_p_of_crossed_values_is_that_of_all_signs():
    contrasts, (words, pictures) = crossed_sets(), drawn_words()
    beyond = BeyondPictures(
        contrasts, SetDistances.from_vectors(contrasts, words, pictures, jaccard_distances).crossed
    )
    values = all_signs(N_SETS) @ beyond.by_set
    assert beyond.p_value() == pytest.approx((values >= beyond.by_set.sum() - 1e-12).mean())
    assert beyond.value == pytest.approx(beyond.by_set.mean())
    known = stats.ttest_1samp(beyond.by_set, 0).confidence_interval(0.9)
    interval = beyond.estimate(0.9)
    assert (interval.ci_low, interval.ci_high) == pytest.approx(tuple(known))


def test_three_contexts_of_a_set_are_turned_one_by_one():
    groups, contexts = np.tile([0, 1], 9), np.tile(np.repeat([0, 1, 2], 2), 3)
    sets = np.repeat(["a", "b", "c"], 6).tolist()
    contrasts = Contrasts.of_groups(sets, groups, contexts, (0, 1), np.ones(18, bool))
    crossed = np.random.default_rng(1).normal(size=9)
    beyond = BeyondPictures(contrasts, crossed)
    values = np.zeros(2**9)
    for row, signs in enumerate(all_signs(9)):
        one, two = contrasts.crossings.T
        values[row] = (signs[one] * signs[two] * crossed).sum()
    assert beyond.p_value() == pytest.approx((values >= crossed.sum() - 1e-12).mean())


def test_a_common_shift_is_the_mean_inner_product_of_two_sets():
    contrasts, (words, pictures) = crossed_sets(), drawn_words()
    means = means_of_pictures(tf_idf(words), pictures, 4 * N_SETS)
    differences = contrasts.differences(means)
    table = differences.toarray()
    expected = [table[j] @ table[k] for j, k in itertools.permutations(range(N_SETS), 2)]
    assert common_shift(differences) == pytest.approx(np.mean(expected))
    turned = [common_shift(sparse.csr_array(s[:, None] * table)) for s in all_signs(N_SETS)]
    p_value = (np.array(turned) >= common_shift(differences) - 1e-12).mean()
    assert shift_p(SignFlips(contrasts.keys), differences) == pytest.approx(p_value)


@pytest.mark.parametrize(("more", "fewer"), [(6, 0), (5, 1), (9, 3), (4, 4)])
def test_the_p_of_one_indicator_a_set_is_mcnemars(more, fewer):
    n_sets = more + fewer + 3
    contrasts = Contrasts.of_groups(
        [f"{row // 2}" for row in range(2 * n_sets)],
        np.tile([0, 1], n_sets),
        np.zeros(2 * n_sets, int),
        (0, 1),
        np.ones(2 * n_sets, bool),
    )
    differences = np.array([1.0] * more + [-1.0] * fewer + [0.0] * 3)
    binomial = stats.binom(more + fewer, 0.5)
    extreme = [k for k in range(more + fewer + 1) if abs(2 * k - more - fewer) > more - fewer]
    as_far = [k for k in range(more + fewer + 1) if abs(2 * k - more - fewer) == more - fewer]
    mid_p = sum(map(binomial.pmf, extreme)) + sum(map(binomial.pmf, as_far)) / 2
    assert mean_p(contrasts.keys, differences) == pytest.approx(mid_p)


def test_drawn_signs_agree_with_all_signs():
    rng = np.random.default_rng(2)
    differences = rng.normal(0.3, 1, 15)
    every = np.abs(all_signs(15) @ differences)
    expected = (every >= abs(differences.sum())).mean()
    flips = SignFlips(np.arange(17, dtype=np.uint64) + np.uint64(5))
    assert not flips.complete
    padded = np.append(differences, [0.0, 0.0])
    p_value = flips.p_value(abs(padded.sum()), flips.null(lambda signs: np.abs(signs @ padded)))
    assert float(p_value) == pytest.approx(expected, abs=0.015)


def test_the_sign_of_a_set_does_not_depend_on_the_others():
    keys = np.arange(40, dtype=np.uint64)
    fewer, more = (np.concatenate([*SignFlips(k).blocks()]) for k in (keys[3:], keys))
    assert len(fewer) == 9_999
    assert np.array_equal(fewer, more[:, 3:])
    assert abs(fewer.mean()) < 0.01


def test_words_have_the_p_of_the_largest_t_under_all_signs():
    contrasts, (words, pictures) = crossed_sets(), drawn_words()
    shares = means_of_pictures(words, pictures, 4 * N_SETS)
    gaps = word_gaps(contrasts, [f"w{k}" for k in range(N_WORDS)], shares)
    table = contrasts.differences(shares).toarray()
    often = (np.abs(table) > 1e-12).sum(axis=0) >= 6
    t = table.sum(axis=0)[often] / np.sqrt((table[:, often] ** 2).sum(axis=0))
    null = np.abs(all_signs(N_SETS) @ table[:, often]) / np.sqrt((table[:, often] ** 2).sum(axis=0))
    expected = {
        f"w{k}": (null.max(axis=1) >= abs(value) - 1e-12).mean()
        for k, value in zip(np.flatnonzero(often), t, strict=True)
    }
    assert {gap.name: gap.p_value for gap in gaps} == pytest.approx(expected)
    assert gaps[0].name == "w0"
    of_second = words.toarray()[pictures % 2 == 1, 0].mean()
    assert gaps[0].second == pytest.approx(of_second)


def test_a_gap_has_students_interval_where_many_sets_differ():
    contrasts = crossed_sets(20)
    values = np.random.default_rng(3).random(80)
    gap = group_gap("x", contrasts, values, np.ones(80, np.int64))
    differences = (values[1::2] - values[::2]).reshape(-1, 2).mean(axis=1)
    known = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert (gap.ci_low, gap.ci_high) == pytest.approx(tuple(known))
    error = differences.std(ddof=1) / math.sqrt(20)
    assert gap.misses == pytest.approx((stats.t.ppf(0.975, 19) + stats.t.ppf(0.8, 19)) * error)


@pytest.mark.parametrize(("n_sets", "points"), [(20, 16.1), (50, 7.1), (200, 1.9)])
def test_without_an_event_newcombes_interval_has_a_width(n_sets, points):
    contrasts, none = crossed_sets(n_sets), np.zeros(4 * n_sets)
    low, high = share_difference_ends(np.zeros(n_sets), np.zeros(n_sets), 1.0, 1.96)
    assert 100 * high == pytest.approx(points, abs=0.1)
    gap = group_gap("x", contrasts, none, np.ones(4 * n_sets, np.int64))
    assert (gap.ci_low, gap.ci_high) == pytest.approx((low, high), abs=1e-4)
    assert math.isnan(gap.p_value)
    assert gap.misses > gap.ci_high


def test_a_difference_of_annotators_is_subtracted_set_by_set():
    contrasts, values = crossed_sets(20), np.random.default_rng(4).random(80)
    counts = np.ones(80, np.int64)
    alone = group_gap("x", contrasts, values, counts)
    equal = group_gap("x", contrasts, values, counts, people=values)
    assert (equal.value, equal.first) == pytest.approx((0.0, alone.first))


def test_p_is_corrected_for_classes_and_attributes():
    contrasts, values = crossed_sets(20), np.random.default_rng(5).random((2, 80))
    gaps = [group_gap("x", contrasts, each, np.ones(80, np.int64)) for each in values]
    raw = sorted(gap.p_value for gap in gaps)
    assert sorted(gap.adjusted_p for gap in adjust_p_values(gaps, 2)) == pytest.approx(
        [min(1, 4 * raw[0]), max(min(1, 4 * raw[0]), min(1, 2 * raw[1]))]
    )
