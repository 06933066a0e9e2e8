"""Time and memory of whole commands, start-up included.

Usage: python -m benchmarks.cells
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.record import REPOSITORY, publish, real_data, table

SHORT_S = 10.0
REPEATS = 3
# Peak memory is in KiB on Linux and in bytes on macOS.
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Usage:
    """What a command took.

    Attributes:
        wall: seconds from start to end.
        cpu: seconds of CPU in the process and its children, the system's included.
        peak: bytes of its largest process.
    """

    wall: float
    cpu: float
    peak: int


@dataclass(frozen=True)
class Case:
    """A command and its targets.

    Attributes:
        name: in words.
        words: after ``python -m bias_pipeline``.
        seconds: of CPU, the target.
        gigabytes: the target, None if there is none.
        prepared: whether the command runs once before it is measured, in the same folder.
    """

    name: str
    words: Sequence[str]
    seconds: float
    gigabytes: float | None = None
    prepared: bool = False


def cases() -> list[Case]:
    data = real_data()
    real = [] if data is None else ["dataset=lic", f"dataset.root={data}"]
    where = "scenes" if data is None else "real captions"
    seeds = ",".join(f"[{seed}]" for seed in range(20))
    captioners = "captioner=amplifier,faithful,dampener,terse,talkative"
    return [
        Case("`--help`", ["--help"], 1),
        Case("`--cfg job`", ["--cfg", "job"], 1),
        Case("demo: 14 cells, 5 seeds", ["metric=lic,leakage", "captioner=all"], 60),
        Case(
            f"7 captioners, 10 seeds, 5 folds, learning curves: 2,870 fits, {where}",
            [*real, "captioner=all", "seeds=10"],
            18,
            2,
        ),
        Case(
            f"7 captioners, 10 seeds, `split=lic`, learning curves: 574 fits, {where}",
            [*real, "captioner=all", "seeds=10", "split=lic"],
            9.5,
            2,
        ),
        Case("100 cached cells", [captioners, f"seeds={seeds}"], 2.5, prepared=True),
    ]


def measure(case: Case) -> Usage:
    """The fastest of a few runs; a long command runs once. Every run has a folder of its own."""
    best = _fresh(case)
    for _ in range(REPEATS - 1 if best.wall < SHORT_S else 0):
        best = min(best, _fresh(case), key=lambda usage: usage.cpu)
    return best


def _fresh(case: Case) -> Usage:
    with tempfile.TemporaryDirectory() as folder:
        words = [*case.words, *([] if case.words[0] == "--help" else [f"paths.outputs={folder}"])]
        if case.prepared:
            run([*words, "stats.resamples=50"], Path(folder))
            words.append("stats.resamples=50")
        return run(words, Path(folder))


def run(words: Sequence[str], folder: Path) -> Usage:
    """Run a command to its end.

    Raises:
        RuntimeError: if it fails.
    """
    command = [sys.executable, "-m", "bias_pipeline", *words]
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    log = folder / "bench.log"
    with log.open("wb") as out:
        started = time.perf_counter()
        child = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}: {log.read_text()}")
    return Usage(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * RSS_UNIT)


def line(case: Case, usage: Usage) -> list[str]:
    target = f"{case.seconds:g} s"
    met = usage.cpu <= case.seconds
    if case.gigabytes is not None:
        target += f", {case.gigabytes:g} GB"
        met &= usage.peak <= case.gigabytes * 1e9
    measured = [f"{usage.wall:.2f}", f"{usage.cpu:.2f}", f"{usage.peak / 1e6:.0f}"]
    return [case.name, *measured, target, "met" if met else "missed"]


def main() -> None:
    lines = []
    for case in cases():
        print(f"{case.name} ...", file=sys.stderr, flush=True)
        lines.append(line(case, measure(case)))
    body = table(["what", "wall (s)", "CPU (s)", "peak (MB)", "target (CPU)", ""], lines)
    body += f"\nWhole processes. Below {SHORT_S:g} s the best of {REPEATS}, above it one run.\n"
    publish("Commands", "python -m benchmarks.cells", body)


if __name__ == "__main__":
    main()
