"""The commands: their names, and the module of each.

``parser()`` of a command's module makes its help and completion, ``command(words)`` runs it and
returns the exit code. Where commands share a module they are ``NAME_parser`` and ``NAME_command``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bias_pipeline.commands.arguments import KEYS, PROGRAM, Parser
from bias_pipeline.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class Command:
    """A command."""

    name: str  # as it is written
    about: str  # what it does, in one line
    arguments: str = ""  # what follows it, in short
    keys: bool = False  # whether that may be `key=value`
    module: str = ""  # of `commands`; the first word where it is empty

    def parser(self) -> Parser:
        """The options and their help."""
        parser: Parser = self._find("parser")()
        return parser

    @property
    def command(self) -> Callable[[list[str]], int]:
        """What runs it."""
        function: Callable[[list[str]], int] = self._find("command")
        return function

    def _find(self, role: str) -> Any:
        first, *others = self.name.split()
        words = others or ([first] if self.module else [])
        module = importlib.import_module(f"bias_pipeline.commands.{self.module or first}")
        return getattr(module, "_".join([*words, role]))


WORDS = (
    Command("run", "run a cell, or a sweep of cells; the default command", KEYS, keys=True),
    Command("submit", "submit a sweep as independent Slurm jobs", KEYS, keys=True),
    Command("submit embed", "embed photos as Slurm jobs", "--shards N ...", keys=True),
    Command("submit caption", "caption photos as Slurm jobs", "--shards N ...", keys=True),
    Command(
        "submit data detect", "find people and things as Slurm jobs", "--shards N ...", keys=True
    ),
    Command(
        "audit",
        "score one file of captions with all metrics, and write a report",
        "FILE --attributes LABELS ...",
    ),
    Command("compare", "is captioner A fairer than B?", f"A B {KEYS}", keys=True),
    Command(
        "report", "write finished runs as an HTML page, and as files for a paper", "[FOLDER] ..."
    ),
    Command("report wandb", "write finished runs as Weights & Biases runs", "[FOLDER] ..."),
    Command("caption", "caption a folder of photos", "PHOTOS --model MODEL --out DIR ..."),
    Command("embed", "embed a folder of photos, or captions", "PHOTOS --model MODEL --out DIR ..."),
    Command(
        "fit",
        "fit a captioner, a small CLIP or a debiasing to a data set's pictures",
        f"clip|sat|grit|debias --out DIR {KEYS}",
        keys=True,
    ),
    Command(
        "explain gradcam",
        "where a captioner looked when it named a group",
        f"--model MODEL --out DIR {KEYS}",
        keys=True,
    ),
    Command(
        "rate",
        "ask people about pictures or captions, in a browser on this machine",
        "[PHOTOS] --attribute NAME|--question TEXT --out DIR ...",
    ),
    Command(
        "browse",
        "look through finished runs in a browser, down to the captions behind a number",
        "[OUTPUTS] ...",
    ),
    Command(
        "anonymous build",
        "make pictures in which no group shows",
        "--scenes|--model FOLDER --out DIR ...",
        keys=True,
    ),
    Command("anonymous filter", "keep the pictures in which raters can tell no group", "DIR"),
    Command(
        "anonymous score",
        "what people and attackers make of captions of such pictures",
        "DIR [--reference dataset=...] ...",
        module="anonymous_score",
    ),
    Command("metrics", "what each metric can detect", "[--cards]", module="analysis"),
    Command("analysis claims", "do the papers' conclusions hold in our runs?"),
    Command("analysis words", "words that give the attribute away", KEYS, keys=True),
    Command("analysis unmasked_words", "revealing words that masking leaves in", KEYS, keys=True),
    Command("analysis collocations", "words that follow the attribute's words", KEYS, keys=True),
    Command(
        "analysis alignment",
        "how many of people's words have a similar word of the captioner",
        KEYS,
        keys=True,
    ),
    Command(
        "analysis sensitivity",
        "how much scores vary with the attacker",
        "OUTPUTS ...",
        module="steadiness",
    ),
    Command(
        "analysis consistency",
        "whether attackers, or metrics, agree",
        "OUTPUTS ...",
        module="steadiness",
    ),
    Command(
        "analysis feature_sensitivity",
        "whether scores depend on backgrounds and single objects",
        f"PHOTOS --model MODEL --regions FILE --out DIR {KEYS}",
        keys=True,
        module="feature_sensitivity",
    ),
    Command(
        "analysis rebalance",
        "weights of training images against pairs that a captioner overdoes",
        f"RUN --out FILE.parquet {KEYS}",
        keys=True,
        module="rebalance",
    ),
    Command("analysis power", "how small a bias so many images can show", "--n N|--groups N,N"),
    Command("analysis metrics", "the same as metrics", "[--cards]"),
    Command(
        "data validate", "check a data set's files and print what they contain", KEYS, keys=True
    ),
    Command("data convert", "pickles and JSON to Parquet", "FILE ... [--out DIR]"),
    Command("data draw", "the embedded data set with its pictures, as files", "--out DIR ..."),
    Command(
        "data detect",
        "find people and things in a folder of photos, for masks",
        "PHOTOS --model MODEL --out DIR ...",
    ),
    Command("data fetch", "where to get the published files, or download them", "[NAME ...]"),
    Command("models list", "published weights: what needs them, and where they are"),
    Command(
        "models show",
        "a model's files and digests, or what a run needs",
        "NAME|key=value ...",
        True,
    ),
    Command(
        "models prefetch", "fetch weights from the hub, digests checked", "NAME ... [--revision R]"
    ),
    Command("completion", "completion of this command line in bash or zsh", "bash|zsh"),
)
_BY_NAME = {word.name: word for word in WORDS}
_FIRST = list(dict.fromkeys(word.name.partition(" ")[0] for word in WORDS))


def resolve_command(words: Sequence[str]) -> tuple[Command | None, list[str]]:
    """The command that a command line begins with, and its arguments.

    Returns:
        No command if the first word needs a second one and has none.

    Raises:
        UsageError: if there is no such word.

    Example:
        >>> resolve_command(["report", "wandb", "outputs"])[0].name
        'report wandb'
        >>> resolve_command(["metric=lic"])[0].name
        'run'
    """
    first = words[0] if words else ""
    if not first or first[0] in "-+~" or "=" in first:
        return _BY_NAME["run"], list(words)
    for length in (3, 2, 1):
        match = _BY_NAME.get(" ".join(words[:length]))
        if match and len(words) >= length:
            return match, list(words[length:])
    if first not in _FIRST:
        raise UsageError(f"command {first!r} is unknown; {did_you_mean(first, _FIRST)}")
    second = words[1] if len(words) > 1 else ""
    if second and second[0] != "-":
        known = [word.name.partition(" ")[2] for word in subcommands(first)]
        raise UsageError(f"{first} {second!r} is unknown; {did_you_mean(second, known)}")
    return None, list(words[1:])


def subcommands(first: str) -> list[Command]:
    """The commands that begin with a word, such as ``data``."""
    return [word for word in WORDS if word.name.startswith(f"{first} ")]


def list_commands(words: Sequence[Command]) -> list[str]:
    """Two lines for each command: how to write it, and what it does."""
    written = [f"{PROGRAM} {word.name} {word.arguments}".rstrip() for word in words]
    return [
        line
        for text, word in zip(written, words, strict=True)
        for line in (f"  {text}", f"      {word.about}")
    ]


def overview() -> str:
    """The text of ``--help``.

    Example:
        >>> "metric=" in overview()
        True
    """
    run, *others = WORDS
    head = [
        "bias_pipeline: does an image captioner amplify societal bias?",
        "",
        "Usage:",
        *list_commands([run, *others]),
        "",
        f"{PROGRAM} COMMAND --help explains a command. Options of run:",
        "",
    ]
    return "\n".join([*head, run.parser().format_help().partition("\n\n")[2].rstrip()])


def group_help(first: str) -> str:
    """The commands of a group."""
    return "\n".join(["usage:", *list_commands(subcommands(first)), "", "Each has its own --help."])


def word_help(word: Command) -> str:
    """The help of a command, and its subcommands."""
    text = word.parser().format_help().rstrip()
    others = subcommands(word.name)
    return "\n".join([text, "", "also:", *list_commands(others)]) if others else text
