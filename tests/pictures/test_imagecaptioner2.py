"""ImageCaptioner2: what attackers are shown, what is refused, and what planted bias does to it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.metrics.base import Score
from bias_pipeline.pictures.imagecaptioner2 import _shift_images
from bias_pipeline.report.explain.words import words
from bias_pipeline.run import compose
from bias_pipeline.stats.scoring import Accuracy, Confidence, Lic
from tests.metrics.test_contract import QUICK_CAPTIONER

SEEDS = (0, 12)
WORDS = ("captioner=faithful", "dataset.n_images=150", "stats.resamples=20", "probe.cache=null")
# The smallest captioner that sees pixels.
TINY = (
    *("encoder.side=32", "encoder.width=4", "encoder.hidden_dim=16", "trainer.max_epochs=1"),
    *("probe.processes=1", "encoder.cache=null", "metric.learning_curve=false"),
)
MODEL_ONLY = ("metric.sides=[model]",)
ALONE = (*MODEL_ONLY, "metric.leaks=[]")


def cell(*words: str) -> compose.Cell:
    return compose.cell(["metric=imagecaptioner2", *WORDS, *words])


@cache
def score(*words: str) -> Score:
    built = cell(*words)
    metric, corpus = built.build("metric"), built.corpus()
    return metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))


def value(score: Score, part: str) -> float:
    return score.parts[part].value


def test_it_has_the_parts_of_lic_and_the_leaks():
    parts = set(score(*TINY).parts)
    assert parts >= {"score", "model", "human", "model:paired", "human:paired"}
    assert parts >= {"leak:masked", "leak:silhouette", "leak:blank"}


def test_a_blank_picture_alone_tells_nothing_and_pictures_alone_have_no_rate_of_captions():
    assert value(score(*TINY), "leak:blank") == pytest.approx(0.5, abs=1e-6)
    assert np.isnan(score(*TINY).parts["leak:masked"].neutral_rate)


def test_leaks_rest_on_the_images_that_attackers_were_tested_on():
    """A hold-out split tests a fifth of the images."""
    (item,) = (p for p in score(*TINY).predictions if p.name == "leak:masked")
    tested = np.unique(np.concatenate([images for images, _, _ in item]))
    assert score(*TINY).parts["leak:masked"].n_images == len(tested)


def test_a_side_is_the_mean_probability_of_the_true_answer():
    """Equation 2, from the predictions themselves."""
    result = score(*TINY)
    (item,) = (p for p in result.predictions if p.name == "model")
    per_seed = [probs[np.arange(len(truth)), truth].mean() for _, truth, probs in item]
    assert value(result, "model") == pytest.approx(np.mean(per_seed), abs=1e-12)


@pytest.mark.parametrize(
    ("part", "scoring"),
    [("score", Confidence()), ("score:accuracy", Accuracy()), ("score:lic", Lic())],
)
def test_table_2_has_three_scores_of_one_set_of_predictions(part, scoring):
    result = score(*TINY)
    sides = {p.name: p for p in result.predictions}

    def mean(name: str) -> float:
        side = sides[name]
        return float(np.mean([scoring.per_guess(p, t).mean() for _, t, p in side]))

    assert value(result, part) == pytest.approx(mean("model") - mean("human:0"), abs=1e-12)


@pytest.mark.parametrize(
    ("words", "leak", "there"),
    [(("image_masking=none",), "silhouette", False), (("metric.leaks=[others]",), "others", True)],
)
def test_which_leaks_there_are_depends_on_masks_and_on_what_is_asked(words, leak, there):
    assert (f"leak:{leak}" in score(*TINY, *words, *MODEL_ONLY).parts) is there


def test_answers_among_all_words_are_less_likely():
    all_words = score(*TINY, "metric.renormalise_answers=false", *ALONE)
    assert value(all_words, "model") < value(score(*TINY), "model")


def test_annotations_take_the_place_of_pixels():
    assert "leak:masked" in score(*QUICK_CAPTIONER).parts


def test_images_without_a_picture_are_not_scored():
    built = cell(*TINY, *ALONE)
    metric, corpus = built.build("metric"), built.corpus()
    files = (None,) * 50 + corpus.pictures.files[50:]
    fewer = replace(corpus, pictures=Pictures(files))
    score = metric.compute(fewer, splits=metric.draw_splits(fewer, SEEDS))
    labelled = fewer.groupings["gender"].codes >= 0
    assert score.parts["model"].coverage == pytest.approx(labelled[50:].sum() / labelled.sum())


def test_pictures_must_be_there_and_be_used():
    built = cell(*TINY)
    metric, corpus = built.build("metric"), replace(built.corpus(), pictures=None)
    with pytest.raises(NotApplicableError, match=r"no pictures here \(dataset.images=DIR\)"):
        metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))
    with pytest.raises(UsageError, match="attackers that use pictures; choose encoder=sat"):
        cell("encoder=ngram").build("metric")
    built = compose.cell(["metric=lic", "encoder=sat", *WORDS])
    metric, corpus = built.build("metric"), built.corpus()
    with pytest.raises(NotApplicableError, match="use metric=imagecaptioner2"):
        metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))


def test_words_of_attackers_that_see_are_not_explained():
    built = cell(*TINY)
    with pytest.raises(UsageError, match="imagecaptioner2 use pictures too"):
        words(built.build("metric"), built.corpus(), SEEDS)


# --- planted truth

# One training for each seed: the published split, and no attackers of fewer images.
ONCE = (
    *("split=ic2", "metric.learning_curve=false", "metric.sides=[model]", "probe.processes=1"),
    "encoder.cache=null",
)
PLANTED = ("dataset.n_images=1000", "metric.leaks=[]", *ONCE)
SMALL_PICTURES = ("encoder.side=32", "encoder.width=4")


@pytest.mark.slow
@pytest.mark.parametrize(
    "encoder", [("encoder=sat", *SMALL_PICTURES), ("encoder=grit",)], ids=["sat", "grit"]
)
def test_an_amplifier_leaks_more_than_a_faithful_captioner(tmp_path, encoder):
    words = (*PLANTED, f"paths.cache={tmp_path}", *encoder)
    loud, plain = (
        value(score(*words, f"captioner={name}"), "model") for name in ("amplifier", "faithful")
    )
    assert loud > plain + 0.05


@pytest.mark.slow
def test_the_audit_finds_a_mark_that_spills_over_the_mask(tmp_path):
    words = ("dataset.n_images=600", "metric.leaks=[masked]", *ONCE, *SMALL_PICTURES)
    cached = f"paths.cache={tmp_path}"
    tight, spilling = (
        value(score(*words, cached, f"dataset.leak={leak}"), "leak:masked") for leak in (0, 0.3)
    )
    assert spilling > tight + 0.2


@given(st.sets(st.integers(0, 99), min_size=2))
def test_pictures_of_others_are_each_shown_once_and_with_no_image_of_their_own(chosen):
    rows = np.array(sorted(chosen))
    shifted = _shift_images(rows, hash_ids(str(number) for number in range(100)))
    assert sorted(shifted.tolist()) == rows.tolist()
    assert (shifted != rows).all()
