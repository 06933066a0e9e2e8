"""What audits and gates conclude from: saying more or less, for all groups alike, does not move it.

The captioners are those of the embedded data set that differ from ``faithful`` in how they speak
and in nothing else.
"""

from collections.abc import Iterator
from contextlib import chdir
from dataclasses import replace
from functools import cache

import pytest

from bias_pipeline.metrics.base import HEADLINES, QUESTIONS, EvidenceRule
from bias_pipeline.metrics.catalogue import metric_class
from bias_pipeline.report.conclusion_checks import caption_statistics_of, incomparable_reasons
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from tests.metrics.test_contract import NAMES

# Dials, and the traits of speech that they change.
SPEAKERS: dict[str, tuple[dict[str, float], set[str]]] = {
    "talkative": ({}, {"words", "vocabulary"}),
    "quiet": ({"mention_rate": 0.5}, {"words"}),
    "terse": ({}, {"words", "vocabulary"}),
    "wordy": ({"length": 1.8}, {"words"}),
    "poor": ({"vocabulary": 0.6}, {"words", "vocabulary"}),
    "neutral_speaker": ({}, {"neutral"}),
}
WORDS = (
    "dataset.n_images=1500",
    "stats.resamples=100",
    *(
        f"+dataset.captioners.{name}.{dial}={value}"
        for name, (dials, _) in SPEAKERS.items()
        for dial, value in dials.items()
    ),
)
FURTHER = {
    "dbac": ("metric.positions=1", "metric.min_support=20"),
    "lic": ("metric.positions=2",),
    "leakage": ("metric.positions=2",),
    "cooccurrence": ("metric.min_support=20",),
    "imagecaptioner2": (
        # One training for each seed and side, of small pictures.
        *("split=ic2", "metric.learning_curve=false", "metric.leaks=[]"),
        *("dataset.n_images=1000", "encoder.side=32", "encoder.width=4", "probe.processes=1"),
    ),
}
SEEDS = (0, 12, 456)


pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def _one_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One folder for all: attackers of human captions are trained once."""
    with chdir(tmp_path_factory.mktemp("readings")):
        yield


@cache
def result(name: str, captioner: str) -> Result:
    words = [f"metric={name}", f"captioner={captioner}", *WORDS, *FURTHER.get(name, ())]
    built = compose.cell(words)
    return run_cell(built.corpus(), built.build("metric"), SEEDS, run_id=captioner)


CLAIMS = [
    (name, reading, speaker)
    for name in NAMES
    for reading in metric_class(name).info.readings.values()
    for speaker, (_, changed) in SPEAKERS.items()
    if name != "quality" and not changed & set(reading.follows)
]


def row(name: str, part: str, speaker: str) -> Row:
    return next(row for row in result(name, speaker).rows if row.part == part)


@pytest.mark.parametrize(("name", "reading", "speaker"), CLAIMS)
def test_how_much_is_said_does_not_move_a_reading(name, reading, speaker):
    plain, planted = (row(name, reading.part, item) for item in ("faithful", speaker))
    alike = planted.value == plain.value  # without an interval where no resampling moves it
    assert alike or planted.ci_low <= plain.value <= planted.ci_high


@pytest.mark.parametrize(("name", "reading", "speaker"), CLAIMS)
def test_nobody_is_accused_for_how_much_is_said(name, reading, speaker):
    headline = row(name, reading.part, speaker)
    assert headline.value == 0 or headline.ci_low <= 0  # one of exactly 0 may have no interval


@pytest.mark.parametrize(
    ("name", "part", "speaker"),
    [
        ("lic", "score", "talkative"),
        ("dbac", "a_to_t:shared", "poor"),
        ("dbac", "t_to_a:shared", "wordy"),
        ("dbac", "a_to_t", "talkative"),
        ("ba_directional", "a_to_t", "talkative"),
        ("ba_directional", "t_to_a", "neutral_speaker"),
    ],
)
def test_what_follows_speech_is_moved_by_it(name, part, speaker):
    plain, planted = (row(name, part, item) for item in ("faithful", speaker))
    assert not planted.ci_low <= plain.value <= planted.ci_high


@pytest.mark.parametrize(("speaker", "changed"), [(n, item[1]) for n, item in SPEAKERS.items()])
@pytest.mark.parametrize("trait", ["words", "vocabulary"])
def test_those_who_speak_unlike_people_are_known(speaker, changed, trait):
    pair = result("gender_error", speaker), result("gender_error", "faithful")
    reading = EvidenceRule("named", follows=(trait,))
    if trait in changed:
        assert incomparable_reasons(*pair, reading), (
            caption_statistics_of(pair[0]),
            caption_statistics_of(pair[1]),
        )
    elif not changed:
        assert not incomparable_reasons(*pair, reading)


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_answers_a_known_question(name):
    info = compose.cell([f"metric={name}"]).build("metric").info
    assert info.question in QUESTIONS
    assert set(info.readings) <= set(HEADLINES)


def test_an_unknown_trait_is_refused():
    info = compose.cell(["metric=lic"]).build("metric").info
    with pytest.raises(ValueError, match="'mood' is unknown"):
        replace(info, readings={"score": EvidenceRule("score", follows=("mood",))})
