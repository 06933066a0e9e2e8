"""How much of the package a command enters: files, functions, and the deepest chain of calls.

Usage: python -m benchmarks.walk

What a newcomer reads who follows one command. The profiler sees the process of the command with
its threads, not helper processes. Comprehensions and lambdas do not count. The body of a class runs
when its module is imported, whether or not the command uses it, so these are counted apart.
"""

from __future__ import annotations

import csv
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from benchmarks.record import REPOSITORY, publish, table

OURS = str(REPOSITORY / "bias_pipeline")
SMALL = ("seeds=1", "stats.resamples=50")
N_IMAGES = 300
FEW_IMAGES = 60  # for ImageCaptioner2, whose attackers are networks


@dataclass
class Walk:
    """Counts entered functions while it is the profiler of all threads.

    Attributes:
        functions: file and qualified name of each function, with the number of calls.
        classes: the same of each class whose body ran.
        deepest: the most frames of the package on one stack.
    """

    functions: Counter[tuple[str, str]]
    classes: Counter[tuple[str, str]]
    deepest: int = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Count a call of ours."""
        del argument
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(OURS) or code.co_name[0] == "<":
            return
        is_function = code.co_flags & inspect.CO_OPTIMIZED
        entered = self.functions if is_function else self.classes
        entered[code.co_filename, code.co_qualname] += 1
        self.deepest = max(self.deepest, _depth(frame))


def _depth(frame: FrameType | None) -> int:
    depth = 0
    while frame is not None:
        depth += frame.f_code.co_filename.startswith(OURS)
        frame = frame.f_back
    return depth


def walk(words: Sequence[str]) -> dict[str, object]:
    """Run a command in this process; returns files, functions by folder, classes and depth."""
    from bias_pipeline.commands.main import main

    profiler = Walk(Counter(), Counter())
    threading.setprofile(profiler)
    sys.setprofile(profiler)
    try:
        code = main(words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    if code != 0:
        raise RuntimeError(f"{' '.join(words)} ended with {code}")
    files = {file for file, _ in profiler.functions}
    folders = Counter(_folder(file) for file, _ in profiler.functions)
    imported = {file for file, _ in profiler.classes} - files
    return {
        "files": len(files),
        "folders": folders,
        "imported": len(imported),
        "classes": len(profiler.classes),
        "deepest": profiler.deepest,
    }


def _folder(file: str) -> str:
    parts = Path(file).relative_to(REPOSITORY).parts
    return parts[1] if len(parts) > 2 else Path(parts[-1]).stem


def captions_file(folder: Path) -> str:
    """A table of captions of the embedded data set, as a user would hand it to ``audit``."""
    from bias_pipeline.run import compose

    corpus = compose.cell([f"dataset.n_images={N_IMAGES}", "captioner=amplifier"]).corpus()
    path = folder / "captions.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["image_id", "caption", "gender", *(f"cap{n}" for n in range(1, 6))])
        for record in corpus:
            writer.writerow(
                [record.id, record.model, record.labels.get("gender", ""), *record.human]
            )
    return str(path)


def fresh(words: Sequence[str], folder: Path) -> Mapping[str, object]:
    """Walk in a new process, where nothing is imported or cached."""
    answer = folder / "walk.json"
    script = (
        "import json, sys; from benchmarks.walk import walk; "
        "open(sys.argv[1], 'w').write(json.dumps(walk(sys.argv[2:])))"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", script, str(answer), *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    counted: Mapping[str, object] = json.loads(answer.read_text(encoding="utf-8"))
    return counted


def main() -> None:
    """Count four commands and write the table."""
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = f"dataset.n_images={N_IMAGES}"
        file = captions_file(folder)
        commands = {
            "`metric=gender_error`": ("metric=gender_error", images, *SMALL),
            "`metric=lic`": ("metric=lic", images, *SMALL),
            "`metric=imagecaptioner2`": (
                *("metric=imagecaptioner2", f"dataset.n_images={FEW_IMAGES}", *SMALL),
                "probe.processes=1",
                "trainer.max_epochs=1",
            ),
            "`audit FILE`": ("audit", file, "--attributes", file),
        }
        for title, words in commands.items():
            print(f"{title} ...", file=sys.stderr, flush=True)
            counted = fresh(words, folder)
            folders = Counter(counted["folders"])
            most = ", ".join(f"{folder} {n}" for folder, n in folders.most_common(5))
            n_functions = sum(folders.values())
            cells = (counted[key] for key in ("imported", "classes", "deepest"))
            functions = f"{n_functions:,} ({most})"
            lines.append([title, str(counted["files"]), functions, *map(str, cells)])
    header = ["command", "files", "functions", "files only imported", "class bodies", "deepest"]
    body = table(header, lines)
    publish("What a command enters", "python -m benchmarks.walk", body)


if __name__ == "__main__":
    main()
