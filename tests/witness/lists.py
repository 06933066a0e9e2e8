"""The word lists of ``conf/``, read as plain YAML."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import yaml

from tests.corpora import REPOSITORY
from tests.witness.words import Lexicon


@cache
def groups(attribute: str = "gender") -> Lexicon:
    """The words that name each group."""
    words = _conf("attribute", attribute)["words"]
    return Lexicon({name: list_words(listed_words) for name, listed_words in words.items()})


def group_names(attribute: str = "gender") -> list[str]:
    """The groups, in the order of their numbers."""
    return list(_conf("attribute", attribute)["groups"])


@cache
def telling(attribute: str = "gender") -> Lexicon:
    """All words that leak the attribute."""
    also = list_words(_conf("attribute", attribute).get("also_masked", []))
    return Lexicon({attribute: [*groups(attribute).owner, *also]})


@cache
def tasks() -> Lexicon:
    """The words and phrases that name each object, objects in the order of the file."""
    words = _conf("task", "coco_objects")["tasks"]
    return Lexicon({name: list_words(listed_words) for name, listed_words in words.items()})


def task_names() -> list[str]:
    """The objects, in the order of the file."""
    return list(_conf("task", "coco_objects")["tasks"])


def list_words(words: str | Sequence[str]) -> list[str]:
    """The words of a list, or of a text with commas.

    Example:
        >>> list_words("dog, hot dog")
        ['dog', 'hot dog']
    """
    parts = words.split(",") if isinstance(words, str) else words
    return [" ".join(part.split()) for part in parts if part.strip()]


@cache
def _conf(group: str, name: str) -> Mapping[str, Any]:
    path = REPOSITORY / "conf" / group / f"{name}.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content
