"""Every YAML fits what it describes."""

import importlib
import inspect
from collections.abc import Iterator

import yaml

from bias_pipeline.declared import kinds_of
from bias_pipeline.io.paths import conf_dir
from bias_pipeline.run.targets import is_allowed

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
    (f"{path.relative_to(conf_dir())}: {node['_target_']}", node)
    for path in FILES
    for node in nodes(yaml.safe_load(path.read_text()))
]


def misfit(node: dict[str, object]) -> str:
    """Why a node's arguments are not those of its target; empty if they are."""
    module, _, name = str(node["_target_"]).rpartition(".")
    target = getattr(importlib.import_module(module), name)
    arguments = {key: value for key, value in node.items() if key[0] != "_" and key != "defaults"}
    try:
        inspect.signature(target).bind_partial(**arguments)
    except TypeError as error:
        return str(error)
    return ", ".join(arguments.keys() - kinds_of(target)) and "its annotations do not resolve"


def test_nodes_bind_to_their_targets():
    assert len(NODES) > 100
    assert {name: why for name, node in NODES if (why := misfit(node))} == {}


def test_a_node_that_does_not_bind_is_noticed():
    assert misfit({"_target_": "bias_pipeline.metrics.attack.lic.LIC", "nothing": 1})


def test_nodes_name_allowed_targets():
    assert [name for name, node in NODES if not is_allowed(str(node["_target_"]))] == []


def test_files_say_what_they_are():
    heads = {path.relative_to(conf_dir()): path.read_text().splitlines()[:3] for path in FILES}
    assert [
        str(name)
        for name, lines in heads.items()
        if not any(line.startswith("# ") and "@package" not in line for line in lines)
    ] == []


def test_every_metric_file_names_a_metric_of_that_name():
    for path in (conf_dir() / "metric").glob("*.yaml"):
        module, _, name = yaml.safe_load(path.read_text())["_target_"].rpartition(".")
        assert getattr(importlib.import_module(module), name).info.name == path.stem
