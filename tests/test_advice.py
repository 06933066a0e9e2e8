"""What messages advise can be done: every option, key, choice and command that a text names."""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any

from hydra.utils import get_class
from hydra_plugins.hydra_submitit_launcher.config import SlurmQueueConf
from omegaconf import DictConfig, OmegaConf

from bias_pipeline.commands.main import WORDS
from bias_pipeline.io.paths import choices_of, conf_dir
from tests.corpora import REPOSITORY

SOURCE = REPOSITORY / "bias_pipeline"
GROUPS = sorted(path.name for path in conf_dir().iterdir() if path.is_dir())
HOLE = "\0"  # what a message fills in
_GROUP = r"(?<![\w./\0])(" + "|".join(GROUPS) + ")"
OPTION = re.compile(r"(?<![\w(-])--[a-z][a-z-]+")
KEY = re.compile(_GROUP + r"((?:\.[a-z_]\w*)+)=")
CHOICE = re.compile(_GROUP + r"=([a-z_]\w*)(?![\w.\0])")
COMMAND = re.compile(r"bias_pipeline ((?:data|models|analysis|report|submit) [a-z]+)")
FURTHER = {"metric": {"all"}}  # choices that are no files
SENTENCE = re.compile(r"[a-z,;] [a-z(-]")  # arguments of other programs are none


@cache
def messages() -> list[tuple[str, str]]:
    """Every text of the package that is a sentence, docstrings left out, and where it stands."""
    return [
        (f"{path.relative_to(REPOSITORY)}:{line}", text)
        for path in sorted(SOURCE.rglob("*.py"))
        for line, text in _texts(ast.parse(path.read_text(encoding="utf-8")))
        if SENTENCE.search(text) and "%i %T" not in text
    ]


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    inner = {id(child) for node in ast.walk(tree) for child in _left_out(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = [str(v.value) if isinstance(v, ast.Constant) else HOLE for v in node.values]
            yield node.lineno, "".join(pieces)
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner
        ):
            yield node.lineno, node.value


def _left_out(node: ast.AST) -> Iterator[ast.AST]:
    """Docstrings, and the pieces of a text with holes."""
    if isinstance(node, ast.JoinedStr):
        yield from ast.walk(node)
    body = getattr(node, "body", None)
    if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
        yield body[0].value


def named_words(pattern: re.Pattern[str]) -> dict[tuple[str, ...], str]:
    """What texts name, and where one of them stands."""
    return {
        match if isinstance(match, tuple) else (match,): place
        for place, text in messages()
        for match in pattern.findall(text)
    }


@cache
def keys_of(group: str) -> frozenset[str]:
    """All keys that a choice of a group has, or that its class takes."""
    keys = {f"launcher.{subtree.name}" for subtree in fields(SlurmQueueConf) if group == "hydra"}
    for path in (conf_dir() / group).rglob("*.yaml"):
        below = path.parent.relative_to(conf_dir() / group).parts  # hydra/launcher
        tree = OmegaConf.load(path)
        subtree = tree[group] if isinstance(tree, DictConfig) and group in tree else tree
        keys |= set(_paths(subtree, "".join(f"{name}." for name in below))) | set(_paths(tree))
    if group == "encoder":
        keys.add("grounding")  # `fit sat` reads this word itself
    whole = OmegaConf.load(conf_dir() / "config.yaml")
    assert isinstance(whole, DictConfig)
    return frozenset(keys | set(_paths(whole.get(group))))


def _paths(tree: Any, start: str = "") -> Iterator[str]:
    if not isinstance(tree, DictConfig):
        return
    target = OmegaConf.to_container(tree, resolve=False).get("_target_")
    if isinstance(target, str) and target.startswith("bias_pipeline."):
        for name in inspect.signature(get_class(target)).parameters:
            yield start + name
    for name in tree:
        yield f"{start}{name}"
        if not OmegaConf.is_interpolation(tree, name) and not OmegaConf.is_missing(tree, name):
            yield from _paths(tree[name], f"{start}{name}.")


def test_the_patterns_find_what_messages_advise():
    patterns = (OPTION, KEY, CHOICE, COMMAND)
    assert [
        len(named_words(one)) > least for one, least in zip(patterns, (40, 50, 20, 1), strict=True)
    ]


def test_every_option_that_a_message_names_is_one_of_a_command():
    actions = [action for word in WORDS for action in word.parser()._actions]
    known = {"--include", "--config-dir", "--version", "--all", "--no-deps"}.union(  # the last: pip
        *(action.option_strings for action in actions)
    )
    assert {
        name: place for (name,), place in named_words(OPTION).items() if name not in known
    } == {}


def test_every_key_that_a_message_names_is_composed():
    keys = named_words(KEY).items()
    assert {key: place for key, place in keys if key[1][1:] not in keys_of(key[0])} == {}


def test_every_choice_that_a_message_names_is_there():
    known = {group: {*choices_of(conf_dir() / group), *FURTHER.get(group, ())} for group in GROUPS}
    choices = named_words(CHOICE).items()
    assert {key: place for key, place in choices if key[1] not in known[key[0]]} == {}


def test_every_command_that_a_message_names_is_one():
    known = {word.name for word in WORDS}
    assert {
        name: place for (name,), place in named_words(COMMAND).items() if name not in known
    } == {}
