"""Frozen encoders: throughput beside sentence-transformers, heads on kept vectors, alignment.

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

from benchmarks.record import publish, real_data, table
from benchmarks.text import texts_of
from bias_pipeline.config.compose import cell
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.predictions import Labelled
from bias_pipeline.encoders.frozen import distinct

PAIRS, CAPTIONS = 3, 2000
SEEDS, HEADS = 10, ("linear", "mlp3", "lic_bert")
ALIGNED = 100_000
TARGET_HEADS, TARGET_THROUGHPUT, TARGET_ALIGN = 1.3, 1.0, 10.0


def words() -> list[str]:
    """The cell whose captions are embedded."""
    data = real_data()
    found = ["encoder=minilm", "attribute=gender"]
    return [*found, "dataset=lic", f"dataset.root={data}", "captioner=sat"] if data else found


def cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of CPU, and what came out."""
    started = time.process_time()
    found = run()
    return time.process_time() - started, found


def throughput() -> str:
    """Ours and sentence-transformers', the same model on the same captions."""
    import torch
    from sentence_transformers import SentenceTransformer

    encoder = cell([*words(), "encoder.cache=null"]).build("encoder")
    texts = distinct(captions().captions)[0][:CAPTIONS]
    ours = encoder._load()
    theirs = SentenceTransformer(str(encoder.found.folder), device="cpu")
    plain = [text.replace("<gender>", "[MASK]").replace("<unk>", "[UNK]") for text in texts]
    torch.set_num_threads(1)
    lines, ratios = [], []
    for number in range(1, PAIRS + 1):
        one, expected = cpu(lambda: theirs.encode(plain, show_progress_bar=False))
        two, found = cpu(lambda: ours.embed(texts))
        off = float(np.abs(found - expected).max())
        ratios.append(one / two)
        rates = (f"{len(texts) / own:.0f}" for own in (one, two))
        lines.append([str(number), *rates, f"{one / two:.2f}", f"{off:.1e}"])
    middle = median(ratios)
    verdict = "met" if middle >= TARGET_THROUGHPUT else "missed"
    told = f"**{middle:.2f}** (target {TARGET_THROUGHPUT}: {verdict})"
    lines.append(["**median**", "", "", told, ""])
    header = ["pair", "sentence-transformers", "here", "times as fast", "largest difference"]
    return table(header, lines) + f"\nCaptions a second of CPU; {len(texts):,} distinct captions.\n"


def captions(side: str = "model") -> Labelled:
    """Masked captions of a side, one an image, with their images' groups."""
    found = cell(words())
    corpus = found.corpus()
    for step in ("text", "masking"):
        corpus = found.build(step)(corpus)
    codes = corpus.groupings["gender"].codes
    first = next(iter(corpus.side(side).by_position(1)))
    own = first.take(codes[first.image_rows] >= 0)
    return Labelled(side, own, codes[own.image_rows], 2)


def heads() -> str:
    """All seeds and heads on kept vectors, beside the pass that made the vectors, side by side."""
    lines, totals = [], [0.0, 0.0]
    for side in SIDES:
        data = captions(side)
        embedding, seconds = _one_side(data)
        totals = [totals[0] + embedding, totals[1] + sum(seconds)]
        each = [f"{own:.1f}" for own in (embedding, *seconds)]
        size = f"{len(data.captions):,}, {len(distinct(data.captions)[0]):,} distinct"
        lines.append([side, size, *each, f"{sum(seconds) / embedding:.2f}"])
    ratio = totals[1] / totals[0]
    verdict = "met" if ratio <= TARGET_HEADS else "missed"
    told = f"**{ratio:.2f}** (target {TARGET_HEADS}: {verdict})"
    lines.append(["**both**", "", f"{totals[0]:.1f}", "", "", "", told])
    names = [f"{SEEDS} x {name} (s)" for name in HEADS]
    return table(["side", "captions", "one pass (s)", *names, "heads to pass"], lines)


def _one_side(data: Labelled) -> tuple[float, list[float]]:
    """Seconds of the pass, and of each head's attackers, all seeds at once."""
    with tempfile.TemporaryDirectory() as folder:
        own = [*words(), f"encoder.cache={folder}", "probe.cache=null", "probe.processes=1"]
        first = cell(own)
        splits = first.build("split").draw(first.corpus(), "gender", range(SEEDS))
        embedding, _ = cpu(lambda: first.build("encoder").prepare(data))
        probes = [cell([*own, f"head={name}"]).build("probe") for name in HEADS]
        short = cell([*own, "trainer.max_epochs=1"]).build("probe")
        short.fit_predict(data, splits[:1])  # libraries are loaded once a process
        return embedding, [cpu(lambda p=p: p.fit_predict(data, splits))[0] for p in probes]  # type: ignore[misc]


def alignment() -> str:
    """Contextual alignment with GloVe, nothing kept before."""
    data = real_data()
    where = ["dataset=lic", f"dataset.root={data}", "captioner=sat"] if data else []
    once, steps = texts_of("", *where, "alignment=contextual", "alignment.cache=null")
    many = once.replicated(ALIGNED)
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
    body += f"{throughput()}\n{heads()}\n"
    body += "Heads are trained stacked. Contextual alignment, GloVe 6B of 50 numbers:\n\n"
    publish("Frozen encoders, one core", "python -m benchmarks.encoders", body + alignment())


if __name__ == "__main__":
    main()
