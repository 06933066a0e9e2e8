"""``encoder=open_clip`` through the door."""

from pathlib import Path

import pytest

from tests.open_clip_files import WEIGHTS, copy_changed, write_open_clip

SMALL = ("metric=retrieval_fairness", "encoder=open_clip", "stats.resamples=20", "logger=csv")
SCENES = ("dataset=scenes", "dataset.n_images=120", "metric.k=10", "seeds=1", "metric.recall=[]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("open_clip", reason="extra open-clip is not installed")
    return write_open_clip(tmp_path_factory.mktemp("open_clip"))


def test_scenes_are_retrieved_with_either_activation(ok, folder):
    assert "null" in ok(*SMALL, *SCENES, f"encoder.model={folder}", "encoder.quick_gelu=null,true")


def test_without_a_model_what_to_name_is_told(ends):
    assert "open_clip_config.json" in ends(5, *SMALL, *SCENES)


def test_weights_that_are_cut_short_are_refused(ends, folder, tmp_path):
    mine = copy_changed(folder, tmp_path / "mine")
    whole = (mine / WEIGHTS).read_bytes()
    (mine / WEIGHTS).write_bytes(whole[: len(whole) // 2])
    assert "not a file of weights, or cut short" in ends(
        3, *SMALL, *SCENES, f"encoder.model={mine}"
    )


def test_models_show_tells_of_its_files(run, folder):
    items = ("models", "show", "metric=retrieval_fairness", "encoder=open_clip")
    for words in ((*items, f"encoder.model={folder}"), ("models", "show", str(folder))):
        code, output = run(*words)
        assert code == 0, output
        assert WEIGHTS in output
