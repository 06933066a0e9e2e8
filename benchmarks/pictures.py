"""Scenes drawn per second, one training of SAT on them, and other seeds on stored regions.

Usage: python -m benchmarks.pictures
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from benchmarks.record import publish, table
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.run.compose import cell
from bias_pipeline.scenes.pixels import SceneDrawing
from bias_pipeline.scenes.world import generate

N_IMAGES, DRAWN_SIDE, EPOCHS = 2000, 128, 10
PICTURES_TARGET, TRAINING_TARGET, SEED_TARGET = 500.0, 90.0, 0.5
ARCHITECTURE = "resnet18"


@dataclass(frozen=True)
class Took:
    """Seconds by the clock and of processors."""

    wall: float
    processor: float


def time_work(work: Callable[[], object]) -> Took:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - wall, time.process_time() - processor)


def drawing() -> Took:
    images = generate(N_IMAGES).images
    return time_work(lambda: [SceneDrawing(image, "gender").draw(DRAWN_SIDE) for image in images])


def make_probe(folder: Path, *words: str) -> tuple[NeuralProbe, LabelledCaptions, list[Split]]:
    """A probe, the captioner's captions with their masked pictures, and two splits."""
    built = cell(
        [
            *("metric=imagecaptioner2", f"dataset.n_images={N_IMAGES}"),
            *("probe.processes=1", f"paths.outputs={folder}", "split.balanced=false", *words),
        ]
    )
    metric, corpus = built.build("metric"), built.corpus()
    transformed = metric.transform(metric.transforms, corpus)
    grouping = transformed.groupings["gender"]
    captions = transformed.model.take(grouping.codes[transformed.model.image_rows] >= 0)
    labels = grouping.codes[captions.image_rows]
    data = LabelledCaptions("model", captions, labels, 2, grouping.names)
    splits = metric.draw_splits(corpus, (0, 12))
    return metric.probe, metric.with_inputs(data, transformed), splits


def network(folder: Path) -> str:
    """A network of timm with random weights, whose cost is that of a trained one."""
    import timm  # not before bias_pipeline, which makes torchvision importable for it

    folder.mkdir()
    torch.manual_seed(0)
    model = timm.create_model(ARCHITECTURE, pretrained=False, num_classes=10)
    save_file(model.state_dict(), folder / "model.safetensors")
    config = {"architecture": ARCHITECTURE, "num_classes": 10}
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def training(folder: Path, *words: str) -> tuple[Took, Took, int]:
    """The first seed, the second one, and how many captions each learns from."""
    probe, data, splits = make_probe(folder, *words)
    first, second = (
        time_work(lambda split=split: probe.fit_predict(data, [split]))  # type: ignore[misc]
        for split in splits
    )
    return first, second, len(np.asarray(splits[0].train))


def main() -> None:
    drawn = drawing()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sat = ("encoder=sat", f"trainer.max_epochs={EPOCHS}")
        first, _, n_train = training(folder / "own", *sat)
        frozen = f"encoder.backbone=timm:{network(folder / 'net')}"
        looked, cached, _ = training(folder / "frozen", *sat, frozen)
    lines = [
        [f"{N_IMAGES} scenes drawn at {DRAWN_SIDE} pixels", drawn],
        [f"SAT, own network, {n_train} of {N_IMAGES} scenes, {EPOCHS} epochs", first],
        [f"SAT, {ARCHITECTURE} frozen: the first seed looks at all pictures", looked],
        ["SAT, the second seed on the regions that were kept", cached],
    ]
    shown = [[what, f"{usage.wall:.1f}", f"{usage.processor:.1f}"] for what, usage in lines]
    rate, ratio = N_IMAGES / drawn.wall, cached.wall / looked.wall
    verdicts = (
        f"{rate:.0f} pictures a second on one core (target on two: {PICTURES_TARGET:.0f}). One "
        f"training {first.wall:.0f} s (target at most {TRAINING_TARGET:.0f}). A second seed takes "
        f"{ratio:.2f} of the first (target at most {SEED_TARGET}).\n"
    )
    body = table(["what", "seconds", "processor seconds"], shown) + "\n" + verdicts
    publish("Pictures", "python -m benchmarks.pictures", body)


if __name__ == "__main__":
    main()
