"""A core in which data flow one way, and wings that the core does not know."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.corpora import REPOSITORY

# A module of the core imports only from what stands above it here.
CORE = [
    {"errors"},
    {"declared", "array_types"},
    {"io"},
    {"corpus"},
    {"stats"},
    {"text"},
    {"data"},
    {"models"},
    {"attack"},
    {"metrics"},
    {"results"},
    {"report"},
    {"run"},
    {"commands"},
    {"api"},
    {"integrations"},
    {"__main__"},
]
# A wing imports the core, never another wing; the core imports no wing. A wing enters by the
# `_target_` of its YAML, and by its lines in the tables of commands.
WINGS = {"scenes", "published", "language", "retrieval", "pictures", "people", "studies", "pairs"}
RANK = {name: rank for rank, names in enumerate(CORE) for name in names}
PACKAGE = REPOSITORY / "bias_pipeline"
LOOSE = 6
FOLDERS = ("bias_pipeline", "docs", "experiments", "benchmarks", "tests")
LONGEST = 700


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
IN_PACKAGES = [name for name in FILES if "." in name]


@cache
def imported_modules(module: str) -> frozenset[str]:
    """The modules of ours that a module imports, wherever in it."""
    modules = set()
    for node in ast.walk(ast.parse(FILES[module].read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bias_pipeline"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                modules.add(full if full in FILES else str(node.module))
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return frozenset(modules & set(IN_PACKAGES)) - {module}


def room(module: str) -> str:
    return module.split(".")[1]


def pairs() -> list[tuple[str, str]]:
    """Each module with each that it imports from another room."""
    return [
        (module, other)
        for module in IN_PACKAGES
        for other in sorted(imported_modules(module))
        if room(other) != room(module)
    ]


def test_imports_of_the_core_point_up():
    assert [
        f"{module} imports {other}"
        for module, other in pairs()
        if {room(module), room(other)} <= RANK.keys() and RANK[room(other)] >= RANK[room(module)]
    ] == []


def test_nobody_imports_a_wing():
    assert [f"{module} imports {other}" for module, other in pairs() if room(other) in WINGS] == []


def test_every_room_is_one_of_the_core_or_a_wing():
    assert {room(module) for module in IN_PACKAGES} == RANK.keys() | WINGS


def test_no_files_import_each_other_in_a_circle():
    try:
        TopologicalSorter({module: imported_modules(module) for module in IN_PACKAGES}).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))


def test_few_modules_stand_outside_the_rooms():
    assert len(list(PACKAGE.glob("*.py"))) <= LOOSE


def test_a_file_can_be_read_in_a_sitting():
    names = {str(path.relative_to(PACKAGE)): path for path in FILES.values()}
    assert [
        name for name, path in names.items() if len(path.read_text().splitlines()) > LONGEST
    ] == []


def test_types_of_arrays_are_defined_in_one_place():
    spelled_out = re.compile(r"NDArray\[np\.(bool_|int64|float32|float64)\]")
    files = {path for name in FOLDERS for path in (REPOSITORY / name).rglob("*.py")}
    files.remove(PACKAGE / "array_types.py")
    files -= set((REPOSITORY / "tests/witness").rglob("*.py"))  # it imports nothing of ours
    assert [str(path) for path in sorted(files) if spelled_out.search(path.read_text())] == []
