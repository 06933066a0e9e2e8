"""The counting formulas against worked cases, and what must hold for any counts."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from bias_pipeline.metrics.functional import amplification, groups
from bias_pipeline.metrics.functional.amplification import holds, task_sets
from bias_pipeline.metrics.functional.counts import Counts, nanmean
from bias_pipeline.metrics.value_names import DIRECTIONS
from tests.oracles import oracle


def case(name: str) -> dict[str, Any]:
    (only,) = (c for c in oracle("counting_hand")["cases"] if c["name"] == name)
    return only


def columns(rows: list[dict[str, Any]]) -> tuple[np.ndarray, ...]:
    keys = ("A", "T", "A_pred", "T_pred")
    return (*(np.array([row[key] for row in rows]) for key in keys), weights_of(rows))


def weights_of(rows: list[dict[str, Any]]) -> np.ndarray:
    return np.array([row["count"] for row in rows], float)


def counts_of(name: str) -> Counts:
    return Counts.from_rows(*columns(case(name)["rows"]))


of_hand_tables = pytest.mark.parametrize(
    "name", ["identity", "two_by_two", "zero_cell", "one_attribute_task", "task_never_predicted"]
)


@of_hand_tables
@pytest.mark.parametrize(("direction", "key"), [("a_to_t", "BA_AtoT"), ("t_to_a", "BA_TtoA")])
def test_ba_directional_of_hand_tables_and_of_each_pair(name, direction, key):
    counts, expected = counts_of(name), case(name)["expected"]
    directional = amplification.ba_directional(counts, direction)
    assert directional == pytest.approx(expected[key], abs=1e-9)
    pairs = np.array(expected[f"{key}_matrix_attr_by_task"], float)
    np.testing.assert_allclose(amplification.directional_pairs(counts, direction), pairs, atol=1e-9)


@of_hand_tables
def test_counts_signs_and_ba_mals_of_hand_tables(name):
    counts, example = counts_of(name), case(name)
    assert counts.labels.T.tolist() == example["counts"]["labels_task_by_attr"]
    assert counts.joint.T.tolist() == example["counts"]["joint_predictions_task_by_attr"]
    signs = amplification.association(counts).tolist()
    assert signs == example["expected"]["indicator_sign_attr_by_task"]
    expected = example["expected"]["BA_MALS"]
    assert amplification.ba_mals(counts) == pytest.approx(expected, abs=1e-9)


@of_hand_tables
@pytest.mark.parametrize(
    ("reading", "kind"), [("code_reading", "complete"), ("paper_reading", "subsets")]
)
@pytest.mark.parametrize(("direction", "key"), [("a_to_t", "G_to_M"), ("t_to_a", "M_to_G")])
def test_multi_of_hand_tables(name, reading, kind, direction, key):
    a, t, a_hat, t_hat, weights = columns(case(name)["rows"])
    labels, predicted = sparse.csr_array(t), sparse.csr_array(t_hat)
    sets = task_sets(labels, kind, max_size=t.shape[1])
    expected = case(name)["expected_multi"][reading]
    assert [list(item) for item in sets] == expected["attribute_sets"]
    both = (holds(item, sets).toarray() for item in (labels, predicted))
    labelled_sets, predicted_sets = both
    counts = Counts.from_rows(a, labelled_sets, a_hat, predicted_sets, weights)
    multi_directional = amplification.multi_directional(counts, direction)
    assert multi_directional == pytest.approx(tuple(expected[f"{key}_mean_var"]), abs=1e-9)


def tied() -> Counts:
    """15 images, 5 of group 0, 9 with the task, 3 with both: exactly independent."""
    example = oracle("counting_hand")["float_noise_tie"]
    n, a, t, both = (example[k] for k in ("n", "n_attribute0", "n_task", "n_both"))
    first = np.arange(n) < a
    task = np.where(first, np.arange(n) < both, np.arange(n) < a + t - both)
    groups_ = np.stack([first, ~first], axis=1)
    return Counts.from_rows(groups_, task[:, None], groups_, (task | first)[:, None])


def test_exact_independence_is_decided_with_integers_and_may_count_as_a_negative_correlation():
    assert amplification.ba_directional(tied(), "a_to_t") == 0.0
    key = "expected_if_tie_means_y0_as_in_the_paper"
    expected = oracle("counting_hand")["float_noise_tie"][key]
    directional = amplification.ba_directional(tied(), "a_to_t", tie="negative")
    assert directional == pytest.approx(expected, abs=1e-12)


def test_the_authors_example_by_group():
    groups_ = np.array([[0, 1]] * 3 + [[1, 0]] * 5)
    labels = np.array([[0, 1, 1, 0, 0, 0, 0, 1]]).T
    predicted = np.array([[1, 1, 1, 0, 0, 0, 0, 0]]).T
    pairs = amplification.directional_pairs(
        Counts.from_rows(groups_, labels, groups_, predicted), "a_to_t"
    )
    assert pairs[:, 0].round(4).tolist() == [0.2, 0.3333]


def real_counts(name: str, captioner: str) -> tuple[Counts, dict[str, float]]:
    """Counts as a file of worked cases has them."""
    captioner_values = oracle(name)["captioners"][captioner]
    if name == "counting_real_coco_objects":
        tables, totals = captioner_values, oracle(name)["attr_totals"]
        by_label = oracle(name)["labels_task_by_attr"]
    else:
        tables, totals = captioner_values["counts"], captioner_values["A_totals_M_F"]
        by_label = tables["gt_task_by_gt_attr"]
    keys = ("pred_task_by_gt_attr", "gt_task_by_pred_attr", "pred_task_by_pred_attr")
    labels, task, group, joint = (
        np.array(table, float).T for table in (by_label, *(tables[key] for key in keys))
    )
    sizes = np.array(totals, float)
    counts = Counts(sizes.sum(), sizes, labels.sum(axis=0), labels, sizes, task, group, joint)
    return counts, captioner_values["expected"]


@pytest.mark.parametrize("captioner", ["NIC", "SAT"])
@pytest.mark.parametrize("name", ["counting_real_coco_objects", "counting_real_human_captions"])
def test_real_counts_give_the_published_codes_numbers(name, captioner):
    counts, expected = real_counts(name, captioner)
    values = {
        "BA_arrow_AtoT_WR": amplification.ba_directional(counts, "a_to_t"),
        "BA_arrow_TtoA_WR": amplification.ba_directional(counts, "t_to_a"),
        "bog_task_to_attribute": amplification.ba_directional(
            counts, "t_to_a", denominator="named", undefined="keep"
        ),
        "bog_attribute_to_task": amplification.ba_directional(counts, "a_to_t"),
        "BA_MALS_joint_predictions": amplification.ba_mals(counts),
        "BA_MALS_gtA_predT": amplification.ba_mals(counts, predictions="task"),
        "BA_MALS_predA_gtT": amplification.ba_mals(counts, predictions="group"),
    }
    assert {k: float(v) for k, v in values.items()} == pytest.approx(
        {key: expected[key] for key in values}, abs=1e-9
    )


@pytest.mark.parametrize("captioner", ["NIC", "SAT", "OSCAR"])
def test_outcome_divergence(captioner):
    published = oracle("gender_error_ratio")["captioners"][captioner]
    outcomes = ("correct", "incorrect", "other")
    triples = np.array([[published[f"{g}_{o}"] for o in outcomes] for g in ("male", "female")])
    assert groups.divergence(triples) == pytest.approx(published["outcome_divergence"], abs=1e-9)


# --- what must hold for any counts --------------------------------------------------------------

K, T, N = 3, 4, 12
codes = arrays.arrays(np.int64, N, elements=st.integers(0, K - 1))
named = arrays.arrays(np.int64, N, elements=st.integers(-1, K - 1))
flags = arrays.arrays(np.int64, (N, T), elements=st.integers(0, 1))
rows = st.tuples(codes, flags, named, flags)


def count_rows(arrays: tuple[np.ndarray, ...]) -> Counts:
    a, t, a_hat, t_hat = arrays
    onehot = np.vstack([np.eye(K), np.zeros(K)])
    return Counts.from_rows(onehot[a], t, onehot[a_hat], t_hat)


def numbers(counts: Counts) -> dict[str, np.ndarray]:
    values = {"mals": amplification.ba_mals(counts)}
    for direction in DIRECTIONS:
        values[direction] = amplification.ba_directional(counts, direction)
        values[f"multi:{direction}"] = amplification.multi_directional(counts, direction)[0]
    return values


@given(rows)
def test_amplification_lies_in_its_range(item):
    values = np.array(list(numbers(count_rows(item)).values()))
    known = values[np.isfinite(values)]
    assert (np.abs(known) <= 1 + 1e-12).all()


@given(codes, flags)
def test_predictions_that_equal_labels_amplify_nothing(a, t):
    result = numbers(count_rows((a, t, a, t)))
    assert all(np.isnan(value) or abs(value) < 1e-12 for value in result.values())


@given(rows, st.permutations(range(K)), st.permutations(range(N)))
def test_names_and_order_do_not_matter(item, names, order):
    a, t, a_hat, t_hat = (column[order] for column in item)
    turned = np.append(np.array(names), -1)
    other = numbers(count_rows((turned[a], t, turned[a_hat], t_hat)))
    for key, value in numbers(count_rows(item)).items():
        np.testing.assert_allclose(value, other[key], atol=1e-12)


@given(flags)
def test_sets_are_those_that_images_hold(t):
    sets = task_sets(sparse.csr_array(t), "subsets", max_size=3)
    expected = {
        combination
        for size in (1, 2, 3)
        for combination in itertools.combinations(range(T), size)
        if t[:, combination].all(axis=1).any()
    }
    assert set(sets) == expected
    present = holds(sparse.csr_array(t), sets).toarray()
    assert all(
        (present[:, m] == t[:, combination].all(axis=1)).all() for m, combination in enumerate(sets)
    )


def test_sets_of_many_tasks_are_those_that_images_hold():
    """79 ** 12 has more than 64 bits."""
    row = np.arange(79) >= 66
    sets = task_sets(sparse.csr_array(row[None]), "subsets", max_size=12)
    assert len(sets) == 2**13 - 2
    assert {task for tasks in sets for task in tasks} == {*range(66, 79)}


@given(flags)
def test_complete_sets_are_those_of_whole_images(t):
    sets = task_sets(sparse.csr_array(t), "complete", max_size=T)
    assert set(sets) == {tuple(np.flatnonzero(row).tolist()) for row in t if row.any()}


@given(arrays.arrays(np.float64, (K, T), elements=st.integers(0, 50)))
def test_epsilon_is_no_smaller_than_that_of_any_pair(joint):
    sizes = np.full(K, 50.0)
    whole = groups.differential_fairness(joint, sizes)
    for pair in itertools.combinations(range(K), 2):
        assert groups.differential_fairness(joint[list(pair)], sizes[list(pair)]) <= whole + 1e-12
    assert whole >= 0


def test_epsilon_without_a_prior_is_unknown_for_a_group_never_given_the_task():
    epsilons = groups.epsilons(np.array([[5.0], [0.0]]), np.array([9.0, 9.0]), "none")
    assert np.isnan(epsilons).all()


@given(arrays.arrays(np.float64, (2, T), elements=st.integers(0, 50)))
def test_skew_of_two_groups_is_the_distance_of_the_ratio_from_a_half(pairs):
    ratio = groups.group_shares(pairs)[0]
    np.testing.assert_allclose(groups.skew(pairs), np.abs(ratio - 0.5), atol=1e-12)


@given(arrays.arrays(np.float64, (K, T), elements=st.integers(0, 50)))
def test_bias_disparity_of_equal_counts_is_zero(pairs):
    bias_disparity = groups.bias_disparity(pairs, pairs)
    assert np.nan_to_num(bias_disparity).any() == np.False_


def test_hendricks_distance_leaves_out_objects_without_an_image():
    mention_distance = groups.mention_distance(
        np.array([[4.0, 7.0]]), np.array([[2.0, 1.0]]), np.array([10.0, 0.0])
    )
    assert mention_distance == pytest.approx([2 / 10.0005])


def test_nothing_known_has_no_mean():
    assert np.isnan(nanmean(np.full((2, 2), np.nan), 2))


@pytest.mark.parametrize("absent", ["keep", "drop"])
def test_an_object_never_predicted_stays_in_the_number_of_objects_or_not(absent):
    a = np.array([[1, 0], [1, 0], [0, 1]])
    t, never = np.array([[1, 1]] * 3), np.array([[1, 0]] * 3)
    men = np.array([[1, 0]] * 3)
    mals = amplification.ba_mals(Counts.from_rows(a, t, men, never), absent=absent)
    assert mals == pytest.approx({"keep": 1 / 6, "drop": 1 / 3}[absent])
