"""Writes a fitted debiasing as files for the same model that work without this program.

An image generator such as Stable Diffusion is conditioned on the state of every token of a CLIP's
text model after the last norm. CLIP's vector is a projection of the last token's state, but such a
generator does not have the projection. So the debiasing of vectors must be transferred to states,
in one of two ways (:data:`Reading`). Every token is then changed in the same way.

* ``outputs`` changes a state as little as possible such that its projection is the debiased vector.
  CLIP's vector of a prompt is then exactly the debiased vector, as in Chen and Dou's paper.
* ``states`` fits the same method to the input of the generator, which means to the states of the
  last tokens of the definition sets.

Chen and Dou, Measuring and Mitigating Bias in Vision-and-Language Models, section 4.2 and Figure
11, remove gender neurons to debias text-to-image generation. Their generator is StyleCLIP, which
CLIP's outputs control, so ``outputs`` transfers their edit without changes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np

from bias_pipeline.array_types import Float32Array, Float64Array
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.errors import UsageError
from bias_pipeline.io.files import draft_of
from bias_pipeline.retrieval.debias import load_debias
from bias_pipeline.retrieval.debias.base import Debias, Debiased, EmbeddingEdit, Examples
from bias_pipeline.retrieval.dual_encoders import DualEncoder

NOTHING = "debias=none edits nothing; choose a debiasing, such as debias=subspace"
_CARD = """# A debiasing

Fitted by `bias_pipeline fit debias`. `debias.safetensors` has a matrix and a vector for each side
that is edited: a vector x of length 1 becomes `x @ weight + bias`, and is scaled to length 1 again
if `renormalise` says so. `load_debias.py` does that for PyTorch and needs no bias_pipeline.
If the file contains `prompt`, its `debias_prompts` gives debiased prompts to an image generator
with the same text model. All of this is valid only for the model named below.

```json
{facts}
```
"""


def affine(edit: EmbeddingEdit, size: int) -> tuple[Float64Array, Float64Array]:
    """The matrix (D, D) and the vector (D,) of an edit, which is ``x @ matrix + vector``.

    Example:
        >>> from bias_pipeline.retrieval.debias.methods import Projection
        >>> affine(Projection(np.array([[1.0, 0.0]])), 2)[0].tolist()
        [[0.0, 0.0], [0.0, 1.0]]
    """
    nothing = edit(np.zeros((1, size)))[0]
    return edit(np.eye(size)) - nothing, nothing


def write_debias(
    dual: DualEncoder,
    folder: Path,
    provenance: Mapping[str, object],
    prompts: Mapping[str, Float64Array] | None = None,
) -> None:
    from safetensors.numpy import save_file

    sides = {"image": dual.images, "text": dual.texts}
    edited = {side: embedder for side, embedder in sides.items() if isinstance(embedder, Debiased)}
    if not edited:
        raise UsageError(NOTHING)
    size = dual.texts.embed(["a photo"]).shape[1]
    numbers = dict(prompts or {})
    for side, embedder in edited.items():
        matrix, vector = affine(embedder.edit, size)
        numbers |= {f"{side}.weight": matrix, f"{side}.bias": vector}
    again = all(embedder.renormalise for embedder in edited.values())
    tensors = {name: array.astype(np.float32) for name, array in numbers.items()}
    with draft_of(folder) as draft:
        metadata = {"renormalise": json.dumps(again)}
        save_file(tensors, draft / "debias.safetensors", metadata=metadata)
        shutil.copyfile(Path(load_debias.__file__), draft / "load_debias.py")
        facts = json.dumps(dict(provenance), indent=1, default=str)
        (draft / "README.md").write_text(_CARD.format(facts=facts), encoding="utf-8")


Reading = Literal["outputs", "states"]
READINGS: tuple[Reading, ...] = get_args(Reading)
_BATCH = 64  # texts at once


class States(Protocol):
    """A text model whose vectors are projections of states."""

    @property
    def projection(self) -> Float32Array:
        """(D, H) the matrix that turns states into vectors."""

    @property
    def mark(self) -> Float32Array:
        """(H,) numbers by which the model is identified."""

    def states(self, texts: Sequence[str], /) -> Float32Array:
        """(N, H) the states of the last tokens of texts."""


def prompt_numbers(
    reading: Reading,
    texts: States,
    debias: Debias,
    attribute: Attribute,
    names: tuple[str, ...],
    seed: int,
) -> dict[str, Float64Array]:
    """The arrays, by name, that ``load_debias.py`` needs to change states."""
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

    def embed(lines: Sequence[str]) -> Float32Array:
        starts = range(0, len(lines), _BATCH)
        return np.concatenate([texts.states(lines[s : s + _BATCH]) for s in starts])

    examples = Examples.of_texts(embed, attribute, names, seed)
    matrix, vector = affine(debias.fit(examples), examples.vectors.shape[1])
    return {**known, "prompt.weight": matrix, "prompt.bias": vector}
