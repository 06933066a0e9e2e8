"""``analysis survivors``: which words of the attribute a masking leaves."""

from __future__ import annotations

from bias_pipeline.commands.arguments import Parser, keys_parser


def command(words: list[str]) -> int:
    """Print them; returns the exit code.

    Raises:
        BiasPipelineError: if the data set cannot be read.
    """
    from bias_pipeline.analysis.survivors import print_survivors
    from bias_pipeline.config import compose

    cell = compose.cell(words)
    print_survivors(cell.corpus(), cell.build("attribute"), cell.build("masking"))
    return 0


def parser() -> Parser:
    """What it takes."""
    return keys_parser("analysis survivors", "Which words of the attribute a masking leaves.")
