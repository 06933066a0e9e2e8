"""``encoder=open_clip``: which files it is, and what it is known by."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from bias_pipeline.errors import AbsentModelError, ResourceError, UsageError
from bias_pipeline.io import machine
from bias_pipeline.retrieval.encoders import OpenClip
from bias_pipeline.run import compose
from tests.open_clip_files import WEIGHTS, copy_changed, write_open_clip

RETRIEVAL = ("metric=retrieval_fairness", "encoder=open_clip", "encoder.cache=null")
SMALL = (
    *("dataset.n_images=120", "metric.k=10", "seeds=1", "metric.concepts=[zoo,wine]"),
    *("metric.recall=[]", "stats.resamples=20"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("open_clip", reason="extra open-clip is not installed")
    return write_open_clip(tmp_path_factory.mktemp("open_clip"))


def content(**settings: object) -> object:
    return {**settings, **OpenClip.by_content(settings)}


def run_id(folder: Path, *words: str) -> str:
    cell = compose.cell([*RETRIEVAL, *SMALL, f"encoder.model={folder}", *words])
    return cell.run_id(cell.corpus())


def test_what_files_are_called_plays_no_part(folder, tmp_path):
    moved = copy_changed(folder, tmp_path / "moved")
    (moved / WEIGHTS).rename(moved / "mine.safetensors")
    wanted = content(model=str(folder), weights=None)
    assert content(model=str(moved), weights="mine.safetensors") == wanted


def test_quick_gelu_makes_another_run_and_other_vectors(folder):
    lines = [run_id(folder, f"encoder.quick_gelu={word}") for word in ("null", "false", "true")]
    assert lines[0] == lines[1] != lines[2]
    specs = [
        OpenClip(str(folder), quick_gelu=quick).dual("none").texts.spec
        for quick in (None, False, True)
    ]
    assert specs[0] == specs[1] != specs[2]


def test_the_configuration_says_quick_gelu_where_nobody_is_asked(folder, tmp_path):
    quick = copy_changed(folder, tmp_path / "quick", model_cfg={"quick_gelu": True})
    specs = [OpenClip(str(item)).dual("none").texts.spec for item in (folder, quick)]
    assert [item["quick_gelu"] for item in specs] == [False, True]
    assert run_id(quick, "encoder.quick_gelu=true") == run_id(quick)


def test_the_library_is_asked_for_before_any_work(folder, monkeypatch):
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    with pytest.raises(ResourceError, match=r"pip install 'bias_pipeline\[open-clip\]'"):
        OpenClip(str(folder)).require()


def test_a_model_must_be_named():
    with pytest.raises(AbsentModelError, match=r"encoder\.model=null"):
        OpenClip().require()


def test_it_retrieves(folder):
    cell = compose.cell([*RETRIEVAL, *SMALL, f"encoder.model={folder}"])
    metric, corpus = cell.build("metric"), cell.corpus()
    metric.require()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, (0,)))
    assert 0 <= score.parts["score"].value <= 1


def test_it_does_not_judge(folder):
    cell = compose.cell([*RETRIEVAL, *SMALL, f"encoder.model={folder}", "metric.rerank=30"])
    with pytest.raises(UsageError, match="has no mode that judges"):
        cell.build("metric").require()


def test_a_clip_of_transformers_is_not_read_from_it(folder):
    cell = compose.cell(["metric=retrieval_fairness", f"encoder.model={folder}"])
    with pytest.raises(UsageError, match="choose encoder=open_clip"):
        cell.build("metric").require()
