"""Data flows one way: a module imports only from what stands to its left."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.corpora import REPOSITORY

LAYERS = [
    {"terminal"},
    {
        "errors",
        "captions",
        "progress",
        "paths",
        "stopping",
        "hashing",
        "declared",
        "ownership",
        "streams",
        "csv_text",
    },
    {"arguments", "references", "yaml_files", "shorthand", "grid", "extras"},
    {"cache", "sealed"},
    {"attribute"},
    {"corpus"},
    {"datasets"},
    {"limit", "costs"},
    {"intersection", "copies"},
    {"text", "vision"},
    {"split", "encoders", "captioners", "sharded"},
    {"attackers"},
    {"scoring"},
    {"stats"},
    {"metrics"},
    {"prediction_files", "manifests"},
    {"results", "identity"},
    {"run"},
    {"analysis"},
    {"report"},
    {"targets", "cluster"},
    {"kinds"},
    {"hydra_part"},
    {"loader"},
    {"composition"},
    {"job", "own_columns", "presets"},
    {"sweep_bar"},
    {"launch"},
    {"planning"},
    {"auditing"},
    {"contest", "data", "audit_command", "attribution", "embedding", "captioning"},
    {"detached", "api"},
    {"door"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PACKAGE = REPOSITORY / "bias_pipeline"
MODULES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem != "__init__"
)


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bias_pipeline"):
            names = [node.module] if node.module != "bias_pipeline" else []
            names += [
                f"bias_pipeline.{a.name}" for a in node.names if node.module == "bias_pipeline"
            ]
            found |= {name.split(".")[1] for name in names if name}
    return found & set(RANK)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_left(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    rightward = {other for other in imported(path) - {own} if RANK[other] >= RANK[own]}
    assert rightward == set()


def test_every_module_has_a_layer() -> None:
    top = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    assert top - {"__init__"} - set(RANK) == set()
