"""``encoder=fiber`` through the door."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.cli.commands import Run, results
from tests.fiber_files import write_fiber

SMALL = ("metric=retrieval_fairness", "encoder=fiber", "stats.resamples=20", "logger=csv")
SCENES = ("dataset=scenes", "dataset.n_images=120", "metric.k=10", "seeds=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fiber(tmp_path_factory.mktemp("fiber"))


def test_scenes_are_retrieved_and_ordered_again(run: Run, folder: Path, tmp_path: Path) -> None:
    words = (f"encoder.model={folder}", "metric.rerank=null,20", "metric.recall=[1]")
    code, told = run(*SMALL, *SCENES, *words)
    assert code == 0, told
    read = [json.loads(path.read_text()) for path in results(tmp_path)]
    by_rerank = {
        own["manifest"]["config"]["rerank"]: {row["part"]: row for row in own["rows"]}
        for own in read
    }
    assert set(by_rerank) == {None, 20}
    for own in by_rerank.values():
        assert 0 <= own["score"]["value"] <= 1
        assert {"recall:image@1", "concept:zoo", "other:race"} <= set(own)
    assert "the first 20 of each ranking" in told


def test_without_weights_what_to_fetch_is_told_at_once(run: Run) -> None:
    started = time.monotonic()
    code, told = run(*SMALL, *SCENES)
    assert (code, time.monotonic() - started < 5) == (5, True)
    assert "fetch fiber_pretrain.ckpt by hand" in told
    assert "encoder.model=FOLDER" in told


def test_a_clip_does_not_judge_pairs(run: Run) -> None:
    code, told = run(*SMALL, *SCENES, "encoder=clip", "metric.rerank=20")
    assert (code, "choose encoder=fiber" in told) == (2, True)


def test_weights_that_are_cut_short_are_refused(run: Run, folder: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("vocab.json", "merges.txt"):
        (mine / name).write_bytes((folder / name).read_bytes())
    whole = (folder / "fiber_pretrain.ckpt").read_bytes()
    (mine / "fiber_pretrain.ckpt").write_bytes(whole[: len(whole) // 2])
    code, told = run(*SMALL, *SCENES, f"encoder.model={mine}")
    assert (code, "no file of weights, or cut short" in told) == (3, True)


def test_models_show_tells_of_its_files(run: Run, folder: Path) -> None:
    words = ("models", "show", "metric=retrieval_fairness", "encoder=fiber")
    code, told = run(*words)
    assert (code, "fetch fiber_pretrain.ckpt by hand" in told) == (5, True)
    for asked in ((*words, f"encoder.model={folder}"), ("models", "show", str(folder))):
        code, told = run(*asked)
        assert code == 0, told
        assert all(name in told for name in ("fiber_pretrain.ckpt", "vocab.json", "merges.txt"))
