"""What it costs to spread a sweep, and that nothing is lost when its jobs are killed.

Usage: python -m experiments.scaling.study

Needs Slurm's programs (see ``make slurm``): it starts its own Slurm of one node and stops it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from benchmarks.record import machine
from experiments.study import markdown
from tests.slurm_cluster import client, cluster

HERE = Path(__file__).resolve().parent
SWEEP = ("metric=lic,leakage", "captioner=all", "logger=csv")
KILLED = (
    "metric=lic,leakage", "captioner=all", "logger=csv", "dataset.n_images=600",
    "stats.resamples=50", "seeds=30",
)  # fmt: skip
KILLS = 20
WRITERS, JOBS = 16, 100
QUEUED = ("hydra/launcher=submitit_slurm", "-m")
WAYS: Mapping[str, Sequence[str]] = {
    "one process": (),
    "Slurm, 1 job at a time": (*QUEUED, "hydra.launcher.array_parallelism=1"),
    "Slurm, 2 jobs at a time": (*QUEUED, "hydra.launcher.array_parallelism=2"),
}


class Bench:
    """Commands in separate folders, with access to a Slurm.

    Args:
        root: where the folders are made.
        variables: that lead to the Slurm.
    """

    def __init__(self, root: Path, variables: Mapping[str, str]) -> None:
        self.root, self.variables = root, variables

    def start(self, folder: str, *words: str) -> subprocess.Popen[str]:
        """Start ``python -m bias_pipeline`` in a folder."""
        (self.root / folder).mkdir(exist_ok=True)
        return subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "bias_pipeline", *words],
            cwd=self.root / folder,
            env={**os.environ, "PYTHONPATH": str(HERE.parents[1]), **self.variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def seconds(self, folder: str, *words: str) -> float:
        """How long a command takes, from start to end; it must succeed."""
        started = time.perf_counter()
        process = self.start(folder, *words)
        _, stderr = process.communicate()
        if process.returncode:
            raise SystemExit(f"{words}: {stderr}")
        return time.perf_counter() - started

    def work(self, folder: str) -> float:
        """Seconds of computing in all cells of a folder, from their manifests."""
        paths = (self.root / folder).glob("outputs/[!.]*/result.json")
        return sum(json.loads(path.read_text())["manifest"]["seconds"] for path in paths)

    def table(self, folder: str) -> bytes:
        """The table that a sweep writes."""
        return (self.root / folder / "outputs" / "table.csv").read_bytes()


def throughput(bench: Bench) -> pd.DataFrame:
    """The same cells spread in every way; a job's overhead is its time minus the work."""
    lines = []
    for number, (name, words) in enumerate(WAYS.items()):
        folder = f"way{number}"
        wall = bench.seconds(folder, *SWEEP, *words)
        cells = len(list((bench.root / folder).glob("outputs/[!.]*/result.json")))
        work, at_once = bench.work(folder), 2 if name.split(", ")[-1].startswith("2") else 1
        again = bench.seconds(folder, *SWEEP, *words)
        lines.append(
            {
                "way": name,
                "cells": cells,
                "wall_s": wall,
                "work_s": work,
                "overhead_per_cell_s": (at_once * wall - work) / cells,
                "cells_per_minute": 60 * cells / wall,
                "again_s": again,
            }
        )
    return pd.DataFrame(lines)


def start_up(bench: Bench) -> pd.DataFrame:
    """One cell of each kind: seconds of the command and of its work, the median of five."""
    lines = []
    for words in (("metric=lic",), ("metric=gender_error",)):
        timings = []
        for number in range(5):
            folder = f"start-{words[0]}-{number}"
            timings.append((bench.seconds(folder, *words, "logger=csv"), bench.work(folder)))
        wall, work = sorted(timings, key=lambda pair: pair[0] - pair[1])[2]
        lines.append({"cell": words[0], "wall_s": wall, "work_s": work, "start_s": wall - work})
    return pd.DataFrame(lines)


def kills(bench: Bench) -> pd.DataFrame:
    """Jobs of a Slurm sweep killed at random until 20 have been; then it runs to its end."""
    whole = bench.seconds("unbroken", *KILLED)
    generator, killed, commands = random.Random(0), 0, 0  # noqa: S311 - no secret
    started = time.perf_counter()
    while True:
        process = bench.start("killed", *KILLED, *QUEUED)
        commands += 1
        while process.poll() is None and killed < KILLS:
            time.sleep(generator.uniform(0.2, 1.5))
            running = client(bench.variables, "squeue", "-h", "-t", "R", "-o", "%i").split()
            if running:
                client(bench.variables, "scancel", "--signal=KILL", generator.choice(running))
                killed += 1
        if process.wait() == 0 and killed >= KILLS:
            break
    same = bench.table("killed") == bench.table("unbroken")
    return pd.DataFrame(
        [
            {
                "kills": killed,
                "commands": commands,
                "unbroken_s": whole,
                "killed_s": time.perf_counter() - started,
                "same table": same,
            }
        ]
    )


def writers(bench: Bench) -> pd.DataFrame:
    """Sixteen processes with the same hundred jobs on one folder: every cell once, none torn."""
    seeds = ",".join(f"[{number}]" for number in range(JOBS))
    words = ("metric=gender_error", f"seeds={seeds}", "logger=csv", "dataset.n_images=100")
    started = time.perf_counter()
    processes = [bench.start("shared", *words, "stats.resamples=20") for _ in range(WRITERS)]
    codes = [process.wait() for process in processes]
    wall = time.perf_counter() - started
    rows = pd.read_csv(bench.root / "shared" / "outputs" / "rows.csv")
    each = rows.groupby("run_id").size()
    return pd.DataFrame(
        [
            {
                "writers": WRITERS,
                "jobs each": JOBS,
                "wall_s": wall,
                "exit codes 0": codes.count(0),
                "results": len(list((bench.root / "shared").glob("outputs/[!.]*/result.json"))),
                "runs in rows.csv": len(each),
                "runs with rows twice or torn": int((each != each.mode()[0]).sum()),
            }
        ]
    )


MEASURED: Mapping[str, Callable[[Bench], pd.DataFrame]] = {
    "start-up": start_up,
    "throughput": throughput,
    "kills": kills,
    "writers": writers,
}


def main() -> None:
    """Measure everything and write RESULTS.md and a CSV of each table."""
    with (
        tempfile.TemporaryDirectory(prefix="slurm") as slurm,
        tempfile.TemporaryDirectory(prefix="cells") as cells,
        cluster(Path(slurm)) as slurm_cluster,
    ):
        bench = Bench(Path(cells), slurm_cluster)
        before = os.getloadavg()[0]
        tables = {name: measure(bench) for name, measure in MEASURED.items()}
    texts = ["# What spreading a sweep costs", "Made by `study.py`; do not edit."]
    texts.append(f"{machine()} Load before: {before:.1f}.")
    for name, table in tables.items():
        table.to_csv(HERE / f"{name}.csv", index=False, float_format="%.3f", lineterminator="\n")
        texts += [f"## {name.capitalize()}", markdown(table.set_index(table.columns[0]), 1)]
    (HERE / "RESULTS.md").write_text("\n\n".join(text.strip() for text in texts) + "\n")


if __name__ == "__main__":
    main()
