"""Images for gold labels are drawn by design, and as many as planned give the planned interval."""

from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.metrics.counting.gender_error import GenderError
from bias_pipeline.metrics.counting.gold_plan import CaptionedImages, NeededLabels, draw_images
from bias_pipeline.stats.bootstrap import Bootstrap
from tests.corpora import GENDER
from tests.metrics.counting.test_gold import World, score_rows

METRIC = GenderError(GENDER, Bootstrap(resamples=50), words=None)
KEYS = hash_ids(map(str, range(100)))


def images(n_apart: int, n: int = 100) -> CaptionedImages:
    return CaptionedImages(np.arange(n), np.arange(n) < n_apart)


def test_half_of_the_images_are_those_on_which_labels_and_captions_disagree():
    rows, chances = draw_images(images(40), KEYS, 20)
    assert (rows < 40).sum() == 10
    assert set(chances[rows < 40]) == {10 / 40}
    assert set(chances[rows >= 40]) == {10 / 60}
    assert sorted(rows.tolist()) == rows.tolist() == sorted(set(rows.tolist()))


@pytest.mark.parametrize(("n_apart", "n", "expected"), [(3, 20, 3), (95, 20, 15), (0, 20, 0)])
def test_few_images_of_a_kind_are_all_drawn(n_apart: int, n: int, expected: int):
    rows, chances = draw_images(images(n_apart), KEYS, n)
    assert len(rows) == n
    assert (rows < n_apart).sum() == expected
    assert ((chances > 0) & (chances <= 1)).all()


def test_more_images_than_there_are_means_all():
    rows, chances = draw_images(images(40), KEYS, 1000)
    assert rows.tolist() == list(range(100))
    assert set(chances) == {1.0}


def test_the_draw_depends_on_ids_alone():
    first, second = (draw_images(images(40), KEYS, n)[0].tolist() for n in (20, 20))
    assert first == second
    assert set(first) < set(draw_images(images(40), KEYS, 60)[0].tolist())


def plan_labels(world: World, corpus: Corpus, half_width: float) -> NeededLabels:
    pilot = world.gold(np.random.default_rng(3).choice(3000, 800, replace=False))
    return NeededLabels.from_pilot(corpus, METRIC, pilot, half_width, 1.96)


def test_as_many_labels_as_planned_give_the_planned_interval():
    world = World()
    corpus = world.corpus()
    needed = plan_labels(world, corpus, 0.01)
    assert needed.best < needed.drawn < needed.evenly
    rows, chances = draw_images(
        CaptionedImages.from_corpus(corpus, METRIC), corpus.keys, round(needed.drawn)
    )
    gold = world.gold(rows, dict(zip(map(str, rows.tolist()), chances.tolist(), strict=True)))
    row = score_rows(corpus, gold, METRIC)["named"]
    assert (row.ci_high - row.ci_low) / 2 == pytest.approx(0.01, rel=0.25)
    truth = score_rows(world.corpus(world.truth), None, METRIC)["named"]
    assert row.ci_low < truth.value < row.ci_high


def test_no_number_is_enough_where_machine_labels_are_too_few():
    world = World()
    needed = plan_labels(world, world.corpus(), 0.002)
    assert needed.drawn == needed.best == np.inf
    assert 0.002 < needed.floor < 0.01
    assert needed.evenly < np.inf


def test_a_pilot_drawn_by_design_plans_the_same():
    world = World()
    corpus = world.corpus()
    rows, chances = draw_images(CaptionedImages.from_corpus(corpus, METRIC), corpus.keys, 800)
    pilot = replace(
        world.gold(rows), chances=dict(zip(map(str, rows.tolist()), chances.tolist(), strict=True))
    )
    needed = NeededLabels.from_pilot(corpus, METRIC, pilot, 0.01, 1.96)
    of_all = NeededLabels.from_pilot(corpus, METRIC, world.gold(np.arange(3000)), 0.01, 1.96)
    assert needed.drawn == pytest.approx(of_all.drawn, rel=0.4)
    assert needed.floor == pytest.approx(of_all.floor, rel=0.2)
