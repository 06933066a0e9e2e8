"""``encoder=fiber`` through the door."""

import json
import time
from pathlib import Path

import pytest

from tests.cli.commands import results
from tests.fiber_files import write_fiber

SMALL = ("metric=retrieval_fairness", "encoder=fiber", "stats.resamples=20", "logger=csv")
SCENES = (
    *("dataset=scenes", "dataset.n_images=80", "metric.k=10", "seeds=1"),
    "metric.concepts=[zoo]",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fiber(tmp_path_factory.mktemp("fiber"))


@pytest.mark.slow  # two cells with a network
def test_scenes_are_retrieved_and_ordered_again(ok, folder, tmp_path):
    words = (f"encoder.model={folder}", "metric.rerank=null,20", "metric.recall=[1]")
    output = ok(*SMALL, *SCENES, *words)
    read = [json.loads(path.read_text()) for path in results(tmp_path)]
    by_rerank = {
        item["manifest"]["config"]["rerank"]: {row["part"]: row for row in item["rows"]}
        for item in read
    }
    assert set(by_rerank) == {None, 20}
    for item in by_rerank.values():
        assert 0 <= item["score"]["value"] <= 1
        assert {"recall:image@1", "concept:zoo", "other:race"} <= set(item)
    assert "the first 20 of each ranking" in output


def test_without_weights_what_to_fetch_is_told_at_once(run):
    started = time.monotonic()
    code, output = run(*SMALL, *SCENES)
    assert (code, time.monotonic() - started < 5) == (5, True)
    assert "fetch fiber_pretrain.ckpt by hand" in output
    assert "encoder.model=FOLDER" in output


def test_a_clip_does_not_judge_pairs(ends):
    assert "choose encoder=fiber" in ends(2, *SMALL, *SCENES, "encoder=clip", "metric.rerank=20")


def test_models_show_tells_of_its_files(run, ok, folder):
    words = ("models", "show", "metric=retrieval_fairness", "encoder=fiber")
    code, output = run(*words)
    assert (code, "fetch fiber_pretrain.ckpt by hand" in output) == (5, True)
    for requested in ((*words, f"encoder.model={folder}"), ("models", "show", str(folder))):
        output = ok(*requested)
        assert all(name in output for name in ("fiber_pretrain.ckpt", "vocab.json", "merges.txt"))
