"""DBAC's arithmetic: the oracle's cases, its limits, and what each named choice changes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.metrics.functional.dbac import (
    AGGREGATES,
    PRIORS,
    Side,
    dbac,
    dbac_score,
    omega,
    pair_scores,
)
from tests.oracles import oracle

EPSILON = 1e-8
FACTOR = st.floats(0.1, 10)


def case(number: int) -> dict[str, Any]:
    return oracle("dbac_arithmetic")["omega_and_dbac"]["cases"][number]


def tolerance() -> float:
    return oracle("dbac_arithmetic")["omega_and_dbac"]["tolerance_abs"]


def one_pair(quality: float, other: float, mentions: float = 1.0) -> Side:
    """A side with a single pair."""
    return Side(np.array([[quality]]), np.array(quality), np.array([other]), np.array([[mentions]]))


def side(seed: int, given_values: int = 2, other_values: int = 3) -> Side:
    """A side of random numbers."""
    generator = np.random.default_rng(seed)
    shape = (given_values, other_values)
    return Side(
        quality=generator.uniform(0.2, 3.0, shape),
        overall=generator.uniform(0.2, 3.0, ()),
        other=generator.uniform(0.05, 0.5, other_values),
        mentions=generator.integers(1, 100, shape).astype(float),
    )


MODEL, HUMAN = side(0), side(1)
GIVEN = np.array([0.3, 0.7])
ALL = np.ones((2, 3), bool)
ONE = np.ones((1, 1), bool)

of_aggregates = pytest.mark.parametrize("aggregate", AGGREGATES)
of_means_of_pairs = pytest.mark.parametrize("aggregate", ["per_pair", "per_caption"])
under_priors = pytest.mark.parametrize("prior", PRIORS)


def dbac_of(model: Side = MODEL, human: Side = HUMAN, **options: Any) -> float:
    supported = options.pop("supported", ALL)
    return float(dbac_score(model, human, GIVEN, supported, **options))


def of_omegas(model: float, human: float, *epsilon: float) -> float:
    return dbac(np.array(model), np.array(human), *epsilon).item()


def louder(side: Side, times: float) -> Side:
    """The same attackers and pairs, every value of the other variable mentioned more often."""
    return replace(side, other=times * side.other, mentions=times * side.mentions)


# The oracle.


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize(("who", "prior"), [("M", "P_t_hat"), ("H", "P_t")])
def test_omega_is_as_in_the_worked_case(number, who, prior):
    example = case(number)
    quality, other, group = (np.array([example[k]]) for k in (f"Q_{who}", prior, "P_a"))
    result = omega(quality[None], other, group).item()
    assert result == pytest.approx(example[f"omega_{who}"], abs=tolerance())


@pytest.mark.parametrize("number", range(4))
def test_dbac_is_as_in_the_worked_case(number):
    example = case(number)
    result = of_omegas(example["omega_M"], example["omega_H"], example["epsilon"])
    assert result == pytest.approx(example["DBAC"], abs=tolerance())


def test_dbac_of_nothing_is_unknown_in_the_worked_case():
    assert case(4)["DBAC"] is None
    assert np.isnan(of_omegas(case(4)["omega_M"], case(4)["omega_H"]))


@of_aggregates
@pytest.mark.parametrize("number", range(4))
def test_every_aggregate_of_one_pair_is_the_worked_case(number, aggregate):
    example = case(number)
    model = one_pair(example["Q_M"], example["P_t_hat"])
    human = one_pair(example["Q_H"], example["P_t"])
    result = dbac_score(model, human, np.array([example["P_a"]]), ONE, aggregate=aggregate)
    assert result.item() == pytest.approx(example["DBAC"], abs=tolerance())


def test_omega_of_an_ideal_attacker_is_bayes_rule():
    bayes = oracle("dbac_arithmetic")["bayes_identity"]
    keys = ("Q_at_of_an_ideal_attacker_P_a_given_t", "P_t", "P_a")
    result = omega(*(np.array(bayes[key]) for key in keys))
    np.testing.assert_allclose(result, bayes["omega_at_equals_P_t_given_a"], rtol=0, atol=1e-12)


@given(st.lists(st.integers(1, 1000), min_size=6, max_size=6))
@settings(deadline=None, max_examples=50)
def test_bayes_rule_holds_for_any_table_of_counts(counts):
    joint = np.reshape(counts, (2, 3)) / sum(counts)
    of_group, of_task = joint.sum(axis=1), joint.sum(axis=0)
    result = omega(joint / of_task, of_task, of_group)
    np.testing.assert_allclose(result, joint / of_group[:, None], rtol=0, atol=1e-12)


# Limits and symmetries of the normalised difference.


@pytest.mark.parametrize(
    ("model", "human", "limit"), [(0.0, 0.4, -1), (0.4, 0.0, 1), (0.4, 0.4, 0)]
)
def test_limits(model, human, limit):
    assert of_omegas(model, human) == pytest.approx(limit, abs=1e-7)


@pytest.mark.parametrize("epsilon", [EPSILON, 1e-3])
def test_both_omegas_zero_is_unknown_whatever_epsilon_says(epsilon):
    assert np.isnan(of_omegas(0.0, 0.0, epsilon))


OMEGAS = st.floats(0, 1e4, allow_subnormal=False)


@given(OMEGAS, OMEGAS)
def test_swapping_the_sides_turns_the_sign(model, human):
    np.testing.assert_array_equal(of_omegas(model, human), -of_omegas(human, model))


@given(OMEGAS, OMEGAS)
def test_the_score_lies_between_minus_one_and_one(model, human):
    value = of_omegas(model, human)
    assert np.isnan(value) if model + human == 0 else -1 < value < 1


@given(OMEGAS, OMEGAS, OMEGAS)
def test_the_score_grows_with_the_models_omega(one, two, human):
    low, high = (of_omegas(omega_m, human + 1) for omega_m in sorted((one, two)))
    assert low <= high


@pytest.mark.parametrize("aggregate", [a for a in AGGREGATES if a != "weighted"])
@pytest.mark.parametrize("prior", ["counts", "none"])
def test_swapping_the_sides_turns_the_sign_unless_people_weigh_the_pairs(aggregate, prior):
    # Not for prior=shared, which takes people's P(other): that side is then another.
    one = dbac_of(MODEL, HUMAN, aggregate=aggregate, prior=prior)
    assert dbac_of(HUMAN, MODEL, aggregate=aggregate, prior=prior) == pytest.approx(-one)


@of_aggregates
@under_priors
def test_equal_sides_score_exactly_zero(aggregate, prior):
    assert dbac_of(MODEL, MODEL, aggregate=aggregate, prior=prior) == 0


# The prior, and the nuisance that the published one carries.


@of_aggregates
@pytest.mark.parametrize(
    ("prior", "expected"), [("counts", pytest.approx(1 / 3, abs=1e-6)), ("shared", 0), ("none", 0)]
)
def test_twice_as_many_mentions_are_a_third_under_the_published_prior_alone(
    prior, expected, aggregate
):
    assert dbac_of(louder(HUMAN, 2), HUMAN, aggregate=aggregate, prior=prior) == expected


def test_the_third_is_exact_but_for_epsilon():
    result = pair_scores(one_pair(1.0, 0.5), one_pair(1.0, 0.25), np.array([0.5]), "counts")
    assert result.item() == 0.5 / (1.5 + EPSILON)


@given(FACTOR)
def test_saying_k_times_as_much_scores_as_arithmetic_has_it(times):
    dbac = dbac_of(louder(HUMAN, times), HUMAN)
    assert dbac == pytest.approx((times - 1) / (times + 1), abs=1e-6)


def test_without_a_prior_a_pair_compares_qualities():
    result = pair_scores(one_pair(3.0, 0.1), one_pair(1.0, 0.7), np.array([0.2]), "none")
    assert result.item() == pytest.approx(0.5)


@pytest.mark.parametrize("aggregate", ["per_pair", "marginal"])
def test_only_per_caption_tells_a_shared_prior_from_none(aggregate):
    shared, none = (dbac_of(aggregate=aggregate, prior=prior) for prior in ("shared", "none"))
    assert shared == pytest.approx(none, abs=1e-6)


@given(FACTOR)
def test_in_a_mean_of_pairs_the_given_variables_prior_cancels(times):
    one, two = (dbac_score(MODEL, HUMAN, item, ALL).item() for item in (GIVEN, times * GIVEN))
    assert one == pytest.approx(two, abs=1e-6)


# Aggregates.


@under_priors
def test_aggregates_agree_on_one_pair(prior):
    model, human = one_pair(0.8, 0.2, 7), one_pair(0.7, 0.25, 30)
    sides = (model, human, np.array([0.5]), ONE)
    lines = [dbac_score(*sides, aggregate=item, prior=prior).item() for item in AGGREGATES]
    assert lines == pytest.approx([lines[0]] * len(AGGREGATES))


@pytest.mark.parametrize(
    ("options", "weights"), [({"aggregate": "per_pair"}, None), ({}, HUMAN.mentions)]
)
def test_pairs_weigh_alike_or_by_what_people_mention(options, weights):
    pairs = pair_scores(MODEL, HUMAN, GIVEN, "counts")
    assert dbac_of(**options) == pytest.approx(np.average(pairs, weights=weights))


def test_what_is_never_named_has_omega_zero_though_no_attacker_predicted_it():
    result = omega(np.full((1, 2), np.nan), np.array([0.0, 0.1]), np.array([0.5]))
    np.testing.assert_allclose(result, [[0.0, np.nan]])


@pytest.mark.parametrize(
    ("aggregate", "mean"),
    [
        (
            "per_caption",
            lambda one: np.average(omega(one.quality, one.other, GIVEN), weights=one.mentions),
        ),
        ("marginal", lambda one: one.overall * one.other.mean() / GIVEN.mean()),
    ],
    ids=["mentions weigh pairs", "each prior has its mean"],
)
def test_other_aggregates_compare_means_of_omega(aggregate, mean):
    assert dbac_of(aggregate=aggregate) == pytest.approx(of_omegas(mean(MODEL), mean(HUMAN)))


def ideal(of_task_given_group: list[list[float]]) -> Side:
    """Attackers that know P(group | task) and nothing else, for two groups of equal size."""
    joint = np.array(of_task_given_group) / 2
    of_task = joint.sum(axis=0)
    return Side(joint / of_task, np.array(1.0), of_task, joint)


@pytest.mark.parametrize(("aggregate", "sign"), [("per_pair", -1), ("per_caption", 1)])
def test_of_ideal_attackers_only_weighing_by_mentions_sees_amplification(aggregate, sign):
    """Omega is P(t | a): what one group gains the other loses, from a smaller base."""
    people, captioner = ideal([[0.65, 0.35], [0.35, 0.65]]), ideal([[0.75, 0.25], [0.25, 0.75]])
    halves, every = np.array([0.5, 0.5]), np.ones((2, 2), bool)
    assert sign * dbac_score(captioner, people, halves, every, aggregate=aggregate).item() > 0.02


@of_means_of_pairs
def test_pairs_without_support_do_not_count(aggregate):
    supported = np.array([[True, True, False], [True, False, True]])
    wild = replace(MODEL, quality=np.where(supported, MODEL.quality, 1e6))
    one, two = (dbac_of(m, supported=supported, aggregate=aggregate) for m in (MODEL, wild))
    assert one == two


@of_means_of_pairs
def test_pairs_without_captions_are_left_out(aggregate):
    empty = np.array([[False, True, False], [False, False, False]])
    holed = replace(MODEL, quality=np.where(empty, np.nan, MODEL.quality))
    expected = dbac_of(supported=~empty, aggregate=aggregate)
    assert dbac_of(holed, aggregate=aggregate) == pytest.approx(expected)


def test_a_pair_unknown_on_one_side_is_left_out_on_both():
    human, model = (
        Side(np.array([[first, 1.0]]), np.array(1.0), np.array([0.5, 0.5]), np.ones((1, 2)))
        for first in (5.0, np.nan)
    )
    every = np.ones((1, 2), bool)
    assert dbac_score(model, human, np.ones(1), every, aggregate="per_caption").item() == 0


@of_means_of_pairs
def test_no_supported_pair_is_unknown(aggregate):
    assert np.isnan(dbac_of(supported=np.zeros((2, 3), bool), aggregate=aggregate))


@of_aggregates
@under_priors
def test_seeds_and_resamples_are_free_axes(aggregate, prior):
    """(B, S) scores at once are the scores of each b and s alone."""
    sides = [[side(10 * b + s) for s in range(3)] for b in range(2)]
    names = ("quality", "overall", "other", "mentions")
    stacked = Side(*(np.array([[getattr(s, n) for s in row] for row in sides]) for n in names))
    result = dbac_score(stacked, HUMAN, GIVEN, ALL, aggregate=aggregate, prior=prior)
    alone = [[dbac_of(item, aggregate=aggregate, prior=prior) for item in row] for row in sides]
    np.testing.assert_allclose(result, alone)
