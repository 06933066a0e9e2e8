"""Quality against bias: who beats whom, on made-up results."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.report.compare import rank_captioners
from bias_pipeline.report.page import page
from bias_pipeline.report.pareto import Front, front_verdicts, fronts
from bias_pipeline.report.tables import print_results
from bias_pipeline.results.rows import Result
from bias_pipeline.stats.bootstrap import Draws
from tests.report.test_compare import LOWER, NEARER, draw
from tests.report.test_tables import HOSTILE, row

HIGHER = {"direction": "higher is better", "neutral": {"score": 0.0}}
Values = dict[str, tuple[float, float]]  # captioner to quality and bias


def cells(values: Values, reading: object = LOWER, part: str = "score") -> list[Result]:
    results = []
    for name, (good, biased) in values.items():
        for metric, value, manifest in (("quality", good, HIGHER), ("lic", biased, reading)):
            headline = "score" if metric == "quality" else part
            line = row(
                captioner=name, metric=metric, value=value, part=headline, run_id=f"{metric}-{name}"
            )
            results.append(
                Result(line.run_id, [line], {"metric": manifest, "config": {"of": metric}})
            )
    return results


def front(values: Values, reading: object = LOWER) -> Front:
    (only,) = fronts(cells(values, reading))
    return only


def beaten(front: Front) -> dict[str, tuple[str, ...]]:
    return {place.bias.captioner: place.beaten_by for place in front.places}


@pytest.mark.parametrize(
    ("values", "reading", "expected"),
    [
        ({"a": (1, 0.1), "b": (0, 0.2)}, LOWER, {"a": (), "b": ("a",)}),  # better and fairer
        ({"a": (1, 0.2), "b": (0, 0.1)}, LOWER, {"a": (), "b": ()}),  # a trade
        ({"a": (1, 0.1), "b": (1, 0.2)}, LOWER, {"a": (), "b": ("a",)}),  # as good, fairer
        ({"a": (1, 0.1), "b": (0, 0.1)}, LOWER, {"a": (), "b": ("a",)}),  # better, as fair
        ({"a": (1, 0.1), "b": (1, 0.1)}, LOWER, {"a": (), "b": ()}),  # alike
        (
            {"a": (1, 0.1), "b": (0, -0.2)},
            NEARER,
            {"a": (), "b": ("a",)},
        ),  # farther from the no-bias value
        (
            {"silent": (-3, 0.0), "good": (1, 0.0), "biased": (2, 0.5)},
            LOWER,
            {"biased": (), "good": (), "silent": ("good",)},
        ),
        # without a value it takes no part
        ({"a": (0, 0.1), "b": (2, 0.3), "c": (math.nan, 0.0)}, LOWER, {"a": (), "b": ()}),
    ],
)
def test_who_is_beaten(values, reading, expected):
    assert beaten(front(values, reading)) == expected


def test_the_best_stands_first():
    places = front({"a": (0, 0.1), "b": (2, 0.3), "c": (1, 0.2)}).places
    assert [place.bias.captioner for place in places] == ["b", "c", "a"]


FAIRNESS = {"direction": "higher is fairer", "neutral": {"score": 1.0}}


@pytest.mark.parametrize(
    "results",
    [
        cells({"a": (0, 0.1)}),
        cells({"a": (0, 0.1), "b": (0, 0.2)})[1::2],
        cells({"a": (0, 0.9), "b": (0, 0.8)}, FAIRNESS)[1::2],
    ],
    ids=["of one captioner", "without quality", "a high score is fair, not good"],
)
def test_there_is_no_front(results):
    assert fronts(results) == []


def test_each_direction_has_its_front():
    values: Values = {"a": (0, 0.1), "b": (1, 0.2)}
    results = [*cells(values, part="a_to_t"), *cells(values, part="t_to_a")[1::2]]
    (front,) = fronts(results[:4])
    assert front.places[0].bias.part == "a_to_t"


def test_shares_of_resamplings_follow_the_distance():
    values: Values = {"a": (1, 0.1), "b": (0, 0.9), "c": (1.001, 0.1005)}
    draws = {r.run_id: {"score": draw(r.rows[0].value, noise=0.05)} for r in cells(values)}
    (front,) = fronts(cells(values), draws)
    shares = {place.bias.captioner: place.share for place in front.places}
    assert shares["b"] == 0
    assert 0.4 < shares["a"] < 1


def test_shares_need_as_many_resamplings_everywhere():
    values: Values = {"a": (1, 0.1), "b": (0, 0.9)}
    draws = {r.run_id: {"score": draw(r.rows[0].value)} for r in cells(values)}
    draws["lic-a"] = {"score": Draws(np.zeros(3), np.zeros((9, 3)))}
    assert all(math.isnan(place.share) for place in fronts(cells(values), draws)[0].places)


def test_the_verdict_says_who_is_beaten_by_whom():
    verdict = front({"a": (1, 0.1), "b": (0, 0.2)}).verdict()
    assert verdict.endswith(
        "better and fairer than a; worse on one and no better on the other: b (by a)"
    )


def test_headlines_under_which_the_same_can_be_said_share_a_sentence():
    results = cells({"a": (1, 0.1), "b": (0, 0.2)})
    others = [
        Result(
            f"leakage-{k}",
            [replace(one.rows[0], metric="leakage")],
            {**one.manifest, "config": {"of": "leakage"}},
        )
        for k, one in enumerate(results)
        if one.rows[0].metric == "lic"
    ]
    (sentence,) = front_verdicts(fronts([*results, *others]))
    assert sentence.startswith("quality and lic, leakage: no captioner is")


def test_a_sweep_tells_it(capsys):
    print_results(cells({"a": (1, 0.1), "b": (0, 0.2)}))
    assert "quality and lic: no captioner is better and fairer than a;" in capsys.readouterr().out


def test_the_report_has_it_with_a_figure():
    text = page(cells({"a": (1, 0.1), "b": (0, 0.2)}), {})
    assert 'aria-label="quality and lic, x, x"' in text
    assert "beaten by" in text


def test_hostile_captioners_make_no_element():
    values = [(k, 0.1 * k) for k in range(len(HOSTILE))]
    plain = page(cells(dict(zip(map("a{}".format, range(len(HOSTILE))), values, strict=True))), {})
    hostile = page(cells(dict(zip(HOSTILE, values, strict=True))), {})
    assert hostile.count("<tr>") == plain.count("<tr>")


@pytest.mark.parametrize(("values", "best"), [((2.0, 1.0), "a"), ((1.0, 2.0), "b")])
def test_quality_is_ranked_by_what_is_better(values, best):
    results = cells({"a": (values[0], 0.1), "b": (values[1], 0.1)})[::2]
    draws = {r.run_id: {"score": draw(r.rows[0].value)} for r in results}
    (leaderboard,) = rank_captioners(results, draws)
    assert leaderboard.ranks[0].row.captioner == best
