"""``analysis collocations``: which words follow those of the attribute."""

from __future__ import annotations

from bias_pipeline.commands.arguments import Parser, keys_parser


def command(words: list[str]) -> int:
    """Print the table; returns the exit code.

    Raises:
        BiasPipelineError: if the data set cannot be read.
    """
    from bias_pipeline.analysis.group_words import print_collocations
    from bias_pipeline.config import compose

    cell = compose.cell(words)
    print_collocations(cell.corpus(), cell.build("attribute"))
    return 0


def parser() -> Parser:
    """The options and their help."""
    return keys_parser("analysis collocations", "Which words follow those of the attribute.")
