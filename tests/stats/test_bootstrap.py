from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats as scipy_stats

from bias_pipeline.attackers.data import Predictions
from bias_pipeline.errors import UsageError
from bias_pipeline.hashing import keys_of
from bias_pipeline.scoring import Accuracy, Confidence, InverseCrossEntropy, Scoring
from bias_pipeline.stats.bootstrap import Bootstrap, Draws, half_width, steady, summary
from bias_pipeline.stats.permutation import exchange_test
from bias_pipeline.stats.scores import ScoreTable


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
    return ScoreTable.of([predictions(*args, **options)], scoring or Accuracy())  # type: ignore[arg-type]


def one_sided(tables: list[ScoreTable], **options: object) -> object:
    return Bootstrap(**options).estimate(tables, {"x": lambda own: own})["x"]  # type: ignore[arg-type]


def test_the_value_is_the_mean_over_seeds() -> None:
    own = predictions([0.9, 0.5])
    expected = np.mean([(p[:, 0] > 0.5).mean() for _, _, p in own])
    assert one_sided([ScoreTable.of([own], Accuracy())]).value == pytest.approx(expected)


def test_seed_std_is_the_sample_deviation_of_seeds() -> None:
    own = table([0.9, 0.5, 0.7])
    assert one_sided([own]).seed_std == pytest.approx(own.per_seed().std(ddof=1))


def test_image_std_matches_the_textbook_for_one_attacker() -> None:
    found = one_sided([table([0.7], n=400)], resamples=4000)
    assert found.image_std == pytest.approx(math.sqrt(0.7 * 0.3 / 400), rel=0.08)


def test_one_seed_has_no_seed_deviation() -> None:
    assert math.isnan(one_sided([table([0.7])]).seed_std)


def test_equal_settings_give_equal_intervals() -> None:
    assert one_sided([table([0.7, 0.8])]) == one_sided([table([0.7, 0.8])])


def test_batches_do_not_change_the_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = one_sided([table([0.7, 0.8])])
    monkeypatch.setattr("bias_pipeline.stats.bootstrap._BATCH_BYTES", 8 * 200 * 7)
    assert one_sided([table([0.7, 0.8])]).image_std == pytest.approx(whole.image_std)


def weights(keys: np.ndarray, **options: int) -> np.ndarray:
    """(B, I) how often each image counts."""
    found: list[np.ndarray] = []

    def evaluate(drawn: np.ndarray) -> dict[str, np.ndarray]:
        found.append(drawn)
        return {"x": drawn[:, :1]}

    Bootstrap(**options).estimate_weighted(keys, evaluate)
    return np.concatenate(found[1:])


def test_images_count_as_a_poisson_law_says() -> None:
    drawn = weights(keys_of(map(str, range(500))), resamples=2000).ravel()
    expected = scipy_stats.poisson(1).pmf(range(7)) * len(drawn)
    assert np.bincount(drawn.astype(int))[:7] == pytest.approx(expected, rel=0.1)


def test_images_are_drawn_independently() -> None:
    drawn = weights(keys_of(map(str, range(60))), resamples=4000)
    off_diagonal = np.corrcoef(drawn.T)[~np.eye(60, dtype=bool)]
    assert abs(off_diagonal).max() < 5 / math.sqrt(4000)


def test_the_weight_of_an_image_does_not_depend_on_the_others() -> None:
    keys = keys_of(map(str, range(100)))
    assert (weights(keys)[:, 40:] == weights(keys[40:])).all()


def test_another_seed_draws_other_weights() -> None:
    keys = keys_of(map(str, range(100)))
    assert (weights(keys, seed=0) != weights(keys, seed=1)).any()


def test_both_sides_are_resampled_together() -> None:
    own = table([0.7, 0.8])
    found = Bootstrap().estimate([own, own], {"d": lambda a, b: a - b})["d"]
    assert found.image_std == 0


def test_the_link_is_applied_to_means_not_to_guesses() -> None:
    own = predictions([0.7])
    probs = tuple(np.clip(p, 0.2, 0.8) for p in own.probs)
    soft = Predictions(own.name, own.seeds, own.images, own.truth, probs)
    loss = InverseCrossEntropy().per_guess(soft.probs[0], soft.truth[0])
    found = one_sided([ScoreTable.of([soft], InverseCrossEntropy())])
    assert found.value == pytest.approx(1 / loss.mean())


def test_the_formula_of_the_interval() -> None:
    a, b, n = 0.02, 0.01, 5
    variance = a**2 / n + b**2
    freedom = (n - 1) * (variance / (a**2 / n)) ** 2
    expected = scipy_stats.t.ppf(0.975, freedom) * math.sqrt(variance)
    assert half_width(a, b, n, 0.95) == pytest.approx(expected)


def test_without_any_variance_the_interval_is_a_point() -> None:
    assert half_width(0.0, 0.0, 5, 0.95) == 0


def test_the_interval_covers_in_a_simulation_of_seeds_and_images() -> None:
    """Attackers vary by 0.02, images are sampled: the 95 % interval covers at least that often."""
    covered = 0
    for trial in range(200):
        accuracies = np.random.default_rng(trial).normal(0.7, 0.02, 5).tolist()
        found = one_sided([table(accuracies, n=200, seed=trial)], resamples=200)
        covered += found.ci_low <= 0.7 <= found.ci_high
    assert scipy_stats.binomtest(covered, 200, 0.95, alternative="less").pvalue > 0.01


@pytest.mark.parametrize("options", [{"resamples": 1}, {"level": 1.0}])
def test_odd_settings_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="stats"):
        Bootstrap(**options)  # type: ignore[arg-type]


def exchange(first: ScoreTable, second: ScoreTable, seed_std: float = 0.0) -> float:
    return exchange_test(
        first,
        second,
        lambda a, b: a - b,
        neutral=0.0,
        seed_std=seed_std,
        permutations=500,
        seed=0,
    )


def test_unsteady_attackers_raise_p() -> None:
    one, two = table([0.8, 0.8]), table([0.7, 0.7])
    assert exchange(one, two, seed_std=0.1) > exchange(one, two)


def test_a_clear_difference_has_a_small_p() -> None:
    assert exchange(table([0.9, 0.9]), table([0.6, 0.6])) < 0.01


def test_equal_sides_have_p_one() -> None:
    assert exchange(table([0.9, 0.9]), table([0.9, 0.9])) == 1


def test_swapping_the_sides_keeps_p() -> None:
    one, two = table([0.75, 0.7]), table([0.7, 0.7])
    assert exchange(one, two) == exchange(two, one)


def unsure(seed: int) -> ScoreTable:
    """Scores of an attacker that is never sure, so that ties do not blur p."""
    p = np.random.default_rng(seed).random(100)
    images, truth = np.arange(100), np.zeros(100, np.int64)
    answers = Predictions("x", (0,), (images,), (truth,), (np.stack([p, 1 - p], axis=1),))
    return ScoreTable.of([answers], Confidence())


def test_p_is_uniform_under_the_null() -> None:
    values = [exchange(unsure(2 * trial), unsure(2 * trial + 1)) for trial in range(100)]
    assert scipy_stats.kstest(values, "uniform").pvalue > 0.01


def test_without_common_images_there_is_no_p() -> None:
    one, two = table([0.7], pool=100), table([0.7], pool=100)
    shifted = ScoreTable(two.images + 500, two.values, two.seed_of, two.n_seeds, two.scoring)
    assert math.isnan(exchange(one, shifted))


def exchange_by(relation: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> float:
    first, second = table([0.8, 0.8]), table([0.7, 0.7])
    return exchange_test(
        first, second, relation, neutral=0.0, seed_std=0.0, permutations=200, seed=0
    )


def test_a_relation_of_no_value_has_no_p() -> None:
    assert math.isnan(exchange_by(lambda a, b: np.full_like(a, np.nan)))


def test_exchanges_of_no_value_do_not_make_p_small() -> None:
    def known_once(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a - b if len(a) == 1 else np.full_like(a, np.nan)

    assert exchange_by(known_once) == 1


def test_a_resampling_without_a_test_image_leaves_an_interval() -> None:
    draws = Draws(np.array([0.1, 0.3]), np.array([[0.1, np.nan], [0.2, 0.3], [0.1, 0.4]]))
    found = steady(summary(draws), 0.95)
    assert math.isfinite(found.ci_low)
    assert found.value == pytest.approx(0.2)


def test_whole_draws_are_left_alone() -> None:
    own = summary(Draws(np.array([0.1, 0.3]), np.array([[0.1, 0.2], [0.2, 0.3]])))
    assert steady(own, 0.95) is own
