"""``encoder=clip``: which model it is, and what it is known by."""

import pytest

from bias_pipeline.config import compose
from bias_pipeline.encoders.picture_text import Clip
from bias_pipeline.errors import AbsentModelError, UsageError
from tests.tiny_models import tiny_clip

SCENES = "bias_pipeline.datasets.scenes.dataset.ScenesDataset"
FACES = "bias_pipeline.datasets.people.FairFaceDataset"


def test_scenes_have_one_of_their_own():
    assert Clip(SCENES).named == ""


def test_other_data_sets_take_a_published_one():
    assert Clip(FACES).named == "openai/clip-vit-base-patch32"


def test_a_model_that_is_named_is_taken_for_scenes_too():
    assert Clip(SCENES, model="mine").named == "mine"


def test_one_that_is_absent_is_refused_with_the_command_that_fetches_it():
    with pytest.raises(AbsentModelError, match=r"models prefetch nobody/clip"):
        Clip(FACES, model="nobody/clip").require()


def test_one_that_is_fitted_needs_somewhere_to_be_kept():
    with pytest.raises(UsageError, match=r"encoder\.cache=null"):
        Clip(SCENES).require()


def content(**settings: object) -> object:
    return Clip.by_content({"dataset": SCENES, **settings})


def test_where_a_model_lies_plays_no_part(tmp_path):
    moved = tmp_path / "moved"
    moved.symlink_to(tiny_clip())
    assert content(model=str(moved)) == content(model=str(tiny_clip()))


def test_the_data_set_plays_no_part_where_a_model_is_named():
    named = str(tiny_clip())
    assert content(model=named) == content(model=named, dataset=FACES)


def test_another_association_is_another_model():
    assert content(association=0.2) != content(association=0.3)


def test_an_association_plays_no_part_where_a_model_is_named():
    named = str(tiny_clip())
    assert content(model=named, association=0.2) == content(model=named)


def test_attackers_learn_from_its_texts(tmp_path):
    words = ("metric=leakage", "encoder=clip", f"encoder.model={tiny_clip()}", "head=linear")
    small = ("dataset.n_images=200", "trainer.max_epochs=1", "stats.resamples=20", "seeds=1")
    cell = compose.cell([*words, *small, f"paths.outputs={tmp_path}", "probe.processes=1"])
    metric, corpus = cell.build("metric"), cell.corpus()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, cell.seeds))
    assert 0 <= score.parts["model"].estimate.value <= 1
