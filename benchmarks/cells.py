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

from benchmarks.record import REPOSITORY, met, publish, table

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
    """A command and its target.

    Attributes:
        name: in words.
        words: after ``python -m bias_pipeline``.
        seconds: of CPU, the target.
    """

    name: str
    words: Sequence[str]
    seconds: float


CASES = (
    Case("`--help`", ["--help"], 1),
    Case("`--cfg job`", ["--cfg", "job"], 1),
    Case("demo: 14 cells, 5 seeds", ["metric=lic,leakage", "captioner=all"], 60),
)


def measure(case: Case) -> Usage:
    """The fastest of a few runs; a long command runs once. Every run has a folder of its own."""
    best = _fresh(case)
    for _ in range(REPEATS - 1 if best.wall < SHORT_S else 0):
        best = min(best, _fresh(case), key=lambda usage: usage.cpu)
    return best


def _fresh(case: Case) -> Usage:
    with tempfile.TemporaryDirectory() as folder:
        words = [*case.words, *([] if case.words[0] == "--help" else [f"paths.outputs={folder}"])]
        return run(words, Path(folder))


def run(words: Sequence[str], folder: Path, source: Path = REPOSITORY) -> Usage:
    """Run a command of a source tree to its end, in a folder.

    Raises:
        RuntimeError: if it fails.
    """
    command = [sys.executable, "-m", "bias_pipeline", *words]
    path = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    log = folder / "bench.log"
    with log.open("wb") as out:
        started = time.perf_counter()
        child = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=folder)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}: {log.read_text()}")
    return Usage(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * RSS_UNIT)


def line(case: Case, usage: Usage) -> list[str]:
    measured = [f"{usage.wall:.2f}", f"{usage.cpu:.2f}", f"{usage.peak / 1e6:.0f}"]
    return [case.name, *measured, f"{case.seconds:g} s", met(usage.cpu <= case.seconds)]


def main() -> None:
    lines = []
    for case in CASES:
        print(f"{case.name} ...", file=sys.stderr, flush=True)
        lines.append(line(case, measure(case)))
    body = table(["what", "wall (s)", "CPU (s)", "peak (MB)", "target (CPU)", ""], lines)
    body += f"\nWhole processes. Below {SHORT_S:g} s the best of {REPEATS}, above it one run.\n"
    publish("Commands", "python -m benchmarks.cells", body)


if __name__ == "__main__":
    main()
