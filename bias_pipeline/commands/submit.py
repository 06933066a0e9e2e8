"""``submit``: a sweep, or shares of photos, as independent Slurm jobs.

Each job runs one cell or one share as its own command, so no process has to wait for them. A job
that Slurm stops ends with 75 and is queued again; it continues after the seeds it trained, or the
blocks it finished.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from bias_pipeline.commands import arguments, caption, data, embed
from bias_pipeline.commands.arguments import KEYS, PROGRAM, Parser, keys_parser, number
from bias_pipeline.config.compose import cell_of
from bias_pipeline.config.expansion import check_captioners
from bias_pipeline.config.overrides import jobs_of
from bias_pipeline.declared import Range
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.io import signals
from bias_pipeline.io.paths import flags
from bias_pipeline.io.terminal import print_out
from bias_pipeline.sweeps import slurm
from bias_pipeline.sweeps.job import make_folder
from bias_pipeline.sweeps.launch import SweepRequest, parse_sweep

PRESET = "cluster=slurm"
Shards = Annotated[int, Range(low=1, high=100_000)]
MOST_TASKS = 1000  # Slurm's default for the largest array is 1001, counted from 0

_ABOUT = """\
Submit a sweep to Slurm, one job per cell, and return at once. It prints the job numbers, and the
command that prints the table at the end. Set how jobs are submitted with cluster=slurm or slurm_gpu
and hydra.launcher.KEY=VALUE (hydra.launcher.partition=gpu).
"""

# Keys of Hydra's submitit launcher to options of sbatch.
_OPTIONS = {
    "name": "job-name={}",
    "partition": "partition={}",
    "account": "account={}",
    "qos": "qos={}",
    "constraint": "constraint={}",
    "exclude": "exclude={}",
    "comment": "comment={}",
    "gres": "gres={}",
    "timeout_min": "time={}",
    "mem_gb": "mem={}G",
    "mem_per_cpu": "mem-per-cpu={}",
    "cpus_per_task": "cpus-per-task={}",
    "gpus_per_node": "gpus-per-node={}",
    "signal_delay_s": "signal=USR2@{}",
}


def command(words: Sequence[str]) -> int:
    """Submit a sweep and return; prints the job numbers and how to get the table.

    Args:
        words: overrides as of ``run``; ``hydra.launcher.<key>`` and ``cluster=`` say how to submit.

    Raises:
        UsageError: if a job does not compose, or Slurm refuses the array.
        ResourceError: if there is no Slurm, or nothing can be written.
    """
    sweep = _prepare(arguments.expand_flags(words))
    check_captioners(sweep.overrides, sweep.first)
    _submit(sweep, [["run", *flags(), *_config_dir(sweep), *job] for job in _jobs(sweep)])
    ready = [word for word in sweep.words if word.partition("=")[0] != "cluster"]
    print_out("when all jobs are done, this prints the table and runs what failed:")
    print_out(f"  python -m bias_pipeline {shlex.join([*flags(), *ready])}")
    return 0


def parser() -> Parser:
    """The options and their help."""
    return keys_parser("submit", _ABOUT)


def _submit_shards(
    name: str, words: Sequence[str], options_of: Callable[[Sequence[str]], Namespace]
) -> int:
    """Submit a command on photos, one job for each share.

    Args:
        name: of the command.
        words: its arguments, ``--shards N``, and keys of the launcher.
        options_of: parses its arguments.

    Raises:
        UsageError: if the words are wrong, or Slurm refuses the array.
    """
    shards = Parser(f"{PROGRAM} submit {name}", allow_abbrev=False, add_help=False)
    _add_shards(shards)
    launching = [word for word in words if _of_launcher(word)]
    shard_options, rest = shards.parse_known_args([word for word in words if word not in launching])
    options = options_of(rest)
    if options.shard or options.gather:
        raise UsageError(f"submit {name} takes --shards N and no --shard or --gather")
    sweep = _prepare(launching)
    each = [f"{number}/{shard_options.shards}" for number in range(shard_options.shards)]
    _submit(sweep, [[*name.split(), *rest, "--shard", shard] for shard in each])
    print_out("when all jobs are done, this writes everything into one file:")
    print_out(f"  {PROGRAM} {name} --gather {shlex.quote(str(options.out))}")
    return 0


def _shards_parser(name: str, parser: Parser) -> Parser:
    """The parser of a command on photos, with the options of submitting it."""
    parser.prog = f"{PROGRAM} submit {name}"
    parser.usage = f"%(prog)s --shards N [options of {name}] {KEYS}"
    _add_shards(parser)
    return parser


def _add_shards(parser: Parser) -> None:
    parser.add_argument(
        "--shards", type=number(Shards), required=True, metavar="N", help="how many jobs"
    )


def _prepare(words: Sequence[str]) -> SweepRequest:
    """Check the command line; if it names no cluster, Slurm's preset is used.

    Raises:
        UsageError: if it is not for Slurm.
    """
    chosen = any(word.startswith(("cluster=", "hydra/launcher=")) for word in words)
    sweep = parse_sweep(words if chosen else [*words, PRESET])
    if slurm.launcher_of(sweep.config) != slurm.SLURM:
        raise UsageError("submit needs Slurm: cluster=slurm or cluster=slurm_gpu")
    slurm.check_slurm(sweep.config)
    return sweep


def _submit(sweep: SweepRequest, jobs: Sequence[Sequence[str]]) -> None:
    """Submit jobs, each the words of a command, as arrays."""
    if any("\n" in word for job in jobs for word in job):
        raise UsageError("submit: a job is one line; leave out line breaks")
    folder = Path(sweep.config.hydra.sweep.dir).resolve()
    make_folder(folder)
    (folder / "jobs.txt").write_text("".join(f"{shlex.join(job)}\n" for job in jobs))
    for first in range(0, len(jobs), MOST_TASKS):
        size = min(MOST_TASKS, len(jobs) - first)
        script = folder / f"array_{first}.sh"
        script.write_text(_script(sweep.config.hydra.launcher, folder, first, size))
        number = _sbatch(script)
        print_out(f"submitted {size} jobs as array {number}; logs {folder}/{number}_*.log")


def _jobs(sweep: SweepRequest) -> list[list[str]]:
    """The overrides of each job without the launcher's; every job is composed as a check.

    Raises:
        UsageError: if one does not.
    """
    overrides = [o for o in sweep.overrides if not _of_launcher(o)]
    jobs = jobs_of(overrides)
    if not jobs:
        raise UsageError("submit: a sweep must list its values, as key=a,b")
    for job in jobs:
        cell_of(sweep.loader.job(job))
    return jobs


def _config_dir(sweep: SweepRequest) -> list[str]:
    """The user's configuration folder as an absolute path, for jobs that start elsewhere."""
    folder = sweep.options.config_dir
    return ["--config-dir", str(Path(folder).resolve())] if folder else []


def _of_launcher(override: str) -> bool:
    key = override.lstrip("+~").partition("=")[0]
    return key in ("cluster", "hydra/launcher") or key.startswith("hydra.launcher.")


def _script(launcher: Mapping[str, Any], folder: Path, first: int, size: int) -> str:
    """An sbatch script; it uses srun, so that Slurm's signal reaches Python too."""
    options = [
        text.format(launcher[key])
        for key, text in _OPTIONS.items()
        if launcher.get(key) is not None
    ]
    more = launcher.get("additional_parameters") or {}
    options += [f"{key}={value}" for key, value in more.items()]
    options += [
        f"array=0-{size - 1}%{launcher.get('array_parallelism') or size}",
        f"output={folder}/%A_%a.log",
        "open-mode=append",
        "requeue",
        "ntasks=1",
    ]
    retries = int(launcher.get("max_num_timeout") or 0)
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH --{_quoted(option)}" for option in options),
            f"cd {shlex.quote(str(Path.cwd()))} || exit 5",
            f"line=$((SLURM_ARRAY_TASK_ID + {first + 1}))",
            f'eval "set -- $(sed -n "${{line}}p" {shlex.quote(str(folder / "jobs.txt"))})"',
            'export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"',  # srun no longer inherits it
            f'srun {shlex.quote(sys.executable)} -m bias_pipeline "$@"',
            "code=$?",
            f"if [ $code -eq {signals.REQUEUE} ] && "
            f'[ "${{SLURM_RESTART_COUNT:-0}}" -lt {retries} ]; then',
            '  scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"',
            "fi",
            "exit $code",
            "",
        ]
    )


def _quoted(option: str) -> str:
    """An option of sbatch, its value quoted for the shell."""
    key, equals, value = option.partition("=")
    return f"{key}={shlex.quote(value)}" if equals else key


def _sbatch(script: Path) -> str:
    """Submit a script; returns the number of its array.

    Raises:
        UsageError: with Slurm's own words, if it refuses.
    """
    command = ["sbatch", "--parsable", str(script)]
    done = subprocess.run(  # noqa: S603 - a fixed command
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "SLURM_EXPORT_ENV": "ALL"},
        check=False,
    )
    if done.returncode:
        raise UsageError(f"sbatch refused {script}: {done.stderr.strip().splitlines()[-1]}")
    number = done.stdout.strip().partition(";")[0]
    if not number.isdigit():
        raise DataError(f"sbatch printed {done.stdout!r}, which is no job number")
    return number


def embed_command(words: list[str]) -> int:
    """Submit the jobs and return; prints their numbers and how to get the file in the end.

    Raises:
        UsageError: if the words are wrong, or Slurm refuses the array.
    """
    return _submit_shards("embed", words, embed.options_of)


def embed_parser() -> Parser:
    """The options and their help."""
    return _shards_parser("embed", embed.parser())


def caption_command(words: list[str]) -> int:
    """Submit the jobs and return; prints their numbers and how to get the file in the end.

    Raises:
        UsageError: if the words are wrong or name a server, or Slurm refuses the array.
    """
    return _submit_shards("caption", words, _caption_options)


def _caption_options(words: Sequence[str]) -> Namespace:
    options = caption.options_of(words)
    if options.server is not None:
        raise UsageError(
            "submit caption takes no --server: the jobs together would ask more at once than one "
            "server bears, and cluster nodes often reach none; run caption --server on one machine"
        )
    return options


def caption_parser() -> Parser:
    """The options and their help."""
    return _shards_parser("caption", caption.parser())


def data_detect_command(words: list[str]) -> int:
    """Submit the jobs and return; prints their numbers and how to get the file in the end.

    Raises:
        UsageError: if the words are wrong, or Slurm refuses the array.
    """
    return _submit_shards("data detect", words, data.detect_options)


def data_detect_parser() -> Parser:
    """The options and their help."""
    return _shards_parser("data detect", data.detect_parser())
