"""``analysis beside``: what words stand beside those of the attribute."""

from __future__ import annotations

from bias_pipeline.commands.arguments import Parser, keys_parser


def command(words: list[str]) -> int:
    """Print them; returns the exit code.

    Raises:
        BiasPipelineError: if the data set cannot be read.
    """
    from bias_pipeline.analysis.beside import print_beside
    from bias_pipeline.config import compose

    cell = compose.cell(words)
    print_beside(cell.corpus(), cell.build("attribute"))
    return 0


def parser() -> Parser:
    """What it takes."""
    return keys_parser("analysis beside", "What words stand beside those of the attribute.")
