"""Attackers of half and of a quarter of the images: how a score grows with their number."""

import numpy as np
import pytest

from bias_pipeline.attackers.logistic import ConvexProbe
from bias_pipeline.config import compose
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split_rules import CrossFit
from bias_pipeline.encoders.ngram import Ngram
from bias_pipeline.metrics.attack.dbac import DBAC
from bias_pipeline.metrics.attack.lic import LIC
from bias_pipeline.metrics.base import Metric, Score
from bias_pipeline.scoring import Lic
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.text.mask import MaskWords
from bias_pipeline.text.tokenize import Tokenize
from tests.corpora import GENDER
from tests.metrics.attack.test_equal_speech import SEEDS, corpus, plain, stereotyped


def build(**options: bool) -> LIC:
    return LIC(
        GENDER,
        [Tokenize(), MaskWords(GENDER.words, "<gender>")],
        ConvexProbe(Ngram(order=1), inverse_penalty=1.0),
        CrossFit(),
        Lic("groups"),
        Bootstrap(resamples=200),
        **options,
    )


def score(captions: Corpus, **options: bool) -> Score:
    metric = build(**options)
    return metric.compute(captions, splits=metric.draw_splits(captions, SEEDS))


@pytest.fixture(scope="module")
def planted() -> Score:
    """An amplifier of the embedded data set; pairs of words take many images to learn."""
    cell = compose.cell(["metric=lic", "captioner=amplifier", "seeds=1"])
    metric, captions = cell.build("metric"), cell.corpus()
    return metric.compute(captions, splits=metric.draw_splits(captions, cell.seeds))


def test_attackers_of_fewer_images_see_less_of_a_planted_bias(planted):
    parts = ("score", "learning:half", "learning:quarter")
    whole, half, quarter = (planted.parts[part].estimate.value for part in parts)
    assert whole > half + 0.01 > quarter + 0.02


def test_a_curve_that_grows_says_so(planted):
    (note,) = [note for note in planted.notes if note.startswith("learning curve")]
    assert note.endswith("it still grows: compare captioners on equally many images")


def test_they_are_tested_on_all_images(planted):
    assert planted.parts["learning:quarter"].n_images == planted.parts["score"].n_images


def test_they_leave_the_score_as_it_is():
    captions = corpus(stereotyped)
    scores = [score(captions, learning_curve=curve).parts["score"] for curve in (True, False)]
    assert scores[0].estimate.value == scores[1].estimate.value


def test_the_curve_is_put_in_words(planted):
    (note,) = [note for note in planted.notes if note.startswith("learning curve")]
    half = 100 * planted.parts["learning:half"].estimate.value
    assert f"{half:.1f} on half" in note


def test_who_has_no_bias_has_a_level_curve():
    (note,) = [n for n in score(corpus(plain)).notes if n.startswith("learning curve")]
    assert note.endswith("level")


def test_groups_too_small_for_a_quarter_have_none():
    parts = score(corpus(plain, n_images=120)).parts
    assert ("learning:half" in parts, "learning:quarter" in parts) == (True, False)


def test_half_of_a_split_leaves_no_group_out():
    captions = corpus(plain)
    (split, *_) = build().draw_splits(captions, SEEDS)
    codes = captions.groupings["gender"].codes
    sizes = [np.bincount(codes[one.train]) for one in (split, split.with_fewer(1 / 2))]
    assert np.abs(sizes[0] - 2 * sizes[1]).max() <= 1


class Slow(ConvexProbe):
    """Attackers that count as slow to train."""

    quick = False


def of_tasks(name: str, *words: str) -> tuple[Metric, Corpus]:
    cell = compose.cell(
        [f"metric={name}", "captioner=amplifier", "dataset.n_images=1200", "seeds=1", *words]
    )
    return cell.build("metric"), cell.corpus()


def of_metric(metric: Metric, captions: Corpus) -> Score:
    return metric.compute(captions, splits=metric.draw_splits(captions, (0,)))


@pytest.fixture(scope="module")
def dbac() -> Score:
    return of_metric(*of_tasks("dbac", "metric.positions=2"))


@pytest.mark.parametrize("direction", ["a_to_t", "t_to_a"])
def test_dbac_has_a_curve_in_both_directions(dbac, direction):
    values = [
        abs(dbac.parts[f"{direction}:learning:{share}"].estimate.value)
        for share in ("all", "half", "quarter")
    ]
    assert values == sorted(values, reverse=True)


def test_the_curve_of_dbac_is_of_one_position():
    score = of_metric(*of_tasks("dbac", "metric.positions=1"))
    whole = score.parts["a_to_t:learning:all"].estimate.value
    assert whole == pytest.approx(score.parts["a_to_t"].estimate.value, abs=1e-12)


def test_the_note_of_dbac_names_the_direction(dbac):
    notes = [note for note in dbac.notes if note.startswith("learning curve of T→A")]
    assert len(notes) == 1


@pytest.fixture(scope="module")
def slow() -> Score:
    metric, captions = of_tasks("dbac", "metric.positions=2")
    assert isinstance(metric, DBAC)
    probe = metric.probe
    assert isinstance(probe, ConvexProbe)
    metric.probe = Slow(probe.encoder, probe.inverse_penalty)
    return of_metric(metric, captions)


def test_attackers_that_are_slow_to_train_have_no_curve(slow):
    assert not [name for name in slow.parts if ":learning:" in name]


def test_no_other_number_of_dbac_depends_on_the_curve(slow, dbac):
    values = {
        name: (dbac.parts[name].estimate.value, dbac.parts[name].estimate.ci_low)
        for name in slow.parts
    }
    np.testing.assert_equal(
        values,
        {name: (one.estimate.value, one.estimate.ci_low) for name, one in slow.parts.items()},
    )


@pytest.mark.parametrize("direction", ["a_to_t", "t_to_a"])
def test_dpa_has_a_curve_in_both_directions(direction):
    parts = of_metric(*of_tasks("dpa")).parts
    assert {f"{direction}:learning:half", f"{direction}:learning:quarter"} <= set(parts)
