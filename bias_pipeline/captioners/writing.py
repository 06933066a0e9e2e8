"""Captions that a network writes, word by word: the likeliest ones, nothing is drawn at random.

Needs PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from bias_pipeline.captioners.prompt import N_SPECIAL, PAD, START

END = N_SPECIAL  # the number of the sign that ends a caption, the first after the specials
_NEVER_WRITTEN = slice(END)  # unknown, padding, start


class Reading(Protocol):
    """Where a network is in B captions."""

    def take(self: Own, rows: Tensor) -> Own:
        """Where it is in some of them."""


Own = TypeVar("Own", bound=Reading)


class Writer(Protocol[Own]):
    """A network that says how likely each word is to follow."""

    def begun(self, **picture: Tensor) -> Own:
        """Where it is before any word."""

    def go_on(self, reading: Own, words: Tensor) -> tuple[Own, Tensor]:
        """Read a word (B,) of each caption; (B, V) logarithms of how likely each is to follow."""


@torch.inference_mode()
def written(
    net: Writer[Own], picture: Mapping[str, Tensor], *, beams: int, longest: int
) -> list[list[int]]:
    """The words of a caption for each of B pictures, the end left out.

    Args:
        net: in evaluation mode.
        picture: name to (B, ...) tensors.
        beams: captions that are followed at once; 1 takes the likeliest word at each step. Of those
            at the end the likeliest is taken as it is, whatever its length.
        longest: words, where a caption is cut off.
    """
    first = next(iter(picture.values()))
    n_pictures, device = len(first), first.device
    reading = net.begun(**picture).take(
        torch.arange(n_pictures, device=device).repeat_interleave(beams)
    )
    total = torch.full((n_pictures, beams), -torch.inf, device=device)
    total[:, 0] = 0.0  # all beams of a picture begin alike
    words = torch.full((n_pictures * beams,), START, device=device)
    tokens = words.new_empty((len(words), 0))
    ended = torch.zeros_like(words, dtype=torch.bool)
    base = torch.arange(n_pictures, device=device)[:, None] * beams
    while tokens.shape[1] < longest and not ended.all():
        reading, likely = net.go_on(reading, words)
        likely[:, _NEVER_WRITTEN] = -torch.inf
        likely[ended] = -torch.inf
        likely[ended, END] = 0.0  # what has ended goes on as it is
        n_words = likely.shape[1]
        own = (total[..., None] + likely.view(n_pictures, beams, n_words)).flatten(1)
        total, best = own.topk(beams, dim=1)
        rows, words = (base + best // n_words).flatten(), (best % n_words).flatten()
        reading, tokens = reading.take(rows), torch.cat([tokens[rows], words[:, None]], dim=1)
        ended = ended[rows] | (words == END)
    likeliest = tokens[base[:, 0] + total.argmax(dim=1)]
    return [[word for word in row if word not in (END, PAD)] for row in likeliest.tolist()]
