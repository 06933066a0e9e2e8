"""Weights of files that others wrote, under our names; nothing of such a file is passed over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from bias_pipeline.errors import DataError

Names = Iterable[tuple[str, str]]  # a pattern of the file's name, and ours


def renamed(
    weights: Mapping[str, Tensor], names: Names, unused: Iterable[str], path: Path, network: str
) -> dict[str, Tensor]:
    r"""Weights under our names, without those that are never used, which are not read either.

    Args:
        weights: of the file.
        names: patterns of the file's names, and ours in terms of their groups.
        unused: patterns of names of what nothing reads.
        path: of the file.
        network: what it should be.

    Raises:
        DataError: on a name that nobody knows, two that mean one weight and differ, or numbers
            that are none.

    Example:
        >>> one = {"net.fc.weight": torch.ones(1), "queue": torch.ones(9)}
        >>> renamed(one, [(r"net\.(fc\..+)", r"\1")], ["queue"], Path("a.pth"), "Net")
        {'fc.weight': tensor([1.])}
    """
    found: dict[str, Tensor] = {}
    for name, value in weights.items():
        own = _own_name(name, names)
        if own is None and not any(re.fullmatch(pattern, name) for pattern in unused):
            raise DataError(
                f"{path}: {name!r} is no weight of {network}'s; another network was saved"
            )
        if own is None:
            continue
        if own in found and not torch.equal(found[own], value):
            raise DataError(f"{path}: {name!r} stands in it twice, with different numbers")
        if not value.isfinite().all():
            raise DataError(f"{path}: {name!r} holds NaN or infinity; the file is broken")
        found[own] = value
    return found


def _own_name(name: str, names: Names) -> str | None:
    for pattern, own in names:
        match = re.fullmatch(pattern, name)
        if match:
            return match.expand(own)
    return None


def check_fit(
    weights: Mapping[str, Tensor], shapes: Mapping[str, torch.Size], path: Path, why: str
) -> None:
    """Know that a file holds each weight of a network in its size, and no other.

    Args:
        weights: of the file.
        shapes: of the network's.
        path: of the file.
        why: what it means that one is of another size.

    Raises:
        DataError: naming the first weight that is not.
    """
    for name, shape in shapes.items():
        if name not in weights:
            raise DataError(
                f"{path}: {name!r} is absent; it is the file of another network, or cut"
            )
        if weights[name].shape != shape:
            raise DataError(
                f"{path}: {name!r} is of {_size(weights[name].shape)} numbers and not of "
                f"{_size(shape)}; {why}"
            )
    more = sorted(set(weights) - set(shapes))
    if more:
        raise DataError(f"{path}: {more[0]!r} is one too many; {why}")


def _size(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape))
