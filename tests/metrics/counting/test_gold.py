"""Gold labels correct shares of captions; what they cannot correct says why."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.data.gold_files import read_gold
from bias_pipeline.errors import DataError, NotApplicableError, UsageError
from bias_pipeline.metrics.counting.assumed_group import AssumedGroup
from bias_pipeline.metrics.counting.base import CountingMetric
from bias_pipeline.metrics.counting.declines import Declines
from bias_pipeline.metrics.counting.gender_error import GenderError, GroupAccuracy
from bias_pipeline.results.rows import Result, Row, check_draws
from bias_pipeline.run import compose, launch
from bias_pipeline.run.cell import run_cell
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.shares import wilson
from tests.corpora import GENDER, make_corpus

STATS = Bootstrap(resamples=50)
N = 3000
NAMED_BY = {"m": "a man", "f": "a woman"}
OTHER = {"m": "f", "f": "m"}


class World:
    """3,000 images: captions err for 2 % of men and 6 % of women, the machine 3 and 12 %."""

    def __init__(self, seed: int = 0, unsure: float = 0.0, declined: tuple[float, float] = (0, 0)):
        rng = np.random.default_rng(seed)
        self.truth = ["f" if x else "m" for x in rng.random(N) < 0.35]
        hidden = rng.random(N) < unsure
        wrong = rng.random(N)
        self.machine = [
            OTHER[t] if wrong[i] < (0.12 if t == "f" else 0.03) else t
            for i, t in enumerate(self.truth)
        ]
        errs, quiet, refuses = rng.random(N), rng.random(N) < 0.2, rng.random(N)
        self.captions = []
        for i, t in enumerate(self.truth):
            if refuses[i] < declined[t == "f"]:
                self.captions.append("I'm sorry, I cannot describe this")
            elif quiet[i]:
                self.captions.append("a person")
            else:
                named = OTHER[t] if errs[i] < (0.06 if t == "f" else 0.02) else t
                self.captions.append(NAMED_BY[named])
        self.truth = ["unsure" if h else t for t, h in zip(self.truth, hidden, strict=True)]
        self.machine = [
            "unsure" if h and i % 10 else m
            for i, (m, h) in enumerate(zip(self.machine, hidden, strict=True))
        ]

    def corpus(self, labels: list[str] | None = None, human: bool = False) -> Corpus:
        each = zip(self.captions, labels or self.machine, strict=True)
        people = ("a man", "a woman", "a person") if human else ()
        return make_corpus(
            [
                Record(str(i), text, people, {"gender": label})
                for i, (text, label) in enumerate(each)
            ]
        )

    def gold(self, rows: np.ndarray, chances: Mapping[str, float] | None = None) -> GoldLabels:
        groups = {"m": "male", "f": "female"}
        labels = {str(i): self.truth[i] for i in rows.tolist()}
        return GoldLabels(
            file="gold.csv",
            attribute="gender",
            groups={i: groups[t] for i, t in labels.items() if t in groups},
            unsure=frozenset(i for i, t in labels.items() if t == "unsure"),
            others=frozenset(),
            chances=chances or {},
        )


def rows(result: Result) -> dict[str, Row]:
    return {row.part: row for row in result.rows}


def score_rows(
    corpus: Corpus, gold: GoldLabels | None, metric: CountingMetric | None = None
) -> dict[str, Row]:
    metric = metric or GenderError(GENDER, STATS, words=None)
    return rows(run_cell(corpus, metric, [0], run_id="x", gold=gold))


def draw_images(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).choice(N, n, replace=False)


def test_corrected_numbers_are_near_the_truth_and_machine_labels_are_not():
    world = World()
    truth = score_rows(world.corpus(world.truth), None)
    machine = score_rows(world.corpus(), None)
    corrected = score_rows(world.corpus(), world.gold(draw_images(600)))
    for part in ("score", "named", "group:male", "group:female", "named:male", "named:female"):
        row = corrected[part]
        assert row.ci_low < truth[part].value < row.ci_high
        assert corrected[f"{part}:machine"].value == machine[part].value
        assert not machine[part].ci_low < truth[part].value < machine[part].ci_high


def test_gold_labels_alone_are_a_share_with_wilsons_interval():
    world, chosen = World(), draw_images(600)
    row = score_rows(world.corpus(), world.gold(chosen))["score:gold"]
    texts = {"m": "a woman", "f": "a man"}
    wrong = sum(world.captions[i] == texts[world.truth[i]] for i in chosen.tolist())
    assert row.value == pytest.approx(wrong / 600)
    assert (row.ci_low, row.ci_high) == pytest.approx(wilson(wrong / 600, 600, 1.959964))


def test_a_gap_of_few_errors_has_an_interval_and_no_point():
    world = World()
    metric = GroupAccuracy(GENDER, STATS, words=None)
    few, many = (
        score_rows(world.corpus(), world.gold(draw_images(n)), metric)["score"] for n in (200, 900)
    )
    assert np.isnan(few.value)
    assert 0 <= few.ci_low < few.ci_high < 0.3
    truth = score_rows(world.corpus(world.truth), None, metric)["score"]
    assert many.ci_low <= truth.value <= many.ci_high
    assert not np.isnan(many.value)


def test_declines_are_corrected():
    world = World(declined=(0.02, 0.1))
    metric = Declines(GENDER, STATS)
    truth = score_rows(world.corpus(world.truth), None, metric)
    corrected = score_rows(world.corpus(), world.gold(draw_images(1500)), metric)
    for part in ("score", "group:male", "group:female", "overall"):
        assert corrected[part].ci_low <= truth[part].value <= corrected[part].ci_high
    assert corrected["score"].p_value < 0.05
    assert np.isnan(corrected["hedged:male"].value)


def test_what_never_happened_among_all_captions_may_still_happen():
    world = World()
    row = score_rows(world.corpus(), world.gold(draw_images(900)), Declines(GENDER, STATS))[
        "overall"
    ]
    assert 0 < row.ci_high < 0.002


def test_stored_draws_fit_the_settings_of_the_run(tmp_path: Path):
    world = World()
    metric = GenderError(GENDER, STATS, words=None)
    result = run_cell(world.corpus(), metric, [0], run_id="x", gold=world.gold(draw_images(400)))
    assert {draws.resampled.shape for draws in result.draws.values()} == {(50, 1)}
    config = {"stats": {"resamples": 50}}
    check_draws(result.draws, replace(result, manifest={**result.manifest, "config": config}))


def test_groups_that_nobody_can_see_are_corrected():
    world = World(unsure=0.3)
    persons = compose.cell(["metric=assumed_group"]).build("metric").persons
    metric = AssumedGroup(GENDER, STATS, words=None, persons=persons)
    truth = score_rows(world.corpus(world.truth, human=True), None, metric)
    corrected = score_rows(world.corpus(human=True), world.gold(draw_images(900)), metric)
    for part in ("model", "human", "score", "group:male"):
        assert corrected[part].ci_low <= truth[part].value <= corrected[part].ci_high, part
    assert np.isnan(corrected["whole"].value)


def test_human_captions_are_corrected_with_all_of_an_image():
    world = World()
    truth = score_rows(world.corpus(world.truth, human=True), None)
    corrected = score_rows(world.corpus(human=True), world.gold(draw_images(600)))
    for part in ("human", "named:human", "named:increase"):
        row = corrected[part]
        assert row.ci_low <= truth[part].value <= row.ci_high, part


def test_images_that_were_not_drawn_at_random_are_refused():
    world = World()
    easy = np.array([i for i in range(N) if world.captions[i] == NAMED_BY[world.machine[i]]][:500])
    with pytest.raises(DataError, match=r"not drawn at random.*--gold-size"):
        score_rows(world.corpus(), world.gold(easy))
    chances = {str(i): 0.2 for i in easy.tolist()}
    assert score_rows(world.corpus(), world.gold(easy, chances))


def test_other_images_are_refused():
    world = World()
    gold = GoldLabels("gold.csv", "gender", {"9000": "male"}, frozenset(), frozenset(), {})
    with pytest.raises(DataError, match=r"gold\.csv: the gold labels are of other images"):
        score_rows(world.corpus(), gold)


def test_gold_labels_of_images_that_are_not_scored_are_noted():
    world = World()
    gold = replace(world.gold(draw_images(400)), others=frozenset({"9000"}))
    metric = GenderError(GENDER, STATS, words=None)
    notes = run_cell(world.corpus(), metric, [0], run_id="x", gold=gold).notes
    assert "400 of 401 gold labels are of images that are scored" in "\n".join(notes)


def test_several_captions_an_image_are_not_corrected():
    world = World()
    corpus = replace(world.corpus(), samples=(world.corpus(),))
    with pytest.raises(NotApplicableError, match=r"metric\.samples=first"):
        score_rows(corpus, world.gold(draw_images(400)))


def test_a_maximum_over_groups_and_attackers_are_not_corrected():
    world = World()
    metric = compose.cell(["metric=differential_fairness"]).build("metric")
    with pytest.raises(NotApplicableError, match="do not correct differential_fairness"):
        score_rows(world.corpus(), world.gold(draw_images(500)), metric)


def test_notes_say_what_the_correction_is_worth_and_how_often_the_machine_errs():
    world = World()
    metric = GenderError(GENDER, STATS, words=None)
    gold = world.gold(draw_images(600))
    notes = "\n".join(run_cell(world.corpus(), metric, [0], run_id="x", gold=gold).notes)
    assert "by machine labels, corrected" in notes
    assert "times as many gold labels" in notes
    assert "machine labels are wrong for" in notes
    everything = World()
    everything.machine = everything.truth
    alike = run_cell(
        everything.corpus(), metric, [0], run_id="x", gold=everything.gold(draw_images(500))
    )
    assert "if the machine was fitted to them" in "\n".join(alike.notes)


def read(folder: Path, text: str) -> GoldLabels:
    path = folder / "gold.csv"
    path.write_text(text)
    return read_gold(path, "coco", GENDER)


def test_the_majority_of_raters_counts_and_their_agreement_is_noted(tmp_path: Path):
    lines = (
        "image_id,value,rater\n1,male,a\n1,male,b\n1,female,c\n2,Unsure,a\n3,female,a\n3,male,b\n"
    )
    gold = read(tmp_path, lines)
    assert gold.groups == {"1": "male"}
    assert (gold.unsure, gold.others) == ({"2"}, {"3"})
    assert "Fleiss' kappa" in gold.notes[0]
    assert "1 without a majority" in gold.notes[0]


def test_a_file_of_rate_has_other_questions_too(tmp_path: Path):
    text = "image_id,attribute,value,rater\n1,gender,male,a\n1,race,light,a\n"
    assert read(tmp_path, text).groups == {"1": "male"}
    with pytest.raises(NotApplicableError, match="no line is about attribute 'gender'"):
        read(tmp_path, "image_id,attribute,value,rater\n1,race,light,a\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image_id,rater\n1,a\n", "column 'value' is absent"),
        ("image_id,value\n", "holds no gold labels"),
        ("image_id,value\n1,blue\n", "unknown values: 'blue'"),
        ("image_id,value,chance\n1,male,0\n", "chance '0' is not a number above 0"),
        ("image_id,value,chance\n1,male,\n", "is not a number above 0"),
        ("image_id,value,chance\n1,male,1.5\n", "chance '1.5' is not a number"),
        ("image_id,value\n1,male\n1,female\n", "image 1 has two values"),
        (
            "image_id,value,rater,chance\n1,male,a,0.5\n1,male,b,0.2\n",
            "image 1 has two chances",
        ),
    ],
)
def test_a_faulty_file_is_refused(tmp_path: Path, text: str, message: str):
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def gold_file(tmp_path: Path, value: str = "male") -> str:
    path = tmp_path / f"gold_{value}.csv"
    path.write_text(f"image_id,value\n1,{value}\n2,female\n")
    return f"dataset.gold={path}"


def test_a_run_has_another_id_with_gold_labels_and_the_same_without(tmp_path: Path):
    ids = set()
    for words in ([], [gold_file(tmp_path)], [gold_file(tmp_path, "female")]):
        cell = compose.cell(["metric=gender_error", "dataset.n_images=20", *words])
        ids.add(cell.run_id(cell.corpus()))
    assert len(ids) == 3


def test_gold_labels_and_label_noise_exclude_each_other(tmp_path: Path):
    words = ["metric=gender_error", gold_file(tmp_path), "dataset.label_noise={male: 0, female: 0}"]
    cell = compose.cell(words)
    with pytest.raises(UsageError, match="give one of both"):
        cell.run_id(cell.corpus())


def test_a_metric_that_gold_labels_do_not_correct_says_why(tmp_path: Path, capsys):
    words = [gold_file(tmp_path), "dataset.n_images=60", "metric=multi_directional", "logger=csv"]
    assert launch.run([*words, f"paths.outputs={tmp_path}"]).exit_code
    assert "gold labels do not correct multi_directional" in capsys.readouterr().err
