"""Arguments of commands that are no Hydra overrides."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
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


def number(low: float, high: float = math.inf) -> Callable[[str], float]:
    """An option's finite number from ``low`` to ``high``.

    Example:
        >>> number(0, 1)("0.5")
        0.5
    """

    def read(text: str) -> float:
        value = float(text)
        if not (math.isfinite(value) and low <= value <= high):
            most = "" if high == math.inf else f" and at most {high:g}"
            raise ArgumentTypeError(f"{text!r} must be at least {low:g}{most}")
        return value

    return read
