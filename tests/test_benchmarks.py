"""Every benchmark still runs: with small inputs, and without writing to RESULTS.md."""

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest
from PIL import Image

# Benchmark to statements that make it small; `b` is its module. Left out: `gpu` needs a GPU,
# `install` installs for minutes, the rows of `peers` come from packages that are not ours, and
# `walk` is as long as it is.
SMALL: Mapping[str, str] = {
    "attackers": "b.EPOCHS, b.PAIRS, b.ENSEMBLES, b.study.__defaults__ = 1, 1, (1, 2), (200,)",
    "audit": """
b.CASES = {
    "audit": b.Case(200, people=True, objects=True, attributes=b.ALL[:1], seconds=1),
    "lic": b.Case(200, True, False, attributes=b.ALL[:1], seconds=1, metric="lic"),
}""",
    "browse": "b.GUESSES, b._REPEATS, b._PAGES = 600, 1, {'first page': ''}",
    "captions": "b.N_PHOTOS, b.TOKENS = 2, 12",
    "cells": "all_cases = b.cases; b.cases = lambda: all_cases()[:2]; b.REPEATS = 1",
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
import sys
import benchmarks.{name} as b
b.publish = lambda title, command, body: print("PUBLISHED", title, command)
{small}
b.main(*sys.argv[1:])
"""
OF_PHOTOS = ("captions", "photos")


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs(name, tmp_path):
    for number in range(1, 5):
        Image.new("RGB", (64, 48), (50 * number, 0, 0)).save(tmp_path / f"{number}.jpg")
    code = RUN.format(name=name, small=SMALL[name])
    done = subprocess.run(
        [sys.executable, "-c", code, *([str(tmp_path)] if name in OF_PHOTOS else [])],
        env={**os.environ, "BIAS_PIPELINE_DATA": str(tmp_path)},  # where no data set is
        capture_output=True,
        text=True,
        check=False,
    )
    if "not measured: model" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert f"python -m benchmarks.{name}" in done.stdout, done.stderr[-2000:]
