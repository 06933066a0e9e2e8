"""``submit caption``: ``caption`` as Slurm jobs, each a share of the photos."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from bias_pipeline.commands import caption, submit
from bias_pipeline.commands.arguments import Parser
from bias_pipeline.errors import UsageError


def command(words: list[str]) -> int:
    """Submit the jobs and return; prints their numbers and how to get the file in the end.

    Raises:
        UsageError: if the words are wrong or name a server, or Slurm refuses the array.
    """
    return submit.submit_shards("caption", words, _options_of)


def _options_of(words: Sequence[str]) -> Namespace:
    options = caption.options_of(words)
    if options.server is not None:
        raise UsageError(
            "submit caption takes no --server: the jobs together would ask more at once than one "
            "server bears, and cluster nodes often reach none; run caption --server on one machine"
        )
    return options


def parser() -> Parser:
    """The options and their help."""
    return submit.shards_parser("caption", caption.parser())
