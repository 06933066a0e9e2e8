"""A debiasing for image generators, which use a CLIP's token states instead of its vectors.

A diffusion model such as Stable Diffusion is conditioned on the state of every token of a CLIP's
text model after the last norm. CLIP's vector is a projection of the last token's state, which such
a model lacks. So the debiasing of vectors must be carried over to states, in one of two ways
(:data:`Reading`); every token is then changed in the same way:

* ``outputs``: what Chen and Dou edit, CLIP's outputs: the least change of a state whose projection
  is the edited one. CLIP's vector of a prompt is then exactly the debiased one.
* ``states``: the same method fitted to what the generator reads: the states of the last tokens of
  the definition sets.

Chen and Dou, Measuring and Mitigating Bias in Vision-and-Language Models, section 4.2 and Figure
11, remove gender neurons to debias text-to-image generation. Their generator is StyleCLIP, which
is driven by CLIP's outputs themselves, so ``outputs`` carries their edit over unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, get_args

import numpy as np

from bias_pipeline.array_types import Float32Array, Float64Array
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.debias.base import Debias, Examples
from bias_pipeline.debias.export import NOTHING, affine
from bias_pipeline.errors import UsageError

Reading = Literal["outputs", "states"]
READINGS: tuple[Reading, ...] = get_args(Reading)
_BATCH = 64  # texts at once


class States(Protocol):
    """A text model whose vectors are projections of states."""

    @property
    def projection(self) -> Float32Array:
        """(D, H)."""

    @property
    def mark(self) -> Float32Array:
        """(H,) identifies the model."""

    def states(self, texts: Sequence[str], /) -> Float32Array:
        """(N, H) of the last tokens."""


def prompt_numbers(
    reading: Reading,
    texts: States,
    debias: Debias,
    attribute: Attribute,
    names: tuple[str, ...],
    seed: int,
) -> dict[str, Float64Array]:
    """The arrays that ``load_debias.py`` needs to change states, by name.

    Args:
        reading: see the module.
        texts: the model's text half.
        debias: the debiasing to fit.
        attribute: whose groups.
        names: of the K groups.
        seed: of random draws.

    Raises:
        NotApplicableError: if no words tell the groups.
        UsageError: if the debiasing is not fitted to texts, or does not edit them.
    """
    if not debias.sides:
        raise UsageError(NOTHING)
    if debias.side == "image":
        raise UsageError(
            f"--prompts={reading}: this debiasing does not edit texts; set debias.side=text"
        )
    known: dict[str, Float64Array] = {"prompt.mark": texts.mark.astype(np.float64)}
    if reading == "outputs":
        return {**known, "prompt.projection": texts.projection.astype(np.float64)}
    if "text" not in debias.sides:
        raise UsageError(
            "--prompts=states: this debiasing is fitted to pictures, which have no token states; "
            "use --prompts=outputs"
        )
    examples = Examples.of_texts(_by_batches(texts), attribute, names, seed)
    matrix, vector = affine(debias.fit(examples), examples.vectors.shape[1])
    return {**known, "prompt.weight": matrix, "prompt.bias": vector}


def _by_batches(
    texts: States,
) -> Callable[[Sequence[str]], Float32Array]:
    def embed(lines: Sequence[str]) -> Float32Array:
        starts = range(0, len(lines), _BATCH)
        return np.concatenate([texts.states(lines[s : s + _BATCH]) for s in starts])

    return embed
