"""A debiasing for generators of pictures, which read a CLIP's states and not its vectors.

A diffusion model such as Stable Diffusion is conditioned on the state of every token of a CLIP's
text model after the last norm. CLIP's vector is made later, of the last token's state alone, by a
projection that such a model lacks. What debiases vectors has to be said of states, in one of two
readings (:data:`Reading`), and every token is then changed alike:

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
import numpy.typing as npt

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.debias.base import Debias, Examples, FloatArray
from bias_pipeline.debias.export import NOTHING, affine
from bias_pipeline.errors import UsageError

Reading = Literal["outputs", "states"]
READINGS: tuple[Reading, ...] = get_args(Reading)
_BATCH = 64  # texts at once


class States(Protocol):
    """A text model whose vectors are made of states by a projection."""

    @property
    def projection(self) -> npt.NDArray[np.float32]:
        """(D, H)."""

    @property
    def mark(self) -> npt.NDArray[np.float32]:
        """(H,) by which the model is known."""

    def states(self, texts: Sequence[str], /) -> npt.NDArray[np.float32]:
        """(N, H) of the last tokens."""


def prompt_numbers(
    reading: Reading,
    texts: States,
    debias: Debias,
    attribute: Attribute,
    names: tuple[str, ...],
    seed: int,
) -> dict[str, FloatArray]:
    """What ``load_debias.py`` needs to change states, by the names in the file.

    Args:
        reading: see the module.
        texts: the model's text half.
        debias: which is fitted.
        attribute: whose groups.
        names: of the K groups.
        seed: of what is drawn.

    Raises:
        NotApplicableError: if no words tell the groups.
        UsageError: if the debiasing is not learnt from texts, or leaves them as they are.
    """
    if not debias.sides:
        raise UsageError(NOTHING)
    if debias.side == "image":
        raise UsageError(
            f"--prompts={reading}: this debiasing leaves texts as they are; set debias.side=text"
        )
    known: dict[str, FloatArray] = {"prompt.mark": texts.mark.astype(np.float64)}
    if reading == "outputs":
        return {**known, "prompt.projection": texts.projection.astype(np.float64)}
    if "text" not in debias.sides:
        raise UsageError(
            "--prompts=states: this debiasing is learnt from pictures, which have no states of "
            "tokens; take --prompts=outputs"
        )
    examples = Examples.of_texts(_by_batches(texts), attribute, names, seed)
    matrix, vector = affine(debias.fit(examples), examples.vectors.shape[1])
    return {**known, "prompt.weight": matrix, "prompt.bias": vector}


def _by_batches(
    texts: States,
) -> Callable[[Sequence[str]], npt.NDArray[np.float32]]:
    def embed(told: Sequence[str]) -> npt.NDArray[np.float32]:
        starts = range(0, len(told), _BATCH)
        return np.concatenate([texts.states(told[s : s + _BATCH]) for s in starts])

    return embed
