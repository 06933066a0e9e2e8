"""145 queries on a million embeddings on disk: time compared with a full sort and faiss.

Usage: python -m benchmarks.retrieval

faiss-cpu is looked for and measured where it is there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.record import publish, table
from bias_pipeline.array_types import Float32Array
from bias_pipeline.io.hashing import mix
from bias_pipeline.retrieval.formulas import top_ranks
from bias_pipeline.retrieval.ranked import Ranked
from bias_pipeline.stats.bootstrap import Bootstrap

N_IMAGES, N_QUERIES, SIZE, N_GROUPS, CORES = 1_000_000, 145, 512, 7, 2
DEPTHS, RESAMPLES, ROUNDS = (100, 1000), 200, 2
SECONDS, PEAK_GB, TIMES = 10.0, 4.0, 5.0
_BLOCK = 50_000


def write_embeddings(folder: Path) -> Path:
    """The embeddings of images, of length 1, in a file."""
    random, path = np.random.default_rng(0), folder / "images.npy"
    file = np.lib.format.open_memmap(path, "w+", np.float32, (N_IMAGES, SIZE))
    for start in range(0, N_IMAGES, _BLOCK):
        vectors = random.standard_normal((_BLOCK, SIZE), np.float32)
        file[start : start + _BLOCK] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    file.flush()
    return path


def queries() -> Float32Array:
    """The embeddings of queries."""
    vectors = np.random.default_rng(1).standard_normal((N_QUERIES, SIZE), np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def ours(images: Float32Array, k: int) -> Callable[[], object]:
    """Rankings to k."""
    return lambda: top_ranks(queries(), images, k)


def resample_entropies(images: Float32Array, k: int) -> Callable[[], object]:
    """Rankings to k, and their entropies under resampling of the images."""
    codes = np.random.default_rng(2).integers(0, N_GROUPS, N_IMAGES)

    def work() -> object:
        ranked = Ranked.rank(queries(), images, np.arange(N_IMAGES), codes, N_GROUPS, k)
        rows = np.unique(ranked.images)
        keys = mix(rows.astype(np.uint64))
        drawn = Bootstrap(RESAMPLES).weights(keys)
        return [ranked.entropies(draw, rows) for draw in drawn]

    return work


def sorted_whole(images: Float32Array, k: int) -> Callable[[], object]:
    """Rankings of everything, cut at k."""
    return lambda: [np.argsort(-(images @ query))[:k] for query in queries()]


def of_faiss(images: Float32Array, k: int) -> Callable[[], object]:
    """Rankings by faiss's flat index, which holds a copy of the images that is not measured."""
    import faiss

    faiss.omp_set_num_threads(CORES)
    index = faiss.IndexFlatIP(SIZE)
    for start in range(0, N_IMAGES, _BLOCK):
        index.add(np.ascontiguousarray(images[start : start + _BLOCK]))
    return lambda: index.search(queries(), k)


WORKS = {
    "ours": ours,
    "ours, resampled": resample_entropies,
    "argsort": sorted_whole,
    "faiss": of_faiss,
}


def measure_process(name: str, path: Path, k: int) -> dict[str, float]:
    """Seconds of a fresh process, its best of several rounds, and its peak."""
    threads = {"OPENBLAS_NUM_THREADS": str(CORES), "OMP_NUM_THREADS": str(CORES)}
    words = [sys.executable, "-m", "benchmarks.retrieval", name, str(path), str(k)]
    done = subprocess.run(words, env=os.environ | threads, check=True, capture_output=True)
    numbers: dict[str, float] = json.loads(done.stdout)
    return numbers


def run_task(name: str, path: Path, k: int) -> None:
    """In the fresh process: run the task and print its time."""
    work = WORKS[name](np.load(path, mmap_mode="r"), k)
    times = []
    for _ in range(1 if name == "argsort" else ROUNDS):
        wall, user = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_utime
        work()
        spent = resource.getrusage(resource.RUSAGE_SELF)
        times.append((time.perf_counter() - wall, spent.ru_utime - user))
    wall, user = (min(column) for column in zip(*times, strict=True))
    print(json.dumps({"wall": wall, "user": user, "peak": spent.ru_maxrss / 1e6}))


def main() -> None:
    load = os.getloadavg()[0]
    names = [name for name in WORKS if name != "faiss" or importlib.util.find_spec("faiss")]
    with tempfile.TemporaryDirectory() as folder:
        path = write_embeddings(Path(folder))
        measurements = {
            (name, k): measure_process(name, path, k)
            for k in DEPTHS
            for name in names
            if name != "argsort" or k == DEPTHS[0]  # it sorts everything, whatever k
        }
    lines = []
    for (name, k), numbers in measurements.items():
        mine = measurements["ours", k]
        times = "" if name == "ours" else f"{numbers['wall'] / mine['wall']:.2f}"
        cpu = "" if name == "ours" else f"{numbers['user'] / mine['user']:.2f}"
        line = [
            name,
            str(k),
            f"{numbers['wall']:.2f}",
            f"{numbers['user']:.2f}",
            f"{numbers['peak']:.2f}",
        ]
        lines.append([*line, times, cpu, _verdict(name, numbers, mine)])
    header = ["", "k", "wall (s)", "user (s)", "peak (GB)", "wall / ours", "user / ours", "target"]
    note = (
        f"{N_IMAGES:,} embeddings of {SIZE} numbers on disk, {N_QUERIES} queries, {CORES} threads; "
        f"{RESAMPLES} resamples; a fresh process each, the better of {ROUNDS} rounds (argsort: "
        f"one). The peak counts the pages of the file that are in memory. faiss has a copy of the "
        f"images in memory, and making it is not measured. Load "
        f"before it began: {load:.1f}."
    )
    absent = "" if "faiss" in names else "\n\nfaiss-cpu is not installed here: not measured."
    publish(
        "Retrieval", "python -m benchmarks.retrieval", f"{table(header, lines)}\n{note}{absent}\n"
    )


def _verdict(name: str, numbers: dict[str, float], mine: dict[str, float]) -> str:
    ratio = numbers["wall"] / mine["wall"]
    met, target = {
        "ours": (numbers["wall"] <= SECONDS and numbers["peak"] <= PEAK_GB, "10 s, 4 GB"),
        "ours, resampled": (ratio <= 2, "at most 2 times"),
        "argsort": (ratio >= TIMES, "at least 5 times"),
        "faiss": (ratio >= 1, "at least 1"),
    }[name]
    return f"{target} ({'met' if met else 'missed'})"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_task(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
