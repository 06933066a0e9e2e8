"""Pictures of a generator, changed until an encoder sees in them what is wanted.

Chen and Dou edit faces after they have altered an encoder's vectors (section 4.2, Figures 10 and
11). They print no objective; this one is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bias_pipeline.array_types import Float32Array, Float64Array
from bias_pipeline.errors import DataError, UsageError

if TYPE_CHECKING:
    from torch import Tensor


def edited_latents(
    generate: Callable[[Tensor], Tensor],
    describe: Callable[[Tensor], Tensor],
    start: Float32Array,
    wanted: Float64Array,
    *,
    penalty: float,
    steps: int = 100,
    rate: float = 0.1,
) -> Float32Array:
    """(N, ...) latents w whose pictures an encoder puts near the wanted vectors e.

    Adam lowers ``1 - cos(describe(generate(w)), e) + penalty * |w - w0|^2`` for each picture by
    itself; the best of all steps is returned, which is ``w0`` if nothing is better.

    Args:
        describe: from pictures to (N, D) vectors, such as
            :meth:`~bias_pipeline.models.clip.ClipPhotos.states`.
        start: (N, ...) the latents w0 of the unchanged pictures.
        wanted: (N, D) of any length.

    Example:
        >>> import numpy as np
        >>> same = lambda tensor: tensor
        >>> start, wanted = np.ones((1, 2), np.float32), np.array([[0.0, 3.0]])
        >>> x, y = edited_latents(same, same, start, wanted, penalty=0.0)[0]
        >>> bool(abs(x) < 0.05 < 1 < y)
        True
    """
    import torch
    from torch.nn import functional

    first, targets = torch.from_numpy(start).float(), torch.from_numpy(wanted).float()
    latents, best = first.clone(), first.clone()
    lowest = torch.full((len(first),), torch.inf)
    latents.requires_grad_()
    optimizer = torch.optim.Adam([latents], rate)
    for step in range(steps + 1):
        vectors = describe(generate(latents)).cpu()
        if vectors.shape != targets.shape:
            raise UsageError(
                f"the encoder gives vectors of shape {tuple(vectors.shape)}, and those wanted are "
                f"of shape {tuple(targets.shape)}; give one of its length for each picture"
            )
        apart = 1 - functional.cosine_similarity(vectors, targets, dim=-1)
        if step == 0 and not _reaches(apart, latents):
            raise UsageError(
                "no gradient passes from the encoder through the generator to its latents; call "
                "neither under torch.no_grad or torch.inference_mode, and detach nothing"
            )
        losses = apart + penalty * (latents - first).flatten(1).square().sum(dim=1)
        values = losses.detach()
        if not values.isfinite().all():
            raise DataError("the generator or the encoder gives values that are not numbers")
        better = values < lowest
        best[better], lowest[better] = latents.detach()[better], values[better]
        if step < steps:
            latents.grad = torch.autograd.grad(losses.sum(), latents)[0]
            optimizer.step()
    result: Float32Array = best.numpy()
    return result


def _reaches(values: Tensor, latents: Tensor) -> bool:
    import torch

    if not values.requires_grad:
        return False
    (gradient,) = torch.autograd.grad(values.sum(), latents, retain_graph=True, allow_unused=True)
    return gradient is not None
