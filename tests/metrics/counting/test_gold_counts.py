"""Gold labels move counts of groups and objects one step from the machine's numbers."""

from functools import cache

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.errors import DataError
from bias_pipeline.metrics.base import Metric
from bias_pipeline.results.rows import Row
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from tests.machine_labels import drawn_rows, gold_labels, with_errors

ERRS = (0.03, 0.12)
METRICS = {
    "ba_directional": "t_to_a",
    "ba_mals": "score",
    "cooccurrence": "score",
}


@cache
def setting(metric: str, images: int = 2000) -> tuple[Corpus, Metric]:
    more = ["metric.groups=labels"] if metric == "cooccurrence" else []
    cell = compose.cell(
        [f"metric={metric}", f"dataset.n_images={images}", "stats.resamples=60", *more]
    )
    return cell.corpus(), cell.build("metric")


def score_rows(corpus: Corpus, metric: Metric, gold: GoldLabels | None = None) -> dict[str, Row]:
    result = run_cell(corpus, metric, [0], run_id="x", gold=gold)
    return {row.part: row for row in result.rows}


@pytest.mark.parametrize("name", METRICS)
def test_all_images_with_gold_labels_give_the_number_of_people(name: str):
    corpus, metric = setting(name)
    machine = with_errors(corpus, ERRS)
    people, by_machine = score_rows(corpus, metric), score_rows(machine, metric)
    corrected = score_rows(machine, metric, gold_labels(corpus, np.arange(len(corpus))))
    part = METRICS[name]
    far, near = (abs(rows[part].value - people[part].value) for rows in (by_machine, corrected))
    # BA_MALS still takes which groups are usual from labels of the machine.
    assert near < max(far * (0.8 if name == "ba_mals" else 0.3), 0.001)
    assert corrected[part].ci_low <= people[part].value <= corrected[part].ci_high
    assert corrected[f"{part}:machine"].value == by_machine[part].value
    assert corrected[f"{part}:gold"].value == pytest.approx(people[part].value)


@pytest.mark.parametrize("name", METRICS)
def test_a_machine_that_never_errs_is_as_exact_as_labels_of_all(name: str):
    corpus, metric = setting(name)
    people = score_rows(corpus, metric)
    corrected = score_rows(corpus, metric, gold_labels(corpus, drawn_rows(corpus, 500)))
    part = METRICS[name]
    ends = corrected[part].value, corrected[part].ci_low, corrected[part].ci_high
    assert ends == pytest.approx((people[part].value, people[part].ci_low, people[part].ci_high))
    width = people[part].ci_high - people[part].ci_low
    assert corrected[f"{part}:gold"].ci_high - corrected[f"{part}:gold"].ci_low > 1.3 * width


def test_what_machine_errors_change_is_undone_within_the_interval():
    corpus, metric = setting("ba_directional")
    people = score_rows(corpus, metric)
    machine = with_errors(corpus, (0.05, 0.25))
    corrected = score_rows(machine, metric, gold_labels(corpus, drawn_rows(corpus, 900)))
    for part in ("t_to_a", "t_to_a:named", "a_to_t:group:female"):
        assert corrected[part].ci_low <= people[part].value <= corrected[part].ci_high, part
    assert abs(corrected["t_to_a"].value - people["t_to_a"].value) < abs(
        corrected["t_to_a:machine"].value - people["t_to_a"].value
    )


def test_few_gold_labels_give_an_interval_and_no_point():
    corpus, metric = setting("ba_directional")
    machine = with_errors(corpus, ERRS)
    row = score_rows(machine, metric, gold_labels(corpus, drawn_rows(corpus, 300)))["t_to_a"]
    assert np.isnan(row.value)
    assert row.ci_low < row.ci_high


def test_images_drawn_with_known_chances_count_as_many_as_they_stand_for():
    corpus, metric = setting("ba_directional")
    machine = with_errors(corpus, (0.05, 0.25))
    often = corpus.groupings["gender"].codes == 1
    chance = np.where(often, 0.4, 0.1)
    rows = np.flatnonzero(np.random.default_rng(3).random(len(corpus)) < chance)
    with pytest.raises(DataError, match="not drawn at random"):
        score_rows(machine, metric, gold_labels(corpus, rows))
    chances = {corpus.ids[row]: float(chance[row]) for row in rows}
    people = score_rows(corpus, metric)["t_to_a"]
    row = score_rows(machine, metric, gold_labels(corpus, rows, chances))["t_to_a"]
    assert row.ci_low <= people.value <= row.ci_high


def test_counts_of_undefined_pairs_are_not_corrected():
    corpus, metric = setting("ba_directional")
    machine = with_errors(corpus, ERRS)
    gold = gold_labels(corpus, drawn_rows(corpus, 500))
    result = run_cell(machine, metric, [0], run_id="x", gold=gold)
    rows = {row.part: row for row in result.rows}
    assert np.isnan(rows["a_to_t:undefined"].value)
    notes = "\n".join(result.notes)
    assert "gold labels do not correct a_to_t:undefined, t_to_a:undefined: no value" in notes
    assert "500 gold labels alone" in notes
    assert "times as many gold labels" in notes


@pytest.mark.slow
@pytest.mark.parametrize("n", [400, 1000])
def test_intervals_contain_the_number_of_people(n: int):
    corpus, metric = setting("ba_directional", 3000)
    people = score_rows(corpus, metric)
    machine = with_errors(corpus, (0.04, 0.15))
    parts = ("t_to_a", "t_to_a:named", "a_to_t", "a_to_t:group:female")
    inside = dict.fromkeys(parts, 0)
    draws = 40
    for seed in range(draws):
        rows = score_rows(machine, metric, gold_labels(corpus, drawn_rows(corpus, n, seed)))
        for part in parts:
            inside[part] += rows[part].ci_low <= people[part].value <= rows[part].ci_high
    assert min(inside.values()) >= 0.9 * draws, inside
