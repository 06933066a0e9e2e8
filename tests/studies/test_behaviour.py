"""Which metric sees what: every cell of the table of behaviours."""

import copy
import math
from dataclasses import replace
from functools import cache

import pandas as pd
import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.metrics import quality
from bias_pipeline.metrics.attack import lic
from bias_pipeline.metrics.base import LABELLED, PICTURES, SETS, WEIGHTS, Metric, Number
from bias_pipeline.metrics.catalogue import infos, metric_names
from bias_pipeline.metrics.counting import (
    ba_mals,
    cooccurrence,
    differential_fairness,
    gender_error,
    gender_ratio,
    multi_directional,
)
from bias_pipeline.run import compose
from bias_pipeline.stats.bootstrap import Estimate
from bias_pipeline.stats.scoring import Accuracy
from bias_pipeline.studies.behaviour import (
    BEHAVIOURS,
    PLAIN,
    VERDICTS,
    CaptionStyle,
    behaviour_corpus,
    behaviour_verdict,
    headlines,
    is_tested,
    verdicts,
)
from experiments.gender_score import planted
from tests.tiny_models import tiny_weights

SEEDS = (0, 12, 456, 789)
FEW = ("stats.resamples=30", "probe.cache=null", "encoder=ngram")
ALIKE = ("metric.labels=each", "metric.denominator=named")
ATTACKERS: dict[str, tuple[str, ...]] = {
    "lic": ("metric.positions=1", "metric.learning_curve=false"),
    "dbac": ("metric.positions=1", "metric.min_support=5"),
    "dpa": ("metric.labels=first", "metric.equalise=none", "metric.min_support=20"),
}
# What only real weights can show; a study has shown it, and claims are as it found them.
MEASURED = "gender_score"
LINES = [
    (behaviour, line, expected)
    for behaviour in BEHAVIOURS
    for line, expected in verdicts(behaviour, infos().values()).items()
    if line != MEASURED or expected == "absent"
]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(str(tmp_path))


@cache
def composed_metric(name: str, *words: str) -> Metric:
    return compose.cell([f"metric={name}", *words]).build("metric")


@cache
def metric(name: str) -> Metric:
    """Few configurations are composed, which takes longer than any of the metrics here."""
    name, _, variant = name.partition(":")
    if variant == "words":
        return composed_metric("lic", *FEW, *ATTACKERS["lic"], "encoder.order=1")
    if variant == "unaligned":
        unaligned = copy.copy(metric("lic"))
        unaligned.transforms = unaligned.transforms[:2]
        return unaligned
    if name in ATTACKERS:
        return composed_metric(name, *FEW, *ATTACKERS[name])
    if name == "leakage":
        fields = vars(metric("lic"))
        needed = ("attribute", "transforms", "probe", "split", "stats", "positions")
        shared = {key: fields[key] for key in (*needed, "learning_curve")}
        return lic.Leakage(**shared, scoring=Accuracy())
    ba = composed_metric("ba_directional", FEW[0], *ALIKE)
    if name == "ba_directional":
        return ba
    plain, tasks = (ba.attribute, ba.stats), (ba.attribute, ba.stats, ba.task)
    return {
        "ba_mals": lambda: ba_mals.BiasAmplificationMALS(*tasks, labels="each"),
        "multi_directional": lambda: multi_directional.MultiDirectional(
            *tasks, labels="each", denominator="named", absolute=False, max_size=1
        ),
        "differential_fairness": lambda: differential_fairness.DifferentialFairness(
            *tasks, min_support=20
        ),
        "cooccurrence": lambda: cooccurrence.Cooccurrence(*tasks, min_support=20),
        "gender_error": lambda: gender_error.GenderError(*plain),
        "gender_ratio": lambda: gender_ratio.GenderRatio(*plain, numerator="male"),
        "group_accuracy": lambda: gender_error.GroupAccuracy(*plain),
        "quality": lambda: quality.Quality(*plain),
        "gender_score": lambda: composed_metric("gender_score", FEW[0], *tiny_weights()),
    }.get(name, lambda: composed_metric(name, FEW[0]))()


@cache
def corpus(model: CaptionStyle, people: CaptionStyle) -> Corpus:
    return behaviour_corpus(model, people)


@cache
def scored_headlines(name: str, model: CaptionStyle, people: CaptionStyle) -> dict[str, Number]:
    return headlines(metric(name), corpus(model, people), SEEDS)


@pytest.mark.parametrize(("behaviour", "line", "expected"), LINES)
def test_a_metric_sees_what_the_table_says(behaviour, line, expected):
    case = BEHAVIOURS[behaviour]
    name, _, part = line.partition(" ")
    before, planted = (
        scored_headlines(name, *speakers)[part or "score"]
        for speakers in (case.before, (case.planted, case.people))
    )
    assert behaviour_verdict(before, planted) == expected, (before, planted)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, info in infos().items()
        if info.images == LABELLED and not {PICTURES, SETS, WEIGHTS} & set(info.needs)
    ],
)
def test_what_is_said_of_other_images_moves_nothing(name):
    planted = BEHAVIOURS["group assumed"].planted
    plain, other = (scored_headlines(name, speaker, PLAIN) for speaker in (PLAIN, planted))
    assert {p: item.value for p, item in plain.items()} == {
        p: item.value for p, item in other.items()
    }


def test_a_language_models_metric_sees_what_was_measured():
    rows = pd.read_csv(planted.ROWS)
    directions = {
        behaviour: verdicts(behaviour, [infos()[MEASURED]])[MEASURED]
        for behaviour, item in BEHAVIOURS.items()
        if item.images == infos()[MEASURED].images
    }
    assert directions == dict(zip(rows["behaviour"], rows["verdict"], strict=True))


def test_what_was_measured_is_of_todays_metric():
    assert set(pd.read_csv(planted.ROWS)["version"]) == {infos()[MEASURED].version}


@pytest.mark.parametrize("name", metric_names())
def test_a_metric_responds_to_behaviours_that_there_are(name):
    values = infos()[name].responses.values()
    assert {h for one in values for h in (*one.moves, *one.stays, *one.absent)} <= set(BEHAVIOURS)


@pytest.mark.parametrize("line", [line for info in BEHAVIOURS.values() for line in info.variants])
def test_a_variant_is_of_a_metric(line):
    assert line.partition(":")[0] in metric_names()


@pytest.mark.parametrize("bare", [0, 1])
def test_a_value_without_an_interval_neither_moves_nor_stays(bare):
    nan = math.nan
    whole = [Estimate(value, nan, nan, value - 1, value + 1, nan, 1) for value in (0.0, 9.0)]
    whole[bare] = replace(whole[bare], ci_low=nan, ci_high=nan)
    assert behaviour_verdict(*whole) not in VERDICTS


def test_a_silent_captioner_is_told_by_its_neutral_rate():
    part = scored_headlines("gender_error", CaptionStyle(silent=True), CaptionStyle())["score"]
    assert (math.isnan(part.value), part.neutral_rate) == (True, 1)


@pytest.mark.parametrize(
    ("name", "prop", "expected"),
    [
        ("ba_directional", "directional", True),
        ("lic", "directional", False),
        ("lic", "full_context", True),
        ("cooccurrence", "full_context", False),
        ("quality", "image", False),
    ],
)
def test_a_property_is_tested_where_a_line_shows_it(name, prop, expected):
    assert is_tested(infos()[name], prop) is expected
