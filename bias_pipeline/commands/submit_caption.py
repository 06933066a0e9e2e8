"""``submit caption``: ``caption`` as Slurm jobs, each a share of the photos."""

from __future__ import annotations

from bias_pipeline.commands import caption, submit
from bias_pipeline.commands.arguments import Parser


def command(words: list[str]) -> int:
    """Submit the jobs and return; prints their numbers and how to get the file in the end.

    Raises:
        UsageError: if the words are wrong, or Slurm refuses the array.
    """
    return submit.submit_shards("caption", words, caption.options_of)


def parser() -> Parser:
    """The options and their help."""
    return submit.shards_parser("caption", caption.parser())
