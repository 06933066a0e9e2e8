"""``encoder=clip``: which model it is, and what it is known by."""

import pytest

from bias_pipeline.errors import AbsentModelError, UsageError
from bias_pipeline.retrieval.encoders import Clip
from bias_pipeline.run import compose
from tests.tiny_models import tiny_clip

SCENES = "bias_pipeline.scenes.dataset.ScenesDataset"
FACES = "bias_pipeline.published.people.FairFaceDataset"


@pytest.mark.parametrize(
    ("clip", "named"),
    [
        (Clip(SCENES), ""),  # one of their own
        (Clip(FACES), "openai/clip-vit-base-patch32"),
        (Clip(SCENES, model="mine"), "mine"),
    ],
)
def test_which_model_it_is(clip, named):
    assert clip.named == named


@pytest.mark.parametrize(
    ("clip", "error", "message"),
    [
        (Clip(FACES, model="nobody/clip"), AbsentModelError, "models prefetch nobody/clip"),
        (Clip(SCENES), UsageError, r"encoder\.cache=null"),  # nowhere to keep the fitted one
    ],
)
def test_what_cannot_be_had_is_refused(clip, error, message):
    with pytest.raises(error, match=message):
        clip.require()


def content(**settings: object) -> object:
    return Clip.by_content({"dataset": SCENES, **settings})


def test_where_a_model_lies_plays_no_part(tmp_path):
    moved = tmp_path / "moved"
    moved.symlink_to(tiny_clip())
    assert content(model=str(moved)) == content(model=str(tiny_clip()))


def test_data_set_and_association_play_no_part_where_a_model_is_named():
    named = str(tiny_clip())
    assert content(model=named) == content(model=named, dataset=FACES, association=0.2)
    assert content(association=0.2) != content(association=0.3)


def test_attackers_learn_from_its_texts(tmp_path):
    words = ("metric=leakage", "encoder=clip", f"encoder.model={tiny_clip()}", "head=linear")
    small = ("dataset.n_images=80", "trainer.max_epochs=1", "stats.resamples=20", "seeds=1")
    cell = compose.cell([*words, *small, f"paths.outputs={tmp_path}", "probe.processes=1"])
    metric, corpus = cell.build("metric"), cell.corpus()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, cell.seeds))
    assert 0 <= score.parts["model"].value <= 1
