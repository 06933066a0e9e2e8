"""``audit`` of one file of captions, as a newcomer calls it: announced time, real time, memory.

Audits of many captions are measured by ``benchmarks.bars``.

Usage: python -m benchmarks.audit [CASE ...]
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.cells import Usage, run
from benchmarks.record import met, publish, table
from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_scenes
from bias_pipeline.scenes.world import generate

CAPTIONER = "amplifier"
_PLAN = re.compile(r"(?m)^(?:\w+: )?(\d+) metrics, (\d+) seeds, about (\d+) s$")
_LEFT_OUT = re.compile(r"(?m)^no time for (.*);")


@dataclass(frozen=True)
class Case:
    """A file of captions and the target time of its audit.

    Attributes:
        captions: in the file, one an image.
        people: whether people's five captions of each image are given too.
        objects: whether the objects in the images are given.
        attributes: columns of labels that are kept; each is audited.
        seconds: of CPU, the target.
    """

    captions: int
    people: bool
    objects: bool
    attributes: Sequence[str]
    seconds: float

    @property
    def name(self) -> str:
        """In words."""
        files = ["human captions"] * self.people + ["objects"] * self.objects
        beside = " and ".join(files) or "no other file"
        attributes = (
            "1 attribute" if len(self.attributes) == 1 else f"{len(self.attributes)} attributes"
        )
        return f"{self.captions:,} captions; {beside}; {attributes}"


ALL = ("bb_gender", "bb_skin", "age")  # the labels of scenes that dataset=coco knows
CASES: Mapping[str, Case] = {
    "few": Case(5_000, people=True, objects=True, attributes=ALL, seconds=60),
    "one": Case(5_000, people=True, objects=True, attributes=ALL[:1], seconds=22),
}


def prepare(case: Case, folder: Path) -> list[str]:
    """Write a case's files; the arguments after ``python -m bias_pipeline``."""
    root = folder / "scenes"
    write_scenes(generate(n_images=case.captions), root, {CAPTIONER: CAPTIONERS[CAPTIONER]})
    labels = root / "attributes.csv"
    _keep(labels, case.attributes)
    captions, people = (
        root / part / f"{name}.json"
        for part, name in (("captioners", CAPTIONER), ("annotations", "captions"))
    )
    words = ["audit", str(captions), "--attributes", str(labels)]
    if case.people:
        words += ["--captions", str(people)]
    if case.objects:
        words += ["--objects", str(root / "annotations" / "instances.json")]
    return [*words, "--out", str(folder / "out")]


def _keep(labels: Path, columns: Sequence[str]) -> None:
    """Leave out the other attributes of a label file; the first column is the image's id."""
    import pandas as pd

    rows = pd.read_csv(labels, dtype=str, keep_default_na=False)
    selected = [rows.columns[0], *columns]
    rows[selected].to_csv(labels, index=False)


@dataclass(frozen=True)
class Outcome:
    """The time of an audit and its announced plan.

    Attributes:
        usage: of the command.
        plan: metrics, seeds and seconds that were announced.
        left_out: metrics for which no time was expected.
        cells: (metric, attribute) to seconds, as the runs' manifests have them.
    """

    usage: Usage
    plan: tuple[int, int, float]
    left_out: str
    cells: Mapping[tuple[str, str], float]


def measure(case: Case) -> Outcome:
    """Make the files, audit them once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # In another process: a child's peak is at least the memory of the process that starts it.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
            words = apart.submit(prepare, case, folder).result()
        print(f"{case.name}: files written", file=sys.stderr, flush=True)
        usage = run(words, folder)
        log = (folder / "bench.log").read_text(encoding="utf-8")
        cells = dict(_seconds(folder / "out"))
    plans = [[*map(int, plan)] for plan in _PLAN.findall(log)]  # of each attribute
    assert plans, log
    metrics, seeds, _ = plans[0]
    seconds = sum(plan[2] for plan in plans)
    left_out = _LEFT_OUT.search(log)
    return Outcome(usage, (metrics, seeds, seconds), left_out[1] if left_out else "none", cells)


def _seconds(out: Path) -> list[tuple[tuple[str, str], float]]:
    seconds = []
    for path in out.glob("*/result.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        row = content["rows"][0]
        seconds.append(((row["metric"], row["attribute"]), _duration(content["manifest"])))
    return sorted(seconds)


def _duration(manifest: Mapping[str, object]) -> float:
    seconds = manifest.get("seconds", float("nan"))
    assert isinstance(seconds, (int, float))
    return float(seconds)


def line(case: Case, outcome: Outcome) -> list[str]:
    usage = outcome.usage
    metrics, seeds, seconds = outcome.plan
    return [
        case.name,
        f"{metrics} metrics, {seeds} seeds (no time for: {outcome.left_out})",
        f"{seconds:.0f}",
        f"{usage.wall:.0f}",
        f"{usage.cpu:.0f}",
        f"{usage.peak / 1e6:.0f}",
        f"{case.seconds:g}",
        met(usage.cpu <= case.seconds),
    ]


def main(*names: str) -> None:
    measured = {name: measure(CASES[name]) for name in names or CASES}
    header = ["what", "plan", "announced (s)", "wall (s)", "CPU (s)", "peak (MB)", "target (CPU s)"]
    body = table([*header, ""], [line(CASES[name], result) for name, result in measured.items()])
    load = os.getloadavg()[1]
    body += (
        f"\nOne run each, start-up included, at a load of {load:.1f} on {os.cpu_count()} cores.\n"
    )
    for name, result in measured.items():
        dearest = sorted(result.cells.items(), key=lambda cell: -cell[1])[:6]
        dearest_cells = ", ".join(f"{m} ({a}) {s:.1f}" for (m, a), s in dearest)
        body += f"\nDearest cells of {CASES[name].name}, in seconds: {dearest_cells}.\n"
    publish("Audit", "python -m benchmarks.audit", body)


if __name__ == "__main__":
    main(*sys.argv[1:])
