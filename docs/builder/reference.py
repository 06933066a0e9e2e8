"""The reference: commands from their parsers, configuration from conf/, Python from docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bias_pipeline.commands.main import WORDS
from docs.builder.sources import REPOSITORY

CONF = REPOSITORY / "conf"
# What a notebook or a class of one's own builds on; each is a page.
MODULES = {
    "Calls": ["bias_pipeline.api"],
    "Formulas": [
        "bias_pipeline.metrics.functional.attack",
        "bias_pipeline.metrics.functional.dbac",
        "bias_pipeline.metrics.functional.dpa",
        "bias_pipeline.metrics.functional.amplification",
        "bias_pipeline.metrics.functional.groups",
        "bias_pipeline.language.formulas",
        "bias_pipeline.metrics.functional.quality",
        "bias_pipeline.retrieval.formulas",
        "bias_pipeline.retrieval.skew",
    ],
    "Captions and groups": [
        "bias_pipeline.corpus.corpus",
        "bias_pipeline.corpus.attribute",
        "bias_pipeline.corpus.pictures",
        "bias_pipeline.corpus.split_rules",
    ],
    "Text": [
        "bias_pipeline.text.mask",
        "bias_pipeline.text.align",
        "bias_pipeline.text.matched",
        "bias_pipeline.text.mentions",
    ],
    "Statistics": ["bias_pipeline.stats.bootstrap", "bias_pipeline.stats.compare"],
    "What to derive from": [
        "bias_pipeline.metrics.base",
        "bias_pipeline.metrics.counting.base",
        "bias_pipeline.metrics.counting.numbers",
        "bias_pipeline.attack.encoder",
        "bias_pipeline.data.base",
        "bias_pipeline.retrieval.debias.base",
    ],
    "Results": ["bias_pipeline.results.rows", "bias_pipeline.results.store"],
}


def commands_page() -> str:
    """Every command's ``--help``."""
    sections = [
        f"## `{word.name}`\n\n{word.about[0].upper()}{word.about[1:]}.\n\n"
        f"```text\n{word.parser().format_help().rstrip()}\n```\n"
        for word in WORDS
    ]
    head = (
        "# Commands\n\nWritten from the parsers: what `python -m bias_pipeline COMMAND --help` "
        "prints. An installed "
        "package has the same commands as `bias-pipeline`. No command means `run`.\n"
    )
    return "\n".join([head, *sections])


def configuration_pages() -> dict[str, str]:
    """A page for each group of configuration, and one that lists the groups, by path."""
    groups = sorted({path.parent for path in CONF.rglob("*.yaml")} - {CONF})
    pages = {f"docs/configuration/{_name(group)}.md": _group_page(group) for group in groups}
    links = "".join(
        f"* [{_name(group).replace('-', '/')}](configuration/{_name(group)}.md), "
        f"{len(_choices(group))} choices\n"
        for group in groups
    )
    defaults = (CONF / "config.yaml").read_text(encoding="utf-8")
    pages["docs/configuration.md"] = (
        "# Configuration\n\nWritten from `conf/`. A group is chosen by `group=choice` and "
        "changed by "
        f"`group.key=value`; `--cfg job` prints what a command would run with.\n\n{links}\n"
        f"## Defaults\n\n```yaml\n{defaults}```\n"
    )
    return pages


def _name(group: Path) -> str:
    return "-".join(group.relative_to(CONF).parts)


def _choices(group: Path) -> list[Path]:
    return sorted(path for path in group.glob("*.yaml") if path.stem[0] != "_")


def _group_page(group: Path) -> str:
    """What each choice is, by the comment at its top, and its file."""
    name = _name(group).replace("-", "/")
    sections = [
        f"## `{name}={path.stem}`\n\n{comment_of(path.read_text('utf-8'))}\n\n"
        f"```yaml\n{without_comment(path.read_text('utf-8'))}```\n"
        for path in _choices(group)
    ]
    return "\n".join([f"# `{name}=`\n", *sections])


def comment_of(text: str) -> str:
    r"""The comment at the top of a file as a paragraph.

    Example:
        >>> comment_of("# @package _global_\n# What it is,\n# in words.\na: 1\n")
        'What it is, in words.'
    """
    lines = [line[2:] for line in _top(text) if not line.startswith("# @")]
    return re.sub(r"([<>*_\[\]])", r"\\\1", " ".join(lines))


def without_comment(text: str) -> str:
    r"""A file without the comment at its top.

    Example:
        >>> without_comment("# What it is.\na: 1\n")
        'a: 1\n'
    """
    return "".join(text.splitlines(keepends=True)[len(_top(text)) :])


def _top(text: str) -> list[str]:
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line)
    return lines


def python_pages() -> dict[str, str]:
    """A page for each part of the Python API, made from docstrings, by path."""
    return {
        f"docs/python/{title.lower().replace(' ', '_')}.md": _python_page(title, modules)
        for title, modules in MODULES.items()
    }


def _python_page(title: str, modules: Sequence[str]) -> str:
    return "\n".join([f"# {title}\n", *_directives(modules)])


def _directives(modules: Sequence[str]) -> Iterator[str]:
    for module in modules:
        yield f"## `{module}`\n\n::: {module}\n    options:\n      heading_level: 3\n"
