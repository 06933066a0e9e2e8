"""Renames the weights of foreign files; every weight in a file must be known."""

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
    r"""Weights under our names; unused ones are left out and not read.

    Args:
        weights: of the file.
        names: patterns of the file's names, and our names as templates of their groups.
        unused: patterns of names that are not used.
        path: of the file.
        network: the expected network.

    Raises:
        DataError: on an unknown name, two different weights of one name, or values that are not
            numbers.

    Example:
        >>> one = {"net.fc.weight": torch.ones(1), "queue": torch.ones(9)}
        >>> renamed(one, [(r"net\.(fc\..+)", r"\1")], ["queue"], Path("a.pth"), "Net")
        {'fc.weight': tensor([1.])}
    """
    new_weights: dict[str, Tensor] = {}
    for name, value in weights.items():
        new_name = _own_name(name, names)
        if new_name is None and not any(re.fullmatch(pattern, name) for pattern in unused):
            raise DataError(
                f"{path}: {name!r} is not a weight of {network}; another network was saved"
            )
        if new_name is None:
            continue
        if new_name in new_weights and not torch.equal(new_weights[new_name], value):
            raise DataError(f"{path}: {name!r} occurs in it twice, with different numbers")
        if not value.isfinite().all():
            raise DataError(f"{path}: {name!r} contains NaN or infinity; the file is broken")
        new_weights[new_name] = value
    return new_weights


def _own_name(name: str, names: Names) -> str | None:
    for pattern, replacement in names:
        match = re.fullmatch(pattern, name)
        if match:
            return match.expand(replacement)
    return None


def check_fit(
    weights: Mapping[str, Tensor], shapes: Mapping[str, torch.Size], path: Path, why: str
) -> None:
    """Check that a file has each weight of a network in its size, and no other.

    Args:
        weights: of the file.
        shapes: of the network's.
        path: of the file.
        why: the explanation of a wrong size.

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
