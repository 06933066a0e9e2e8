"""What docstrings refer to exists: a rename that leaves an old name in prose fails here."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
REFERENCE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`~?([\w.]+)`")
FILES = sorted((REPOSITORY / "bias_pipeline").rglob("*.py"))


def module_of(path: Path) -> str:
    dotted = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
    return dotted.removesuffix(".__init__")


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Each name that a module, its classes and their methods bind."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=alias):
                yield alias or name


MODULES = {module_of(path): path for path in FILES}


@cache
def names(module: str) -> frozenset[str]:
    """The names that a module binds."""
    return frozenset(bound_names(ast.parse(MODULES[module].read_text(encoding="utf-8"))))


def resolves(reference: str, module: str) -> bool:
    """Whether a reference in a module leads to a module, or to a name that one binds."""
    if reference.startswith("."):
        reference = module.rpartition(".")[0] + reference
    if reference in MODULES:
        return True
    parts = reference.split(".")
    for length in range(len(parts) - 1, 0, -1):
        if ".".join(parts[:length]) in MODULES:
            return set(parts[length:]) <= names(".".join(parts[:length]))
    return parts[0] in names(module)


def test_docstrings_refer_to_what_exists():
    assert [
        f"{module_of(path)}: {name}"
        for path in FILES
        for name in REFERENCE.findall(path.read_text(encoding="utf-8"))
        if not resolves(name, module_of(path))
    ] == []


@pytest.mark.parametrize(
    "reference", ["Nothing", "bias_pipeline.stats.scoring.Nothing", ".nothing"]
)
def test_what_does_not_exist_is_noticed(reference):
    assert not resolves(reference, "bias_pipeline.metrics.base")
