"""The keys of Hydra that a configuration may set: mainly the launcher and its options.

Hydra imports, calls and writes what its own key names, before any of our code runs. So this module
lists every key that may be set, with its allowed values.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict, get_args

from bias_pipeline.declared import TARGET, Count, Empty, MustBeEmpty, Range, Text
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.run.targets import check_fields

# Where Hydra writes, and what it reads back: fixed to the values in conf/.
FIXED: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("run", "dir"): ("${paths.outputs}/.hydra_jobs/${oc.env:BIAS_PIPELINE_INVOCATION,run}",),
    ("sweep", "dir"): ("${paths.outputs}/.hydra_jobs/${oc.env:BIAS_PIPELINE_INVOCATION,sweep}",),
    ("sweep", "subdir"): ("${hydra.job.num}",),
    ("launcher", "submitit_folder"): ("${hydra.sweep.dir}/.submitit/%j",),
    ("job_logging", "handlers", "file", "filename"): (
        "${hydra.runtime.output_dir}/${hydra.job.name}.log",
    ),
}
# Keys that Hydra fills itself, also with text of the command line.
_NOTED = frozenset({("overrides",), ("runtime",), ("job", "override_dirname")})

Word = Annotated[
    str,
    Text(
        r"[A-Za-z0-9_][A-Za-z0-9_.,:=+*/%@&|()\[\]-]*",
        "letters, digits and any of _.,:=+*/%@&|()[]-, without blanks",
    ),
]
FileName = Annotated[
    str, Text(r"[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*", "a file name without folders")
]
Line = Annotated[str, Text(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]*", "text on one line")]
LogHandler = Literal["logging.StreamHandler", "logging.FileHandler", "logging.NullHandler"]
Level = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "NOTSET"]
Size = (
    Annotated[int, Range(low=0)] | Annotated[str, Text(r"[0-9]{1,9}[KMGT]?", "a size such as 4G")]
)
IN_THE_SHELL = MustBeEmpty(
    "set it in the shell that starts the program; jobs inherit its environment"
)

BY_FLAGS = MustBeEmpty("name a folder with --config-dir, or a package with --include")


class _LogFormat:
    """A format of a log's lines."""

    def refusal(self, value: str) -> str | None:
        """The expected form, if Python's logging refuses the format."""
        try:
            logging.Formatter(value)
        except ValueError:
            return "a format of log lines, such as %(levelname)s: %(message)s"
        return None


class Formatter(TypedDict, total=False):
    """How a line of a log looks."""

    format: Annotated[str, _LogFormat()]
    datefmt: Line | None


# `class` is a keyword of Python.
Handler = TypedDict(
    "Handler",
    {
        "class": LogHandler,
        "level": Level,
        "formatter": str,
        "stream": Literal["ext://sys.stderr", "ext://sys.stdout"],
        "filename": Annotated[str, MustBeEmpty("the log file is fixed")],
        "mode": Literal["a", "w"],
        "delay": bool,
        "encoding": Literal["utf-8"] | None,
    },
    total=False,
)


class Logger(TypedDict, total=False):
    """The options of one logger."""

    level: Level
    handlers: Sequence[str]
    propagate: bool


class Logging(TypedDict, total=False):
    """Python's logging configuration, without keys that import or call anything."""

    version: Literal[1]
    formatters: Mapping[str, Formatter]
    handlers: Mapping[str, Handler]
    loggers: Mapping[str, Logger]
    root: Logger | None
    disable_existing_loggers: bool


class HydraJob(TypedDict, total=False):
    """Facts of a job."""

    name: FileName
    chdir: Literal[False] | None
    id: Any
    num: Any
    config_name: Any
    config: Any
    override_dirname: Any
    env_set: Annotated[Empty, IN_THE_SHELL]
    env_copy: Annotated[Empty, IN_THE_SHELL]


class Folder(TypedDict, total=False):
    """Where Hydra writes; all of it is fixed."""


class HydraSettings(TypedDict, total=False):
    """Hydra's own key."""

    mode: Annotated[str | None, MustBeEmpty("several values make a sweep: key=a,b")]
    searchpath: Annotated[Empty, BY_FLAGS]
    callbacks: Annotated[Empty, MustBeEmpty("callbacks are code")]
    run: Folder
    sweep: Folder
    hydra_logging: Logging
    job_logging: Logging
    sweeper: Any
    launcher: Any
    help: Any
    hydra_help: Any
    output_subdir: FileName | None
    overrides: Any
    job: HydraJob
    runtime: Any
    verbose: bool | str | Sequence[str]
    env: Any


class Basic(TypedDict, total=False):
    """One job after the other."""


_IN_COMMANDS = MustBeEmpty("write key=a,b, or list it under sweep: in an experiment")
_ON_SLURM = MustBeEmpty("on Slurm, set hydra.launcher.array_parallelism")


class Sweeper(TypedDict, total=False):
    """Hydra's sweeper, which only names the values of a sweep."""

    max_batch_size: Annotated[
        int | None, MustBeEmpty("on Slurm, set hydra.launcher.array_parallelism")
    ]
    params: Annotated[Empty, _IN_COMMANDS]


class Queue(TypedDict, total=False):
    """Options of all of submitit's launchers."""

    timeout_min: Count
    cpus_per_task: Count | None
    gpus_per_node: Annotated[int, Range(low=0)] | None
    tasks_per_node: Count
    mem_gb: Count | None
    nodes: Count
    name: Word
    stderr_to_stdout: bool


# Further options of sbatch that run nothing and set no paths.
More = TypedDict(
    "More",
    {
        "begin": Word | int,
        "clusters": Word | int,
        "deadline": Word | int,
        "dependency": Word | int,
        "hint": Word | int,
        "licenses": Word | int,
        "mail-type": Word | int,
        "mail-user": Word | int,
        "nice": Word | int,
        "nodelist": Word | int,
        "reservation": Word | int,
        "tmp": Word | int,
        "wckey": Word | int,
    },
    total=False,
)


class Slurm(Queue, total=False):
    """Options of Slurm's launcher; each value becomes part of a script."""

    partition: Word | None
    qos: Word | None
    comment: Annotated[str, Text(r"[A-Za-z0-9 _.,:+-]*", "letters, digits and _.,:+-")] | None
    constraint: Annotated[str, Text(r"[\w.,&|*()\[\]-]*", "names of features")] | None
    exclude: Word | None
    gres: Word | None
    cpus_per_gpu: Count | None
    gpus_per_task: Count | None
    mem_per_gpu: Size | None
    mem_per_cpu: Size | None
    account: Word | None
    signal_delay_s: Annotated[int, Range(low=0)]
    max_num_timeout: Annotated[int, Range(low=0)]
    additional_parameters: More
    array_parallelism: Count
    setup: Annotated[Empty, IN_THE_SHELL]


LAUNCHERS: Mapping[str, type] = {
    "hydra._internal.core_plugins.basic_launcher.BasicLauncher": Basic,
    "hydra_plugins.hydra_submitit_launcher.submitit_launcher.LocalLauncher": Queue,
    "hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher": Slurm,
}
SWEEPERS: Mapping[str, type] = {
    "hydra._internal.core_plugins.basic_sweeper.BasicSweeper": Sweeper,
}
# The functions and classes that keys of these names may call.
_FACTORIES: Mapping[str, Sequence[str]] = {
    TARGET: [*LAUNCHERS, *SWEEPERS],
    "class": get_args(LogHandler),
    "()": [],
}


def check_hydra(part: Any) -> None:
    """Refuse keys and values of Hydra that are not allowed."""
    _check_factories(part, "hydra")
    check_fields(part, HydraSettings, "hydra")
    _check_outside(part, "launcher", LAUNCHERS)
    _check_outside(part, "sweeper", SWEEPERS)
    for key in ("job_logging", "hydra_logging"):
        _check_logging(part.get(key, {}), f"hydra.{key}")


def _check_factories(node: Any, where: str) -> None:
    """Refuse names of code that Hydra or Python's logging would call, and further references."""
    if isinstance(node, str) and "${" in node:
        raise UsageError(f"{where}: a text may not contain '${{'")
    if isinstance(node, Mapping):
        for key, item in node.items():
            if key in _FACTORIES and item not in _FACTORIES[key]:
                raise UsageError(
                    f"{where}: target {item!r} is not allowed; launchers are basic, "
                    "submitit_local and submitit_slurm (several jobs at once here: processes=4), "
                    "the sweeper is basic"
                )
            _check_factories(item, f"{where}.{key}")
    elif isinstance(node, list):
        for number, item in enumerate(node):
            _check_factories(item, f"{where}.{number}")


def _check_outside(part: Mapping[str, Any], key: str, known: Mapping[str, type]) -> None:
    node = part.get(key)
    target = node.get(TARGET) if isinstance(node, Mapping) else node
    if not isinstance(target, str) or target not in known:
        raise UsageError(
            f"hydra.{key}: target {target!r} is not allowed; choose with hydra/{key}=..."
        )
    assert isinstance(node, Mapping)
    check_fields({k: v for k, v in node.items() if k != TARGET}, known[target], f"hydra.{key}")


def _check_logging(tree: Mapping[str, Any], where: str) -> None:
    """Refuse unknown handlers and formatters before Python's logging does."""
    handlers, formatters = tree.get("handlers", {}), tree.get("formatters", {})
    for name, handler in handlers.items():
        if "class" not in handler:
            raise UsageError(f"{where}.handlers.{name}.class is missing")
        chosen = handler.get("formatter")
        if chosen not in (*formatters, None):
            raise UsageError(
                f"{where}.handlers.{name}.formatter={chosen}: {did_you_mean(chosen, formatters)}"
            )
    for logger in (tree.get("root") or {}, *tree.get("loggers", {}).values()):
        for name in logger.get("handlers", []):
            if name not in handlers:
                raise UsageError(f"{where}: handler {name!r}; {did_you_mean(name, handlers)}")


def to_plain(node: Any, path: tuple[str, ...] = ()) -> Any:
    """Plain data with references resolved, without keys that are fixed or that Hydra fills."""
    content = node._value()
    if isinstance(content, dict):
        items = {str(key): _item(node, key, (*path, str(key))) for key in content}
        return {key: value for key, value in items.items() if value is not _LATER}
    if isinstance(content, list):
        return [_item(node, number, (*path, str(number))) for number in range(len(content))]
    return content


_LATER = object()


def _item(parent: Any, key: Any, path: tuple[str, ...]) -> Any:
    from omegaconf import Container

    node = parent._get_node(key)
    raw = node._value()
    if path in _NOTED or raw == "???" or raw in FIXED.get(path, ()):
        return _LATER
    if path in FIXED and not (path[0] == "launcher" and raw is None):
        raise UsageError(f"hydra.{'.'.join(path)} is fixed; set paths.outputs=... instead")
    # OmegaConf takes three times as long where there is nothing to resolve.
    refers = isinstance(raw, str) and "${" in raw
    value = _resolved(parent, key, path) if refers else node
    if isinstance(value, Container):
        return to_plain(value, path)
    plain = value if refers else raw
    return plain.name if isinstance(plain, Enum) else plain


def _resolved(parent: Any, key: Any, path: tuple[str, ...]) -> Any:
    from omegaconf.errors import OmegaConfBaseException

    try:
        return parent[key]
    except OmegaConfBaseException as error:
        words = str(error).splitlines()[0]
        raise UsageError(
            f"hydra.{'.'.join(path)} cannot be resolved before the run: {words}"
        ) from error
