"""Parses the options that are not Hydra's, some of which several commands share."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

from bias_pipeline.declared import Share
from bias_pipeline.errors import UsageError
from bias_pipeline.run.overrides import quote_value
from bias_pipeline.run.targets import check_value

PROGRAM = "python -m bias_pipeline"
KEYS = "[key=value ...]"
MAP = "--map"
GOLD = (
    "if a machine made LABELS: a table of labels by people for images drawn at random, with "
    "the columns image_id, value and, if known, rater and chance (rate --gold-size writes "
    "it). It corrects the numbers that docs/labels.md lists"
)
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
        """The names of all options in the help; if an option has two names, only the long name."""
        known = [action.option_strings for action in self._actions if action.help != SUPPRESS]
        return sorted(options[-1] for options in known if options)

    def parse_known_args(  # type: ignore[override] # the stubs have an overload for each namespace
        self, args: Sequence[str], namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse like the base class, but name words that may be files in errors.

        A value with ``=`` may begin with a minus sign, as in ``--map -1=female``.
        """
        joined: list[str] = []
        for word in args:
            name, equals, _ = word.partition("=")
            known = self._option_string_actions
            if (
                equals
                and joined
                and joined[-1] == MAP
                and name.startswith("-")
                and name not in known
            ):
                joined[-1] += f"={word}"
            else:
                joined.append(word)
        self._words = joined
        return super().parse_known_args(self._words, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError instead of ending the process."""
        usage = " ".join(self.format_usage().split())
        hint = usage if len(usage) <= _LONGEST else f"see {self.prog} --help"
        unknown = [
            flag
            for word in self._words
            if (flag := word.partition("=")[0]).startswith("--")
            and not any(one.startswith(flag) for one in self._option_string_actions)
        ]
        if unknown and unknown[0] not in message:  # argparse itself names missing options first
            message = f"unrecognized arguments: {unknown[0]}; {message}"
        raise UsageError(f"{message}; {file_like_an_option(self._words) or hint}")


def file_like_an_option(words: Sequence[str]) -> str:
    """How to type a file whose name begins with a dash; empty if no word names such a file."""
    names = [word for word in words if word.startswith("-") and Path(word).exists()]
    return f"write ./{names[0]} for the file {names[0]}" if names else ""


def number(kind: Any) -> Callable[[str], Any]:
    """A reader of an option's numbers, which refuses the same numbers as a configuration.

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
    """A reader of file names for an option; the name must have an ending of the file's format.

    Example:
        >>> file_of("HTML", ".html")("bias.html").name
        'bias.html'
    """

    def read(text: str) -> Path:
        path = Path(text)
        if path.suffix.lower() not in endings:
            raise ArgumentTypeError(
                f"{text} is written as {kind}; its name must end in {endings[0]}"
            )
        return path

    return read


def keys_parser(name: str, about: str) -> Parser:
    """The parser of a command that takes only keys, like ``run``."""
    parser = Parser(f"{PROGRAM} {name}", usage=f"%(prog)s {KEYS}", description=about)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="as for run")
    return parser


_KEYS = {
    "id_column": "column of image ids, in every file that has it",
    "caption_column": "column of captions in the captioner's file",
    "human_caption_column": "column of captions in the file of human captions",
    "label_column": "column of labels",
}


def add_column_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group(
        "your own columns and labels, if audit does not know their names"
    )
    for key, what in _KEYS.items():
        group.add_argument(f"--{key.replace('_', '-')}", metavar="COLUMN", help=what)
    group.add_argument(
        MAP,
        action="append",
        default=[],
        metavar="LABEL=GROUP",
        help="meaning of a label in your file: a group (M=male), or a label for images of no "
        "group (unclear=Unsure); repeat the option for further labels",
    )


def column_overrides(options: Namespace) -> list[str]:
    """The options on columns and labels, as overrides of the configuration.

    Example:
        >>> print(*column_overrides(Namespace(id_column="photo id", map=["M=male"])))
        dataset.id_column='photo id' dataset.label_map=['M=male']
    """
    named = {key: getattr(options, key, None) for key in _KEYS}
    overrides = [
        f"dataset.{key}={quote_value(name)}" for key, name in named.items() if name is not None
    ]
    if options.map:
        overrides.append(f"dataset.label_map=[{','.join(map(quote_value, options.map))}]")
    return overrides


def add_least_coverage(parser: ArgumentParser) -> None:
    from bias_pipeline.report.conclusion_checks import COVERAGE

    parser.add_argument(
        "--least-coverage",
        type=number(Share),
        default=COVERAGE,
        metavar="SHARE",
        help="smallest share of the labelled images with captions that a number must use; no "
        f"conclusion is drawn from a number that uses fewer images (default: {COVERAGE})",
    )


def add_limits(parser: ArgumentParser) -> None:
    from bias_pipeline.report.conclusion_checks import LIMITS

    add_least_coverage(parser)
    parser.add_argument(
        "--negligible",
        type=number(Share),
        default=LIMITS.negligible,
        metavar="SHARE",
        help="equivalence margin: at equal style, a score of attackers counts as no bias if the "
        "upper end of its interval exceeds the annotators' score by less than this value "
        f"(default: {LIMITS.negligible})",
    )


LIMIT, QUICK, DRY_RUN = "--limit", "--quick", "--dry-run"
QUICK_IMAGES = 500
_QUICK = {"limit": f"{QUICK_IMAGES}", "seeds": "2"}


def expand_flags(words: Sequence[str]) -> list[str]:
    """The words in which keys replace ``--limit`` and ``--quick``; a key that the user gave wins.

    Example:
        >>> expand_flags(["metric=lic", "--limit", "300"]), expand_flags(["--quick", "seeds=3"])
        (['metric=lic', 'limit=300'], ['limit=500', 'seeds=3'])
    """
    expanded: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        flag, equals, value = word.partition("=")
        if flag != LIMIT:
            expanded.append(word)
            continue
        if not equals and not left:
            raise UsageError(f"{LIMIT} needs a number of images, as {LIMIT} 300")
        expanded.append(f"limit={value if equals else left.pop(0)}")
    if QUICK not in expanded:
        return expanded
    given = {word.partition("=")[0] for word in expanded}
    quick = [f"{key}={value}" for key, value in _QUICK.items() if key not in given]
    return [*quick, *(word for word in expanded if word != QUICK)]
