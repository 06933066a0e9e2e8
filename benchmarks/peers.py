"""Other libraries beside ours on the same inputs, in turn in one process: seconds of CPU.

Usage: python -m benchmarks.peers [PACKAGE ...]

Rows are kept in ``peers.csv``, from which the site's page of benchmarks is made. A package that is
not installed keeps its rows of before: an environment of its own, beside this package's, will do
(``pip install --no-deps pycocoevalcap faiss-cpu bias-amplification``).
"""

from __future__ import annotations

import csv
import importlib.metadata
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.record import beside, machine, publish, table
from bias_pipeline.array_types import Float64Array
from bias_pipeline.attack.logistic import ConvexProbe
from bias_pipeline.attack.ngram import Ngram
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.metrics.functional.amplification import ba_directional
from bias_pipeline.metrics.functional.counts import Counts
from bias_pipeline.metrics.functional.quality import (
    bleu,
    cider_d,
    clipped_counts,
    clipped_matches,
    closest_lengths,
    count_ngrams,
    document_frequencies,
)
from bias_pipeline.retrieval.formulas import top_ranks
from bias_pipeline.run.compose import cell
from bias_pipeline.text.mentions import lowered_words

ROWS = Path(__file__).with_name("peers.csv")
REPEATS = 5
N_CAPTIONS, N_REFERENCES = 2_000, 5
N_ATTACKED, N_SEEDS = 4_000, 10
N_EMBEDDINGS, SIZE, N_QUERIES, DEPTH = 100_000, 256, 50, 100
N_IMAGES, N_TASKS = 100_000, 80

Numbers = Callable[[], Float64Array]


@dataclass(frozen=True)
class Peer:
    """A library that computes the same.

    Attributes:
        package: its name, as pip knows it.
        what: is computed.
        both: makes the inputs; returns ours and theirs.
    """

    package: str
    what: str
    both: Callable[[], tuple[Numbers, Numbers]]


@dataclass(frozen=True)
class Measured:
    """One repeat.

    Attributes:
        package: see :class:`Peer`.
        version: of the package.
        what: see :class:`Peer`.
        repeat: from 1.
        ours: seconds of CPU.
        theirs: seconds of CPU.
        difference: the largest between our numbers and theirs.
        day: of the run.
        load: of the machine at its start.
        machine: processor, system and versions.
    """

    package: str
    version: str
    what: str
    repeat: int
    ours: float
    theirs: float
    difference: float
    day: str
    load: float
    machine: str


def quality() -> tuple[Numbers, Numbers]:
    """CIDEr-D and BLEU of drawn captions, from words separated by blanks."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider

    corpus = cell([f"dataset.n_images={N_CAPTIONS}"]).corpus()
    model, human = lowered_words(corpus.model), lowered_words(corpus.human)
    candidates = [model.text(row) for row in range(len(corpus))]
    references = [list(human.of_image(row)) for row in range(len(corpus))]
    gts = dict(enumerate(references))
    res = {place: [text] for place, text in enumerate(candidates)}

    def ours() -> Float64Array:
        captions = Captions.from_texts([*candidates, *(t for texts in references for t in texts)])
        (ngrams,) = count_ngrams([(captions.tokens, captions.starts)])
        scored = ngrams.take(np.arange(len(candidates)))
        others = ngrams.take(np.arange(len(candidates), len(captions)))
        owner = np.repeat(np.arange(len(references)), [len(texts) for texts in references])
        (frequencies,) = document_frequencies(others, owner)
        clipped = clipped_counts(scored, others, owner)
        cider = cider_d(scored, others, owner, clipped, frequencies, len(references)).mean()
        totals = np.array([table.sum() for table in scored.tables], np.float64)
        matches = clipped_matches(clipped, owner, len(scored)).sum(axis=0)
        closest = closest_lengths(scored.lengths, others.lengths, owner)
        words, nearest = (np.array(each.sum(), np.float64) for each in (scored.lengths, closest))
        whole = bleu(matches, totals, words, nearest)
        return np.array([cider, *whole])

    def theirs() -> Float64Array:
        cider, _ = Cider().compute_score(gts, res)
        whole, _ = Bleu(4).compute_score(gts, res, verbose=0)
        return np.array([cider, *whole])

    return ours, theirs


def attackers() -> tuple[Numbers, Numbers]:
    """Logistic regressions on n-grams: an attacker of each of ten seeds, tested on a tenth."""
    from sklearn.linear_model import LogisticRegression

    corpus = cell([f"dataset.n_images={N_ATTACKED}"]).corpus()
    grouping = corpus.groupings["gender"]
    words = lowered_words(corpus.model).take(grouping.labelled[corpus.model.image_rows])
    labels = grouping.codes[words.image_rows]
    captions = replace(words, image_rows=np.arange(len(words)))
    data = LabelledCaptions("model", captions, labels, 2)
    drawn = [np.random.default_rng(seed).permutation(len(labels)) for seed in range(N_SEEDS)]
    test = len(labels) // 10
    splits = [
        Split(seed, order[test:], order[:test], order[:0], balanced=False)
        for seed, order in enumerate(drawn)
    ]
    probe = ConvexProbe(Ngram())

    def ours() -> Float64Array:
        return np.concatenate(probe.fit_predict(data, splits).probs)[:, 1]

    def theirs() -> Float64Array:
        items = Ngram().read(data)
        guesses = []
        for split in splits:
            train, tested = split.select(captions.image_rows, labels)
            inputs = items.fit(train)
            one = LogisticRegression(C=probe.inverse_penalty, max_iter=1000, tol=1e-6)
            one.fit(inputs.matrix(train), labels[train])
            guesses.append(one.predict_proba(inputs.matrix(tested))[:, 1])
        return np.concatenate(guesses)

    return ours, theirs


def retrieval() -> tuple[Numbers, Numbers]:
    """How near the nearest of random unit vectors are, by exact search on one thread."""
    import faiss

    generator = np.random.default_rng(0)
    items, queries = (
        generator.standard_normal((n, SIZE)).astype(np.float32) for n in (N_EMBEDDINGS, N_QUERIES)
    )
    items /= np.linalg.norm(items, axis=1, keepdims=True)
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(SIZE)
    index.add(items)

    def ours() -> Float64Array:
        nearest = items[top_ranks(queries, items, DEPTH)]
        return np.einsum("cd,ckd->ck", queries, nearest).astype(np.float64)

    return ours, lambda: index.search(queries, DEPTH)[0].astype(np.float64)


def amplification() -> tuple[Numbers, Numbers]:
    """BA-> from groups to tasks, one task an image: where both define the same number."""
    import torch
    from bias_amplification import DBA

    generator = np.random.default_rng(0)
    groups = np.eye(2)[generator.integers(0, 2, N_IMAGES)]
    tasks, predicted = (np.eye(N_TASKS)[generator.integers(0, N_TASKS, N_IMAGES)] for _ in range(2))
    tensors = [torch.from_numpy(table) for table in (groups, tasks, predicted)]
    torch.set_num_threads(1)

    def ours() -> Float64Array:
        counts = Counts.from_rows(groups, tasks, groups, predicted)
        return np.array([ba_directional(counts, "a_to_t")])

    return ours, lambda: np.array([float(DBA().computeBiasAmp(*tensors)[0])])


PEERS = (
    Peer(
        "bias-amplification",
        f"BA-> of {N_IMAGES:,} images, {N_TASKS} objects, one an image",
        amplification,
    ),
    Peer(
        "pycocoevalcap",
        f"CIDEr-D and BLEU-1 to BLEU-4 of {N_CAPTIONS:,} captions, {N_REFERENCES} references each",
        quality,
    ),
    Peer(
        "scikit-learn",
        f"{N_SEEDS} logistic regressions on n-grams of {N_ATTACKED:,} captions (lbfgs, tol=1e-6)",
        attackers,
    ),
    Peer(
        "faiss-cpu",
        f"the {DEPTH} nearest of {N_EMBEDDINGS:,} vectors of {SIZE} numbers, {N_QUERIES} queries",
        retrieval,
    ),
)


def measure(peer: Peer) -> list[Measured]:
    """Both in turn, after one round that loads libraries."""
    load, day = os.getloadavg()[0], time.strftime("%Y-%m-%d", time.gmtime())
    version, where = importlib.metadata.version(peer.package), machine()
    ours, theirs = peer.both()
    difference = float(np.abs(ours() - theirs()).max())
    rows = []
    for repeat in range(1, REPEATS + 1):
        mine, its = (round(cpu(work), 4) for work in (ours, theirs))
        rows.append(
            Measured(
                peer.package,
                version,
                peer.what,
                repeat,
                mine,
                its,
                difference,
                day,
                round(load, 1),
                where,
            )
        )
    return rows


def cpu(work: Numbers) -> float:
    """Seconds of CPU of this process."""
    started = time.process_time()
    work()
    return time.process_time() - started


def peer_rows() -> list[dict[str, str]]:
    """The rows of ``peers.csv``."""
    if not ROWS.is_file():
        return []
    with ROWS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def record(rows: list[Measured]) -> None:
    """Replace the rows of the same packages."""
    fresh = {row.package for row in rows}
    retained = [row for row in peer_rows() if row["package"] not in fresh]
    lines: list[Mapping[str, object]] = [*retained, *map(asdict, rows)]
    with ROWS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(Measured.__annotations__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            sorted(lines, key=lambda line: (str(line["package"]), str(line["repeat"])))
        )


def main(*packages: str) -> None:
    top = []
    known = {dist.metadata["Name"] for dist in importlib.metadata.distributions()}
    for peer in PEERS:
        if packages and peer.package not in packages:
            continue
        if peer.package not in known:
            print(f"{peer.package} is not installed: its rows stay", file=sys.stderr)
            continue
        with threadpool_limits(1):
            rows = measure(peer)
        record(rows)
        ours, theirs = (median(getattr(row, side) for row in rows) for side in ("ours", "theirs"))
        times = median(row.theirs / row.ours for row in rows)
        what, name = rows[0].what, f"{rows[0].package} {rows[0].version}"
        top.append(beside(what, f"{ours:.3f} s", name, f"{theirs:.3f} s", times))
    note = f"\nSeconds of CPU on one thread, the median of {REPEATS} repeats, both in turn.\n"
    columns = ["what", "ours", "the other", "its", "times as fast"]
    body = table(columns, [line[:-1] for line in top]) + note
    publish("Other libraries", "python -m benchmarks.peers", body, peers=top)


if __name__ == "__main__":
    main(*sys.argv[1:])
