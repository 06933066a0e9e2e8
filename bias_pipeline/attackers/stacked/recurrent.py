"""Recurrent networks in one pass: weights stacked, one product a time step for all.

``nn.LSTM`` cannot be batched over weights (neither cuDNN nor ``torch.func.vmap`` can do it), so the
recurrence is written out: S networks and both reading directions are one batch of matrices for
``torch.baddbmm``. Needs PyTorch.

S networks, N captions and L words at most, D sizes of vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bias_pipeline.attackers.stacked.dropout import Words, drop, dropout_factors, side_by_side
from bias_pipeline.encoders.nets import RecurrentNet


def encode(
    nets: Sequence[RecurrentNet], batches: Sequence[Words], generators: Sequence[torch.Generator]
) -> Tensor:
    """The final states of each network for its own batch in training.

    Args:
        nets: S networks of one description; their vocabularies may differ.
        batches: a batch each, of N_s captions of at most L_s words.
        generators: a random generator each, on the networks' device.

    Returns:
        (S, N, D) final states; rows beyond N_s are meaningless.
    """
    vectors = [net.vectors(tokens) for net, (tokens, _) in zip(nets, batches, strict=True)]
    shapes = [table.shape for table in vectors]
    embedded = drop(side_by_side(vectors), nets[0].dropout.p, shapes, generators)  # (S, N, L, E)
    lengths = nn.utils.rnn.pad_sequence([sizes for _, sizes in batches], batch_first=True)  # (S, N)
    step = torch.arange(embedded.shape[2], device=lengths.device)
    present = step < lengths[..., None]  # (S, N, L)
    backward = torch.where(present, lengths[..., None] - 1 - step, step)  # reversed, padding stays
    first = nets[0]
    states = embedded
    for layer in range(first.rnn.num_layers):
        if layer > 0:
            states = states * _between_layers(states, batches, first.rnn.dropout, generators)
        ways = [states, _reversed(states, backward)][: first.n_ends]
        weights = [_stacked_weights(nets, name, layer) for name in _WEIGHTS]
        here = present.repeat_interleave(first.n_ends, dim=0)
        whole, final = _CELLS[first.rnn.mode](torch.stack(ways, 1).flatten(0, 1), weights, here)
        final = final.reshape(len(nets), first.n_ends, *final.shape[1:])  # (S, ends, N, H)
        if layer + 1 < first.rnn.num_layers:
            ends = list(whole.reshape(len(nets), first.n_ends, *whole.shape[1:]).unbind(1))
            ends[1:] = [_reversed(end_states, backward) for end_states in ends[1:]]
            states = torch.cat(ends, dim=-1)  # (S, N, L, ends * H)
    last = final.transpose(1, 2).flatten(2)  # (S, N, ends * H)
    return drop(
        last, first.dropout.p, [(len(sizes), last.shape[2]) for _, sizes in batches], generators
    )


def _between_layers(
    states: Tensor, batches: Sequence[Words], rate: float, generators: Sequence[torch.Generator]
) -> Tensor:
    """(S, N, L, D) factors of the dropout between layers, one draw for each word there is.

    Packed sequences hold the words of all captions by time step, the longest caption first, and
    dropout is drawn in that order; so it is here.
    """
    if rate == 0:
        return torch.ones_like(states)
    factors = torch.zeros_like(states)
    for place, (tokens, lengths), generator in zip(factors, batches, generators, strict=True):
        order = torch.sort(lengths, descending=True).indices
        step = torch.arange(tokens.shape[1], device=lengths.device)
        time, rank = (lengths[order] > step[:, None]).nonzero(as_tuple=True)
        place[order[rank], time] = dropout_factors(
            states, (len(time), states.shape[3]), rate, generator
        )
    return factors


_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _stacked_weights(nets: Sequence[RecurrentNet], name: str, layer: int) -> Tensor:
    """(S * ends, ...) one kind of weight of a layer, both directions of a network in a row."""
    ends = ("", "_reverse")[: nets[0].n_ends]
    return torch.stack([getattr(net.rnn, f"{name}_l{layer}{end}") for net in nets for end in ends])


def _reversed(states: Tensor, backward: Tensor) -> Tensor:
    """(S, N, L, D) each caption from its last word to its first; its own inverse."""
    return torch.take_along_dim(states, backward[..., None], dim=2)


def _gates(inputs: Tensor, weights: Sequence[Tensor]) -> tuple[Sequence[Tensor], Tensor]:
    """The inputs' part of all gates, by step (B, N, G), and the weights of states."""
    w_ih, w_hh, b_ih, b_hh = weights
    # The product gives the second bias its own gradient. A sum would share one piece of memory
    # between both, which clipping and accumulation would then change twice.
    bias = (b_ih + 1.0 * b_hh)[:, None]
    flat = torch.baddbmm(bias, inputs.flatten(1, 2), w_ih.mT)
    return flat.view(*inputs.shape[:3], -1).unbind(2), w_hh.mT


def _lstm(inputs: Tensor, weights: Sequence[Tensor], present: Tensor) -> tuple[Tensor, Tensor]:
    """One layer of LSTMs (Hochreiter and Schmidhuber 1997, with forget gates), as ``nn.LSTM``.

    Args:
        inputs: (B, N, L, D).
        weights: (B, 4H, D), (B, 4H, H) and two biases (B, 4H).
        present: (B, N, L) whether there is a word; after the last one the state stays.

    Returns:
        (B, N, L, H) and (B, N, H) the state after each word and after the last.
    """
    by_step, from_state = _gates(inputs, weights)
    state = memory = inputs.new_zeros(*inputs.shape[:2], from_state.shape[1])
    states = []
    for step_inputs, here in zip(by_step, present[..., None].unbind(2), strict=True):
        enter, forget, content, leave = torch.baddbmm(step_inputs, state, from_state).chunk(
            4, dim=-1
        )
        moved = forget.sigmoid() * memory + enter.sigmoid() * content.tanh()
        memory = torch.where(here, moved, memory)
        state = torch.where(here, leave.sigmoid() * moved.tanh(), state)
        states.append(state)
    return torch.stack(states, dim=2), state


def _elman(inputs: Tensor, weights: Sequence[Tensor], present: Tensor) -> tuple[Tensor, Tensor]:
    """One layer of Elman networks, as ``nn.RNN``; see :func:`_lstm` for shapes, with H for 4H."""
    by_step, from_state = _gates(inputs, weights)
    state = inputs.new_zeros(*inputs.shape[:2], from_state.shape[1])
    states = []
    for step_inputs, here in zip(by_step, present[..., None].unbind(2), strict=True):
        state = torch.where(here, torch.baddbmm(step_inputs, state, from_state).tanh(), state)
        states.append(state)
    return torch.stack(states, dim=2), state


_CELLS = {"LSTM": _lstm, "RNN_TANH": _elman}
