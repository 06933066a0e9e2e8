"""``analysis unmasked_words``: which words of the attribute masking leaves in."""

from __future__ import annotations

from bias_pipeline.commands.arguments import Parser, keys_parser


def command(words: list[str]) -> int:
    """Print the table; returns the exit code.

    Raises:
        BiasPipelineError: if the data set cannot be read.
    """
    from bias_pipeline.analysis.group_words import print_unmasked_words
    from bias_pipeline.config import compose

    cell = compose.cell(words)
    print_unmasked_words(cell.corpus(), cell.build("attribute"), cell.build("masking"))
    return 0


def parser() -> Parser:
    """The options and their help."""
    return keys_parser("analysis unmasked_words", "Which words of the attribute masking leaves in.")
