"""Training neural attackers: ours against plain PyTorch, and ensembles against each alone.

RELIC's attacker (``experiment=relic_gender``) on the captions of the embedded data set.

Usage: python -m benchmarks.attackers
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.record import publish, table
from bias_pipeline.attack.lightning_loop import precision
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.io.machine import has_bf16
from bias_pipeline.run.compose import cell

if TYPE_CHECKING:
    import torch

CORES = 2
EPOCHS = 2
PAIRS = 4
IMAGES = 5_000
TARGET_BF16, TARGET = 1.6, 1.3
ENSEMBLES = (1, 4)  # their sizes


@dataclass(frozen=True)
class Study:
    """What is trained.

    Attributes:
        words: overrides that describe the attackers.
        data: captions and labels.
        splits: one attacker each.
    """

    words: Sequence[str]
    data: LabelledCaptions
    splits: Sequence[Split]

    def probe(self, *overrides: str) -> NeuralProbe:
        """The engine as the command line builds it, without a cache."""
        probe: NeuralProbe = cell([*self.words, "probe.cache=null", *overrides]).build("probe")
        return probe

    def first_splits(self, n: int, n_captions: int | None = None) -> Study:
        """The first splits alone, cut to some training captions."""
        cut = [replace(split, train=split.train[:n_captions]) for split in self.splits[:n]]
        return Study(self.words, self.data, cut)


def study(n_seeds: int, n_images: int = IMAGES) -> Study:
    """Masked captions of a captioner with their images' gender."""
    words = ("experiment=relic_gender", "dataset=scenes", f"dataset.n_images={n_images}")
    words += ("alignment.vocabulary=captions", "masking=attribute", f"trainer.max_epochs={EPOCHS}")
    return Study(words, *masked_captions(words, n_seeds))


def masked_captions(words: Sequence[str], n_seeds: int) -> tuple[LabelledCaptions, Sequence[Split]]:
    """A captioner's masked captions with their images' gender, and a split for each seed."""
    built = cell(words)
    corpus = built.corpus()
    splits = built.build("split").draw(corpus, "gender", range(n_seeds))
    for step in ("text", "masking"):
        corpus = built.build(step)(corpus)
    codes = corpus.groupings["gender"].codes
    captions = corpus.model.take(codes[corpus.model.image_rows] >= 0)
    return LabelledCaptions("model", captions, codes[captions.image_rows], 2), splits


def ours(study: Study, probe: NeuralProbe, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of all trainings, predictions included."""
    started = clock()
    probe.fit_predict(study.data, study.splits)
    return clock() - started


def seconds_in_plain_code(study: Study) -> float:
    """Seconds of the same attackers one after the other, in straightforward code.

    The same networks on the same batches, in float32, PyTorch on all cores.
    """
    import torch

    torch.set_num_threads(CORES)
    recipe = study.probe().recipe
    started = time.perf_counter()
    for split in study.splits:
        _train_plainly(study, split, recipe.trainer["max_epochs"])
    return time.perf_counter() - started


def _train_plainly(study: Study, split: Split, epochs: int) -> torch.Tensor:
    import torch

    from bias_pipeline.attack.attacker import LengthBatches, tensors

    recipe = study.probe().recipe
    rows, test_rows = split.select(study.data.captions.image_rows, study.data.labels)
    torch.manual_seed(split.seed)
    inputs = recipe.encoder.read(study.data).fit(rows)
    encoder = recipe.encoder.build(inputs)
    net = torch.nn.ModuleList([encoder, recipe.head.build(int(encoder.output_dim), 1)])  # type: ignore[arg-type]
    optimizer = recipe.optimizer.build(net)
    targets = torch.from_numpy(study.data.labels[rows]).float()
    batches = LengthBatches(inputs, rows, targets, recipe.batch_size, split.seed)
    for _ in range(epochs):
        for batch in batches:
            outputs = net[1](net[0](**batch.inputs))[:, 0]
            optimizer.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(outputs, batch.targets)
            loss.backward()
            optimizer.step()
    net.eval()
    with torch.no_grad():
        probabilities: torch.Tensor = net[1](net[0](**tensors(inputs, test_rows))).sigmoid()
    return probabilities


def processes_table(study: Study) -> str:
    """Plain PyTorch and ours in turn, several times."""
    probe = study.probe(f"probe.processes={CORES}")
    ours(study.first_splits(CORES, 64), probe)  # processes start once a run, not once an attacker
    pairs = [(seconds_in_plain_code(study), ours(study, probe)) for _ in range(PAIRS)]
    lines = [[str(n), *_times(*pair)] for n, pair in enumerate(pairs, start=1)]
    middle = median(one / two for one, two in pairs)
    target = TARGET_BF16 if has_bf16() else TARGET
    verdict = "met" if middle >= target else "missed"
    lines.append(["**median**", "", "", f"**{middle:.2f}** (target {target}: {verdict})"])
    header = ["pair", f"plain PyTorch, {CORES} threads (s)", f"ours, {CORES} processes (s)"]
    return table([*header, "times as fast"], lines)


def ensembles_table(study: Study, accelerator: str, sizes: Sequence[int]) -> str:
    """The same attackers in one process, alone and as ensembles of growing size.

    Without a GPU the time is CPU seconds of one thread, which other work hardly changes.
    """
    clock = time.perf_counter if accelerator == "gpu" else time.process_time
    words = ("probe.processes=1", f"trainer.accelerator={accelerator}")
    words += ("trainer.precision=32-true", "trainer.max_epochs=1")
    probes = {size: study.probe(*words, f"probe.ensemble={size}") for size in sizes}
    if accelerator == "gpu":
        ours(
            study.first_splits(2, 256), probes[sizes[-1]]
        )  # the first products choose their kernels
    seconds = {size: ours(study, probe, clock) for size, probe in probes.items()}
    alone = seconds[sizes[0]]
    n = len(study.splits)
    lines = [[str(s), f"{t / n:.2f}", f"{alone / t:.2f}"] for s, t in seconds.items()]
    unit = "seconds an attacker" if accelerator == "gpu" else "seconds of CPU an attacker"
    header = [f"attackers at once ({accelerator})", unit, "times as fast as alone"]
    return table(header, lines)


def _times(one: float, two: float) -> list[str]:
    return [f"{one:.1f}", f"{two:.1f}", f"{one / two:.2f}"]


def main() -> None:
    import torch

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    all_splits = study(max(CORES, *ENSEMBLES))
    n_captions = len(
        all_splits.splits[0].select(all_splits.data.captions.image_rows, all_splits.data.labels)[0]
    )
    print(f"load {load:.1f} before the start", file=sys.stderr)
    body = (
        f"{CORES} attackers of RELIC's size, `encoder=bilstm head=linear`, {EPOCHS} epochs of "
        f"{n_captions:,} captions, both ways in turn; torch {torch.__version__}, "
        f"ours in {precision({'accelerator': 'cpu'})}; load of the machine at the start "
        f"{load:.1f}.\n\n"
    )
    body += processes_table(all_splits.first_splits(CORES))
    body += "\nOne process, one epoch, float32; alone and stacked (`probe.ensemble`):\n\n"
    body += ensembles_table(all_splits, "cpu", ENSEMBLES)
    body += "\nEnsembles are for GPUs: see `A GPU: stacked attackers`.\n"
    publish(f"Neural attackers, {CORES} cores", "python -m benchmarks.attackers", body)


if __name__ == "__main__":
    main()
