"""``encoder=fiber``: which files it is, and what it is known by."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")

from bias_pipeline.errors import AbsentModelError, DataError
from bias_pipeline.retrieval.encoders import Fiber
from bias_pipeline.run import compose
from tests.fiber_files import TINY, network, write_checkpoint, write_fiber

TEXTS = ["a man", "a dog"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fiber(tmp_path_factory.mktemp("fiber"))


def content(**settings: object) -> object:
    return {**settings, **Fiber.by_content(settings)}


def test_what_files_are_called_plays_no_part(folder, tmp_path):
    moved = Path(shutil.copytree(folder, tmp_path / "moved"))
    (moved / "fiber_pretrain.ckpt").rename(moved / "mine.ckpt")
    (moved / "other.ckpt").write_bytes(b"")
    wanted = content(model=str(folder), weights=None)
    assert content(model=str(moved), weights="mine.ckpt") == wanted
    one, other = Fiber(str(folder)), Fiber(str(moved), "mine.ckpt")
    assert one.dual("none").texts.spec == other.dual("none").texts.spec


def test_other_weights_are_another_model(folder, tmp_path):
    other = write_fiber(tmp_path / "other", seed=1)
    assert content(model=str(folder)) != content(model=str(other))


def test_length_of_texts_decides_vectors(folder):
    long, short = (Fiber(str(folder), longest=n).dual("none").texts.spec for n in (40, 12))
    assert long != short


def test_vectors_are_kept_and_found_again(folder, tmp_path, monkeypatch):
    network = Fiber(str(folder), device="cpu", cache=str(tmp_path))
    first = network.dual("none").texts.embed(TEXTS)
    # Nobody asks it again.
    monkeypatch.setattr("bias_pipeline.retrieval.fiber.model.FiberModel", None)
    assert (network.dual("none").texts.embed(TEXTS) == first).all()


def test_weights_that_are_absent_are_told_before_any_work():
    with pytest.raises(AbsentModelError, match="fetch fiber_pretrain"):
        Fiber().require()


def test_another_network_is_refused(tmp_path):
    folder = write_fiber(tmp_path / "mine")
    write_checkpoint(folder / "fiber_pretrain.ckpt", network(TINY), state_dict={})
    with pytest.raises(DataError, match="is absent; it is the file of another network"):
        Fiber(str(folder), device="cpu").dual("none").texts.embed(TEXTS)


def test_attackers_learn_from_its_texts(folder, tmp_path):
    words = ("metric=leakage", "encoder=fiber", f"encoder.model={folder}", "head=linear")
    small = ("dataset.n_images=60", "trainer.max_epochs=1", "stats.resamples=20", "seeds=1")
    cell = compose.cell([*words, *small, f"paths.outputs={tmp_path}", "probe.processes=1"])
    metric, corpus = cell.build("metric"), cell.corpus()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, cell.seeds))
    assert 0 <= score.parts["model"].value <= 1
