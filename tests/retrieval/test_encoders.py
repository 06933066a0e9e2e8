"""``encoder=clip|fiber|open_clip``: which files a model is, what it is known by, and its use."""

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from bias_pipeline.errors import AbsentModelError, DataError, ResourceError, UsageError
from bias_pipeline.io import machine
from bias_pipeline.retrieval.encoders import Clip, Fiber, OpenClip
from bias_pipeline.run import compose
from tests.fiber_files import TINY, network, write_checkpoint, write_fiber
from tests.open_clip_files import WEIGHTS, copy_changed, write_open_clip
from tests.tiny_models import tiny_clip

TEXTS = ["a man", "a dog"]
SCENES = "bias_pipeline.scenes.dataset.ScenesDataset"
FACES = "bias_pipeline.published.people.FairFaceDataset"
RETRIEVAL = ("metric=retrieval_fairness", "encoder=open_clip", "encoder.cache=null")
SMALL = (
    *("dataset.n_images=120", "metric.k=10", "seeds=1", "metric.concepts=[zoo,wine]"),
    *("metric.recall=[]", "stats.resamples=20"),
)


@pytest.fixture(scope="module")
def fiber(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fiber(tmp_path_factory.mktemp("fiber"))


@pytest.fixture(scope="module")
def open_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("open_clip", reason="extra open-clip is not installed")
    return write_open_clip(tmp_path_factory.mktemp("open_clip"))


def content(kind: type[Fiber | OpenClip], **settings: Any) -> object:
    return {**settings, **kind.by_content(settings)}


def run_id(folder: Path, *words: str) -> str:
    cell = compose.cell([*RETRIEVAL, *SMALL, f"encoder.model={folder}", *words])
    return cell.run_id(cell.corpus())


# --- which model it is


@pytest.mark.parametrize(
    ("clip", "named"),
    [
        (Clip(SCENES), ""),  # one of their own
        (Clip(FACES), "openai/clip-vit-base-patch32"),
        (Clip(SCENES, model="mine"), "mine"),
    ],
)
def test_clip_depends_on_the_data_set_if_none_is_named(clip, named):
    assert clip.model_name == named


@pytest.mark.parametrize(
    ("encoder", "error", "message"),
    [
        (Clip(FACES, model="nobody/clip"), AbsentModelError, "models prefetch nobody/clip"),
        (Clip(SCENES), UsageError, r"encoder\.cache=null"),  # nowhere to keep the fitted one
        (Fiber(), AbsentModelError, "fetch fiber_pretrain"),
        (OpenClip(), AbsentModelError, r"encoder\.model=null"),
    ],
)
def test_a_model_that_is_not_there_is_refused_before_any_work(encoder, error, message):
    with pytest.raises(error, match=message):
        encoder.require()


def test_a_library_that_is_not_there_is_asked_for_before_any_work(open_clip, monkeypatch):
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    with pytest.raises(ResourceError, match=r"pip install 'bias_pipeline\[open-clip\]'"):
        OpenClip(str(open_clip)).require()


def test_the_weights_of_another_network_are_refused(tmp_path):
    folder = write_fiber(tmp_path / "mine")
    write_checkpoint(folder / "fiber_pretrain.ckpt", network(TINY), state_dict={})
    with pytest.raises(DataError, match="is absent; the file is of another network"):
        Fiber(str(folder), device="cpu").dual("none").texts.embed(TEXTS)


# --- what it is known by


def test_where_files_lie_and_what_they_are_called_plays_no_part(fiber, open_clip, tmp_path):
    linked = tmp_path / "linked"
    linked.symlink_to(tiny_clip())
    one, other = (
        Clip.by_content({"dataset": SCENES, "model": str(path)}) for path in (linked, tiny_clip())
    )
    assert one == other
    moved = Path(shutil.copytree(fiber, tmp_path / "fiber"))
    (moved / "fiber_pretrain.ckpt").rename(moved / "mine.ckpt")
    (moved / "other.ckpt").write_bytes(b"")
    wanted = content(Fiber, model=str(fiber), weights=None)
    assert content(Fiber, model=str(moved), weights="mine.ckpt") == wanted
    one, other = Fiber(str(fiber)), Fiber(str(moved), "mine.ckpt")
    assert one.dual("none").texts.spec == other.dual("none").texts.spec
    moved = copy_changed(open_clip, tmp_path / "open_clip")
    (moved / WEIGHTS).rename(moved / "mine.safetensors")
    wanted = content(OpenClip, model=str(open_clip), weights=None)
    assert content(OpenClip, model=str(moved), weights="mine.safetensors") == wanted


def test_data_set_and_association_play_no_part_where_a_model_is_named():
    named = str(tiny_clip())
    known = Clip.by_content({"dataset": SCENES, "model": named})
    assert known == Clip.by_content({"dataset": FACES, "model": named, "association": 0.2})
    fitted = [Clip.by_content({"dataset": SCENES, "association": x}) for x in (0.2, 0.3)]
    assert fitted[0] != fitted[1]


def test_other_weights_are_another_model_and_the_length_of_texts_decides_vectors(fiber, tmp_path):
    other = write_fiber(tmp_path / "other", seed=1)
    assert content(Fiber, model=str(fiber)) != content(Fiber, model=str(other))
    long, short = (Fiber(str(fiber), longest=n).dual("none").texts.spec for n in (40, 12))
    assert long != short


def test_quick_gelu_makes_another_run_and_other_vectors(open_clip):
    ids = [run_id(open_clip, f"encoder.quick_gelu={word}") for word in ("null", "false", "true")]
    assert ids[0] == ids[1] != ids[2]
    specs = [
        OpenClip(str(open_clip), quick_gelu=quick).dual("none").texts.spec
        for quick in (None, False, True)
    ]
    assert specs[0] == specs[1] != specs[2]


def test_the_configuration_says_quick_gelu_where_nobody_is_asked(open_clip, tmp_path):
    quick = copy_changed(open_clip, tmp_path / "quick", model_cfg={"quick_gelu": True})
    specs = [OpenClip(str(item)).dual("none").texts.spec for item in (open_clip, quick)]
    assert [item["quick_gelu"] for item in specs] == [False, True]
    assert run_id(quick, "encoder.quick_gelu=true") == run_id(quick)


# --- its use


def test_vectors_are_kept_and_found_again(fiber, tmp_path, monkeypatch):
    encoder = Fiber(str(fiber), device="cpu", cache=str(tmp_path))
    first = encoder.dual("none").texts.embed(TEXTS)
    # Nobody asks the network again.
    monkeypatch.setattr("bias_pipeline.retrieval.fiber.model.FiberModel", None)
    assert (encoder.dual("none").texts.embed(TEXTS) == first).all()


@pytest.mark.parametrize("encoder", ["clip", "fiber"])
def test_attackers_learn_from_its_texts(encoder, fiber, tmp_path):
    model = fiber if encoder == "fiber" else tiny_clip()
    words = ("metric=leakage", f"encoder={encoder}", f"encoder.model={model}", "head=linear")
    small = ("dataset.n_images=80", "trainer.max_epochs=1", "stats.resamples=20", "seeds=1")
    cell = compose.cell([*words, *small, f"paths.outputs={tmp_path}", "probe.processes=1"])
    metric, corpus = cell.build("metric"), cell.corpus()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, cell.seeds))
    assert 0 <= score.parts["model"].value <= 1


def test_open_clip_retrieves_and_does_not_judge(open_clip):
    cell = compose.cell([*RETRIEVAL, *SMALL, f"encoder.model={open_clip}"])
    metric, corpus = cell.build("metric"), cell.corpus()
    metric.require()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, (0,)))
    assert 0 <= score.parts["score"].value <= 1
    judging = [*RETRIEVAL, *SMALL, f"encoder.model={open_clip}", "metric.rerank=30"]
    with pytest.raises(UsageError, match="has no mode that judges"):
        compose.cell(judging).build("metric").require()


def test_a_clip_of_transformers_is_not_read_from_a_folder_of_open_clip(open_clip):
    cell = compose.cell(["metric=retrieval_fairness", f"encoder.model={open_clip}"])
    with pytest.raises(UsageError, match="choose encoder=open_clip"):
        cell.build("metric").require()
