"""Trains several attackers in one pass over stacked weights. Needs PyTorch.

Each network keeps its own weights and gets its own gradients. So a network may have no batch, or
its own vocabulary. Each network draws random numbers in the same order as if it were trained alone.

``nn.LSTM`` cannot be batched over weights, so the recurrence is written out. S networks and both
reading directions form one batch of matrices for ``torch.baddbmm``. For transformers,
``torch.func.vmap`` would draw all dropout from one generator, but here each network has its own
generator.

Shapes: S networks, N captions, at most L words, vectors of size D, A attention heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from bias_pipeline.attack.nets import GivenNet, RecurrentNet, TransformerNet, positions

Net = TypeVar("Net", bound=nn.Module)
Words = tuple[Tensor, Tensor]  # tokens (N, L) and lengths (N,) of one network's batch


def drop(
    values: Tensor,
    rate: float,
    shapes: Sequence[Sequence[int]],
    generators: Sequence[torch.Generator],
) -> Tensor:
    """Dropout that each network draws for itself, in the shape that it would draw alone.

    ``values`` have the shape (S, ...). The result has the same shape. Outside the networks'
    ``shapes`` it is zero. ``rate`` is the share of values that become zero, in [0, 1).

    Example:
        >>> generators = [torch.Generator().manual_seed(seed) for seed in (0, 12)]
        >>> drop(torch.ones(2, 3), 0.0, [(3,), (2,)], generators).tolist()
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
        >>> drop(torch.ones(2, 3), 0.5, [(0,), (0,)], generators).tolist()
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if rate == 0:
        return values
    factors = torch.zeros_like(values)
    for place, shape, generator in zip(factors, shapes, generators, strict=True):
        inside = tuple(slice(size) for size in shape)
        place[inside] = dropout_factors(values, shape, rate, generator)
    return values * factors


def dropout_factors(
    values: Tensor, shape: Sequence[int], rate: float, generator: torch.Generator
) -> Tensor:
    """The factors of dropout, drawn as ``nn.Dropout`` draws them on the processor."""
    drawn = torch.empty(tuple(shape), dtype=values.dtype, device=values.device)
    return drawn.bernoulli_(1 - rate, generator=generator).div_(1 - rate)


def side_by_side(parts: Sequence[Tensor]) -> Tensor:
    """(S, N, L, D): the parts (N_s, L_s, D) side by side, with zeros outside the parts."""
    n_rows, n_words = (max(part.shape[axis] for part in parts) for axis in (0, 1))
    padded = [
        nn.functional.pad(part, (0, 0, 0, n_words - part.shape[1], 0, n_rows - part.shape[0]))
        for part in parts
    ]
    return torch.stack(padded)


def stack_weights(nets: Sequence[Net], weight: Callable[[Net], Tensor]) -> Tensor:
    """(S, ...): the same weight of all S networks, stacked.

    Example:
        >>> stack_weights([nn.Linear(2, 3), nn.Linear(2, 3)], lambda net: net.weight).shape
        torch.Size([2, 3, 2])
    """
    return torch.stack([weight(net) for net in nets])


def encode_recurrent(
    nets: Sequence[RecurrentNet], batches: Sequence[Words], generators: Sequence[torch.Generator]
) -> Tensor:
    """(S, N, D): each network's final states for its own batch, undefined beyond N_s rows."""
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
        ways = [states, _reverse(states, backward)][: first.n_ends]
        weights = [_layer_weights(nets, name, layer) for name in _WEIGHTS]
        here = present.repeat_interleave(first.n_ends, dim=0)
        whole, final = _CELLS[first.rnn.mode](torch.stack(ways, 1).flatten(0, 1), weights, here)
        final = final.reshape(len(nets), first.n_ends, *final.shape[1:])  # (S, ends, N, H)
        if layer + 1 < first.rnn.num_layers:
            ends = list(whole.reshape(len(nets), first.n_ends, *whole.shape[1:]).unbind(1))
            ends[1:] = [_reverse(end_states, backward) for end_states in ends[1:]]
            states = torch.cat(ends, dim=-1)  # (S, N, L, ends * H)
    last = final.transpose(1, 2).flatten(2)  # (S, N, ends * H)
    return drop(
        last, first.dropout.p, [(len(sizes), last.shape[2]) for _, sizes in batches], generators
    )


def _between_layers(
    states: Tensor, batches: Sequence[Words], rate: float, generators: Sequence[torch.Generator]
) -> Tensor:
    """(S, N, L, D): the factors of dropout between layers, with one draw for each word.

    Packed sequences contain the words of all captions by time step, where the longest caption comes
    first. ``nn.LSTM`` draws dropout in this order, so this function does too.
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


def _layer_weights(nets: Sequence[RecurrentNet], name: str, layer: int) -> Tensor:
    """(S * ends, ...): a weight of a layer. The two directions of a network follow each other."""
    ends = ("", "_reverse")[: nets[0].n_ends]
    return torch.stack([getattr(net.rnn, f"{name}_l{layer}{end}") for net in nets for end in ends])


def _reverse(states: Tensor, backward: Tensor) -> Tensor:
    """(S, N, L, D): captions with words in reverse order. Reversing twice restores the order."""
    return torch.take_along_dim(states, backward[..., None], dim=2)


def _gates(inputs: Tensor, weights: Sequence[Tensor]) -> tuple[Sequence[Tensor], Tensor]:
    """For each step, what inputs add to all gates, (B, N, G); also the weights of the states."""
    w_ih, w_hh, b_ih, b_hh = weights
    # The product gives the second bias its own gradient. A sum would share one piece of memory
    # between both, which clipping and accumulation would then change twice.
    bias = (b_ih + 1.0 * b_hh)[:, None]
    flat = torch.baddbmm(bias, inputs.flatten(1, 2), w_ih.mT)
    return flat.view(*inputs.shape[:3], -1).unbind(2), w_hh.mT


def _lstm(inputs: Tensor, weights: Sequence[Tensor], present: Tensor) -> tuple[Tensor, Tensor]:
    """One layer of LSTMs (Hochreiter and Schmidhuber 1997, with forget gates), as ``nn.LSTM``.

    ``inputs`` are (B, N, L, D), ``weights`` (B, 4H, D), (B, 4H, H) and two biases (B, 4H).
    ``present`` (B, N, L) is true where there is a word. The result is the state after each word,
    (B, N, L, H), and the state after the last word, (B, N, H).
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
    """One layer of Elman networks, as ``nn.RNN``, with the shapes of :func:`_lstm` but H for 4H."""
    by_step, from_state = _gates(inputs, weights)
    state = inputs.new_zeros(*inputs.shape[:2], from_state.shape[1])
    states = []
    for step_inputs, here in zip(by_step, present[..., None].unbind(2), strict=True):
        state = torch.where(here, torch.baddbmm(step_inputs, state, from_state).tanh(), state)
        states.append(state)
    return torch.stack(states, dim=2), state


_CELLS = {"LSTM": _lstm, "RNN_TANH": _elman}


Layer = nn.TransformerEncoderLayer
Generators = Sequence[torch.Generator]
Sizes = Sequence[tuple[int, int]]  # captions and words of each network's batch


def encode_transformer(
    nets: Sequence[TransformerNet], batches: Sequence[Words], generators: Generators
) -> Tensor:
    """(S, N, D): means over words for each network's own batch, undefined beyond N_s rows."""
    sizes = [(tokens.shape[0], tokens.shape[1]) for tokens, _ in batches]
    vectors = [net.vectors(tokens) for net, (tokens, _) in zip(nets, batches, strict=True)]
    states = side_by_side(vectors)
    n_words, size = states.shape[2:]
    states = states + positions(n_words, size).to(states)
    rate = nets[0].dropout.p
    states = drop(states, rate, [(*shape, size) for shape in sizes], generators)  # (S, N, L, D)
    lengths = nn.utils.rnn.pad_sequence(
        [caption_lengths for _, caption_lengths in batches], batch_first=True
    )
    # A row beyond a network's batch would attend to nothing, which gives NaN.
    lengths = lengths.clamp(min=1)
    present = torch.arange(n_words, device=lengths.device) < lengths[..., None]  # (S, N, L)
    for layers in zip(*(net.layers.layers for net in nets), strict=True):
        states = _layer(layers, states, present, sizes, generators)
    inside = present[..., None].to(states.dtype)
    mean = (states * inside).sum(dim=2) / inside.sum(dim=2)
    return drop(mean, rate, [(n, size) for n, _ in sizes], generators)


def _layer(
    layers: Sequence[Layer],
    states: Tensor,
    present: Tensor,
    sizes: Sizes,
    generators: Generators,
) -> Tensor:
    """Apply a layer to (S, N, L, D) states: attention, then two linear layers.

    The result of each is added to its input and normalised.
    """
    first = layers[0]
    attended = _attention(layers, states, present, sizes, generators)
    # A single network has words before captions in attention, and draws dropout in that order.
    turned = attended.transpose(1, 2)  # (S, L, N, D)
    shapes = [(n_words, n, states.shape[3]) for n, n_words in sizes]
    attended = drop(turned, first.dropout1.p, shapes, generators).transpose(1, 2)
    states = _layer_norm(layers, lambda layer: layer.norm1, states + attended)
    inner = _linear(layers, lambda layer: layer.linear1, states).relu()
    inner = drop(inner, first.dropout.p, [(*shape, inner.shape[3]) for shape in sizes], generators)
    outer = _linear(layers, lambda layer: layer.linear2, inner)
    outer = drop(outer, first.dropout2.p, [(*shape, outer.shape[3]) for shape in sizes], generators)
    return _layer_norm(layers, lambda layer: layer.norm2, states + outer)


def _attention(
    layers: Sequence[Layer],
    states: Tensor,
    present: Tensor,
    sizes: Sizes,
    generators: Generators,
) -> Tensor:
    """(S, N, L, D): the attention output of every word (Vaswani et al. 2017, section 3.2)."""
    first = layers[0].self_attn
    n_heads, size = first.num_heads, first.head_dim
    weight = stack_weights(layers, lambda layer: layer.self_attn.in_proj_weight)
    bias = stack_weights(layers, lambda layer: layer.self_attn.in_proj_bias)
    split = _affine(states, weight, bias).unflatten(3, (3, n_heads, size))  # type: ignore[no-untyped-call]
    query, key, value = split.permute(3, 0, 1, 4, 2, 5)  # (S, N, A, L, D / A) each
    fit = query @ key.mT / math.sqrt(size)  # (S, N, A, L, L)
    share = fit.masked_fill(~present[:, :, None, None], -math.inf).softmax(dim=-1)
    shapes = [(n, n_heads, n_words, n_words) for n, n_words in sizes]
    mean = drop(share, first.dropout, shapes, generators) @ value
    return _linear(layers, lambda layer: layer.self_attn.out_proj, mean.transpose(2, 3).flatten(3))


def _linear(layers: Sequence[Layer], of: Callable[[Layer], nn.Linear], states: Tensor) -> Tensor:
    """Map (S, N, L, D) to (S, N, L, D'); each network uses its own layer."""
    weight = stack_weights(layers, lambda layer: of(layer).weight)
    return _affine(states, weight, stack_weights(layers, lambda layer: of(layer).bias))


def _affine(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    flat = torch.baddbmm(bias[:, None], states.flatten(1, 2), weight.mT)
    return flat.view(*states.shape[:3], -1)


def _layer_norm(
    layers: Sequence[Layer], of: Callable[[Layer], nn.LayerNorm], states: Tensor
) -> Tensor:
    """(S, N, L, D): the vectors of words, normalised by the layer of their network."""
    weight = stack_weights(layers, lambda layer: of(layer).weight)[:, None, None]
    bias = stack_weights(layers, lambda layer: of(layer).bias)[:, None, None]
    eps = of(layers[0]).eps
    return nn.functional.layer_norm(states, states.shape[-1:], eps=eps) * weight + bias


HEAD_LAYERS = (nn.Linear, nn.ReLU, nn.LeakyReLU, nn.Dropout, nn.BatchNorm1d)
Inputs = Sequence[Mapping[str, Tensor]]


def can_stack(encoder: nn.Module, head: nn.Module) -> bool:
    return (
        type(encoder) in _ENCODERS
        and isinstance(head, nn.Sequential)
        and all(isinstance(layer, HEAD_LAYERS) for layer in head)
    )


def encode(nets: Sequence[nn.Module], batches: Inputs, generators: Generators) -> Tensor:
    """(S, N, D): the vectors of each encoder for its own batch. Rows beyond N_s are undefined."""
    return _ENCODERS[type(nets[0])](nets, batches, generators)


def _reading(encode: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function that encodes words, with the same arguments as other encoders."""

    def read(nets: Sequence[nn.Module], batches: Inputs, generators: Generators) -> Tensor:
        return encode(nets, [(batch["tokens"], batch["lengths"]) for batch in batches], generators)

    return read


def _given_vectors(nets: Sequence[nn.Module], batches: Inputs, generators: Generators) -> Tensor:
    """(S, N, D): the given (N_s, D) vectors, with zeros in rows beyond N_s."""
    del nets, generators
    return _side_by_side([batch["vectors"] for batch in batches])


_ENCODERS: Mapping[type[nn.Module], Callable[..., Tensor]] = {
    GivenNet: _given_vectors,
    RecurrentNet: _reading(encode_recurrent),
    TransformerNet: _reading(encode_transformer),
}


def decide(
    heads: Sequence[nn.Sequential],
    vectors: Tensor,
    rows: Sequence[int],
    generators: Generators,
) -> Tensor:
    """(S, N, O): in training, the outputs of each head for its own rows of (S, N, D) vectors."""
    for layers in zip(*heads, strict=True):
        first = layers[0]
        if isinstance(first, nn.Linear):
            bias = torch.stack([layer.bias for layer in layers])[:, None]
            vectors = torch.baddbmm(
                bias, vectors, torch.stack([layer.weight for layer in layers]).mT
            )
        elif isinstance(first, nn.Dropout):
            vectors = drop(vectors, first.p, [(n, vectors.shape[2]) for n in rows], generators)
        elif isinstance(first, nn.BatchNorm1d):
            parts = [
                layer(place[:n]) for layer, place, n in zip(layers, vectors, rows, strict=True)
            ]
            padded = _side_by_side(parts)
            missing = vectors.shape[1] - padded.shape[1]
            vectors = nn.functional.pad(padded, (0, 0, 0, missing)) if missing else padded
        else:
            vectors = first(vectors)
    return vectors


def _side_by_side(parts: Sequence[Tensor]) -> Tensor:
    """(S, N, D): S tensors (N_s, D) side by side, with zeros in rows beyond N_s."""
    if all(len(one) == len(parts[0]) for one in parts):
        return torch.stack(list(parts))
    return nn.utils.rnn.pad_sequence(list(parts), batch_first=True)
