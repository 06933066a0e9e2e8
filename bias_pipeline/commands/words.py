"""The words of the command line: which there are, and the file that each is in.

A word's module has ``parser()``, of which its help and its completion are made, and
``command(words)``, which runs it and returns the exit code.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

from bias_pipeline.commands.arguments import KEYS, PROGRAM, Parser
from bias_pipeline.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class Word:
    """A word, or two, of the command line.

    Attributes:
        name: as it is written.
        about: what it does, in a line.
        arguments: what follows it, in short.
        keys: whether that may be ``key=value``.
    """

    name: str
    about: str
    arguments: str = ""
    keys: bool = False

    def parser(self) -> Parser:
        """What it takes."""
        parser: Parser = self._module.parser()
        return parser

    @property
    def command(self) -> Callable[[list[str]], int]:
        """What runs it."""
        found: Callable[[list[str]], int] = self._module.command
        return found

    @property
    def _module(self) -> ModuleType:
        name = self.name.replace(" ", "_")
        return importlib.import_module(f"bias_pipeline.commands.{name}")


WORDS = (
    Word("run", "run a cell, or a sweep of cells; the word may be left out", KEYS, keys=True),
    Word("submit", "run a sweep as Slurm jobs that need no parent", KEYS, keys=True),
    Word("submit embed", "embed photos as Slurm jobs", "--shards N ...", keys=True),
    Word("submit caption", "caption photos as Slurm jobs", "--shards N ...", keys=True),
    Word("submit data detect", "look for people as Slurm jobs", "--shards N ...", keys=True),
    Word("audit", "one file of captions, from labels to report", "FILE --attributes LABELS ..."),
    Word("compare", "is captioner A fairer than B?", f"A B {KEYS}", keys=True),
    Word("report", "finished runs as an HTML page, and as files for a paper", "[FOLDER] ..."),
    Word("report wandb", "finished runs as Weights & Biases runs", "[FOLDER] ..."),
    Word("caption", "captions of a folder of photos", "PHOTOS --model MODEL --out DIR ..."),
    Word("embed", "CLIP vectors of a folder of photos", "PHOTOS --model MODEL --out DIR ..."),
    Word(
        "fit",
        "a captioner, a small CLIP or a debiasing, of a data set's pictures",
        f"clip|sat|grit|debias --out DIR {KEYS}",
        keys=True,
    ),
    Word("metrics", "what each metric can tell", "[--cards]"),
    Word("analysis claims", "do the papers' conclusions hold in our runs?"),
    Word("analysis words", "words that give the attribute away", KEYS, keys=True),
    Word("analysis survivors", "revealing words that a masking leaves", KEYS, keys=True),
    Word("analysis beside", "words that stand beside the attribute's", KEYS, keys=True),
    Word(
        "analysis alignment",
        "people's words that have a near one of the captioner's",
        KEYS,
        keys=True,
    ),
    Word("analysis sensitivity", "how much scores vary with the attacker", "OUTPUTS ..."),
    Word("analysis consistency", "whether attackers, or metrics, agree", "OUTPUTS ..."),
    Word("analysis metrics", "the same as metrics", "[--cards]"),
    Word("data validate", "what a data set's files hold", KEYS, keys=True),
    Word("data convert", "pickles and JSON to Parquet", "FILE ... [--out DIR]"),
    Word("data draw", "the embedded data set with its pictures, as files", "--out DIR ..."),
    Word(
        "data detect",
        "where people and things are in a folder of photos, for masks",
        "PHOTOS --model MODEL --out DIR ...",
    ),
    Word("data fetch", "where to get the published files, or download them", "[NAME ...]"),
    Word("models list", "which published weights are needed by what, and where they are"),
    Word(
        "models show",
        "a model's files and digests, or what a run needs",
        "NAME|key=value ...",
        True,
    ),
    Word(
        "models prefetch", "fetch weights from the hub, digests checked", "NAME ... [--revision R]"
    ),
    Word("completion", "completion of this command line in bash or zsh", "bash|zsh"),
)
_BY_NAME = {word.name: word for word in WORDS}
_FIRST = list(dict.fromkeys(word.name.partition(" ")[0] for word in WORDS))


def chosen(words: Sequence[str]) -> tuple[Word | None, list[str]]:
    """The word that a command line begins with, and what follows it.

    Returns:
        No word where the first has others below it and none of them is named.

    Raises:
        UsageError: if there is no such word.

    Example:
        >>> chosen(["report", "wandb", "outputs"])[0].name, chosen(["metric=lic"])[0].name
        ('report wandb', 'run')
    """
    first = words[0] if words else ""
    if not first or first[0] in "-+~" or "=" in first:
        return _BY_NAME["run"], list(words)
    for length in (3, 2, 1):
        found = _BY_NAME.get(" ".join(words[:length]))
        if found and len(words) >= length:
            return found, list(words[length:])
    if first not in _FIRST:
        raise UsageError(f"command {first!r} is unknown; {did_you_mean(first, _FIRST)}")
    second = words[1] if len(words) > 1 else ""
    if second and second[0] != "-":
        known = [word.name.partition(" ")[2] for word in below(first)]
        raise UsageError(f"{first} {second!r} is unknown; {did_you_mean(second, known)}")
    return None, list(words[1:])


def below(first: str) -> list[Word]:
    """The words that a first word has below it."""
    return [word for word in WORDS if word.name.startswith(f"{first} ")]


def listed(words: Sequence[Word]) -> list[str]:
    """A line each: how it is written, and what it does."""
    written = [f"{PROGRAM} {word.name} {word.arguments}".rstrip() for word in words]
    return [
        line
        for text, word in zip(written, words, strict=True)
        for line in (f"  {text}", f"      {word.about}")
    ]
