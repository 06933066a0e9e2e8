"""Corrections by gold labels: against brute force, and the truth."""

import numpy as np
import pytest

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.metrics.counting.true_labels import CaptionOutcomes, TrueLabels
from bias_pipeline.metrics.functional import groups
from bias_pipeline.metrics.functional.gold import (
    label_priors,
    machine_weight,
    true_label_counts,
)

NONE = 2  # captions that name no group of two


def test_labels_against_machine_and_caption_have_half_the_prior():
    priors = label_priors(2)
    assert priors.shape == (5, 4, 4)  # captions, machine labels, true labels
    for caption in range(5):
        for machine in range(4):
            for label in range(4):
                agree = caption == machine and caption < 2
                assert priors[caption, machine, label] == (
                    0.25 if agree and label != caption else 0.5
                )


def test_images_of_a_cell_are_divided_as_its_gold_images():
    cells, gold = np.array([[10.0, 30.0]]), np.array([[[1.0, 3.0], [6.0, 0.0]]])
    assert true_label_counts(cells, gold).tolist() == [[[2.5, 7.5], [30.0, 0.0]]]


def true_labels(
    truth: IntArray, machine: IntArray, gold: IntArray, chances: Float64Array | None = None
) -> TrueLabels:
    return TrueLabels(
        n_groups=2,
        machine=machine,
        keys=hash_ids(map(str, range(len(machine)))),
        rows=gold,
        truth=truth[gold],
        chances=np.ones(len(gold)) if chances is None else chances[gold],
        drawn_evenly=chances is None,
    )


def one_each(named: IntArray) -> CaptionOutcomes:
    return CaptionOutcomes(np.arange(len(named)), named, np.ones(len(named)))


def wrong_share(counts: Float64Array) -> Float64Array:
    """(B,) share of the captions naming one group that name the wrong one."""
    return (counts[:, 0, 1] + counts[:, 1, 0]) / counts[:, :2, :2].sum(axis=(1, 2))


def drawn_world(
    rng: np.random.Generator, n: int = 2000, noise: float = 0.06
) -> tuple[IntArray, IntArray, IntArray]:
    """True labels, machine labels that err more often for the second group, named groups."""
    truth = (rng.random(n) < 0.35).astype(np.int64)
    machine = np.where(rng.random(n) < np.where(truth == 1, 2 * noise, noise / 2), 1 - truth, truth)
    named = np.where(rng.random(n) < np.where(truth == 1, 0.06, 0.02), 1 - truth, truth)
    return truth, machine, np.where(rng.random(n) < 0.2, NONE, named)


def test_draws_are_those_of_the_dirichlet_distributions():
    """Brute force: numpy's own Beta and Dirichlet draws of the same counts."""
    truth, machine, named = drawn_world(np.random.default_rng(2))
    gold = np.random.default_rng(3).choice(2000, 300, replace=False)
    drawn = wrong_share(true_labels(truth, machine, gold).counts(one_each(named), "a"))

    rng, cells = np.random.default_rng(4), [(c, m) for c in (0, 1, NONE) for m in (0, 1)]
    sizes = [((named == c) & (machine == m)).sum() for c, m in cells]
    weights = rng.dirichlet(sizes, 20_000)
    female = np.empty((20_000, len(cells)))
    for column, (caption, label) in enumerate(cells):
        within = truth[gold][(named[gold] == caption) & (machine[gold] == label)]
        low = 0.25 if caption == label else 0.5
        priors = {0: (0.5, low), 1: (low, 0.5), NONE: (0.5, 0.5)}[caption]
        female[:, column] = rng.beta(
            (within == 1).sum() + priors[1], (within == 0).sum() + priors[0], 20_000
        )
    error = weights[:, :2] @ [0, 0] + (weights[:, :2] * female[:, :2]).sum(1)
    error += (weights[:, 2:4] * (1 - female[:, 2:4])).sum(1)
    expected = error / weights[:, :4].sum(1)
    assert np.quantile(drawn, [0.025, 0.5, 0.975]) == pytest.approx(
        np.quantile(expected, [0.025, 0.5, 0.975]), rel=0.04
    )


def test_gold_labels_of_all_images_give_peoples_number():
    truth, machine, named = drawn_world(np.random.default_rng(5))
    every = np.arange(2000)
    drawn = wrong_share(true_labels(truth, machine, every).counts(one_each(named), "a"))
    known = named != NONE
    share = (named != truth)[known].mean()
    assert np.median(drawn) == pytest.approx(share, abs=0.001)
    assert drawn.std() == pytest.approx(np.sqrt(share * (1 - share) / known.sum()), rel=0.1)


def test_a_machine_that_equals_people_gives_the_width_of_all_images():
    truth, _, named = drawn_world(np.random.default_rng(6))
    gold = np.arange(500)
    drawn = wrong_share(true_labels(truth, truth, gold).counts(one_each(named), "a"))
    known = named != NONE
    share = (named != truth)[known].mean()
    width = np.sqrt(share * (1 - share) / known.sum())
    assert width < drawn.std() < 1.5 * width


def test_two_captioners_have_the_same_images_in_a_draw():
    truth, machine, named = drawn_world(np.random.default_rng(7))
    labels = true_labels(truth, machine, np.arange(600))
    first = wrong_share(labels.counts(one_each(named), "a"))
    other = wrong_share(labels.counts(one_each(named), "b"))
    assert np.corrcoef(first, other)[0, 1] > 0.6  # the same captions; priors are drawn apart


def test_images_drawn_unevenly_are_found_out_without_their_chances():
    truth, machine, named = drawn_world(np.random.default_rng(8))
    captions = one_each(named)
    odd = np.flatnonzero((machine != named) | (np.arange(2000) % 9 == 0))
    assert true_labels(truth, machine, odd).p_random(captions) < 1e-6
    rng = np.random.default_rng(9)
    p_values = [
        true_labels(truth, machine, rng.choice(2000, 300, replace=False)).p_random(captions)
        for _ in range(200)
    ]
    assert np.mean(np.array(p_values) < 0.05) < 0.1


def draw_gold(
    rng: np.random.Generator, machine: IntArray, named: IntArray, n: int, share: float
) -> tuple[IntArray, Float64Array]:
    """A share of n images where machine and caption disagree, the rest among all others."""
    apart = (named != NONE) & (named != machine)
    n_apart = min(int(n * share), int(apart.sum()))
    chances = np.where(apart, n_apart / max(apart.sum(), 1), (n - n_apart) / (~apart).sum())
    chosen = [
        rng.choice(np.flatnonzero(apart), n_apart, replace=False),
        rng.choice(np.flatnonzero(~apart), n - n_apart, replace=False),
    ]
    return np.sort(np.concatenate(chosen)), chances


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 400, 1000])
@pytest.mark.parametrize("captions", [1, 5])
def test_intervals_cover_the_truth(n: int, captions: int):
    """95 % intervals of rare rates cover in 91 to 99 of 100 draws, also with several captions.

    Of five captions an image errs in all or in none in half of the cases, so they are no
    independent observations.
    """
    runs, truths = 250, {"wrong": 0.0341, "second": 0.06, "first": 0.02}
    covered = dict.fromkeys(truths, 0)
    rng = np.random.default_rng(10)
    for _ in range(runs):
        truth = (rng.random(4000) < 0.35).astype(np.int64)
        machine = np.where(rng.random(4000) < np.where(truth == 1, 0.12, 0.03), 1 - truth, truth)
        often = np.where(truth == 1, 0.06, 0.02)[:, None]
        together = rng.random((4000, 1)) < 0.5
        errs = np.where(
            together, rng.random((4000, 1)) < often, rng.random((4000, captions)) < often
        )
        each = np.where(errs, 1 - truth[:, None], truth[:, None])
        each = np.where(rng.random(each.shape) < 0.2, NONE, each)
        gold, chances = draw_gold(rng, machine, each[:, 0], n, 0.25)
        labels = true_labels(truth, machine, gold, chances)
        labels = TrueLabels(**{**vars(labels), "draws": 500})
        rows = np.repeat(np.arange(4000), captions)
        counts = labels.counts(CaptionOutcomes(rows, each.ravel(), np.ones(len(rows))), "a")
        named = counts[:, :2, :2]
        rates, whole = groups.wrongly_named(
            np.concatenate([named, 0 * named[..., :1]], -1), "named"
        )
        values = {
            "wrong": rates.sum(1) / whole.sum(1),
            "first": rates[:, 0] / whole[:, 0],
            "second": rates[:, 1] / whole[:, 1],
        }
        truths["wrong"] = 0.35 * 0.06 + 0.65 * 0.02
        for name, value in truths.items():
            low, high = np.quantile(values[name], [0.025, 0.975])
            covered[name] += low <= value <= high
    shares = {name: count / runs for name, count in covered.items()}
    assert all(share >= 0.91 for share in shares.values()), shares


@pytest.mark.slow
def test_intervals_of_the_difference_of_two_captioners_cover_the_truth():
    """Both err in the same images more often than by chance; the draw is by the first one's."""
    covered, runs, rng = 0, 200, np.random.default_rng(11)
    for _ in range(runs):
        truth = (rng.random(4000) < 0.35).astype(np.int64)
        machine = np.where(rng.random(4000) < np.where(truth == 1, 0.12, 0.03), 1 - truth, truth)
        hard = rng.random(4000) < 0.1
        errors = [rng.random(4000) < np.where(hard, 0.3, rate) for rate in (0.01, 0.03)]
        named = [np.where(error, 1 - truth, truth) for error in errors]
        gold, chances = draw_gold(rng, machine, named[0], 400, 0.5)
        labels = true_labels(truth, machine, gold, chances)
        labels = TrueLabels(**{**vars(labels), "draws": 500})
        first, other = (
            wrong_share(labels.counts(one_each(each), str(i))) for i, each in enumerate(named)
        )
        middle, spread = np.median(first) - np.median(other), np.std(first - other)
        covered += abs(middle - 0.9 * (0.01 - 0.03)) < 1.96 * spread
    assert covered / runs >= 0.91


def test_the_interval_of_a_mean_is_that_of_ppi_py():
    generator = np.random.default_rng(0)
    truth = (generator.random(5000) < 0.2).astype(float)
    machine = np.where(generator.random(5000) < 0.06, 1 - truth, truth)
    gold, n = truth[:400], 400
    weight = machine_weight(gold, machine[:n], machine.var(ddof=1), n, 4600)
    mean = gold.mean() + weight * (machine[n:].mean() - machine[:n].mean())
    errors = (gold - weight * machine[:n]).var(ddof=1) / n
    half = 1.959964 * np.sqrt(errors + weight**2 * machine[n:].var(ddof=1) / 4600)
    # ppi_py 0.2.3: ppi_mean_ci(gold, machine[:400], machine[400:], alpha=0.05)
    assert (mean - half, mean + half) == pytest.approx((0.18593, 0.23067), abs=5e-5)


def test_labels_of_a_machine_count_nothing_if_all_images_have_gold_labels():
    labels = np.array([0.0, 1.0, 1.0])
    assert machine_weight(labels, labels, 0.3, 3, 0) == 0
    assert machine_weight(labels, -labels, 0.3, 3, 10) == 0
