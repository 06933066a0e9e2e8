"""Help texts: of all commands, of a group of commands, of one."""

from __future__ import annotations

from bias_pipeline.commands.arguments import PROGRAM
from bias_pipeline.commands.registry import WORDS, Command, list_commands, subcommands


def overview() -> str:
    """The text of ``--help``.

    Example:
        >>> "metric=" in overview()
        True
    """
    run, *others = WORDS
    head = [
        "bias_pipeline: does an image captioner amplify societal bias?",
        "",
        "Usage:",
        *list_commands([run, *others]),
        "",
        f"{PROGRAM} COMMAND --help explains a command. Options of run:",
        "",
    ]
    return "\n".join([*head, run.parser().format_help().partition("\n\n")[2].rstrip()])


def group_help(first: str) -> str:
    """The commands of a group."""
    return "\n".join(["usage:", *list_commands(subcommands(first)), "", "Each has its own --help."])


def word_help(word: Command) -> str:
    """The help of a command, and its subcommands."""
    text = word.parser().format_help().rstrip()
    others = subcommands(word.name)
    return "\n".join([text, "", "also:", *list_commands(others)]) if others else text
