"""The bars of speed: commands of an earlier commit and of this one in turn, start-up included.

The bars were set on another machine, so each is a share of what that commit takes here.

Usage: python -m benchmarks.bars [NAME ...]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from benchmarks.audit import ALL, Case, announced_plans, prepare
from benchmarks.cells import Usage, run
from benchmarks.record import REPOSITORY, publish, real_data, verdict

BEFORE = "1baf1bbf"
N_START, N_DBAC, N_MANY = 300, 5_000, 200_000
N_CELLS = 100
ROUNDS, SHORT_S = 3, 10.0

Row = list[str]
T = TypeVar("T")


def source_before(folder: Path) -> Path | None:
    """The package as that commit has it; None without the repository's history."""
    words = ["git", "-C", str(REPOSITORY), "archive", BEFORE, "bias_pipeline", "conf"]
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode:
        print(done.stderr.decode(), file=sys.stderr)
        return None
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


class Sides:
    """Runs commands of both commits.

    Args:
        place: where their folders are made.
        before: see :func:`source_before`.
    """

    def __init__(self, place: Path, before: Path | None) -> None:
        self.place, self.before = place, before
        self.sources = ([before] if before else []) + [REPOSITORY]

    def run(self, *commands: Sequence[str]) -> list[list[Usage]]:
        """Each command's usage, before (if it is known) and now.

        A side runs the commands one after the other in a folder of its own. Short ones run a few
        times, both sides in turn; the time that counts is the least.
        """
        best: list[list[Usage]] = []
        for _ in range(ROUNDS):
            both = [self._one_side(source, commands) for source in self.sources]
            best = [
                [min(pair, key=lambda usage: usage.cpu) for pair in zip(one, other, strict=True)]
                for one, other in zip(best or both, both, strict=True)
            ]
            if sum(usage.wall for usage in both[-1]) > SHORT_S:
                break
        return [list(of_both) for of_both in zip(*best, strict=True)]

    def _one_side(self, source: Path, commands: Sequence[Sequence[str]]) -> list[Usage]:
        with tempfile.TemporaryDirectory(dir=self.place) as folder:
            usages = [run(words, Path(folder), source) for words in commands]
            (self.place / "last.log").write_bytes(Path(folder, "bench.log").read_bytes())
        return usages


def cpu_row(name: str, usages: Sequence[Usage], share: float) -> Row:
    return _row(f"{name}, CPU s", [usage.cpu for usage in usages], share, "{:.1f}")


def peak_row(name: str, usages: Sequence[Usage], share: float) -> Row:
    return _row(f"{name}, peak GB", [usage.peak / 1e9 for usage in usages], share, "{:.2f}")


def _row(name: str, numbers: Sequence[float], share: float, form: str) -> Row:
    if len(numbers) == 1:
        return [name, "", form.format(numbers[0]), "", f"{share:.2f}", "not measured: no history"]
    before, now = numbers
    ratio = now / before
    shown = (form.format(number) for number in numbers)
    return [name, *shown, f"{ratio:.2f}", f"{share:.2f}", verdict(ratio <= share)]


def audit_rows(sides: Sides) -> list[Row]:
    """Of few captions."""
    words = _run_apart(prepare, Case(N_START, True, True, ALL[:1], 0), sides.place / "few")
    (usages,) = sides.run(_words_beside(words))
    return [cpu_row(f"audit of {N_START} captions", usages, 4.5 / 8.4)]


def rows_of_many(sides: Sides) -> list[Row]:
    """An audit of many captions with human captions, and two counting metrics of their files."""
    case, folder = Case(N_MANY, True, True, ALL[:1], 0), sides.place / "many"
    words = _run_apart(prepare, case, folder)
    name = f"audit of {N_MANY:,} captions and {5 * N_MANY:,} human captions"
    (usages,) = sides.run(_words_beside(words))
    ((_, _, expected),) = announced_plans((sides.place / "last.log").read_text(encoding="utf-8"))
    wall = usages[-1].wall
    rows = [
        cpu_row(name, usages, 120 / 188),
        peak_row(name, usages, 1.6 / 2.1),
        [
            f"the same: announced {expected:.0f} s, took", "", f"{wall:.0f} s", "",
            "half to twice", verdict(expected / 2 <= wall <= 2 * expected),
        ],
    ]  # fmt: skip
    counted = ["metric=gender_error,cooccurrence", *_cell(folder / "scenes")]
    (whole,) = sides.run(counted)
    _run_apart(halve, folder / "scenes")
    (half,) = Sides(sides.place, None).run(counted)
    millions = 6 * N_MANY / 1e6
    name = f"gender_error and cooccurrence of {6 * N_MANY:,} captions from files"
    more = (whole[-1].cpu - half[-1].cpu) / (millions / 2)
    return [
        *rows,
        cpu_row(name, whole, 11 / 33),
        peak_row(name, whole, 1.0),
        _row(
            "the same, CPU s: 1,000,000 captions before, 1,000,000 more now",
            [*(usage.cpu / millions for usage in whole[:-1]), more],
            8 / 33,
            "{:.1f}",
        ),
    ]


def halve(scenes: Path) -> None:
    """Keep the captions of the first half of the images."""
    for path in (scenes / "annotations" / "captions.json", *(scenes / "captioners").glob("*")):
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = content if isinstance(content, list) else content["annotations"]
        del rows[len(rows) // 2 :]
        path.write_text(json.dumps(content), encoding="utf-8")


def dbac_rows(sides: Sides) -> list[Row]:
    folder = sides.place / "dbac"
    _run_apart(prepare, Case(N_DBAC, True, True, ALL[:1], 0), folder)
    (usages,) = sides.run(["metric=dbac", *_cell(folder / "scenes")])
    return [cpu_row(f"metric=dbac of {N_DBAC:,} captions", usages, 6 / 12.7)]


def fit_rows(sides: Sides) -> list[Row]:
    """Seven captioners with learning curves."""
    data = real_data()
    where, on = ([], "scenes") if data is None else (["dataset=lic", f"dataset.root={data}"], "lic")
    words = [*where, "captioner=all", "seeds=10", "paths.outputs=out"]
    (held_out,) = sides.run([*words, "split=lic"])
    (folds,) = sides.run(words)
    return [
        cpu_row(f"7 captioners, 10 seeds, `split=lic`: 574 fits, {on}", held_out, 9.5 / 13.9),
        cpu_row(f"7 captioners, 10 seeds, 5 folds: 2,870 fits, {on}", folds, 18 / 30),
    ]


def cached_rows(sides: Sides) -> list[Row]:
    """A sweep that finds all its runs, and their report."""
    seeds = ",".join(f"[{seed}]" for seed in range(N_CELLS // 5))
    sweep = ["captioner=amplifier,faithful,dampener,terse,talkative", f"seeds={seeds}"]
    sweep += ["stats.resamples=50", "paths.outputs=out"]
    _, *again = sides.run(sweep, *[sweep] * ROUNDS, *[["report", "out"]] * ROUNDS)
    cells, reports = (
        [min(usages, key=lambda usage: usage.cpu) for usages in zip(*of_one, strict=True)]
        for of_one in (again[:ROUNDS], again[ROUNDS:])
    )
    return [
        cpu_row(f"{N_CELLS} cached cells", cells, 2.5 / 5.2),
        cpu_row(f"`report` of {N_CELLS} runs", reports, 3 / 6.1),
    ]


def _cell(scenes: Path) -> list[str]:
    """A cell of files that :func:`benchmarks.audit.prepare` has written."""
    return [
        "dataset=coco",
        f"dataset.attributes={scenes / 'attributes.csv'}",
        f"dataset.captions={scenes / 'annotations' / 'captions.json'}",
        f"dataset.instances={scenes / 'annotations' / 'instances.json'}",
        f"captioner={next((scenes / 'captioners').glob('*.json'))}",
        "dataset.strict=False",
        "paths.outputs=out",
    ]


def _words_beside(words: Sequence[str]) -> list[str]:
    """The same audit with its runs in the current folder."""
    return [*words[: words.index("--out")], "--out", "out"]


def _run_apart(work: Callable[..., T], *given: object) -> T:
    """In another process: a child's peak is at least the memory of the process that starts it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


PARTS = (audit_rows, rows_of_many, dbac_rows, fit_rows, cached_rows)


def main(*names: str) -> None:
    rows: list[Row] = []
    load = os.getloadavg()[1]
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        sides = Sides(place, source_before(place / "source"))
        for part in PARTS:
            if not names or part.__name__ in names:
                rows += part(sides)
                print(rows[-1], file=sys.stderr, flush=True)
    body = (
        f"The commands behind the rows of *Bars* that name {BEFORE}, whole processes, at a load of "
        f"{load:.1f} on {os.cpu_count()} cores when they began; below {SHORT_S:g} s the best of "
        f"{ROUNDS}, both sides in turn. A captioner's captions and five by people of each drawn "
        f"scene.\n"
    )
    publish("Before and now", "python -m benchmarks.bars", body, bars=rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
