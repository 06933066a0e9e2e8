"""Data flows one way: a module imports only from what stands to its left, and never in a circle."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.corpora import REPOSITORY

LAYERS = [
    {"errors"},
    {"declared", "array_types"},
    {"io"},
    {"corpus"},
    {"scoring"},
    {"stats"},
    {"text", "vision"},
    {"datasets"},
    {"learning"},
    {"models"},
    {"inference"},
    {"encoders"},
    {"captioners"},
    {"attackers", "debias"},
    {"fitting"},
    {"metrics"},
    {"results"},
    {"cell"},
    {"explain", "analysis"},
    {"report"},
    {"loggers", "web"},
    {"config"},
    {"sweeps"},
    {"commands"},
    {"api"},
    {"integrations"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PACKAGE = REPOSITORY / "bias_pipeline"
LOOSE = 8
FOLDERS = ("bias_pipeline", "docs", "experiments", "benchmarks", "tests")
LONGEST = 700
GENERATED = {"datasets/scenes/activities.py"}  # the vocabulary of scenes, a line a phrase


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
IN_PACKAGES = [name for name in FILES if "." in name]


@cache
def imported(module: str) -> frozenset[str]:
    """The modules of ours that a module imports, wherever in it."""
    modules = set()
    for node in ast.walk(ast.parse(FILES[module].read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bias_pipeline"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                modules.add(full if full in FILES else str(node.module))
    return frozenset(modules & set(IN_PACKAGES)) - {module}


def room(module: str) -> str:
    return module.split(".")[1]


def test_imports_point_left():
    assert [
        f"{module} imports {other}"
        for module in IN_PACKAGES
        for other in sorted(imported(module))
        if room(other) != room(module) and RANK[room(other)] >= RANK[room(module)]
    ] == []


def test_every_room_has_a_layer():
    assert {room(module) for module in IN_PACKAGES} == set(RANK)


def test_no_files_import_each_other_in_a_circle():
    try:
        TopologicalSorter({module: imported(module) for module in IN_PACKAGES}).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))


def test_few_modules_stand_outside_the_rooms():
    assert len(list(PACKAGE.glob("*.py"))) <= LOOSE


def test_a_file_can_be_read_in_a_sitting():
    names = {str(path.relative_to(PACKAGE)): path for path in FILES.values()}
    assert [
        name
        for name, path in names.items()
        if name not in GENERATED and len(path.read_text().splitlines()) > LONGEST
    ] == []


def test_types_of_arrays_are_defined_in_one_place():
    spelled_out = re.compile(r"NDArray\[np\.(bool_|int64|float32|float64)\]")
    files = {path for name in FOLDERS for path in (REPOSITORY / name).rglob("*.py")}
    files.remove(PACKAGE / "array_types.py")
    files -= set((REPOSITORY / "tests/witness").rglob("*.py"))  # it imports nothing of ours
    assert [str(path) for path in sorted(files) if spelled_out.search(path.read_text())] == []
