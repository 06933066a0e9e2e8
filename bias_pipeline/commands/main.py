"""The program: runs a command, turns errors into sentences and exit codes, prints help, completes.

In a command's module, ``NAME_parser()`` makes the help and the completion, and
``NAME_command(words)`` runs the command and returns the exit code. If the module is named after the
command's first word, NAME leaves this word out. A command on photos also has
``NAME_options_of(words)``, which returns its checked options.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import sys
from argparse import SUPPRESS
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bias_pipeline import __version__
from bias_pipeline.commands.arguments import KEYS, PROGRAM, Parser
from bias_pipeline.errors import (
    NO_MEMORY,
    BiasPipelineError,
    ResourceError,
    UsageError,
    did_you_mean,
    is_out_of_memory,
    refused_by_system,
)
from bias_pipeline.io import installation, paths, plugins, signals, terminal
from bias_pipeline.io.terminal import guard, print_out, warn

LEAST_MEMORY = 1_000_000_000  # bytes of address space, most of which libraries take


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; a user's mistake prints no traceback."""
    signals.listen()
    try:
        code = run_command(list(sys.argv[1:] if arguments is None else arguments))
        stopped = code != 0 and signals.stop_is_requested()
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt) and not signals.stop_is_requested():
            raise
        stopped = True
    if not stopped:
        return code
    warn("stopped; what was finished is kept")
    return signals.exit_code()


def program() -> int:
    """Run the command of this process; returns the exit code.

    A request to stop that comes just after :func:`main` still counts. Later requests are ignored,
    since Python would end with a traceback.
    """
    paths.shield_processes()
    try:
        code = main()
        signals.ignore_signals()
    except (KeyboardInterrupt, signals.Stopped):
        signals.ignore_signals()
        code = signals.exit_code()
    return code


def run_command(words: list[str]) -> int:
    """Run a command in a process whose signals the caller handles; returns its exit code."""
    terminal.open_streams()
    # A sweep composes some hundred thousand nodes, which stay until their job has run. Collecting
    # garbage every 700 objects took a sixth of the time of a sweep of cached cells.
    gc.set_threshold(10_000, 10, 10)
    # NumPy reads this variable when it is imported, which happens later. Products are small and
    # cells run in parallel: threads of one product would wait for each other on busy cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    guard()
    for sentence in installation.doubts():
        warn(f"warning: {sentence}")
    try:
        with paths.including(words) as rest:
            for name, place in paths.places().items():
                warn(f"included: {name} from {place}; a configuration may build its classes")
            code = _command(rest)
        fault = terminal.output_fault()
        if fault and not code:
            raise ResourceError(
                f"standard output is not complete: {fault.strerror}; files are complete"
            )
    except Exception as error:
        mistake = _mistake(error)
        signals.stop_if_requested()  # an error after a request to stop is not reported as a mistake
        warn(f"error: {mistake}")
        return mistake.exit_code
    return code


def _mistake(error: Exception) -> BiasPipelineError:
    """The error to show to the user; an error that is a bug is raised again."""
    if isinstance(error, BiasPipelineError):
        return error
    if is_out_of_memory(error):
        return ResourceError(NO_MEMORY)
    if isinstance(error, OSError) and error.filename is not None:
        return refused_by_system(error)
    ours = __name__.partition(".")[0]
    module = (getattr(error, "name", None) or ours).partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and module != ours:
        return ResourceError(
            f"the module {module!r} is not installed for this Python, {sys.executable}: activate "
            "the environment of bias_pipeline (in a checkout `. .venv/bin/activate`), or install "
            f"with pip what is missing{paths.advice_to_include(module)}"
        )
    raise error


def _command(words: list[str]) -> int:
    """Run the chosen command, or print its help."""
    code, wants_help = 0, bool({"-h", "--help"} & set(words))
    if not words:
        text = _FIRST_STEPS
    elif words[:1] in (["-h"], ["--help"], ["help"]):
        text = overview()
    elif words[:1] == ["--version"]:
        packages = installation.versions() if words[1:] == ["--all"] else []
        text = "\n".join([f"bias_pipeline {__version__}", *packages])
    else:
        word, rest = resolve_command(words)
        if word and not wants_help:
            _check_memory_limit()
            return word.command(rest)
        if word:
            text, others = word.parser().format_help().rstrip(), subcommands(word.name)
            text = "\n".join([text, "", "also:", *list_commands(others)]) if others else text
        else:
            usage = ["usage:", *list_commands(subcommands(words[0]))]
            text = "\n".join([*usage, "", "Each has its own --help."])
            code = 0 if wants_help else UsageError.exit_code
    print_out(*text.split("\n"))
    return code


def _check_memory_limit() -> None:
    """Refuse a memory limit that is too low: OpenBLAS would abort or hang without a message."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit not in (resource.RLIM_INFINITY, -1) and limit < LEAST_MEMORY:
        raise ResourceError(
            f"this process may use {limit // 10**6:,} MB of memory (ulimit -v, or a job's limit); "
            f"allow it {LEAST_MEMORY // 10**6:,} or more"
        )


@dataclass(frozen=True)
class Command:
    name: str  # the words of the command
    about: str  # what the command does, in one line
    arguments: str = ""  # the arguments, in short

    @property
    def keys(self) -> bool:
        """Whether the command takes words of the form ``key=value``."""
        return "key=value" in self.arguments

    def parser(self) -> Parser:
        parser: Parser = self.find("parser")()
        return parser

    @property
    def command(self) -> Callable[[list[str]], int]:
        function: Callable[[list[str]], int] = self.find("command")
        return function

    def find(self, role: str) -> Any:
        """The function for ``command``, ``parser`` or ``options_of`` in the command's module."""
        first, *others = self.name.split()
        module = _MODULES.get(self.name) or _MODULES[first]
        words = others if module.rpartition(".")[2] == first else [first, *others]
        return getattr(importlib.import_module(module), "_".join([*words, role]))


# A command, or the first word of commands, to the module.
_MODULES = {
    "run": "bias_pipeline.commands.run",
    "submit": "bias_pipeline.commands.run",
    "audit": "bias_pipeline.commands.audit",
    "compare": "bias_pipeline.commands.results",
    "report": "bias_pipeline.commands.report",
    "caption": "bias_pipeline.pictures.commands.caption",
    "embed": "bias_pipeline.retrieval.commands.embed",
    "fit": "bias_pipeline.commands.fit",
    "explain": "bias_pipeline.pictures.commands.explain",
    "labels": "bias_pipeline.commands.labels",
    "rate": "bias_pipeline.people.commands.web",
    "browse": "bias_pipeline.people.commands.web",
    "anonymous": "bias_pipeline.people.commands.anonymous",
    "metrics": "bias_pipeline.studies.commands.analysis",
    "analysis": "bias_pipeline.studies.commands.analysis",
    "analysis words": "bias_pipeline.language.commands.words",
    "analysis unmasked_words": "bias_pipeline.language.commands.words",
    "analysis collocations": "bias_pipeline.language.commands.words",
    "analysis alignment": "bias_pipeline.language.commands.words",
    "data": "bias_pipeline.commands.data",
    "data check_lists": "bias_pipeline.commands.check_lists",
    "data convert": "bias_pipeline.published.commands.data_files",
    "data fetch": "bias_pipeline.published.commands.data_files",
    "data draw": "bias_pipeline.scenes.commands.data_draw",
    "data detect": "bias_pipeline.pictures.commands.detect",
    "models": "bias_pipeline.commands.models",
    "doctor": "bias_pipeline.commands.doctor",
    "benchmark": "bias_pipeline.commands.benchmark",
    "completion": "bias_pipeline.commands.main",
}
WORDS = (
    Command("run", "score captioners; the default command, so run may be left out", KEYS),
    Command("submit", "submit a sweep as independent Slurm jobs", KEYS),
    Command("submit embed", "embed photos as Slurm jobs", f"--shards N {KEYS}"),
    Command("submit caption", "caption photos as Slurm jobs", f"--shards N {KEYS}"),
    Command("submit data detect", "find people and things as Slurm jobs", f"--shards N {KEYS}"),
    Command(
        "audit",
        "score one file of captions with all metrics, and write a report",
        "FILE --attributes LABELS ...",
    ),
    Command(
        "doctor",
        "say what files are and what they allow, or what this machine has",
        "[FILE ...] [--requirements audit]",
    ),
    Command(
        "benchmark",
        "score captions of a fixed list of images: one row, and a card",
        "FILE --attributes LABELS --captions FILE --objects FILE ...",
    ),
    Command(
        "benchmark list",
        "the images of the benchmark, and how a model is asked",
        "[--photos FOLDER --out DIR]",
    ),
    Command("benchmark table", "rows of the benchmark as one table", "ROW ..."),
    Command("compare", "is captioner A fairer than B?", f"A B {KEYS}"),
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
    ),
    Command(
        "explain gradcam",
        "where a captioner looked when it named a group",
        f"--model MODEL --out DIR {KEYS}",
    ),
    Command(
        "rate",
        "ask people about pictures or captions, in a browser on this machine",
        "[PHOTOS] --attribute NAME|--question TEXT --out DIR ...",
    ),
    Command(
        "labels plan",
        "how many labels by people correct a machine's",
        "--gold FILE --machine LABELS --captions FILE ...",
    ),
    Command(
        "browse",
        "look through finished runs in a browser, down to the captions behind a number",
        "[OUTPUTS] ...",
    ),
    Command(
        "anonymous build",
        "make pictures that do not show the group of a person",
        f"--scenes|--model FOLDER --out DIR {KEYS}",
    ),
    Command(
        "anonymous filter", "keep the pictures of people whose group raters cannot tell", "DIR"
    ),
    Command(
        "anonymous score",
        "which groups raters and attackers read from captions of pictures that show no group",
        "DIR [--reference dataset=...] ...",
    ),
    Command("metrics", "what each metric can detect", "[--cards]"),
    Command("analysis words", "words that leak the attribute", KEYS),
    Command("analysis unmasked_words", "revealing words that masking leaves in", KEYS),
    Command("analysis collocations", "words that follow the attribute's words", KEYS),
    Command(
        "analysis alignment",
        "how many words of human captions have a similar word of the captioner",
        KEYS,
    ),
    Command("analysis sensitivity", "how much scores vary with the attacker", "OUTPUTS ..."),
    Command("analysis consistency", "whether attackers, or metrics, agree", "OUTPUTS ..."),
    Command(
        "analysis feature_sensitivity",
        "whether scores depend on backgrounds and single objects",
        f"PHOTOS --model MODEL --regions FILE --out DIR {KEYS}",
    ),
    Command(
        "analysis rebalance",
        "weights of training images, against groups and objects that a captioner names "
        "together too often",
        f"RUN --out FILE.parquet {KEYS}",
    ),
    Command(
        "analysis power", "the smallest bias that a number of images can show", "--n N|--groups N,N"
    ),
    Command("analysis pairs", "pairs of captions for rate --pairs", f"--out FILE.csv {KEYS}"),
    Command("data validate", "check a data set's files and print what they contain", KEYS),
    Command(
        "data check_lists",
        "do word lists of another language hide a group as well as English lists?",
        "CAPTIONS ENGLISH --attributes LABELS --only NAME --config-dir DIR",
    ),
    Command("data convert", "pickles and JSON to Parquet", "FILE ... [--out DIR]"),
    Command("data draw", "the embedded data set with its pictures, as files", "--out DIR ..."),
    Command(
        "data detect",
        "find people and things in a folder of photos, to mask them",
        "PHOTOS --model MODEL --out DIR ...",
    ),
    Command("data fetch", "where to get the published files, or download them", "[NAME ...]"),
    Command("models list", "published weights: what needs them, and where they are"),
    Command(
        "models show", "a model's files and digests, or what a run needs", "NAME|key=value ..."
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
    second = words[1] if len(words) > 1 else ""
    if first not in _FIRST and second.startswith("="):
        setting = "".join(words[: 3 if second == "=" else 2])
        raise UsageError(f"settings are written without blanks: {setting}")
    if first not in _FIRST:
        raise UsageError(f"command {first!r} is unknown; {did_you_mean(first, _FIRST)}")
    if second and second[0] != "-":
        known = [word.name.partition(" ")[2] for word in subcommands(first)]
        raise UsageError(f"{first} {second!r} is unknown; {did_you_mean(second, known)}")
    return None, list(words[1:])


def subcommands(first: str) -> list[Command]:
    """The commands that begin with a word, such as ``data``."""
    return [word for word in WORDS if word.name.startswith(f"{first} ")]


def list_commands(words: Sequence[Command]) -> list[str]:
    """Two lines for each command, with how to type the command and what it does."""
    return [
        line
        for word in words
        for line in (f"  {PROGRAM} {word.name} {word.arguments}".rstrip(), f"      {word.about}")
    ]


_FIRST_STEPS = f"""\
bias_pipeline: does an image captioner amplify societal bias?

Audit your own captions, with a label for each image and annotators' captions:
  {PROGRAM} audit captions.json --attributes labels.csv --captions people.json
Write captions of your photos first:
  {PROGRAM} caption photos/ --model MODEL --out captions
Try it without data, on simulated captioners whose bias is known:
  {PROGRAM} metric=gender_error captioner=all

{PROGRAM} --help lists all commands, COMMAND --help explains one."""


def overview() -> str:
    """The text of ``--help``."""
    head = [
        "bias_pipeline: does an image captioner amplify societal bias?",
        "",
        "Usage:",
        *list_commands(WORDS),
        "",
        *plugins.plugin_lines(),
        f"{PROGRAM} COMMAND --help explains a command; --version prints the version, and with",
        "--all the versions of the packages that are always needed too. Options of run:",
        "",
    ]
    return "\n".join([*head, WORDS[0].parser().format_help().partition("\n\n")[2].rstrip()])


_COMPLETION_ABOUT = """\
Print a script that makes bash or zsh complete commands, options, keys and their values. Put it
where your shell reads it: eval "$(python -m bias_pipeline completion bash)".
"""
_ASK = "--line"

# Bash splits words at "=" too, so a completion begins after the last "=".
_SCRIPT = """\
_bias_pipeline() {
  local line="${COMP_LINE:0:COMP_POINT}" asked
  case "$line" in
    *python*" -m bias_pipeline "*) asked="${line%% -m bias_pipeline *} -m bias_pipeline" ;;
    bias-pipeline" "*) asked=bias-pipeline ;;
    *) COMPREPLY=(); return ;;
  esac
  local rest="${line#"$asked "}"
  mapfile -t COMPREPLY < <($asked completion --line="$rest" 2>/dev/null)
}
complete -o bashdefault -o default -o nospace -F _bias_pipeline python python3 bias-pipeline
"""
_SCRIPTS = {"bash": _SCRIPT, "zsh": f"autoload -U +X bashcompinit && bashcompinit\n{_SCRIPT}"}


def completion_command(words: list[str]) -> int:
    options = completion_parser().parse_args(words)
    script = _SCRIPTS[options.shell or "bash"].splitlines()
    print_out(*(script if options.line is None else completions(options.line)))
    return 0


def completion_parser() -> Parser:
    parser = Parser(f"{PROGRAM} completion", description=_COMPLETION_ABOUT)
    parser.add_argument(
        "shell", nargs="?", choices=list(_SCRIPTS), help="the shell (default: bash)"
    )
    parser.add_argument(_ASK, help=SUPPRESS)
    return parser


def completions(line: str) -> list[str]:
    """The completions of a line's last word, after its last ``=``.

    Example:
        >>> completions("re"), completions("report w")
        (['report '], ['wandb '])
        >>> completions("metric=gender_e")
        ['gender_error']
    """
    *before, last = line.split(" ")
    before = [word for word in before if word]
    try:
        word, rest = resolve_command(before)
        if word is None:
            return _next_words(before, last)
        if last.startswith("-"):
            return [f"{flag} " for flag in word.parser().flags if flag.startswith(last)]
        next_words = [] if rest else _next_words(before, last)
        keys = _keys(rest, last) if word.keys and (before or "=" in last or last) else []
        return [*next_words, *keys]
    except BiasPipelineError:
        return []  # the words before the last are wrong


def _next_words(before: Sequence[str], last: str) -> list[str]:
    """The words that may follow the given words."""
    head = "".join(f"{word} " for word in before)
    names = [word.name[len(head) :] for word in WORDS if word.name.startswith(head)]
    following = dict.fromkeys(name.partition(" ")[0] for name in names)
    return [f"{name} " for name in following if name.startswith(last)]


def _keys(overrides: Sequence[str], last: str) -> list[str]:
    """Keys and values of the configuration, as Hydra completes them."""
    from hydra._internal.core_plugins.bash_completion import BashCompletion

    from bias_pipeline.run.hydra_composer import loader_of

    words = [word for word in overrides if "=" in word]
    proposals = BashCompletion(loader_of())._query("config", " ".join([*words, last]))
    offered = [proposal.rpartition("=")[2] if "=" in last else proposal for proposal in proposals]
    return [text for text in offered if not text.startswith("_")]  # files that other files include
