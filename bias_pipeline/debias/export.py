"""Writes a fitted debiasing to a folder, for use with the same model without this program."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.debias import load_debias
from bias_pipeline.debias.base import Debiased, EmbeddingEdit
from bias_pipeline.errors import UsageError
from bias_pipeline.inference.embedders import DualEncoder
from bias_pipeline.io.new_folder import drafted

NOTHING = "debias=none edits nothing; choose a debiasing, such as debias=subspace"
_CARD = """# A debiasing

Fitted by `bias_pipeline fit debias`. `debias.safetensors` has a matrix and a vector for each side
that is edited: a vector x of length 1 becomes `x @ weight + bias`, and is made of length 1 again
where `renormalise` says so. `load_debias.py` does that for PyTorch and needs no bias_pipeline.
Where there are numbers called `prompt`, its `debias_prompts` has a generator of pictures with the
same text model read debiased prompts. All of it holds for the model named below and no other.

```json
{facts}
```
"""


def affine(edit: EmbeddingEdit, size: int) -> tuple[Float64Array, Float64Array]:
    """(D, D) and (D,): an edit as ``x @ matrix + vector``.

    Args:
        edit: any of ours; all are affine.
        size: D.

    Example:
        >>> from bias_pipeline.debias.projection import Projection
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
    """Write the edits of a pair of embedders.

    Args:
        dual: debiased.
        folder: a new one.
        provenance: of model and data, for the card.
        prompts: arrays of :func:`~bias_pipeline.debias.prompts.prompt_numbers`.

    Raises:
        UsageError: if nothing is edited.
        ResourceError: if the folder is there already, or cannot be written.
    """
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
    with drafted(folder) as draft:
        metadata = {"renormalise": json.dumps(again)}
        save_file(tensors, draft / "debias.safetensors", metadata=metadata)
        shutil.copyfile(Path(load_debias.__file__), draft / "load_debias.py")
        facts = json.dumps(dict(provenance), indent=1, default=str)
        (draft / "README.md").write_text(_CARD.format(facts=facts), encoding="utf-8")
