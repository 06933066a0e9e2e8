"""Arguments of commands that are no Hydra overrides."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import NoReturn

from bias_pipeline.errors import UsageError

_LONGEST = 250  # characters of a usage that is shown with a mistake


class Parser(ArgumentParser):
    """Mistakes are the user's to mend, in one sentence like all others.

    Example:
        >>> Parser("x").parse_args(["--wrong"])
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: unrecognized arguments: --wrong; usage: x [-h]
    """

    def error(self, message: str) -> NoReturn:
        """Raise instead of ending the process."""
        usage = " ".join(self.format_usage().split())
        told = usage if len(usage) <= _LONGEST else f"see {self.prog} --help"
        raise UsageError(f"{message}; {told}")
