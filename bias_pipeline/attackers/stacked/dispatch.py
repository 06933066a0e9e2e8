"""Several attackers in one pass over stacked weights: which can be stacked, and how. Needs PyTorch.

Each network keeps its own weights and random numbers, in the order in which it would draw alone.
Each gets its own gradients, so one may have no batch, or another vocabulary than the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from bias_pipeline.attackers.stacked import recurrent, transformer
from bias_pipeline.attackers.stacked.dropout import drop
from bias_pipeline.encoders.nets import GivenNet, RecurrentNet, TransformerNet

HEAD_LAYERS = (nn.Linear, nn.ReLU, nn.LeakyReLU, nn.Dropout, nn.BatchNorm1d)
Inputs = Sequence[Mapping[str, Tensor]]
Generators = Sequence[torch.Generator]


def can_stack(encoder: nn.Module, head: nn.Module) -> bool:
    """Whether attackers of this kind can be stacked."""
    return (
        type(encoder) in _ENCODERS
        and isinstance(head, nn.Sequential)
        and all(isinstance(layer, HEAD_LAYERS) for layer in head)
    )


def encode(nets: Sequence[nn.Module], batches: Inputs, generators: Generators) -> Tensor:
    """The vectors of each encoder for its own batch in training.

    Args:
        nets: S encoders of one description; their vocabularies may differ.
        batches: the inputs of a batch each, of N_s captions of at most L_s words.
        generators: a random generator each, on the encoders' device.

    Returns:
        (S, N, D) vectors; rows beyond N_s are meaningless.
    """
    return _ENCODERS[type(nets[0])](nets, batches, generators)


def _reading(encode: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """An encoder of words, with the arguments of all encoders."""

    def read(nets: Sequence[nn.Module], batches: Inputs, generators: Generators) -> Tensor:
        return encode(nets, [(batch["tokens"], batch["lengths"]) for batch in batches], generators)

    return read


def _given(nets: Sequence[nn.Module], batches: Inputs, generators: Generators) -> Tensor:
    """(S, N, D) of vectors (N_s, D), zero in rows beyond N_s."""
    del nets, generators
    return _side_by_side([batch["vectors"] for batch in batches])


_ENCODERS: Mapping[type[nn.Module], Callable[..., Tensor]] = {
    GivenNet: _given,
    RecurrentNet: _reading(recurrent.encode),
    TransformerNet: _reading(transformer.encode),
}


def decide(
    heads: Sequence[nn.Sequential],
    vectors: Tensor,
    rows: Sequence[int],
    generators: Generators,
) -> Tensor:
    """The outputs of each head for its own rows in training.

    Args:
        heads: S heads of one description.
        vectors: (S, N, D).
        rows: how many of the N rows belong to each head.
        generators: a random generator each.

    Returns:
        (S, N, O) outputs.
    """
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
            vectors = _normalised(layers, vectors, rows)
        else:
            vectors = first(vectors)
    return vectors


def _normalised(layers: Sequence[nn.Module], vectors: Tensor, rows: Sequence[int]) -> Tensor:
    """(S, N, D) each network's rows normalised by their mean and spread, zero in other rows."""
    parts = [layer(place[:n]) for layer, place, n in zip(layers, vectors, rows, strict=True)]
    padded = _side_by_side(parts)
    missing = vectors.shape[1] - padded.shape[1]
    return nn.functional.pad(padded, (0, 0, 0, missing)) if missing else padded


def _side_by_side(parts: Sequence[Tensor]) -> Tensor:
    """(S, N, D) from S tensors (N_s, D), zero in rows beyond N_s."""
    if all(len(one) == len(parts[0]) for one in parts):
        return torch.stack(list(parts))
    return nn.utils.rnn.pad_sequence(list(parts), batch_first=True)
