"""Shows where a captioner looked when it wrote a word: Grad-CAM under teacher forcing.

Needs PyTorch. Grad-CAM (Selvaraju et al. 2017) weights each channel A_c of a layer's grid by the
mean gradient of a target over the places of the grid, and rectifies the sum::

    map = relu(sum_c mean(d target / d A_c) A_c)

For attention weights A from a word to the places, the map is mean(relu(d target / d A) A). The mean
is over heads, as in the authors' library for BLIP. Maps are never rescaled, since this would change
the shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.pictures.gradcam.layers import (
    ATTENTION,
    MapLayer,
    as_channels,
    hook_modules,
    layer_outputs,
    replace_output,
)

if TYPE_CHECKING:
    from torch import Tensor

    from bias_pipeline.pictures.forced_captions import ForcedCaptioner, WrittenCaption


@dataclass(frozen=True)
class Target:
    word: str = ""  # as it stands in the caption; empty if the caption has none of the words
    # The places of the word's tokens; the target is the sum of their log-probabilities. Empty if
    # the caption has none of the words: the target is then the sum of the words' logits, at the
    # step where the summed probability of the words is greatest
    tokens: Sequence[int] = ()


def maps(
    captioner: ForcedCaptioner[Any],
    layer: MapLayer,
    pictures: Sequence[Any],
    captions: Sequence[WrittenCaption],
    targets: Sequence[Sequence[Target]],
    words: Sequence[int],
) -> list[list[Float64Array]]:
    import torch

    with _read(captioner.network, layer) as values:
        logits = captioner.logits(pictures, captions)
    steps = [
        [_steps(target, logits[b], len(captions[b].tokens), words) for target in of_caption]
        for b, of_caption in enumerate(targets)
    ]
    maps_of: list[list[Float64Array]] = [[] for _ in captions]
    rounds = max(map(len, targets))
    for place in range(rounds):
        rows = [b for b, of_caption in enumerate(targets) if place < len(of_caption)]
        each = [
            _value(targets[b][place], steps[b][place], logits[b], captions[b], words) for b in rows
        ]
        total = torch.stack(each).sum()
        gradients = torch.autograd.grad(total, values, retain_graph=place + 1 < rounds)
        for b in rows:
            one = _map(layer, values, gradients, b, steps[b][place], logits.shape[1])
            maps_of[b].append(one.double().cpu().numpy())
    return maps_of


def _steps(target: Target, logits: Tensor, n_tokens: int, words: Sequence[int]) -> list[int]:
    if target.tokens:
        return list(target.tokens)
    probs = logits[: n_tokens + 1].softmax(dim=-1)[:, list(words)].sum(dim=1)
    return [int(probs.argmax())]


def _value(
    target: Target,
    steps: Sequence[int],
    logits: Tensor,
    caption: WrittenCaption,
    words: Sequence[int],
) -> Tensor:
    """The target, a number computed from logits (L + 1, V), of which gradients are taken."""
    if not target.tokens:
        return logits[steps[0], list(words)].sum()
    chosen = [caption.tokens[step] for step in steps]
    return logits.log_softmax(dim=-1)[list(steps), chosen].sum()


def _map(
    layer: MapLayer,
    values: Sequence[Tensor],
    gradients: Sequence[Tensor],
    row: int,
    steps: Sequence[int],
    n_steps: int,
) -> Tensor:
    if layer.kind != ATTENTION:
        features, slopes = (
            as_channels(each[0][row : row + 1], layer.grid)[0] for each in (values, gradients)
        )
        weights = slopes.mean(dim=(1, 2))
        return (weights[:, None, None] * features).sum(dim=0).relu().detach()
    positive = [
        _attention_of_step(values, row, step, n_steps)
        * _attention_of_step(gradients, row, step, n_steps).clamp(min=0)
        for step in steps
    ]
    n_places = layer.grid[0] * layer.grid[1]
    heads = sum(positive[1:], positive[0])  # (H, N)
    return heads.mean(dim=0)[-n_places:].reshape(layer.grid).detach()


def _attention_of_step(values: Sequence[Tensor], row: int, step: int, n_steps: int) -> Tensor:
    """(heads, N) the attention at one step, from that step's call or from the last L + 1 rows."""
    if values[0].dim() == 2:
        return values[step][row : row + 1]
    return values[0][row, :, step - n_steps]


@contextmanager
def _read(network: Any, layer: MapLayer) -> Iterator[list[Tensor]]:
    """Collect the outputs of a layer in one forward pass, such that gradients reach them.

    A grid is cut off from the layers before it, which then need no memory for gradients.
    """
    values: list[Tensor] = []
    trained = [weight.requires_grad for weight in network.parameters()]

    def read(_: str, output: Any) -> Any:
        value = dict(layer_outputs(output))[layer.item]
        if layer.kind == ATTENTION:
            values.append(value)
            return output
        values.append(value.detach().requires_grad_())
        return replace_output(output, layer.item, values[-1])

    for weight in network.parameters():
        weight.requires_grad_(layer.kind == ATTENTION and weight.is_floating_point())
    try:
        with hook_modules([(layer.name, network.get_submodule(layer.name))], read):
            yield values
    finally:
        for weight, flag in zip(network.parameters(), trained, strict=True):
            weight.requires_grad_(flag)


@dataclass(frozen=True)
class Shares:
    """The shares of a map that lie outside the people of a picture, or NaN if undefined."""

    mass: float  # share of the map's sum; the paper's attribution score as we read it
    pixels: float  # share of the places where the map is positive
    uniform: float  # the share that a uniform map would have: the area outside people


def shares_outside(heatmap: Float64Array, people: Float64Array) -> Shares:
    """How much of a map lies outside people; ``people`` (h, w) is each place's share.

    Example:
        >>> shares_outside(np.array([[3.0, 1.0]]), np.array([[1.0, 0.0]]))
        Shares(mass=0.25, pixels=0.5, uniform=0.5)
    """
    nan = float("nan")
    outside = 1 - people
    area = float(outside.mean())
    if area <= 0 or np.isnan(area):
        return Shares(nan, nan, nan)
    if not np.isfinite(heatmap).all() or not heatmap.any():
        return Shares(nan, nan, area)
    positive = heatmap > 0
    mass = float((heatmap * outside).sum() / heatmap.sum())
    return Shares(mass, float(outside[positive].sum() / positive.sum()), area)


def area_means(values: Float64Array, grid: tuple[int, int]) -> Float64Array:
    """(h, w) means of (H, W) values over equal areas; a pixel counts by its part in the area.

    Example:
        >>> area_means(np.array([[0.0, 0.0, 1.0]]), (1, 2)).round(3).tolist()
        [[0.0, 0.667]]
    """
    down, across = (_overlaps(n, cells) for n, cells in zip(values.shape, grid, strict=True))
    means: Float64Array = down @ values @ across.T
    return means


def _overlaps(n_pixels: int, n_cells: int) -> Float64Array:
    edges = np.arange(n_cells + 1) * (n_pixels / n_cells)
    pixels = np.arange(n_pixels)
    first = np.maximum(edges[:-1, None], pixels)
    last = np.minimum(edges[1:, None], pixels + 1)
    return np.clip(last - first, 0, None) * (n_cells / n_pixels)
