"""The keys of Hydra that a configuration may set: launcher, its options, ``hydra.verbose``.

Hydra only composes here. Every other key is refused if it differs from Hydra's default, so keys for
code, folders and logging need no rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from bias_pipeline.declared import TARGET, Count, Empty, MustBeEmpty, Range, Text
from bias_pipeline.errors import UsageError
from bias_pipeline.run.targets import check_fields, check_value

BY_FLAGS = "name a folder with --config-dir, or a package with --include"
_IN_THE_SHELL = "set it in the shell that starts the program; jobs inherit its environment"
_FIXED = "is fixed; set paths.outputs=... instead"
# Start of a key's name, to the message if the key differs; the first start that fits counts
_REFUSALS = {
    "run": _FIXED,
    "sweep.": _FIXED,
    "job.env": f"must be empty; {_IN_THE_SHELL}",
    "mode": "must be empty; several values make a sweep: key=a,b",
    "searchpath": f"must be empty; {BY_FLAGS}",
    "sweeper.max_batch_size": "must be empty; on Slurm, set hydra.launcher.array_parallelism",
    "sweeper.params": "must be empty; write key=a,b, or list it under sweep: in an experiment",
    "": "is not allowed; of Hydra's own settings only hydra/launcher, hydra.launcher.KEY and "
    "hydra.verbose are",
}
# Keys that Hydra fills itself, partly from the command line, and keys that are checked by type
_FREE = {("overrides",), ("runtime",), ("job", "override_dirname"), ("launcher",), ("verbose",)}
_FOLDERS = ("${hydra.sweep.dir}/.submitit/%j", None)
# The loggings of Hydra that may replace the loggings chosen in conf/config.yaml
LOGGINGS = {
    "hydra/job_logging": ("default", "disabled", "none", "stdout"),
    "hydra/hydra_logging": ("default", "disabled"),
}

Word = Annotated[
    str,
    Text(
        r"[A-Za-z0-9_][A-Za-z0-9_.,:=+*/%@&|()\[\]-]*",
        "letters, digits and any of _.,:=+*/%@&|()[]-, without blanks",
    ),
]
Size = (
    Annotated[int, Range(low=0)] | Annotated[str, Text(r"[0-9]{1,9}[KMGT]?", "a size such as 4G")]
)


class Queue(TypedDict, total=False):
    """The options that all of submitit's launchers have."""

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
    """The options of the launcher for Slurm; each value becomes part of a script."""

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
    setup: Annotated[Empty, MustBeEmpty(_IN_THE_SHELL)]


class _Here(TypedDict, total=False):
    """The options of the launcher that runs jobs in succession in this process."""


LAUNCHERS: Mapping[str, type] = {
    "hydra._internal.core_plugins.basic_launcher.BasicLauncher": _Here,
    "hydra_plugins.hydra_submitit_launcher.submitit_launcher.LocalLauncher": Queue,
    "hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher": Slurm,
}


def check_hydra(
    written: Mapping[str, Any], resolved: Mapping[str, Any], usual: Mapping[str, Any]
) -> None:
    """Refuse keys and values of Hydra that are not allowed.

    ``written`` is the part for Hydra in its written form. ``resolved`` is the same part with
    resolved references. ``usual`` is the part that Hydra composes without overrides.
    """
    launcher, as_given = resolved.get("launcher"), written.get("launcher")
    target = launcher.get(TARGET) if isinstance(launcher, Mapping) else launcher
    if not isinstance(launcher, Mapping) or not isinstance(target, str) or target not in LAUNCHERS:
        raise UsageError(
            f"hydra.launcher: target {target!r} is not allowed; choose with hydra/launcher=basic, "
            "submitit_local or submitit_slurm (several jobs at once here: processes=4)"
        )
    for key in _changed_keys(written, usual, ()):
        refusal = next(words for start, words in _REFUSALS.items() if key.startswith(start))
        raise UsageError(f"hydra.{key} {refusal}")
    if not isinstance(as_given, Mapping) or as_given.get("submitit_folder") not in _FOLDERS:
        raise UsageError(f"hydra.launcher.submitit_folder {_FIXED}")
    options = {key: one for key, one in launcher.items() if key not in (TARGET, "submitit_folder")}
    check_fields(options, LAUNCHERS[target], "hydra.launcher")
    check_value(resolved.get("verbose"), bool | str | Sequence[str], "hydra.verbose")


def _changed_keys(given: object, usual: object, path: tuple[str, ...]) -> Iterator[str]:
    """The keys in which two trees differ, except keys that may differ."""
    if path in _FREE:
        return
    if isinstance(given, Mapping) and isinstance(usual, Mapping):
        for key in {**usual, **given}:
            yield from _changed_keys(given.get(key), usual.get(key), (*path, str(key)))
    elif given != usual:
        yield ".".join(path)
