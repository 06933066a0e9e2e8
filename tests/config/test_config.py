"""Every YAML fits what it describes."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from bias_pipeline.config.targets import is_allowed
from bias_pipeline.io.paths import conf_dir

FILES = sorted(path for path in conf_dir().rglob("*.yaml") if "hydra" not in path.parts)


def nodes(node: object) -> Iterator[dict[str, object]]:
    if isinstance(node, dict):
        if "_target_" in node:
            yield node
        for item in node.values():
            yield from nodes(item)
    elif isinstance(node, list):
        for item in node:
            yield from nodes(item)


NODES = [
    pytest.param(node, id=f"{path.relative_to(conf_dir())}:{node['_target_']}")
    for path in FILES
    for node in nodes(yaml.safe_load(path.read_text()))
]


@pytest.mark.parametrize("node", NODES)
def test_a_node_binds_to_its_target(node: dict[str, object]) -> None:
    module, _, name = str(node["_target_"]).rpartition(".")
    target = getattr(importlib.import_module(module), name)
    arguments = {key: value for key, value in node.items() if key[0] != "_" and key != "defaults"}
    inspect.signature(target).bind_partial(**arguments)


@pytest.mark.parametrize("node", NODES)
def test_a_node_names_an_allowed_target(node: dict[str, object]) -> None:
    assert is_allowed(str(node["_target_"]))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(conf_dir())))
def test_a_file_says_what_it_is(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert any(line.startswith("# ") and "@package" not in line for line in lines[:3])


def test_every_metric_file_names_a_metric_of_that_name() -> None:
    for path in (conf_dir() / "metric").glob("*.yaml"):
        module, _, name = yaml.safe_load(path.read_text())["_target_"].rpartition(".")
        assert getattr(importlib.import_module(module), name).info.name == path.stem
