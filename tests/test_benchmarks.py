"""Every benchmark still runs: with small inputs, and without writing to RESULTS.md."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest
from PIL import Image

from benchmarks import record

# Benchmark to statements that make it small; `b` is its module. Left out: `gpu` needs a GPU,
# `install` installs for minutes, the rows of `peers` come from packages that are not ours, and
# `walk` is as long as it is.
SMALL: Mapping[str, str] = {
    "attackers": "b.EPOCHS, b.ROUNDS, b.study.__defaults__ = 1, 1, (200,)",
    "audit": """
b.CASES = {
    "audit": b.Case(200, people=True, objects=True, attributes=b.ALL[:1], seconds=1),
}""",
    "bars": """
b.N_START, b.N_DBAC, b.N_MANY, b.N_CELLS = 60, 60, 60, 5
b.ROUNDS, b.PARTS = 1, (b.audit_rows,)""",
    "browse": "b.GUESSES, b._REPEATS, b._PAGES = 600, 1, {'first page': ''}",
    "captions": "b.N_PHOTOS, b.TOKENS = 2, 12",
    "cells": "b.CASES, b.REPEATS = b.CASES[:2], 1",
    "counting": "b.CAPTIONS, b.FEW_CAPTIONS, b.REPEATS = 4_000, 2_000, 1",
    "encoders": "b.PAIRS, b.CAPTIONS, b.SEEDS, b.HEADS, b.ALIGNED = 1, 20, 1, ('linear',), 500",
    "gradcam": "b.N_CAPTIONS, b.BATCH, b.ROUNDS = 2, 2, 1",
    "grit": """
b.SIZES, b.BATCHES, b.ROUNDS = {"small": b.SIZES["small"]}, {"small": 1}, 1
b.training.__globals__["N_IMAGES"] = 60""",
    "likelihoods": "b.N_PLAIN, b.N_TEXTS = 2, 4",
    "photos": """
b.N_GATHERED = 500
b.CASES = {"embed": b.Case("embed", b.write_clip, 4), "caption": b.Case("caption", b.write_blip, 2)}
""",
    "pictures": "b.N_IMAGES, b.EPOCHS = 60, 1",
    "retrieval": """
b.N_IMAGES, b.N_QUERIES, b.DEPTHS, b._BLOCK = 2_000, 5, (10,), 1_000
b.RESAMPLES, b.ROUNDS = 5, 1""",
    "server": "b.ANSWER_S, b.AT_ONCE, b.N_LOOP, b.N_PHOTOS = 0.01, (1, 2), 2, 8",
    "streamed": """
b.CASES = {name: b.Case(size, False, "gender_error") for name, size in zip(b.GROWTH, (400, 800))}
b.CASES["people"] = b.Case(400, people=True, metric="")
b.USUAL = tuple(b.CASES)""",
    "text": "b.CAPTIONS, b.REPEATS = 500, 1",
}
RUN = """
import contextlib, io, json, sys, traceback
names, folder, out = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
ends = {}
for name, small in names.items():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(f"import benchmarks.{name} as b")
            b.publish = lambda title, command, body, **rows: print("PUBLISHED", title, command)
            exec(small)
            b.main(*([folder] if name in OF_PHOTOS else []))
        except BaseException:
            traceback.print_exc(file=printed)
    ends[name] = printed.getvalue()
open(out, "w").write(json.dumps(ends))
"""
OF_PHOTOS = ("captions", "photos")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each benchmark prints; one process runs all, so that networks are imported once."""
    folder = tmp_path_factory.mktemp("photos")
    for number in range(1, 5):
        Image.new("RGB", (64, 48), (50 * number, 0, 0)).save(folder / f"{number}.jpg")
    code, out = f"OF_PHOTOS = {OF_PHOTOS}\n{RUN}", tmp_path_factory.mktemp("ends") / "ends.json"
    subprocess.run(
        [sys.executable, "-c", code, json.dumps(SMALL), str(folder), str(out)],
        env={**os.environ, "BIAS_PIPELINE_DATA": str(folder)},  # where no data set is
        capture_output=True,
        check=True,
    )
    return json.loads(out.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs(name, outputs):
    if "not measured: model" in outputs[name]:
        pytest.skip(outputs[name].strip())
    assert f"python -m benchmarks.{name}" in outputs[name], outputs[name][-2000:]


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path / "RESULTS.md")
    for times in (1.0, 2.0):
        row = record.peer_row("two fits", "1 s", "a library", "2 s", times)
        record.publish(
            "A GPU: fits", "python", "Fast.", peers=[row], bars=[["a", "", "1", "", "2", ""]]
        )
    return record.RESULTS


def test_a_row_replaces_the_row_that_begins_alike(results):
    assert [row[4] for row in record.top_rows(record.PEERS)] == ["2.00"]
    assert record.top_rows(record.BARS) == [["a", "", "1", "", "2", ""]]


def test_a_bench_begins_with_what_a_gpu_measured(results):
    record.begin_anew()
    headings = [line for line in results.read_text().splitlines() if line.startswith("## ")]
    assert headings == ["## A GPU: fits"]
