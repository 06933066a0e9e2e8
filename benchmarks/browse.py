"""Seconds until a page of ``browse`` is there, of runs with a million guesses.

Usage: python -m benchmarks.browse
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from starlette.testclient import TestClient

from benchmarks.record import publish, table
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.errors import DataError
from bias_pipeline.people.web.browsing import BrowsePages
from bias_pipeline.people.web.captions_behind import CaptionsBehind, Library
from bias_pipeline.people.web.run_folder import RunFolder
from bias_pipeline.results.rows import COLUMNS, Result, Row
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run.compose import cell

GUESSES = 1_000_000
TARGET = 0.3  # seconds
_REPEATS = 5
_READING_S = 3  # a run's page, before its images are asked for
_POSITIONS, _SEEDS = 5, 5
_PAGES = {
    "first page": "",
    "page 300": "?page=300",
    "lowers it most": "?sort=share",
    "group and wrong guesses": "?group=female&guess=wrong",
    "word": "?word=umbrella",
}
_CAPTION = "a {} with an umbrella and a dog crosses street number {}"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        lines = [
            _table_line(Path(name) / "many", GUESSES // (_SEEDS * (1 + _POSITIONS)), captions=True),
            _table_line(Path(name) / "one", GUESSES, captions=False),
        ]
    header = [
        *("what", "guesses", "images", "first view (s)", "processor (s)", "after its run's page"),
        *(*_PAGES, "target (s)", ""),
    ]
    body = (
        table(header, lines) + f"\nSeconds of each page's HTML, median of {_REPEATS}, at a load of "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores. The first view of a run reads and "
        "checks its file and, with captions, finds what they name, once while the server runs: "
        "whoever comes from the run's page finds this done. Reading the captions' own files is not "
        "included.\n"
    )
    publish("Pages of results", "python -m benchmarks.browse", body)


def _table_line(root: Path, n_images: int, *, captions: bool) -> list[str]:
    """A line of the table."""
    corpus = _corpus(n_images) if captions else None
    attribute = cell(["attribute=gender"]).build("attribute")
    concepts = cell(["metric=descriptions"]).build("metric").concepts
    result, n_guesses = _run(n_images, corpus)
    ResultStore(root).save(result)

    def read(result: Result) -> CaptionsBehind:
        if corpus is None:
            raise DataError("the captions are not at hand")
        return CaptionsBehind(corpus, attribute, concepts)

    def client() -> TestClient:
        pages = BrowsePages(RunFolder(root), Library(read))
        return TestClient(pages.application(frozenset({"testserver"})))

    direct, led = client(), client()
    busy = time.process_time()
    first = _seconds(direct, "")
    busy = time.process_time() - busy
    assert led.get("/run/lic-bench").status_code == 200
    time.sleep(_READING_S)
    after = _seconds(led, "")
    pages = {
        name: statistics.median(_seconds(direct, query) for _ in range(_REPEATS))
        for name, query in _PAGES.items()
        if captions or "word" not in query
    }
    verdict = "met" if max(after, *pages.values()) < TARGET else "missed"
    what = f"{1 + _POSITIONS} captions an image, {_SEEDS} seeds" if captions else "numbers alone"
    times = [f"{pages[name]:.3f}" if name in pages else "–" for name in _PAGES]
    firsts = [f"{first:.2f}", f"{busy:.2f}", f"{after:.3f}"]
    return [what, f"{n_guesses:,}", f"{n_images:,}", *firsts, *times, str(TARGET), verdict]


def _seconds(client: TestClient, query: str) -> float:
    started = time.perf_counter()
    reply = client.get(f"/run/lic-bench/images{query}")
    assert reply.status_code == 200, reply.text
    return time.perf_counter() - started


def _corpus(n_images: int) -> Corpus:
    labels = cell(["attribute=gender"]).build("attribute").labels["scenes"]
    raw = list(labels.groups)
    words = {raw[0]: "man", raw[1]: "woman"}
    records = (
        Record(
            str(n),
            _CAPTION.format(words[raw[n % 2]], n),
            tuple(_CAPTION.format("person", n + k) for k in range(_POSITIONS)),
            {"gender": raw[n % 2]},
        )
        for n in range(n_images)
    )
    groups = {"gender": (("male", "female"), labels)}
    return Corpus.build(records, dataset="scenes", captioner="bench", groups=groups)


def _run(n_images: int, corpus: Corpus | None) -> tuple[Result, int]:
    """A run with guesses of every caption of every image, and their number."""
    rng, images = np.random.default_rng(0), np.arange(n_images)
    ids = tuple(map(str, images)) if corpus is None else corpus.ids
    truth = images % 2 if corpus is None else corpus.groupings["gender"].codes
    tables = ["model", *(f"human:{k}" for k in range(_POSITIONS if corpus is not None else 0))]
    seeds = tuple(range(_SEEDS if corpus is not None else 1))

    def guesses() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        sure = rng.uniform(0.2, 0.95, n_images)
        of_truth = np.stack([1 - sure, sure], axis=1)
        return np.where(truth[:, None] == 1, of_truth, of_truth[:, ::-1])

    predictions = [
        Predictions(
            name,
            seeds,
            (images,) * len(seeds),
            (truth,) * len(seeds),
            tuple(guesses() for _ in seeds),
            ("male", "female"),
        )
        for name in tables
    ]
    values: dict[str, object] = dict.fromkeys(COLUMNS, "bench")
    numbers = ("value", "seed_std", "ci_low", "ci_high", "p_value", "coverage", "neutral_rate")
    values |= dict.fromkeys(numbers, 0.5)
    values |= {"run_id": "lic-bench", "metric": "lic", "metric_version": 2, "part": "score"}
    values |= {"attribute": "gender", "unit": "fraction", "n_images": n_images}
    values |= {"n_seeds": len(seeds), "seeds": seeds}
    row = Row(**values)  # type: ignore[arg-type]
    manifest = {
        "config": {"scoring": {"_target_": "bias_pipeline.stats.scoring.Lic", "average": "groups"}},
        "corpus": {"digest": "" if corpus is None else corpus.digest},
    }
    return Result("lic-bench", [row], manifest, predictions, ids), n_images * len(tables) * len(
        seeds
    )


if __name__ == "__main__":
    main()
