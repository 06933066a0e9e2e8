"""Help: of all words, of those below a word, of one."""

from __future__ import annotations

from bias_pipeline.commands.arguments import PROGRAM
from bias_pipeline.commands.words import WORDS, Word, below, listed


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
        *listed([run, *others]),
        "",
        f"{PROGRAM} WORD --help tells what a word takes. Of run:",
        "",
    ]
    return "\n".join([*head, run.parser().format_help().partition("\n\n")[2].rstrip()])


def group_help(first: str) -> str:
    """What stands below a word."""
    return "\n".join(["usage:", *listed(below(first)), "", "Each has --help."])


def word_help(word: Word) -> str:
    """What a word takes, and what stands below it."""
    text = word.parser().format_help().rstrip()
    others = below(word.name)
    return "\n".join([text, "", "also:", *listed(others)]) if others else text
