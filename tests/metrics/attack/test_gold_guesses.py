"""Gold labels correct LIC and Leakage: guesses are scored under labels of either kind."""

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.metrics.base import Metric, Number
from bias_pipeline.metrics.gold import with_gold
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from bias_pipeline.stats.scoring import confident_correct
from tests.machine_labels import drawn_rows, gold_labels, with_errors

ERRS = (0.03, 0.12)


@cache
def setting(metric: str = "lic", *words: str) -> tuple[Corpus, Metric]:
    cell = compose.cell(
        [f"metric={metric}", "dataset.n_images=1000", "stats.resamples=80",
         "metric.positions=2", "metric.learning_curve=false", *words]
    )  # fmt: skip
    return cell.corpus(), cell.build("metric")


def run(corpus: Corpus, metric: Metric, gold: GoldLabels | None = None) -> Result:
    return run_cell(corpus, metric, [0], run_id="x", gold=gold)


def by_part(result: Result) -> dict[str, Row]:
    return {row.part: row for row in result.rows}


def mean_of_groups(corpus: Corpus, result: Result, side: str) -> float:
    """What the stored guesses of a side score under the corpus's own labels."""
    codes = corpus.groupings["gender"].codes
    scores = []
    for predictions in result.predictions:
        if predictions.name.partition(":")[0] != side:
            continue
        for images, _, probs in predictions:
            guess = confident_correct(probs, codes[images])
            scores.append(np.mean([guess[codes[images] == k].mean() for k in (0, 1)]))
    return float(np.mean(scores))


def test_all_images_with_gold_labels_give_what_attackers_know_of_true_groups():
    corpus, metric = setting()
    machine = with_errors(corpus, ERRS)
    result = run(machine, metric, gold_labels(corpus, np.arange(len(corpus))))
    rows = by_part(result)
    for side in ("model", "human"):
        expected = mean_of_groups(corpus, result, side)
        assert rows[side].value == pytest.approx(expected)
        assert rows[f"{side}:gold"].value == pytest.approx(expected)
        assert rows[f"{side}:machine"].value == pytest.approx(mean_of_groups(machine, result, side))
    assert rows["score"].value == pytest.approx(rows["model"].value - rows["human"].value)


@pytest.mark.parametrize("name", ["lic", "leakage"])
def test_a_machine_that_never_errs_is_as_exact_as_labels_of_all(name: str):
    corpus, metric = setting(name)
    people = by_part(run(corpus, metric))
    corrected = by_part(run(corpus, metric, gold_labels(corpus, drawn_rows(corpus, 300))))
    for part in ("model", "score"):
        assert corrected[part].value == pytest.approx(people[part].value, abs=0.01)
        width, alone, whole = (
            row.ci_high - row.ci_low
            for row in (corrected[part], corrected[f"{part}:gold"], people[part])
        )
        assert width == pytest.approx(whole, rel=0.15)
        assert alone > 1.1 * width


def test_scores_at_equal_style_are_corrected_too():
    corpus, metric = setting("lic", "alignment=matched", "encoder.order=1")
    machine = with_errors(corpus, ERRS)
    rows = by_part(run(machine, metric, gold_labels(corpus, drawn_rows(corpus, 300))))
    plain = by_part(run(machine, metric))
    beyond = rows["score"].value - rows["matched:alike"].value
    assert rows["matched:beyond"].value == pytest.approx(beyond)
    assert rows["matched:reach"].value == plain["matched:reach"].value
    assert not np.isnan(rows["matched:people"].value)
    assert rows["matched:beyond"].value != plain["matched:beyond"].value


def test_few_gold_images_of_a_group_give_no_value():
    corpus, metric = setting()
    result = run(corpus, metric, gold_labels(corpus, drawn_rows(corpus, 50)))
    rows = by_part(result)
    assert np.isnan(rows["score"].value)
    assert np.isnan(rows["score"].ci_low)
    assert not np.isnan(rows["score:gold"].value)
    assert "of at least 30 images of each group correct" in "\n".join(result.notes)


def test_notes_say_what_the_corrected_score_is_of():
    corpus, metric = setting()
    machine = with_errors(corpus, ERRS)
    notes = "\n".join(run(machine, metric, gold_labels(corpus, drawn_rows(corpus, 300))).notes)
    assert "score: " in notes
    assert "by machine labels, corrected" in notes
    assert "attackers learnt machine labels" in notes


def test_images_that_were_not_drawn_at_random_are_refused_without_chances():
    corpus, metric = setting()
    codes = corpus.groupings["gender"].codes
    chance = np.where(codes == 1, 0.6, 0.2)
    rows = np.flatnonzero(np.random.default_rng(2).random(len(corpus)) < chance)
    machine = with_errors(corpus, ERRS)
    with pytest.raises(DataError, match="not drawn at random"):
        run(machine, metric, gold_labels(corpus, rows))
    chances = {corpus.ids[row]: float(chance[row]) for row in rows}
    result = run(machine, metric, gold_labels(corpus, rows, chances))
    score = by_part(result)["score"]
    expected = mean_of_groups(corpus, result, "model") - mean_of_groups(corpus, result, "human")
    assert score.ci_low <= expected <= score.ci_high


def test_attackers_that_guess_few_images_are_not_corrected():
    corpus, metric = setting("lic", "split=lic")
    with pytest.raises(NotApplicableError, match="split=crossfit"):
        run(corpus, metric, gold_labels(corpus, drawn_rows(corpus, 300)))


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 600])
def test_intervals_contain_what_attackers_know_of_true_groups(n: int):
    corpus, metric = setting()
    machine = with_errors(corpus, ERRS)
    score = metric.compute(machine, splits=metric.draw_splits(machine, [0]))

    def parts_with_gold(rows: np.ndarray) -> Mapping[str, Number]:
        return with_gold(score, machine, metric, gold_labels(corpus, rows)).parts

    whole = parts_with_gold(np.arange(len(corpus)))
    inside = dict.fromkeys(("score", "model"), 0)
    draws = 60
    for seed in range(draws):
        drawn = parts_with_gold(drawn_rows(corpus, n, seed))
        for part in inside:
            inside[part] += drawn[part].ci_low <= whole[part].value <= drawn[part].ci_high
    assert min(inside.values()) >= 0.9 * draws, inside
