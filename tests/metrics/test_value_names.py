"""Names of parts: made of fields in one place, byte by byte as rows have them."""

import ast
import json
import pickle

import pandas as pd

from bias_pipeline.metrics import value_names
from bias_pipeline.metrics.value_names import HEADLINES, PartName, direction_of
from tests.corpora import REPOSITORY
from tests.golden.cells import ROWS

NAMES = {
    "score": PartName("score"),
    "model": PartName(side="model"),
    "human:paired": PartName(side="human", detail="paired"),
    "object:tie": PartName(object="tie"),
    "object:tie:human": PartName(object="tie", side="human"),
    "group:female:model": PartName(group="female", side="model"),
    "disparity:female:tie": PartName("disparity", group="female", object="tie"),
    "incorrect:female": PartName("incorrect", group="female"),
    "lic_from:accuracy": PartName("lic_from", detail="accuracy"),
    "named:increase": PartName("named", detail="increase"),
    "mentions:model:sets": PartName("mentions", side="model", detail="sets"),
    "a_to_t": PartName(direction="a_to_t"),
    "a_to_t:female:tie": PartName(direction="a_to_t", group="female", object="tie"),
    "t_to_a:tie:female": PartName(direction="t_to_a", group="female", object="tie"),
    "t_to_a:group:female": PartName(direction="t_to_a", group="female"),
    "t_to_a:quality:baseline": PartName("quality", direction="t_to_a", detail="baseline"),
}
MAKERS = [
    path
    for room in (
        "metrics",
        "report",
        "run",
        "commands",
        "studies",
        "people/commands",
        "pictures",
        "retrieval",
        "language",
    )
    for path in sorted((REPOSITORY / "bias_pipeline" / room).rglob("*.py"))
    if path.name not in ("value_names.py", "networks.py")  # `timm:FOLDER` is no part
]


def test_a_name_is_made_of_its_fields_and_survives_a_process():
    names = [*NAMES.values()]
    assert names == [*NAMES]
    assert [*map(vars, pickle.loads(pickle.dumps(names)))] == [*map(vars, names)]


def test_headlines_are_those_of_the_contract():
    assert HEADLINES == ("score", "a_to_t", "t_to_a")


def test_a_name_is_text_in_a_file():
    assert json.dumps(PartName("quality", side="human")) == '"quality:human"'


def test_the_direction_of_a_part_in_a_file_is_what_it_begins_with():
    parts = set(pd.read_csv(ROWS)["part"])
    begins = {p: next((d for d in value_names.DIRECTIONS if p.startswith(d)), "") for p in parts}
    assert {part: direction_of(part) for part in parts} == begins


def colon_lines(tree: ast.AST) -> list[int]:
    """Lines where a colon is looked for in a text: what only names of parts are joined by."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("split", "rsplit", "partition", "rpartition")
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == ":"
    ]


def test_no_name_of_a_part_is_taken_apart():
    lines = {path: colon_lines(ast.parse(path.read_text(encoding="utf-8"))) for path in MAKERS}
    assert {path: numbers for path, numbers in lines.items() if numbers} == {}
