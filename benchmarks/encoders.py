"""Frozen encoders: throughput compared with sentence-transformers, heads, alignment.

Usage: python -m benchmarks.encoders

On real captions where they are, else on those of the embedded data set. Seconds are of CPU on one
thread, ours and theirs in turn, so that other work on the machine moves both alike.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from benchmarks.record import beside, met, publish, real_data, table
from benchmarks.text import texts_of
from bias_pipeline.attack.language_models import distinct_texts
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.io.machine import has_bf16
from bias_pipeline.run.compose import cell

PAIRS, CAPTIONS = 3, 2000
SEEDS, HEADS = 10, ("linear", "mlp3", "lic_bert")
ALIGNED = 100_000
TARGET_HEADS, TARGET_THROUGHPUT, TARGET_ALIGN = 1.3, 1.0, 10.0
TARGET_HALF, TARGET_COSINE = 1.88, 0.99998


def words() -> list[str]:
    """The cell whose captions are embedded."""
    data = real_data()
    overrides = ["encoder=minilm", "attribute=gender", "split=lic"]
    return (
        [*overrides, "dataset=lic", f"dataset.root={data}", "captioner=sat"] if data else overrides
    )


def cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of CPU, and the result."""
    started = time.process_time()
    result = run()
    return time.process_time() - started, result


def throughput() -> tuple[str, list[str]]:
    """Ours and sentence-transformers', the same model on the same captions; and the row on top."""
    import torch
    from sentence_transformers import SentenceTransformer

    encoder = cell([*words(), "encoder.cache=null"]).build("encoder")
    texts = distinct_texts(captions().captions)[0][:CAPTIONS]
    ours = encoder._load()
    theirs = SentenceTransformer(str(encoder.pretrained_model.folder), device="cpu")
    plain = [text.replace("<gender>", "[MASK]").replace("<unk>", "[UNK]") for text in texts]
    torch.set_num_threads(1)
    lines, ratios = [], []
    for number in range(1, PAIRS + 1):
        one, expected = cpu(lambda: theirs.encode(plain, show_progress_bar=False))
        two, vectors = cpu(lambda: ours.embed(texts))
        off = float(np.abs(vectors - expected).max())
        ratios.append(one / two)
        rates = (f"{len(texts) / seconds:.0f}" for seconds in (one, two))
        lines.append([str(number), *rates, f"{one / two:.2f}", f"{off:.1e}"])
    middle = median(ratios)
    summary = f"**{middle:.2f}** (target {TARGET_THROUGHPUT}: {met(middle >= TARGET_THROUGHPUT)})"
    lines.append(["**median**", "", "", summary, ""])
    header = ["pair", "sentence-transformers", "here", "times as fast", "largest difference"]
    _, its, mine, *_ = lines[0]
    shown = f"{mine} captions/s", "sentence-transformers", f"{its} captions/s"
    row = beside("vectors of captions by MiniLM", *shown, middle, TARGET_THROUGHPUT)
    note = f"\nCaptions a second of CPU; {len(texts):,} distinct captions.\n"
    return table(header, lines) + note, row


def half_precision() -> tuple[str, list[list[str]]]:
    """The same captions in bfloat16, in turn with float32; and two bars."""
    texts = distinct_texts(captions().captions)[0][:CAPTIONS]
    one, two = (
        cell([*words(), "encoder.cache=null", f"encoder.dtype={dtype}"]).build("encoder")._load()
        for dtype in ("float32", "bfloat16")
    )
    ratios, cosine = [], 1.0
    for _ in range(PAIRS):
        whole, expected = cpu(lambda: one.embed(texts))
        half, vectors = cpu(lambda: two.embed(texts))
        ratios.append(whole / half)
        norms = np.linalg.norm(expected, axis=1) * np.linalg.norm(vectors, axis=1)
        cosine = min(cosine, float(((expected * vectors).sum(axis=1) / norms).min()))
    faster, name = median(ratios), "frozen encoder in bfloat16"
    body = (
        f"`encoder.dtype=bfloat16` takes **{faster:.2f}** times less CPU than float32 "
        f"(median of {PAIRS} pairs); least cosine of a vector with its float32 {cosine:.6f}.\n"
    )
    return body, [
        [
            f"{name}, times as fast as float32",
            *("", f"{faster:.2f}", "", f"{TARGET_HALF}", met(faster >= TARGET_HALF)),
        ],
        [
            f"{name}, least cosine",
            *("", f"{cosine:.6f}", "", f"{TARGET_COSINE}", met(cosine >= TARGET_COSINE)),
        ],
    ]


def captions(side: str = "model") -> LabelledCaptions:
    """Masked captions of a side, one an image, with their images' groups."""
    built = cell(words())
    corpus = built.corpus()
    for step in ("text", "masking"):
        corpus = built.build(step)(corpus)
    codes = corpus.groupings["gender"].codes
    first = next(iter(corpus.side(side).by_position(1)))
    labelled = first.take(codes[first.image_rows] >= 0)
    return LabelledCaptions(side, labelled, codes[labelled.image_rows], 2)


def heads() -> str:
    """Seconds of all seeds and heads on stored vectors, and of computing these, for both sides."""
    lines, totals = [], [0.0, 0.0]
    for side in SIDES:
        data = captions(side)
        embedding, seconds = _one_side(data)
        totals = [totals[0] + embedding, totals[1] + sum(seconds)]
        each = [f"{number:.1f}" for number in (embedding, *seconds)]
        size = f"{len(data.captions):,}, {len(distinct_texts(data.captions)[0]):,} distinct"
        lines.append([side, size, *each, f"{sum(seconds) / embedding:.2f}"])
    ratio = totals[1] / totals[0]
    verdict = "met" if ratio <= TARGET_HEADS else "missed"
    summary = f"**{ratio:.2f}** (target {TARGET_HEADS}: {verdict})"
    lines.append(["**both**", "", f"{totals[0]:.1f}", "", "", "", summary])
    names = [f"{SEEDS} x {name} (s)" for name in HEADS]
    return table(["side", "captions", "one pass (s)", *names, "heads to pass"], lines)


def _one_side(data: LabelledCaptions) -> tuple[float, list[float]]:
    """Seconds of the pass, and of each head's attackers, all seeds at once."""
    with tempfile.TemporaryDirectory() as folder:
        overrides = [*words(), f"encoder.cache={folder}", "probe.cache=null", "probe.processes=1"]
        first = cell(overrides)
        splits = first.build("split").draw(first.corpus(), "gender", range(SEEDS))
        embedding, _ = cpu(lambda: first.build("encoder").prepare(data))
        probes = [cell([*overrides, f"head={name}"]).build("probe") for name in HEADS]
        short = cell([*overrides, "trainer.max_epochs=1"]).build("probe")
        short.fit_predict(data, splits[:1])  # libraries are loaded once a process
        return embedding, [cpu(lambda p=p: p.fit_predict(data, splits))[0] for p in probes]  # type: ignore[misc]


def alignment() -> str:
    """Contextual alignment with GloVe, nothing kept before."""
    data = real_data()
    where = ["dataset=lic", f"dataset.root={data}", "captioner=sat"] if data else []
    once, steps = texts_of("", *where, "alignment=contextual", "alignment.cache=null")
    many = once.repeat(ALIGNED)
    sides = (Captions.from_texts(many.model), Captions.from_texts(many.human))
    corpus = Corpus("bench", "bench", (), *sides, groupings={})
    for step in ("tokenise", "mask"):
        corpus = steps[step](corpus)
    seconds, _ = cpu(lambda: steps["align"](corpus))
    verdict = "met" if seconds <= TARGET_ALIGN else "missed"
    unknown = len(steps["align"].unknown_words(corpus, "human"))
    line = [f"{len(many):,}", f"{unknown:,}", f"{seconds:.2f}", f"{TARGET_ALIGN:.0f} s ({verdict})"]
    return table(["captions", "words to be replaced", "CPU s", "target"], [line])


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch
    import transformers

    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    body = (
        f"all-MiniLM-L6-v2, one thread; torch {torch.__version__}, transformers "
        f"{transformers.__version__}; load of the machine at the start {load:.1f}.\n\n"
    )
    whole, row = throughput()
    half, bars = half_precision() if has_bf16() else ("This processor has no bfloat16.\n", [])
    body += f"{whole}\n{half}\n"
    body += f"{heads()}\n"
    body += "Heads are trained stacked. Contextual alignment, GloVe 6B of 50 numbers:\n\n"
    command = "python -m benchmarks.encoders"
    publish("Frozen encoders, one core", command, body + alignment(), peers=[row], bars=bars)


if __name__ == "__main__":
    main()
