"""One training of GRIT in its small size, and deformable attention compared with transformers'.

Usage: python -m benchmarks.grit
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.pictures import N_IMAGES, training
from benchmarks.record import beside, publish, table
from bias_pipeline.pictures.grit.detector import Shape, deformable_attention
from bias_pipeline.pictures.grit.sizes import SIZES, GritSize

TRAINING_TARGET, RATIO_TARGET, ROUNDS = 180.0, 1.0, 20
# Pictures at once in training, and when the released network only looks.
BATCHES = {"small": 32, "released": 8}


def draw_layer(size: GritSize, n_rows: int) -> tuple[list[Shape], list[Tensor]]:
    """Shapes, and values, places and weights of one layer."""
    coarsest = size.side // size.patch // 2 ** len(size.depths)
    sides = [coarsest * 2**level for level in reversed(range(size.n_levels))]
    shapes = [(side, side) for side in sides]
    torch.manual_seed(0)
    heads, sampling = size.n_heads, (size.n_levels, size.n_points)
    values = torch.randn(n_rows, sum(side**2 for side in sides), heads, size.size // heads)
    places = torch.rand(n_rows, size.n_regions, heads, *sampling, 2)
    weights = torch.rand(n_rows, size.n_regions, heads, *sampling)
    return shapes, [part.requires_grad_() for part in (values, places, weights)]


def fastest(works: list[Callable[[], object]]) -> list[float]:
    """Processor seconds of each, the least of many rounds that take turns."""
    times = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for number, work in enumerate(works):
            start = time.thread_time()
            work()
            times[number] = min(times[number], time.thread_time() - start)
    return times


def attention(name: str, *, learns: bool) -> list[str]:
    """Milliseconds of ours and of transformers', and their ratio."""
    # Not before bias_pipeline, which makes torchvision importable for it.
    from transformers.models.deformable_detr.modeling_deformable_detr import (
        MultiScaleDeformableAttention,
    )

    shapes, inputs = draw_layer(SIZES[name], BATCHES[name])
    theirs, shape_tensor = MultiScaleDeformableAttention(), torch.tensor(shapes)

    def ours() -> Tensor:
        values, places, weights = inputs
        return deformable_attention(values, shapes, places, weights)

    def run_reference() -> Tensor:
        values, places, weights = inputs
        output: Tensor = theirs(values, shape_tensor, shapes, None, places, weights, 64)
        return output

    def bind(work: Callable[[], Tensor]) -> Callable[[], object]:
        if learns:
            return lambda: torch.autograd.grad(work().sum(), inputs)
        return torch.no_grad()(work)

    our_time, reference = fastest([bind(ours), bind(run_reference)])
    what = f"{name}, {BATCHES[name]} pictures, {'with gradients' if learns else 'looking only'}"
    return [what, f"{our_time * 1e3:.1f}", f"{reference * 1e3:.1f}", f"{reference / our_time:.2f}"]


def main() -> None:
    torch.set_num_threads(1)
    lines = [attention(name, learns=learns) for name in SIZES for learns in (False, True)]
    with tempfile.TemporaryDirectory() as place:
        first, second, n_train = training(Path(place), "encoder=grit")
    header = ["deformable attention", "ours (ms)", "transformers (ms)", "times as fast"]
    verdict = (
        f"\nOne training of GRIT (small) on {n_train} of {N_IMAGES} scenes: {first.wall:.0f} s, "
        f"{first.processor:.0f} s of processors; a second seed {second.wall:.0f} s, "
        f"{second.processor:.0f} s (target at most {TRAINING_TARGET:.0f}). Deformable attention is "
        f"to be at least {RATIO_TARGET:.1f} times as fast.\n"
    )
    what, mine, its, times = lines[-1]
    row = beside(
        f"deformable attention, {what}", f"{mine} ms", "transformers", f"{its} ms", float(times)
    )
    publish("GRIT", "python -m benchmarks.grit", table(header, lines) + verdict, peers=[row])


if __name__ == "__main__":
    main()
