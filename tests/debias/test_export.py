"""A debiasing as a folder: whoever has the model applies it as we do, and without us."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bias_pipeline.debias.base import Debias
from bias_pipeline.debias.clip_clip import ClipClip
from bias_pipeline.debias.erasure import Erasure
from bias_pipeline.debias.export import affine, write_debias
from bias_pipeline.debias.mean_difference import MeanDifference
from bias_pipeline.debias.neurons import MeanNeuron, ZeroNeuron
from bias_pipeline.debias.none import Untouched
from bias_pipeline.debias.subspace import Subspace
from bias_pipeline.errors import ResourceError, UsageError
from bias_pipeline.inference.embedders import DualEncoder
from tests.debias.planted import SIZE, planted

EDITS: list[Debias] = [
    Subspace(k=3),
    ZeroNeuron(k=3),
    MeanNeuron(k=3),
    MeanDifference(),
    Erasure(),
    ClipClip(k=3),
    Subspace(k=3, renormalise=False),
    MeanNeuron(k=3, side="text"),
]


@dataclass(frozen=True)
class Given:
    """Passes vectors on, of length 1."""

    spec: dict[str, object] = field(default_factory=dict)

    def embed(self, items: Any) -> Any:
        if isinstance(items[0], str):
            return np.eye(SIZE, dtype=np.float32)[: len(items)]
        return (items / np.linalg.norm(items, axis=1, keepdims=True)).astype(np.float32)


def dual(debias: Debias) -> DualEncoder:
    examples = dict.fromkeys(("image", "text"), planted(300, 2.0)[0])
    return debias.around(DualEncoder(Given(), Given()), examples)


@pytest.mark.parametrize("debias", EDITS, ids=repr)
def test_every_edit_is_affine(debias: Debias) -> None:
    (edit,) = {type(debias).fit(debias, planted(300, 2.0)[0])}
    vectors = np.random.default_rng(3).standard_normal((20, SIZE))
    matrix, vector = affine(edit, SIZE)
    np.testing.assert_allclose(vectors @ matrix + vector, edit(vectors), atol=1e-10)


# Without any module of ours.
OUTSIDE = """
import sys
sys.path = [path for path in sys.path if path not in ("", "REPOSITORY")]
sys.path.insert(0, "FOLDER")
import numpy as np, torch
from load_debias import load
edits = load("FOLDER")
vectors = torch.from_numpy(np.load("vectors.npy"))
np.savez("found.npz", **{side: edits[side](vectors).numpy() for side in ("image", "text")})
assert not any(name.startswith("bias_pipeline") for name in sys.modules)
"""


@pytest.mark.parametrize("debias", EDITS, ids=repr)
def test_whoever_has_the_model_applies_it_without_us(debias: Debias, tmp_path: Path) -> None:
    built_dual = dual(debias)
    write_debias(built_dual, tmp_path / "mine", {"data": "planted"})
    vectors = 3 * np.random.default_rng(3).standard_normal((20, SIZE)).astype(np.float32)
    np.save(tmp_path / "vectors.npy", vectors)
    script = OUTSIDE.replace("FOLDER", str(tmp_path / "mine"))
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    content = np.load(tmp_path / "found.npz")
    for side, embedder in (("image", built_dual.images), ("text", built_dual.texts)):
        np.testing.assert_allclose(content[side], embedder.embed(vectors), atol=1e-5)


def test_nothing_is_no_debiasing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="edits nothing"):
        write_debias(dual(Untouched()), tmp_path / "mine", {})


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ResourceError, match="already exists"):
        write_debias(dual(Erasure()), tmp_path, {})
