"""Parsers of options that are not Hydra overrides."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, get_args

from bias_pipeline.config.targets import check_value
from bias_pipeline.errors import UsageError

PROGRAM = "python -m bias_pipeline"
KEYS = "[key=value ...]"
_LONGEST = 250  # characters; a longer usage is not printed with an error


class Parser(ArgumentParser):
    """A parser that raises a one-sentence UsageError on a mistake.

    Example:
        >>> Parser("x").parse_args(["--wrong"])
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: unrecognized arguments: --wrong; usage: x [-h]
    """

    @property
    def flags(self) -> list[str]:
        """The names of all options that help shows, the long ones where there are two."""
        known = [action.option_strings for action in self._actions if action.help != SUPPRESS]
        return sorted(options[-1] for options in known if options)

    def error(self, message: str) -> NoReturn:
        """Raise instead of ending the process."""
        usage = " ".join(self.format_usage().split())
        hint = usage if len(usage) <= _LONGEST else f"see {self.prog} --help"
        raise UsageError(f"{message}; {hint}")


def number(kind: Any) -> Callable[[str], Any]:
    """A reader of an option's number, by an annotation of :mod:`bias_pipeline.declared`.

    It refuses what the same annotation refuses in a configuration.

    Example:
        >>> from bias_pipeline.declared import Count, Share
        >>> number(Share)("0.5"), number(Count)("3")
        (0.5, 3)
    """
    plain = get_args(kind)[0]

    def read(text: str) -> Any:
        try:
            value = plain(text)
        except ValueError:
            value = text
        try:
            check_value(value, kind, "")
        except UsageError as error:
            raise ArgumentTypeError(str(error).removeprefix("=")) from error
        return value

    return read


def file_of(kind: str, *endings: str) -> Callable[[str], Path]:
    """A reader of a file name that must have one of the endings of its format.

    Example:
        >>> file_of("HTML", ".html")("bias.html").name
        'bias.html'
    """

    def read(text: str) -> Path:
        path = Path(text)
        if path.suffix.lower() not in endings:
            raise ArgumentTypeError(f"{text} is written as {kind}; end it in {endings[0]}")
        return path

    return read


def keys_parser(name: str, about: str) -> Parser:
    """The parser of a command that takes only keys, as ``run`` does."""
    parser = Parser(f"{PROGRAM} {name}", usage=f"%(prog)s {KEYS}", description=about)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="as of run")
    return parser
