"""``--stream``: captions that do not fit into memory, a range of images at a time.

Usage: python -m benchmarks.streamed [CASE ...]
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.cells import Usage, run
from benchmarks.record import publish, table, verdict

ANNOTATORS = 5
AT_ONCE = 250_000  # images that are written at once
LEAST_EXPONENT = 1.02  # of CPU between the sizes, the target
NOUNS = ("a man", "a woman", "a person", "a young boy", "a girl", "two people")
STEREOTYPES = np.array([[35, 5, 40, 10, 3, 7], [8, 34, 40, 3, 9, 6]]) / 100  # by label
VERBS = ("is standing", "sits", "walks", "is riding along", "plays", "holds something")
PLACES = ("in the street", "on a bench", "at home", "near the beach", "in a field", "by a window")


@dataclass(frozen=True)
class Case:
    """Files of synthetic captions, and what reads them.

    Attributes:
        images: each with a caption, a label and two objects.
        people: whether five annotators describe each image.
        metric: what is run; empty: an audit of everything that is counted.
        seconds: of CPU, the target; NaN: none.
        gigabytes: the target.
    """

    images: int
    people: bool
    metric: str
    seconds: float = math.nan
    gigabytes: float = math.nan

    @property
    def name(self) -> str:
        people = ", five annotators" if self.people else ""
        return f"{self.images:,} captions{people}: {self.metric or 'audit'}"


CASES: Mapping[str, Case] = {
    "million": Case(1_000_000, people=False, metric="gender_error"),
    "ten": Case(10_000_000, False, metric="gender_error", seconds=90, gigabytes=1.5),
    "audit": Case(1_000_000, people=False, metric=""),
    "people": Case(1_000_000, people=True, metric=""),
    "ten-people": Case(10_000_000, people=True, metric=""),
}
USUAL = ("million", "ten", "audit")  # the others take longer than `make bench` may
GROWTH = ("million", "ten")


def write(case: Case, folder: Path) -> None:
    """Write the case's files."""
    from bias_pipeline.corpus.object_names import CATEGORIES

    draw = np.random.default_rng(0)
    objects = np.array([name for name in CATEGORIES if name != "person"])
    popularity = 1 / np.arange(1, len(objects) + 1)
    kinds = ["labels", "captions", "objects", *(["people"] if case.people else [])]
    writers: dict[str, parquet.ParquetWriter] = {}
    for first in range(0, case.images, AT_ONCE):
        ids = np.arange(first, min(first + AT_ONCE, case.images))
        female = (draw.random(len(ids)) < 0.4).astype(np.int64)
        shown = draw.choice(objects, (len(ids), 2), p=popularity / popularity.sum())
        human = np.repeat(np.arange(len(ids)), ANNOTATORS)
        tables = {
            "labels": {"id": ids, "gender": np.array(["male", "female"])[female]},
            "captions": {"image_id": ids, "caption": [*texts_of(draw, female, shown)]},
            "objects": {"image_id": np.repeat(ids, 2), "category": shown.ravel()},
        }
        if case.people:
            texts = [*texts_of(draw, female[human], shown[human])]
            tables["people"] = {"image_id": ids[human], "caption": texts}
        for name in kinds:
            part = pa.table(tables[name])
            if name not in writers:
                place = folder / f"{name}.parquet"
                writers[name] = parquet.ParquetWriter(place, part.schema)
            writers[name].write_table(part)
    for writer in writers.values():
        writer.close()


def texts_of(draw: np.random.Generator, female: np.ndarray, shown: np.ndarray) -> Iterator[str]:
    """Captions that name a noun by the label, and mostly the objects in the image."""
    ends = STEREOTYPES.cumsum(axis=1)[female]
    nouns = (draw.random((len(female), 1)) > ends).sum(axis=1)
    rest = [draw.integers(0, len(words), len(female)) for words in (VERBS, PLACES)]
    named = draw.random(shown.shape) < 0.6
    for noun, verb, place, things, names in zip(
        nouns.tolist(), *(each.tolist() for each in rest), shown.tolist(), named.tolist(),
        strict=True,
    ):  # fmt: skip
        words = " and ".join(
            f"a {one}" for one, is_named in zip(things, names, strict=True) if is_named
        )
        yield f"{NOUNS[noun]} {VERBS[verb]} {PLACES[place]} with {words or 'nothing else'} ."


def words_of(case: Case, folder: Path) -> list[str]:
    """The arguments after ``python -m bias_pipeline``."""
    captions, labels, people, objects = (
        str(folder / f"{name}.parquet") for name in ("captions", "labels", "people", "objects")
    )
    words = ["audit", captions, "--stream", "--attributes", labels, "--only", "gender"]
    words += ["--objects", objects, *(["--captions", people] if case.people else [])]
    if not case.metric:
        return [*words, "--out", str(folder / "out")]
    return [
        f"metric={case.metric}",
        "dataset=coco",
        "dataset._target_=bias_pipeline.data.coco_streamed.StreamedCocoDataset",
        f"dataset.attributes={labels}",
        f"captioner={captions}",
        f"paths.outputs={folder / 'out'}",
    ]


def measure(case: Case) -> Usage:
    """Write the files in another process, and read them once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
            apart.submit(write, case, folder).result()
        print(f"{case.name}: files written", file=sys.stderr, flush=True)
        return run(words_of(case, folder), folder)


def bar_rows(case: Case, usage: Usage) -> Iterator[list[str]]:
    """The bars of a case, if it has any."""
    if not math.isnan(case.seconds):
        name, peak = f"`--stream`, {case.name}", usage.peak / 1e9
        now, bar = f"{usage.cpu:.1f}", f"{case.seconds:g} s"
        yield [f"{name}, CPU s", "", now, "", bar, verdict(usage.cpu <= case.seconds)]
        now, bar = f"{peak:.2f}", f"{case.gigabytes:g} GB"
        yield [f"{name}, peak GB", "", now, "", bar, verdict(peak <= case.gigabytes)]


def main(*names: str) -> None:
    measured = {CASES[name]: measure(CASES[name]) for name in names or USUAL}
    lines = [
        [case.name, f"{usage.wall:.0f}", f"{usage.cpu:.1f}", f"{usage.peak / 1e9:.2f}"]
        for case, usage in measured.items()
    ]
    body = table(["what", "wall (s)", "CPU (s)", "peak (GB)"], lines)
    bars = [row for case, usage in measured.items() for row in bar_rows(case, usage)]
    few, many = (CASES[name] for name in GROWTH)
    if {few, many} <= measured.keys():
        growth = math.log(measured[many].cpu / measured[few].cpu) / math.log(
            many.images / few.images
        )
        met = verdict(growth <= LEAST_EXPONENT)
        name = "`--stream`, exponent of the growth of CPU"
        bars.append([name, "", f"{growth:.2f}", "", f"{LEAST_EXPONENT}", met])
    body += (
        "\nWhole processes, one run each, at a load of "
        f"{os.getloadavg()[1]:.1f} on {os.cpu_count()} cores.\n"
    )
    title = "Captions that do not fit into memory"
    title += f": {', '.join(names)}" if names else ""
    command = f"python -m benchmarks.streamed {' '.join(names)}".rstrip()
    publish(title, command, body, bars=bars)


if __name__ == "__main__":
    main(*sys.argv[1:])
