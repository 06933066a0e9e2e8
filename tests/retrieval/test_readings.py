"""Presets read a ranking as the five codes do: each code's arithmetic, told anew in plain loops."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from bias_pipeline.retrieval.estimates import Skews
from bias_pipeline.retrieval.ranked import Ranked
from bias_pipeline.run import compose
from tests.tiny_models import tiny_clip

RANKINGS = {
    "mixed": [0, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1],
    "one alone": [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0],
}
K = 5


def even(ranking: list[int]) -> list[float]:
    del ranking
    return [0.5, 0.5]


def pool_shares(ranking: list[int]) -> list[float]:
    return [ranking.count(group) / len(ranking) for group in (0, 1)]


def largest(target: Callable[[list[int]], list[float]]) -> Callable[[list[int]], float]:
    """A group that is absent counts as one image."""

    def value(ranking: list[int]) -> float:
        greatest = 0.0
        for group, wanted in enumerate(target(ranking)):
            share = ranking[:K].count(group) / K or 1 / K
            greatest = max(greatest, math.log(share) - math.log(wanted))
        return greatest

    return value


def bendvlm(ranking: list[int]) -> float:
    ratios = [
        ranking[:K].count(group) / K / wanted for group, wanted in enumerate(pool_shares(ranking))
    ]
    return max(math.log(max(ratio, 1e-10)) for ratio in ratios)


def clip_clip(ranking: list[int]) -> float:
    men, women = ranking[:K].count(0), ranking[:K].count(1)
    return (men - women) / (men + women + 1e-12)


CODES: dict[str, tuple[str, Callable[[list[int]], float]]] = {
    "oxai": ("skew:max", largest(even)),
    "debiaslens": ("skew:max", largest(even)),
    "bendvlm": ("skew:max", bendvlm),
    "visogender": ("skew:max", largest(pool_shares)),
    "clip_clip": ("skew:bias", clip_clip),
}


@cache
def skews_of(code: str) -> Skews:
    named = f"encoder.model={tiny_clip()}"
    skews: Skews = compose.cell([f"experiment=retrieval_{code}", named]).build("metric").skews
    return skews


def read(code: str, ranking: list[int]) -> dict[str, float]:
    groups = np.array([ranking])
    rows = np.arange(len(ranking))
    ranked = Ranked(rows[None], groups, np.bincount(groups[0]), K, rows, groups[0])
    values = skews_of(code).values(ranked, np.ones((1, len(ranking))))
    return {str(name): float(array[0, 0]) for name, array in values.items()}


@pytest.mark.parametrize("ranking", RANKINGS)
@pytest.mark.parametrize("code", CODES)
def test_a_preset_reads_as_its_code_does(code, ranking):
    part, expected = CODES[code]
    assert read(code, RANKINGS[ranking])[part] == pytest.approx(expected(RANKINGS[ranking]))


def test_a_group_that_is_absent_is_told_apart_by_bendvlm_alone():
    skews = {code: read(code, RANKINGS["one alone"])["skew:min"] for code in CODES}
    assert skews.pop("bendvlm") == pytest.approx(math.log(1e-10))
    assert min(skews.values()) > -2


@pytest.mark.parametrize(
    ("code", "k", "normalise", "ties"),
    [
        ("oxai", 1000, "texts", "all"),
        ("debiaslens", 1000, "both", "all"),
        ("bendvlm", 500, "both", "stable"),
        ("visogender", 5, "both", "stable"),
        ("clip_clip", 10, "both", "stable"),
    ],
)
def test_a_preset_ranks_as_its_code_does(code, k, normalise, ties):
    metric = compose.cell([f"experiment=retrieval_{code}"]).tree["metric"]
    assert (metric["k"], metric["normalise"], metric["ties"]) == (k, normalise, ties)
