"""Several captions an image: every metric is the mean over samples, with an interval that holds."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.metrics.counting.declines import Declines, declines_note
from bias_pipeline.metrics.counting.gender_error import GenderError
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_scenes
from bias_pipeline.scenes.world import generate
from bias_pipeline.stats.bootstrap import Bootstrap, Draws, summary
from bias_pipeline.stats.choices import mean_over_samples
from tests.corpora import GENDER, make_corpus

STATS = Bootstrap(resamples=200)
ERROR = GenderError(GENDER, STATS, words=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 200 scenes with a captioner of three samples, those of three captioners."""
    root = tmp_path_factory.mktemp("hot")
    names = ("faithful", "stereotyper", "terse")
    write_scenes(generate(200), root, {name: CAPTIONERS[name] for name in names})
    files = [json.loads((root / f"captioners/{name}.json").read_text()) for name in names]
    rows = [
        {**row, "sample": k, "decoding": "temperature 1"}
        for k, captions in enumerate(files)
        for row in captions
    ]
    (root / "captioners" / "hot.json").write_text(json.dumps(rows))
    return root


def cell(folder: Path, captioner: str, *words: str) -> compose.Cell:
    places = {
        "root": folder,
        "attributes": folder / "attributes.csv",
        "captions": folder / "annotations" / "captions.json",
        "instances": folder / "annotations" / "instances.json",
    }
    data = [f"dataset.{key}={place}" for key, place in places.items()]
    captions = f"captioner={folder}/captioners/{captioner}.json"
    few = ("stats.resamples=20", "probe.cache=null")
    return compose.cell(["dataset=coco", *data, captions, *few, *words])


def result(here: compose.Cell, corpus: Corpus | None = None) -> Result:
    scored = here.corpus() if corpus is None else corpus
    return run_cell(scored, here.build("metric"), here.seeds, run_id="x")


def rows(result: Result) -> dict[str, Row]:
    return {row.part: row for row in result.rows}


def test_a_gathered_file_declares_its_samples(folder):
    corpus = cell(folder, "hot", "metric=gender_error").corpus()
    assert len(corpus.each_sample) == 3
    sentence = "3 captions an image: scores are means over them (metric.samples=mean)"
    assert any(sentence in note for note in corpus.notes)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("gender_error", ()),
        ("group_accuracy", ()),
        ("ba_directional", ()),
        ("declines", ()),
        ("quality", ()),
        ("lic", ("seeds=2",)),
    ],
)
def test_every_number_is_the_mean_over_samples(folder, metric, words):
    here = cell(folder, "hot", f"metric={metric}", *words)
    whole = rows(result(here))
    each = [rows(result(here, sample)) for sample in here.corpus().each_sample]
    for part, row in whole.items():
        if all(part in one for one in each):
            expected = np.mean([one[part].value for one in each])
            assert row.value == pytest.approx(expected, nan_ok=True), part
            assert row.coverage == pytest.approx(np.mean([one[part].coverage for one in each]))
        else:
            assert math.isnan(row.value), part


@pytest.mark.parametrize(
    ("metric", "words"), [("gender_error", ()), ("declines", ()), ("lic", ("seeds=2",))]
)
def test_equal_samples_are_one_sample(folder, metric, words):
    here = cell(folder, "stereotyper", f"metric={metric}", *words)
    corpus = here.corpus()
    one, two = (result(here, c) for c in (corpus, replace(corpus, samples=(corpus,))))
    for part, row in rows(one).items():
        other = rows(two)[part]
        for name in ("value", "ci_low", "ci_high", "seed_std"):
            same = pytest.approx(getattr(row, name), nan_ok=True, abs=1e-12)
            assert getattr(other, name) == same, (part, name)


def test_the_first_sample_alone_is_the_run_of_a_file_of_one(folder):
    first = cell(folder, "hot", "metric=gender_error", "metric.samples=first").corpus()
    alone = cell(folder, "faithful", "metric=gender_error").corpus()
    assert first.digest == alone.digest
    assert any("3 captions an image: the first of each is scored" in note for note in first.notes)


def test_one_number_may_be_chosen(folder):
    words = ("metric=gender_error", "dataset.multi_caption=true", "dataset.caption_index=1")
    chosen = cell(folder, "hot", *words).corpus()
    assert chosen.digest == cell(folder, "stereotyper", "metric=gender_error").corpus().digest


@pytest.mark.parametrize(("captioner", "n_runs"), [("hot", 2), ("faithful", 1)])
def test_samples_are_part_of_the_run_where_there_are_several(captioner, n_runs, folder):
    cells = [
        cell(folder, captioner, "metric=lic", f"metric.samples={which}")
        for which in ("mean", "first")
    ]
    assert len({here.run_id(here.corpus()) for here in cells}) == n_runs


def test_an_unknown_value_is_refused(folder):
    with pytest.raises(UsageError, match=r"metric\.samples='all' must be"):
        cell(folder, "hot", "metric.samples=all")


def test_a_file_of_very_many_samples_is_refused(folder, tmp_path):
    captions = [
        {"image_id": 1, "caption": f"a man {k}", "sample": k, "decoding": ""} for k in range(101)
    ]
    (tmp_path / "many.json").write_text(json.dumps(captions))
    with pytest.raises(DataError, match="101 captions an image, more than 100"):
        cell(folder, "faithful", f"captioner={tmp_path}/many.json").corpus()


def hot(seed: int, n_samples: int, n: int = 300, declined: float = 0.0) -> Corpus:
    """Each image has its own chance of a wrong word, 0 to 0.4; 0.2 on average."""
    generator = np.random.default_rng(seed)
    chances = generator.uniform(0, 0.4, n)
    refusals = generator.random((n_samples, n)) < declined

    def sample(k: int) -> Corpus:
        wrong = generator.random(n) < chances
        texts = ["a man" if w ^ (i % 2 == 0) else "a woman" for i, w in enumerate(wrong)]
        texts = np.where(refusals[k], "I'm sorry, but I can't.", texts).tolist()
        labels = [{"gender": "mf"[i % 2]} for i in range(n)]
        lines = enumerate(zip(texts, labels, strict=True))
        return make_corpus([Record(f"{seed}-{i}", text, labels=x) for i, (text, x) in lines])

    first, *more = (sample(k) for k in range(n_samples))
    return replace(first, samples=tuple(more))


@pytest.mark.parametrize("n_samples", [1, 5])
def test_the_interval_contains_the_truth_as_often_as_it_says(n_samples):
    scores = [
        rows(run_cell(hot(seed, n_samples, 200), ERROR, (), run_id="x"))["score"]
        for seed in range(60)
    ]
    covered = sum(score.ci_low <= 0.2 <= score.ci_high for score in scores)
    assert covered >= 52  # 57 expected; P(below 52) = .01
    errors = np.std([score.value for score in scores], ddof=1)
    widths = np.mean([score.ci_high - score.ci_low for score in scores]) / (2 * 1.96)
    assert widths == pytest.approx(errors, rel=0.25)


def test_more_samples_make_it_narrower():
    one, five = (
        rows(run_cell(hot(0, n_samples), ERROR, (), run_id="x"))["score"] for n_samples in (1, 5)
    )
    ratio = (five.ci_high - five.ci_low) / (one.ci_high - one.ci_low)
    # Variance of an image: of its chance 0.4**2 / 12, of its samples (0.16 - 0.4**2 / 12) / n.
    between = 0.4**2 / 12
    assert ratio == pytest.approx(math.sqrt((between + (0.16 - between) / 5) / 0.16), rel=0.15)


def test_refusals_of_all_samples_are_counted():
    corpus = hot(0, 4, declined=0.3)
    total = sum("sorry" in text for s in corpus.each_sample for r in s for text in [r.model or ""])
    assert f"{total} of 1200 captions" in declines_note(corpus, "gender")
    declines = Declines(GENDER, STATS)
    whole = rows(run_cell(corpus, declines, (), run_id="x"))
    assert whole["overall"].value == pytest.approx(total / 1200)
    alone = rows(run_cell(corpus.each_sample[0], declines, (), run_id="x"))
    width, alone_width = (r["overall"].ci_high - r["overall"].ci_low for r in (whole, alone))
    assert width == pytest.approx(alone_width / 2, rel=0.2)


def test_what_one_sample_lacks_is_absent():
    nan = math.nan
    draws = Draws(np.zeros(1), np.random.default_rng(0).normal(size=(50, 1)), trained=False)
    known = summary(draws)
    mean = mean_over_samples([known, replace(known, value=nan, draws=None)], 0.95)
    assert math.isnan(mean.value)
    assert math.isnan(mean.ci_low)


def test_notes_on_a_further_sample_say_which_it_is(folder):
    noted = result(cell(folder, "hot", "metric=lic", "seeds=1")).notes
    curves = [note.partition(":")[0] for note in noted if "learning curve" in note]
    # Masked, the stereotyper says what the first sample says.
    assert curves == ["learning curve", "sample 2"]
