"""What a GPU changes: whether predictions stay equal, and times beside those of the processor.

Large models have random weights of the published sizes. Each part has a section of its own, so
that parts can be measured alone, on machines that are lent for minutes.

Usage: python -m benchmarks.gpu [PHOTOS [PART ...]]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attackers import ensembles_table, masked_captions, study
from benchmarks.cells import run
from benchmarks.likelihoods import random_gpt2
from benchmarks.photos import DATA, write_blip_base, write_elsewhere, write_vit_b_32
from benchmarks.pictures import make_probe, time_work
from benchmarks.record import publish, table
from bias_pipeline.corpus.predictions import LabelledCaptions, Predictions
from bias_pipeline.corpus.split import Split
from bias_pipeline.language.language_model import LanguageModel
from bias_pipeline.models.blocks import read_block
from bias_pipeline.run.compose import cell

N_IMAGES, N_ATTACKED, N_BERT, N_TEXTS = 1_000, 5_000, 200, 2_000
N_PHOTOS, N_SLOW = 2_000, 64  # of the GPU, of the processor
EPOCHS, SEEDS = 3, 10
SCRATCH = ("lstm", "bilstm", "rnn", "birnn", "transformer1", "transformer5")
ENSEMBLES = (1, 2, 5, 10)  # their sizes
ROOMS = (3.0, 2.4, 1.9)  # GiB
CPU, GPU = "trainer.accelerator=cpu", "trainer.accelerator=gpu"
FULL, BF16 = "trainer.precision=32-true", "trainer.precision=bf16-mixed"
BERT_BASE = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "initializer_range": 0.02,
    "attention_probs_dropout_prob": 0.0,
    "hidden_dropout_prob": 0.0,
}
_RATE = re.compile(r"images in [\d.]+ s: ([\d.]+) images/s")


def predict(
    words: Sequence[str], data: LabelledCaptions, splits: Sequence[Split]
) -> tuple[float, Predictions]:
    """Seconds, and predictions of fresh attackers."""
    probe = cell([*words, "probe.cache=null"]).build("probe")
    started = time.perf_counter()
    result = probe.fit_predict(data, splits)
    return time.perf_counter() - started, result


def same_predictions() -> str:
    """One attacker of each kind on a processor and on the GPU, without dropout."""
    lines = []
    for encoder in SCRATCH:
        words = [f"encoder={encoder}", "encoder.dropout=0", "head.dropout=0", FULL]
        words += [f"trainer.max_epochs={EPOCHS}", "probe.ensemble=1"]
        data, splits = masked_captions([*words, f"dataset.n_images={N_IMAGES}"], 1)
        (_, here), (_, there) = (predict([*words, w], data, splits) for w in (CPU, GPU))
        gaps = np.abs(here.probs[0] - there.probs[0])
        lines.append([encoder, f"{gaps.max():.1e}", f"{gaps.mean():.1e}"])
    note = f"\n{EPOCHS} epochs in float32 without dropout, {N_IMAGES:,} scenes.\n"
    return table(["encoder", "largest difference of a probability", "mean"], lines) + note


def ensembles() -> str:
    """RELIC's attacker, alone and stacked."""
    return ensembles_table(study(ENSEMBLES[-1], 2 * N_IMAGES), ENSEMBLES)


def training() -> str:
    """Attackers: ten seeds in a process each, and BERT base on one core, beside the GPU."""
    lines = []
    for encoder in ("bilstm", "transformer5"):
        words = [f"encoder={encoder}", f"trainer.max_epochs={EPOCHS}"]
        data, splits = masked_captions([*words, f"dataset.n_images={N_ATTACKED}"], SEEDS)
        lines.append([f"{encoder}, {SEEDS} seeds", *_compare_both(words, data, splits), "", ""])
    with tempfile.TemporaryDirectory() as place:
        words = [*_bert(Path(place)), "trainer.max_epochs=1"]
        data, splits = masked_captions([*words, f"dataset.n_images={N_BERT}"], 1)
        cells = _compare_both(words, data, splits)
        fast, _ = predict([*words, GPU, BF16], data, splits)
        times = f"{float(cells[0]) / fast:.1f}"
        lines.append(["BERT base, fine-tuned, 1 seed", *cells, f"{fast:.1f}", times])
    header = ["what", "processor (s)", "GPU, float32 (s)", "times", "GPU, bfloat16 (s)", "times"]
    note = (
        f"\n{os.cpu_count()} cores, a process for each seed. {N_ATTACKED:,} scenes, {EPOCHS} "
        f"epochs; BERT: {N_BERT:,}, one epoch, in bfloat16 with the choice of kernels.\n"
    )
    return table(header, lines) + note


def _compare_both(
    words: Sequence[str], data: LabelledCaptions, splits: Sequence[Split]
) -> list[str]:
    predict([*words, GPU, "trainer.max_epochs=1", FULL], data, splits[:2])  # kernels are chosen
    fast, _ = predict([*words, GPU, FULL], data, splits)
    slow, _ = predict([*words, CPU], data, splits)
    return [f"{slow:.1f}", f"{fast:.1f}", f"{slow / fast:.1f}"]


def pictures() -> str:
    """SAT and GRIT from pixels: one training, a core beside the GPU."""
    cases = {"SAT, own network, 2 epochs": ("sat", 2), "GRIT, small, 1 epoch": ("grit", 1)}
    lines = []
    for name, (encoder, n_epochs) in cases.items():
        words = [f"encoder={encoder}", FULL]
        _training_seconds([*words, GPU, "trainer.max_epochs=1"])  # kernels are chosen
        gpu, cpu = (
            _training_seconds([*words, f"trainer.max_epochs={n_epochs}", w]) for w in (GPU, CPU)
        )
        lines.append([name, f"{cpu:.1f}", f"{gpu:.1f}", f"{cpu / gpu:.1f}"])
    return table(["what", "one core (s)", "GPU (s)", "times"], lines)


def _training_seconds(words: Sequence[str]) -> float:
    """Seconds of a training with its predictions."""
    with tempfile.TemporaryDirectory() as place:
        probe, data, splits = make_probe(Path(place), *words)
        return time_work(lambda: probe.fit_predict(data, splits[:1])).wall


def write_bert_base(folder: Path) -> None:
    """BERT base without dropout: 86 million weights, and a tokenizer of few words."""
    from tests.tiny_models import write_bert

    write_bert(folder, **BERT_BASE)


def _bert(place: Path) -> list[str]:
    write_elsewhere(write_bert_base, place / "bert")
    return ["encoder=bert", f"encoder.model={place / 'bert'}", "head.dropout=0"]


def photos(folder: Path) -> str:
    """``embed`` and ``caption`` of photos, by all cores and by the GPU."""
    cores = str(os.cpu_count())
    gpu = ["--device", "cuda", "--threads", cores, "--batch", "64"]
    cpu = ["--device", "cpu", "--threads", cores]
    cases: Mapping[str, tuple[str, Callable[[Path], Any], list[list[str]]]] = {
        "`embed`, CLIP ViT-B/32": ("embed", write_vit_b_32, [cpu, gpu]),
        "`caption`, BLIP base, 30 tokens": (
            "caption",
            write_blip_base,
            [cpu, gpu, [*gpu, "--dtype", "bfloat16"]],
        ),
    }
    lines = []
    for name, (command, write, ways) in cases.items():
        with tempfile.TemporaryDirectory() as made:
            place, results = Path(made), []
            write_elsewhere(write, place / "model")
            for number, way in enumerate(ways):
                shown = _first_photos(folder, place / f"photos{number}", slow=way is cpu)
                out = place / f"out{number}"
                model = ["--model", str(place / "model"), "--out", str(out)]
                busy = _busy_share(partial(run, [command, str(shown), *model, *way], place))
                match = _RATE.search((place / "bench.log").read_text(encoding="utf-8"))
                assert match is not None
                results.append(_values(out))
                equal = f"{_share_equal(results[-1], results[0]):.1%}"
                share = "" if way is cpu else f"{busy:.0%}"
                how = f"`{' '.join(way)}`"
                lines.append([name, how, str(len(results[-1])), match[1], share, equal])
    note = "\nVectors are equal within 1e-5, captions word for word, on the processor's photos.\n"
    header = ["what", "how", "photos", "images/s", "GPU busy", "equal to the processor's"]
    return table(header, lines) + note


def _first_photos(folder: Path, place: Path, *, slow: bool) -> Path:
    """A folder of the first photos of another; of fewer if they are slow."""
    place.mkdir()
    for path in sorted(folder.iterdir())[: N_SLOW if slow else N_PHOTOS]:
        (place / path.name).symlink_to(path)
    return place


def _busy_share(work: Callable[[], object]) -> float:
    """The share of time in which the GPU computes, from its first computation to its last."""
    command = ["nvidia-smi", "--id=0", "--query-gpu=utilization.gpu", "--loop-ms=200"]
    command.append("--format=csv,noheader,nounits")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watch:
        try:
            work()
        finally:
            watch.terminate()
        shares = np.array(watch.communicate()[0].split(), float)
    computing = np.flatnonzero(shares)
    return shares[computing[0] : computing[-1] + 1].mean() / 100 if len(computing) else 0.0


def _values(out: Path) -> dict[str, Any]:
    """What was computed of each photo."""
    rows: dict[str, Any] = {}
    for path in out.glob("*/blocks/*/*.block"):
        block = read_block(path)
        assert block is not None
        rows |= dict(zip(block["id"].to_pylist(), block["value"].to_pylist(), strict=True))
    return rows


def _share_equal(values: Mapping[str, Any], others: Mapping[str, Any]) -> float:
    """Of the photos in both."""
    pairs = [(values[name], others[name]) for name in others]
    if isinstance(pairs[0][0][0], str):
        return float(np.mean([value == other for value, other in pairs]))
    return float(np.mean([np.abs(np.subtract(*pair)).max() <= 1e-5 for pair in pairs]))


def likelihoods() -> str:
    """GPT-2 of the published size: log probabilities of captions."""
    captions = cell(["dataset.n_images=20000"]).corpus().model
    texts = sorted({captions.text(row).lower() for row in range(len(captions))})[:N_TEXTS]
    lines, vectors = [], {}
    with tempfile.TemporaryDirectory() as place:
        model = str(random_gpt2(Path(place), texts))
        for device in ("cuda", "cpu"):
            judge = LanguageModel(model, device=device)._load()
            judge.embed(texts[:64])  # kernels are chosen
            started = time.perf_counter()
            vectors[device] = judge.embed(texts)
            lines.append([device, f"{len(texts) / (time.perf_counter() - started):.0f}"])
    off = float(np.abs(vectors["cuda"] - vectors["cpu"]).max())
    note = f"\nLargest difference of a log probability: {off:.1e}. {os.cpu_count()} cores.\n"
    return table(["GPT-2, random weights, on", "texts a second"], lines) + note


def cells() -> str:
    """All captioners on the GPU, one cell or two at a time."""
    lines = []
    for devices in ("[0]", "[0,0]"):
        with tempfile.TemporaryDirectory() as place:
            words = ["trainer=gpu", "encoder=bilstm", "captioner=all", "seeds=2"]
            words += [f"dataset.n_images={N_IMAGES}", f"paths.outputs={place}/outputs"]
            usage = run([*words, f"devices={devices}"], Path(place))
            lines.append([f"`{devices}`", f"{usage.wall:.1f}"])
    return table(["`devices`", "seconds"], lines)


def shortage() -> str:
    """BERT base with little memory on the GPU: how it is trained, and as what."""
    import torch

    lines = []
    with tempfile.TemporaryDirectory() as place:
        words = [*_bert(Path(place)), "trainer.max_epochs=1", GPU, FULL, "attacker.batch_size=256"]
        data, splits = masked_captions([*words, f"dataset.n_images={N_IMAGES}"], 1)
        _, whole = predict(words, data, splits)
        total = torch.cuda.get_device_properties(0).total_memory
        for room in ROOMS:
            torch.cuda.empty_cache()
            torch.cuda.set_per_process_memory_fraction(room * 2**30 / total)
            took, cut = predict(words, data, splits)
            parts = [str(step["then_parts"]) for step in cut.training.out_of_memory]
            gap = np.abs(cut.probs[0] - whole.probs[0]).max()
            lines.append([f"{room:g}", ", ".join(parts), f"{took:.1f}", f"{gap:.1e}"])
        torch.cuda.set_per_process_memory_fraction(1.0)
    header = ["memory (GiB)", "batches were cut into parts", "seconds", "largest difference"]
    return table(header, lines)


def main(folder: str = str(DATA / "photos" / "images"), *parts: str) -> None:
    import torch

    if not torch.cuda.is_available():
        print("no GPU: not measured")
        return
    measurements: Mapping[str, tuple[str, Callable[[], str]]] = {
        "same_predictions": ("predictions", same_predictions),
        "ensembles": ("stacked attackers", ensembles),
        "training": ("attackers", training),
        "pictures": ("SAT and GRIT", pictures),
        "photos": ("photos", lambda: photos(Path(folder).resolve())),
        "likelihoods": ("language model", likelihoods),
        "cells": ("whole cells", cells),
        "shortage": ("little memory", shortage),
    }
    card = f"{torch.cuda.get_device_name()}, torch {torch.__version__}.\n\n"
    for part in parts or measurements:
        title, measure = measurements[part]
        publish(f"A GPU: {title}", f"python -m benchmarks.gpu PHOTOS {part}", card + measure())


if __name__ == "__main__":
    main(*sys.argv[1:])
