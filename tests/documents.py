"""The documents and what they hold: fenced blocks, commands, links."""

from __future__ import annotations

import re

from tests.corpora import REPOSITORY

DOOR = "python -m bias_pipeline"
DOCUMENTS = sorted(
    path
    for path in REPOSITORY.rglob("*.md")
    if not {part for part in path.relative_to(REPOSITORY).parts if part[0] == "."}
    and "outputs" not in path.relative_to(REPOSITORY).parts[:-1]
)


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)


def commands(text: str) -> list[str]:
    """The lines of a document's shell blocks."""
    return [line for block in blocks(text, "sh") for line in block.splitlines()]


def links(text: str) -> list[str]:
    """What a document's links lead to, anchors left out."""
    outside_code = re.sub(r"(?ms)^```.*?^```$", "", text)
    return [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", outside_code)]
