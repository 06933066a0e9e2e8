"""How far scores move if labels err more often: against expectation, theory and the labels."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.regrouping import ErrorRates, LabelNoise
from bias_pipeline.data.rating_tables import read_label_errors, write_label_errors
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.metrics.counting.gender_error import GenderError
from bias_pipeline.metrics.repeated_scores import with_label_noise
from bias_pipeline.metrics.value_names import DIRECTIONS
from bias_pipeline.report.answer_texts import noise_sentences
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.run import compose, launch
from bias_pipeline.run.cell import run_cell
from bias_pipeline.stats.bootstrap import Bootstrap
from tests.corpora import GENDER, make_corpus

STATS = Bootstrap(resamples=200)
CAPTIONS = {  # by true group, what the captioner names, and of how many images
    "m": {"a man": 90, "a woman": 20, "a dog": 40},
    "f": {"a man": 30, "a woman": 100, "a dog": 20},
}
RATES: ErrorRates = {"male": 0.1, "female": {"male": 0.2}}


def counted_corpus() -> Corpus:
    lines = [
        (text, (), {"gender": label})
        for label, texts in CAPTIONS.items()
        for text, number in texts.items()
        for _ in range(number)
    ]
    return make_corpus([Record(str(n), *line) for n, line in enumerate(lines)])


def noise(rates: ErrorRates, attribute: Attribute = GENDER) -> LabelNoise:
    return LabelNoise.from_rates(attribute, rates)


def score_corpus(corpus: Corpus, rates: ErrorRates | None) -> Result:
    metric = GenderError(GENDER, STATS, words=None)
    label_noise = None if rates is None else noise(rates)
    return run_cell(corpus, metric, [0], run_id="x", label_noise=label_noise)


@cache
def noisy() -> Mapping[str, Row]:
    return rows(score_corpus(counted_corpus(), RATES))


def rows(result: Result) -> Mapping[str, Row]:
    return {row.part: row for row in result.rows}


def test_a_count_moves_by_its_expectation():
    """An image is wrong with the share of its group if it was right, and the other way round."""
    wrong = {"m": 0.1, "f": 0.2}
    right = {"m": "a man", "f": "a woman"}
    n = sum(sum(texts.values()) for texts in CAPTIONS.values())
    moved = variance = 0.0
    for label, texts in CAPTIONS.items():
        for text, number in texts.items():
            if text != "a dog":
                moved += number * wrong[label] * (1 if text == right[label] else -1) / n
                variance += number * wrong[label] * (1 - wrong[label]) / n**2
    row = noisy()["label_noise"]
    assert row.value == pytest.approx(moved, abs=3 * math.sqrt(variance / 200))
    assert (row.ci_high - row.ci_low) / 2 == pytest.approx(1.96 * math.sqrt(variance), rel=0.2)


def test_labels_err_as_often_as_was_said():
    corpus = counted_corpus()
    before = corpus.groupings["gender"].codes
    after = np.stack(
        [noise(RATES).redrawn(corpus, draw).groupings["gender"].codes for draw in range(200)]
    )
    changed = (after != before).mean(axis=0)
    assert [changed[before == k].mean() for k in (0, 1)] == pytest.approx([0.1, 0.2], abs=0.005)


def test_an_image_that_has_no_group_gets_none():
    labels = ["unsure" if n % 3 else "m" for n in range(90)]
    records = [Record(str(n), "a man", (), {"gender": label}) for n, label in enumerate(labels)]
    corpus = make_corpus(records)
    codes = noise({"male": 1, "female": 1}).redrawn(corpus, 0).groupings["gender"].codes
    assert set(codes[corpus.groupings["gender"].unsure]) == {-2}
    assert set(codes[corpus.groupings["gender"].labelled]) == {1}


def test_labels_of_a_group_that_is_not_scored_leave():
    """They are another group's images, of which attackers know nothing."""
    age = Attribute("gender", ("male", "female", "other"), {}, {})
    rates: ErrorRates = {"male": {"other": 1.0}, "female": {"male": 1.0}}
    before = counted_corpus().groupings["gender"].codes
    after = noise(rates, age).redrawn(counted_corpus(), 0).groupings["gender"].codes
    assert set(after[before == 0]) == {-1}
    assert set(after[before == 1]) == {0}


def test_a_draw_of_an_image_does_not_depend_on_others():
    corpus, some = counted_corpus(), np.arange(0, 300, 7)
    whole = noise(RATES).redrawn(corpus, 3).groupings["gender"].codes[some]
    assert (noise(RATES).redrawn(corpus.take(some), 3).groupings["gender"].codes == whole).all()


def test_without_it_nothing_is_added():
    plain = score_corpus(counted_corpus(), None).rows
    assert [repr(row) for part, row in noisy().items() if part != "label_noise"] == list(
        map(repr, plain)
    )


def test_labels_that_do_not_err_move_nothing():
    row = rows(score_corpus(counted_corpus(), {"male": 0, "female": 0}))["label_noise"]
    assert (row.value, row.ci_low, row.ci_high) == (0, 0, 0)


@pytest.mark.parametrize(
    ("added", "moved"),
    [(1e-16, 0), (1, pytest.approx(1))],
    ids=["sums in another order", "a direction"],
)
def test_each_direction_moves_by_itself(added, moved):
    here = cell("metric=ba_directional", "dataset.n_images=100")
    corpus, metric = here.corpus(), here.build("metric")
    score = metric.compute(corpus, splits=[])
    values = {name: score.parts[name].value for name in DIRECTIONS}
    other = {**values, "t_to_a": values["t_to_a"] + added}
    label_noise = noise({"male": 0, "female": 0}, here.build("attribute"))
    parts = with_label_noise(score, corpus, metric, label_noise, lambda _: other).parts
    assert parts["a_to_t:label_noise"].value == pytest.approx(0)
    assert parts["t_to_a:label_noise"].value == moved


def test_all_samples_have_the_same_labels():
    corpus = counted_corpus()
    two = rows(score_corpus(replace(corpus, samples=(corpus,)), RATES))
    assert two["label_noise"].value == pytest.approx(noisy()["label_noise"].value, abs=1e-12)


def cell(*words: str) -> compose.Cell:
    return compose.cell(["dataset.n_images=400", "stats.resamples=20", "probe.cache=null", *words])


def test_noise_attenuates_what_attackers_find(tmp_path):
    """Accuracy a above 1/2 becomes a - e (2 a - 1), so a difference of accuracies loses 2 e of it.

    Attackers also learn from wrong labels, so they lose that much or more.
    """
    mine = ("+dataset.captioners.mine.a_to_t=0.9", "captioner=mine", f"paths.cache={tmp_path}")
    noise = "dataset.label_noise={male: 0.2, female: 0.2}"
    once = ("metric.learning_curve=false", "metric.positions=1", "seeds=2")
    here = cell("metric=leakage", *mine, noise, *once)
    cell_of_it = (here.corpus(), here.build("metric"), here.seeds)
    by_part = rows(run_cell(*cell_of_it, run_id="x", label_noise=here.label_noise))
    score, move = by_part["score"].value, by_part["label_noise"]
    assert -0.8 * score < move.value < -0.3 * score
    assert move.ci_high < 0


def test_only_a_run_that_asks_has_another_id(tmp_path):
    words, rates = (f"paths.cache={tmp_path}", "metric=gender_error"), "{male: 0.1, female: 0.%d}"
    plain = cell(*words)
    null, low, high = (
        cell(*words, f"dataset.label_noise={value}") for value in ("null", rates % 1, rates % 2)
    )
    corpus = plain.corpus()
    assert {here.corpus().digest for here in (null, low, high)} == {corpus.digest}
    assert plain.run_id(corpus) == null.run_id(corpus)
    assert len({here.run_id(corpus) for here in (plain, low, high)}) == 3


def test_a_file_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "label_errors.csv"
    confusion = np.array([[0.97, 0.03], [math.nan, math.nan]])
    write_label_errors(path, "gender", ("male", "female"), confusion)
    assert read_label_errors(path) == {"gender": {"male": {"male": 0.97, "female": 0.03}}}


def test_a_moved_file_is_the_same_run(tmp_path):
    confusion = np.array([[0.97, 0.03], [0.1, 0.9]])
    ids = set()
    for name in ("a.csv", "b.csv"):
        write_label_errors(tmp_path / name, "gender", ("male", "female"), confusion)
        words = (f"paths.cache={tmp_path}", f"dataset.label_noise={tmp_path / name}")
        here = cell("metric=gender_error", *words)
        ids.add(here.run_id(here.corpus()))
    assert len(ids) == 1


@pytest.mark.parametrize(
    ("rates", "fault"),
    [
        ({"man": 0.1}, "has no group 'man'; did you mean 'male'"),
        ({"male": {"woman": 0.1}}, "has no group 'woman'"),
        ({"male": {"male": 0.5, "female": 0.1}}, "male: shares of its images add up to 0.600"),
        ({"male": {"female": 1.2}}, "male: shares of its images add up to 1.200"),
    ],
)
def test_rates_that_cannot_be_are_refused(rates, fault):
    with pytest.raises(UsageError, match=fault):
        noise(rates)


def test_every_group_must_have_a_rate():
    with pytest.raises(UsageError, match="has nothing on gender 'female'; give its share"):
        score_corpus(counted_corpus(), {"male": 0.1})


@pytest.mark.parametrize("rates", ["{male-light: 0.1}", "errors.csv"])
def test_groups_of_two_attributes_are_refused(tmp_path, monkeypatch, rates):
    monkeypatch.chdir(tmp_path)
    write_label_errors(Path("errors.csv"), "race", ("light", "dark"), np.eye(2))
    here = compose.cell(
        ["metric=gender_error", "attribute=[gender,race]", f"dataset.label_noise={rates}"]
    )
    with pytest.raises(UsageError, match="score them one by one, attribute=gender,race, with a"):
        _ = here.label_noise


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("attribute,group,label\n", "column 'share' is absent"),
        (
            "attribute,group,label,share\ngender,male,female,2\n",
            "share '2' is not a number between",
        ),
        (
            "attribute,group,label,share\ngender,male,female,0.1\ngender,male,female,0.2\n",
            "gender, male, female occurs twice",
        ),
    ],
)
def test_a_broken_table_is_refused(tmp_path, text, fault):
    (tmp_path / "errors.csv").write_text(text)
    with pytest.raises(DataError, match=fault):
        read_label_errors(tmp_path / "errors.csv")


def test_a_table_about_another_attribute_is_refused(tmp_path):
    write_label_errors(tmp_path / "errors.csv", "race", ("light", "dark"), np.eye(2))
    here = compose.cell(["metric=gender_error", f"dataset.label_noise={tmp_path}/errors.csv"])
    with pytest.raises(UsageError, match="has no line on attribute 'gender'"):
        _ = here.label_noise


def test_the_sentence_says_how_many_headlines_leave_their_interval():
    (moved,), (still,) = (
        noise_sentences([score_corpus(counted_corpus(), {"male": rate, "female": rate})])
        for rate in (0.3, 0.001)
    )
    start = "If more gender labels were wrong (a further 30.0% of male, 30.0% of female), 1 "
    assert moved.startswith(start)
    assert still.endswith("none of 1 headline would leave its interval.")
    assert noise_sentences([score_corpus(counted_corpus(), None)]) == []


def test_captioners_of_a_sweep_are_known_beforehand(tmp_path):
    words = ["metric=gender_error", "captioner=faithful,nobody", f"paths.outputs={tmp_path}"]
    with pytest.raises(UsageError, match="captioner 'nobody' is unknown"):
        launch.run([*words, "dataset.label_noise={male: 0, female: 0}"])


def test_labels_of_a_single_group_err_into_no_group():
    grouping = counted_corpus().groupings["gender"]
    one = replace(grouping, names=("male",), codes=np.zeros(len(grouping.codes), np.int64))
    corpus = replace(counted_corpus(), groupings={"gender": one})
    codes = noise({"male": 0.5}).redrawn(corpus, 0).groupings["gender"].codes
    assert set(codes.tolist()) == {0, -1}
