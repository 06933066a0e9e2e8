"""A debiasing as a folder: whoever has the model applies it as we do, and without us."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bias_pipeline.errors import ResourceError, UsageError
from bias_pipeline.retrieval.debias.base import Debias
from bias_pipeline.retrieval.debias.export import affine, write_debias
from bias_pipeline.retrieval.debias.methods import (
    ClipClip,
    Erasure,
    MeanDifference,
    MeanNeuron,
    Subspace,
    Untouched,
    ZeroNeuron,
)
from bias_pipeline.retrieval.dual_encoders import DualEncoder
from tests.retrieval.debias.planted import SIZE, planted_examples

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
    examples = dict.fromkeys(("image", "text"), planted_examples(300, 2.0)[0])
    return debias.wrap(DualEncoder(Given(), Given()), examples)


@pytest.mark.parametrize("debias", EDITS, ids=repr)
def test_every_edit_is_affine(debias):
    (edit,) = {type(debias).fit(debias, planted_examples(300, 2.0)[0])}
    vectors = np.random.default_rng(3).standard_normal((20, SIZE))
    matrix, vector = affine(edit, SIZE)
    np.testing.assert_allclose(vectors @ matrix + vector, edit(vectors), atol=1e-10)


# Without any module of ours.
OUTSIDE = """
import sys
sys.path = [path for path in sys.path if path not in ("", "REPOSITORY")]
import numpy as np, torch
vectors = torch.from_numpy(np.load("vectors.npy"))
for folder in sys.argv[1:]:
    sys.path.insert(0, folder)
    from load_debias import load
    edits = load(folder)
    numbers = {side: edits[side](vectors).numpy() for side in ("image", "text")}
    np.savez(folder + "/edited.npz", **numbers)
    sys.path.remove(folder)
    del sys.modules["load_debias"]
assert not any(name.startswith("bias_pipeline") for name in sys.modules)
"""
VECTORS = 3 * np.random.default_rng(3).standard_normal((20, SIZE)).astype(np.float32)


@pytest.fixture(scope="module")
def folders_outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each debiasing, by its number, with what another program makes of it."""
    root = tmp_path_factory.mktemp("outside")
    folders = [str(root / str(number)) for number in range(len(EDITS))]
    for debias, folder in zip(EDITS, folders, strict=True):
        write_debias(dual(debias), Path(folder), {"data": "planted"})
    np.save(root / "vectors.npy", VECTORS)
    subprocess.run([sys.executable, "-c", OUTSIDE, *folders], cwd=root, check=True)
    return root


@pytest.mark.parametrize("debias", EDITS, ids=repr)
def test_whoever_has_the_model_applies_it_without_us(debias, folders_outside):
    content = np.load(folders_outside / str(EDITS.index(debias)) / "edited.npz")
    here = dual(debias)
    for side, embedder in (("image", here.images), ("text", here.texts)):
        np.testing.assert_allclose(content[side], embedder.embed(VECTORS), atol=1e-5)


def test_nothing_is_no_debiasing(tmp_path):
    with pytest.raises(UsageError, match="edits nothing"):
        write_debias(dual(Untouched()), tmp_path / "mine", {})


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ResourceError, match="already exists"):
        write_debias(dual(Erasure()), tmp_path, {})
