"""Writes captions word by word, by greedy search, beam search or random draws.

Needs PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from bias_pipeline.pictures.captioners.prompt import N_SPECIAL, PAD, START

END = N_SPECIAL  # the number of the end token, the first after the specials
_NEVER_WRITTEN = slice(END)  # unknown, padding, start


class DecodingState(Protocol):
    def take(self: State, rows: Tensor) -> State: ...


State = TypeVar("State", bound=DecodingState)


class Writer(Protocol[State]):
    """A network that gives log-probabilities of the next word."""

    def initial_state(self, **picture: Tensor) -> State:
        """The state before the first word."""

    def step(self, state: State, words: Tensor) -> tuple[State, Tensor]:
        """Read a word (B,) of each caption; returns (B, V) log-probabilities of the next word."""


@torch.inference_mode()
def beam_search(
    net: Writer[State],
    picture: Mapping[str, Tensor],
    *,
    beams: int,
    longest: int,
    best: int = 1,
    noise: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> list[list[int]]:
    """The words of the best captions for each of B pictures, without the end token."""
    first = next(iter(picture.values()))
    n_pictures, device = len(first), first.device
    state = net.initial_state(**picture).take(
        torch.arange(n_pictures, device=device).repeat_interleave(beams)
    )
    total = torch.full((n_pictures, beams), -torch.inf, device=device)
    total[:, 0] = 0.0  # all beams of a picture begin in the same way
    words = torch.full((n_pictures * beams,), START, device=device)
    tokens = words.new_empty((len(words), 0))
    ended = torch.zeros_like(words, dtype=torch.bool)
    base = torch.arange(n_pictures, device=device)[:, None] * beams
    while tokens.shape[1] < longest and not ended.all():
        state, log_probs = net.step(state, words)
        log_probs[:, _NEVER_WRITTEN] = -torch.inf
        log_probs = log_probs if noise is None else noise(tokens, log_probs)
        log_probs[ended] = -torch.inf
        log_probs[ended, END] = 0.0  # finished captions stay unchanged
        n_words = log_probs.shape[1]
        scores = (total[..., None] + log_probs.view(n_pictures, beams, n_words)).flatten(1)
        total, places = scores.topk(beams, dim=1)
        rows, words = (base + places // n_words).flatten(), (places % n_words).flatten()
        state, tokens = state.take(rows), torch.cat([tokens[rows], words[:, None]], dim=1)
        ended = ended[rows] | (words == END)
    likeliest = tokens[(base + total.topk(best, dim=1).indices).flatten()]
    return [[word for word in row if word not in (END, PAD)] for row in likeliest.tolist()]
