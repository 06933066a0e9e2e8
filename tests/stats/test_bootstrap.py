import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.errors import UsageError
from bias_pipeline.io.hashing import LIMITS, hash_ids, poisson, random_words
from bias_pipeline.stats.bootstrap import (
    Bootstrap,
    Draws,
    Estimate,
    combined_error,
    fill_void_resamples,
    quantile,
    summary,
    with_p_value,
)
from bias_pipeline.stats.scores import ScoreTable
from bias_pipeline.stats.scoring import Accuracy, InverseCrossEntropy, Lic, Scoring


def predictions(
    accuracies: list[float], n: int = 100, seed: int = 0, pool: int = 1000
) -> Predictions:
    """Attackers of given accuracies, each tested on n random images of a pool."""
    generator = np.random.default_rng(seed)
    images = tuple(np.sort(generator.choice(pool, n, replace=False)) for _ in accuracies)
    truth = tuple(np.zeros(n, np.int64) for _ in accuracies)
    right = [generator.random(n) < accuracy for accuracy in accuracies]
    probs = tuple(np.stack([r, ~r], axis=1).astype(float) for r in right)
    return Predictions("model:0", tuple(range(len(accuracies))), images, truth, probs)


def table(*args: object, scoring: Scoring | None = None, **options: object) -> ScoreTable:
    return ScoreTable.from_predictions([predictions(*args, **options)], scoring or Accuracy())


def one_sided(tables: list[ScoreTable], **options: object) -> object:
    return Bootstrap(**options).estimate(tables, {"x": lambda values: values})["x"]


def test_value_and_deviation_are_those_of_the_seeds():
    built_predictions = predictions([0.9, 0.5, 0.7])
    per_seed = [(p[:, 0] > 0.5).mean() for _, _, p in built_predictions]
    built_table = ScoreTable.from_predictions([built_predictions], Accuracy())
    assert built_table.per_seed(np.ones((1, len(built_table.images))))[0] == pytest.approx(per_seed)
    result = one_sided([built_table])
    assert result.value == pytest.approx(np.mean(per_seed))
    assert result.seed_std == pytest.approx(np.std(per_seed, ddof=1))


def test_image_std_matches_the_textbook_for_one_attacker_without_a_seed_deviation():
    result = one_sided([table([0.7], n=400)], resamples=4000)
    assert result.image_std == pytest.approx(math.sqrt(0.7 * 0.3 / 400), rel=0.08)
    assert math.isnan(result.seed_std)


def test_equal_settings_give_equal_intervals_whatever_the_batches(monkeypatch):
    whole = one_sided([table([0.7, 0.8])])
    assert one_sided([table([0.7, 0.8])]) == whole
    monkeypatch.setattr("bias_pipeline.stats.bootstrap._BATCH_BYTES", 8 * 200 * 7)
    assert one_sided([table([0.7, 0.8])]).image_std == pytest.approx(whole.image_std)


def weights(keys: np.ndarray, **options: int) -> np.ndarray:
    """(B, I) how often each image counts."""
    batches: list[np.ndarray] = []

    def evaluate(drawn: np.ndarray) -> dict[str, np.ndarray]:
        batches.append(drawn)
        return {"x": drawn[:, :1]}

    Bootstrap(**options).estimate_weighted(keys, evaluate)
    return np.concatenate(batches[1:])


def test_images_count_as_a_poisson_law_says():
    drawn = weights(hash_ids(map(str, range(500))), resamples=2000).ravel()
    expected = scipy_stats.poisson(1).pmf(range(7)) * len(drawn)
    assert np.bincount(drawn.astype(int))[:7] == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("resamples", [7, 500])
def test_stored_weights_are_those_that_are_drawn_anew(monkeypatch, resamples):
    keys = hash_ids(map(str, range(300)))
    stored = weights(keys, resamples=resamples, seed=3)
    assert (weights(keys, resamples=resamples, seed=3) == stored).all()
    monkeypatch.setattr("bias_pipeline.stats.bootstrap._MOST_STORED", 0)
    monkeypatch.setattr("bias_pipeline.stats.bootstrap._BATCH_BYTES", 8 * 300 * 4)
    monkeypatch.setattr("bias_pipeline.io.hashing._BLOCK", 128)
    assert stored.shape == (resamples, 300)
    assert (weights(keys, resamples=resamples, seed=3) == stored).all()
    one_by_one = [
        poisson(random_words("resample", 3, keys, np.array([b], np.uint64)))
        for b in range(resamples)
    ]
    assert (np.array(one_by_one) == stored).all()


@pytest.mark.parametrize("scoring", [Accuracy("captions"), Lic("groups"), InverseCrossEntropy()])
@pytest.mark.parametrize("n", [120, 90])
def test_a_seed_scores_as_the_mean_of_its_attackers_alone(scoring, n):
    """Of 120 images, all of which or some of which each of 3 x 2 attackers was tested on."""
    generator = np.random.default_rng(6)
    images = [np.sort(generator.choice(120, n, replace=False)) for _ in range(6)]
    truth = generator.integers(0, 2, 120)
    probs = [generator.dirichlet(np.ones(2), n) for _ in images]
    parts = [
        Predictions(
            "m", (0, 1), *(tuple(x[k : k + 2]) for x in (images, [truth[i] for i in images], probs))
        )
        for k in (0, 2, 4)
    ]
    weights = generator.poisson(1.0, (5, 120)).astype(float)

    def single_score(attacker: int) -> np.ndarray:
        guess = scoring.per_guess(probs[attacker], truth[images[attacker]])
        each, counts = np.zeros((2, 120)), np.zeros((2, 120))
        groups = truth[images[attacker]] if scoring.average == "groups" else 0
        each[groups, images[attacker]], counts[groups, images[attacker]] = guess, 1
        with np.errstate(invalid="ignore"):
            return scoring.link(np.nanmean(weights @ each.T / (weights @ counts.T), axis=1))

    expected = [
        np.mean([single_score(a) for a in (seed, seed + 2, seed + 4)], axis=0) for seed in (0, 1)
    ]
    per_seed = ScoreTable.from_predictions(parts, scoring)
    assert per_seed.rows_at(per_seed.images).per_seed(weights) == pytest.approx(
        np.stack(expected, axis=1), rel=1e-12
    )


def test_weights_are_inverted_exactly_beside_every_limit():
    """The definition, one word after the other."""
    limits = LIMITS.astype(np.uint64)
    high = np.concatenate([limits - np.uint64(1), limits, limits + np.uint64(1)])
    high = high[high < 1 << 32]
    expected = [sum(word >= limit for limit in limits.tolist()) for word in high.tolist()]
    assert poisson(high << np.uint64(32)).tolist() == expected


def test_images_are_drawn_independently():
    drawn = weights(hash_ids(map(str, range(60))), resamples=4000)
    off_diagonal = np.corrcoef(drawn.T)[~np.eye(60, dtype=bool)]
    assert abs(off_diagonal).max() < 5 / math.sqrt(4000)


def test_the_weight_of_an_image_depends_on_the_seed_and_not_on_the_others():
    keys = hash_ids(map(str, range(100)))
    assert (weights(keys)[:, 40:] == weights(keys[40:])).all()
    assert (weights(keys, seed=0) != weights(keys, seed=1)).any()


def test_both_sides_are_resampled_together():
    built_table = table([0.7, 0.8])
    d = Bootstrap().estimate([built_table, built_table], {"d": lambda a, b: a - b})["d"]
    assert d.image_std == 0


def test_the_link_is_applied_to_means_not_to_guesses():
    sure = predictions([0.7])
    soft = replace(sure, probs=tuple(np.clip(p, 0.2, 0.8) for p in sure.probs))
    loss = InverseCrossEntropy().per_guess(soft.probs[0], soft.truth[0])
    result = one_sided([ScoreTable.from_predictions([soft], InverseCrossEntropy())])
    assert result.value == pytest.approx(1 / loss.mean())


def test_the_formula_of_the_interval():
    a, b, n = 0.02, 0.01, 5
    variance = a**2 / n + b**2
    freedom = (n - 1) * (variance / (a**2 / n)) ** 2
    assert combined_error(a, b, n) == pytest.approx((math.sqrt(variance), freedom))
    assert quantile(0.95, freedom) == pytest.approx(scipy_stats.t.ppf(0.975, freedom))


def test_without_any_variance_the_interval_is_a_point():
    interval = summary(Draws(np.full(5, 0.3), np.full((9, 5), 0.3)))
    assert (interval.ci_low, interval.ci_high) == (0.3, 0.3)


def test_the_interval_covers_in_a_simulation_of_seeds_and_images():
    """Attackers vary by 0.02, images are sampled: the 95 % interval covers at least that often."""
    covered = 0
    for trial in range(200):
        accuracies = np.random.default_rng(trial).normal(0.7, 0.02, 5).tolist()
        result = one_sided([table(accuracies, n=200, seed=trial)], resamples=200)
        covered += result.ci_low <= 0.7 <= result.ci_high
    assert scipy_stats.binomtest(covered, 200, 0.95, alternative="less").pvalue > 0.01


@pytest.mark.parametrize("options", [{"resamples": 1}, {"level": 1.0}])
def test_odd_settings_are_refused(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        Bootstrap(**options)


def draw_estimate(value: float, seed: int = 0, n_seeds: int = 3, **options: object) -> Estimate:
    """An estimate that seeds and images both move."""
    generator = np.random.default_rng(seed)
    per_seed = generator.normal(value, 0.02, n_seeds)
    resampled = per_seed + generator.normal(0, 0.01, (500, 1))
    return summary(Draws(per_seed, resampled, **options))


def test_unsteady_attackers_raise_p():
    steady_ones = Draws(np.full(3, 0.03), 0.03 + np.random.default_rng(0).normal(0, 0.01, (500, 3)))
    unsteady = replace(steady_ones, per_seed=np.array([-0.03, 0.03, 0.09]))
    assert (
        with_p_value(summary(unsteady), 0.0).p_value
        > with_p_value(summary(steady_ones), 0.0).p_value
    )


@pytest.mark.parametrize(
    ("estimate", "p_value"),
    [
        (draw_estimate(0.5), pytest.approx(0, abs=0.01)),
        (draw_estimate(0.5, n_seeds=1), pytest.approx(math.nan, nan_ok=True)),
        (draw_estimate(0.5, n_seeds=1, trained=False), pytest.approx(0, abs=0.01)),
        (summary(Draws(np.zeros(3), np.zeros((9, 3)))), 1),
        (
            summary(Draws(np.full(3, np.nan), np.full((9, 3), np.nan))),
            pytest.approx(math.nan, nan_ok=True),
        ),
    ],
    ids=["a clear difference", "one seed", "a count", "what never varies", "no value"],
)
def test_p_against_a_neutral_value(estimate, p_value):
    assert with_p_value(estimate, 0.0).p_value == p_value


def test_one_seed_has_a_wider_interval_than_its_images_give():
    result = draw_estimate(0.5, n_seeds=1)
    width = 2 * 1.96 * math.sqrt(2) * result.image_std
    assert result.ci_high - result.ci_low == pytest.approx(width, rel=1e-3)


@given(
    neutral=st.floats(-0.1, 0.1),
    seed=st.integers(0, 99),
    n_seeds=st.integers(2, 6),
    trained=st.booleans(),
)
def test_interval_and_p_agree(neutral, seed, n_seeds, trained):
    result = with_p_value(
        draw_estimate(0.0, seed, n_seeds if trained else 1, trained=trained), neutral
    )
    assert (result.p_value < 0.05) == (not result.ci_low <= neutral <= result.ci_high)


INFLATED = Draws(np.array([0.2]), np.array([[0.21], [0.23], [0.25]]), trained=False)


def test_what_resampling_adds_to_a_count_is_taken_off_twice_and_the_interval_reaches_beyond_both():
    interval = summary(INFLATED)
    half = 1.96 * interval.image_std
    assert interval.corrected == pytest.approx(0.14)
    assert (interval.ci_low, interval.ci_high) == pytest.approx((0.14 - half, 0.2 + half), rel=1e-3)
    assert summary(replace(INFLATED, trained=True)).corrected == 0.2  # of attackers as it is


@given(shift=st.floats(-1, 1))
def test_an_interval_holds_its_value_however_much_resampling_adds(shift):
    resampled = np.random.default_rng(0).normal(0.2 + shift, 0.01, (200, 3))
    interval = summary(Draws(np.full(3, 0.2), resampled))
    assert interval.ci_low <= interval.value + 1e-12
    assert interval.value - 1e-12 <= interval.ci_high


def noisy_maximum(truth: float, n: int, seed: int) -> Estimate:
    """The larger of two rates that are equally large: noise alone makes it larger."""
    happened = np.random.default_rng(seed).random((n, 2)) < truth

    def evaluate(weights: np.ndarray) -> dict[str, np.ndarray]:
        rates = weights @ happened / weights.sum(axis=1, keepdims=True)
        return {"x": rates.max(axis=1, keepdims=True)}

    keys = hash_ids(f"{seed} {i}" for i in range(n))
    return Bootstrap(resamples=200).estimate_weighted(keys, evaluate, trained=lambda _: False)["x"]


def test_the_interval_covers_what_noise_makes_larger():
    lines = [noisy_maximum(0.3, 200, seed) for seed in range(200)]
    covered = sum(e.ci_low <= 0.3 <= e.ci_high for e in lines)
    assert scipy_stats.binomtest(covered, 200, 0.95, alternative="less").pvalue > 0.01


def test_a_resampling_without_a_test_image_leaves_an_interval_and_whole_draws_are_left_alone():
    cut, whole = (
        summary(Draws(np.array([0.1, 0.3]), np.array([[0.1, first], [0.2, 0.3], [0.1, 0.4]])))
        for first in (np.nan, 0.2)
    )
    result = fill_void_resamples(cut, 0.95)
    assert math.isfinite(result.ci_low)
    assert result.value == pytest.approx(0.2)
    assert fill_void_resamples(whole, 0.95) is whole
