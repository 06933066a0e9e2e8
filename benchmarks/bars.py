"""The bars of speed: commands of an earlier commit and of this one in turn, start-up included.

The bars were set on another machine, so each is a share of what that commit takes here.

Usage: python -m benchmarks.bars [NAME ...]
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.audit import ALL, Case, prepare
from benchmarks.cells import Usage, run
from benchmarks.record import REPOSITORY, met, publish, real_data

BEFORE = "1baf1bbf"
N_START, N_DBAC, N_MANY, N_STREAMED = 300, 5_000, 200_000, (1_000_000, 10_000_000)
N_CELLS = 100
ROUNDS, SHORT_S = 3, 10.0
_PLAN = re.compile(r"about (\d+) s$", re.MULTILINE)

Row = list[str]


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
    return [name, *shown, f"{ratio:.2f}", f"{share:.2f}", met(ratio <= share)]


def audits(sides: Sides) -> list[Row]:
    """Of few captions."""
    words = _apart(prepare, Case(N_START, True, True, ALL[:1], 0), sides.place / "few")
    (usages,) = sides.run(_beside(words))
    return [cpu_row(f"audit of {N_START} captions", usages, 4.5 / 8.4)]


def many(sides: Sides) -> list[Row]:
    """An audit of many captions with human captions, and two counting metrics of their files."""
    case, folder = Case(N_MANY, True, True, ALL[:1], 0), sides.place / "many"
    words = _apart(prepare, case, folder)
    name = f"audit of {N_MANY:,} captions and {5 * N_MANY:,} human captions"
    (usages,) = sides.run(_beside(words))
    plan = _PLAN.search((sides.place / "last.log").read_text(encoding="utf-8"))
    assert plan is not None
    announced, wall = float(plan[1]), usages[-1].wall
    rows = [
        cpu_row(name, usages, 120 / 188),
        peak_row(name, usages, 1.6 / 2.1),
        [
            f"the same: announced {announced:.0f} s, took", "", f"{wall:.0f} s", "",
            "half to twice", met(announced / 2 <= wall <= 2 * announced),
        ],
    ]  # fmt: skip
    counted = ["metric=gender_error,cooccurrence", *_cell(folder / "scenes")]
    (whole,) = sides.run(counted)
    _apart(halve, folder / "scenes")
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


def dbac(sides: Sides) -> list[Row]:
    folder = sides.place / "dbac"
    _apart(prepare, Case(N_DBAC, True, True, ALL[:1], 0), folder)
    (usages,) = sides.run(["metric=dbac", *_cell(folder / "scenes")])
    return [cpu_row(f"metric=dbac of {N_DBAC:,} captions", usages, 6 / 12.7)]


def fits(sides: Sides) -> list[Row]:
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


def cached(sides: Sides) -> list[Row]:
    """A sweep that finds all its runs, and their report."""
    seeds = ",".join(f"[{seed}]" for seed in range(N_CELLS // 5))
    sweep = ["captioner=amplifier,faithful,dampener,terse,talkative", f"seeds={seeds}"]
    sweep += ["stats.resamples=50", "paths.outputs=out"]
    _, *again = sides.run(sweep, *[sweep] * ROUNDS, *[["report", "out"]] * ROUNDS)
    found, reports = (
        [min(usages, key=lambda usage: usage.cpu) for usages in zip(*of_one, strict=True)]
        for of_one in (again[:ROUNDS], again[ROUNDS:])
    )
    return [
        cpu_row(f"{N_CELLS} cached cells", found, 2.5 / 5.2),
        cpu_row(f"`report` of {N_CELLS} runs", reports, 3 / 6.1),
    ]


def streamed(sides: Sides) -> list[Row]:
    """Captions that are read in ranges of images; the earlier commit has no such way."""
    usages = []
    for n in N_STREAMED:
        files = _apart(write_parquet, n, sides.place / str(n))
        words = ["audit", files[0], "--attributes", files[1], "--stream", "--out", "out"]
        ((usage,),) = Sides(sides.place, None).run(words)
        usages.append(usage)
    few, most = usages
    growth = float(np.log(most.cpu / few.cpu) / np.log(N_STREAMED[1] / N_STREAMED[0]))
    name = f"`audit --stream` of {N_STREAMED[1]:,} captions"
    peak = most.peak / 1e9
    return [
        [f"{name}, CPU s", "", f"{most.cpu:.0f}", "", "90 s", met(most.cpu <= 90)],
        [f"{name}, peak GB", "", f"{peak:.2f}", "", "1.5 GB", met(peak <= 1.5)],
        [f"{name}, exponent of growth", "", f"{growth:.2f}", "", "1.02", met(growth <= 1.02)],
    ]


def write_parquet(n: int, folder: Path) -> list[str]:
    """Captions, nearly all distinct, and groups of n images."""
    folder.mkdir()
    files = [str(folder / f"{name}.parquet") for name in ("captions", "labels")]
    draw = np.random.default_rng(0)
    who, what = (
        pa.array(words)
        for words in (
            ("a man", "a woman", "a person"),
            ("a dog", "a cat", "an umbrella", "a tie", "skis", "a bus", "a bench", "a cell phone"),
        )
    )
    step = min(n, 1_000_000)
    types = (
        [("image_id", pa.int64()), ("caption", pa.string())],
        [
            ("image_id", pa.int64()),
            ("gender", pa.string()),
        ],
    )
    captions, labels = (
        pq.ParquetWriter(file, pa.schema(names)) for file, names in zip(files, types, strict=True)
    )
    with captions, labels:
        for start in range(0, n, step):
            ids, codes = pa.array(np.arange(start, start + step)), draw.integers(0, 2, step)
            said = np.where(draw.random(step) < 0.3, 2, codes ^ (draw.random(step) < 0.05))
            parts = [who.take(pa.array(said)), "with"]
            for joined in ("and", "near house"):
                parts += [what.take(pa.array(draw.integers(0, len(what), step))), joined]
            houses = pa.array(draw.integers(0, 100_000, step)).cast(pa.string())
            texts = pc.binary_join_element_wise(*parts, houses, " ")
            captions.write_table(pa.table({"image_id": ids, "caption": texts}))
            groups = pa.array(["Male", "Female"]).take(pa.array(codes))
            labels.write_table(pa.table({"image_id": ids, "gender": groups}))
    return files


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


def _beside(words: Sequence[str]) -> list[str]:
    """The same audit with its runs in the current folder."""
    return [*words[: words.index("--out")], "--out", "out"]


def _apart(work: Callable[..., list[str]], *given: object) -> list[str]:
    """In another process: a child's peak is at least the memory of the process that starts it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


PARTS = (audits, many, dbac, fits, cached, streamed)


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
        f"scene; streamed captions are made up.\n"
    )
    publish("Before and now", "python -m benchmarks.bars", body, bars=rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
