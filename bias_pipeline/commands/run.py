"""``run``, the default command, runs a cell or a sweep of cells. ``submit`` does the same on Slurm.

Each job of ``submit`` runs one cell, or one share of photos, as its own command, so no process
has to wait for the jobs. A job that Slurm stops is queued again; it continues after the seeds that
it trained or the blocks that it finished.
"""

from __future__ import annotations

import shlex
from argparse import RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bias_pipeline.commands import arguments
from bias_pipeline.commands.arguments import KEYS, PROGRAM, Parser, keys_parser, number
from bias_pipeline.declared import Range
from bias_pipeline.errors import UsageError, inflect
from bias_pipeline.io.paths import FLAG, flags, group_choices
from bias_pipeline.io.terminal import print_out, print_text
from bias_pipeline.run import slurm

if TYPE_CHECKING:
    from bias_pipeline.commands.main import Command
    from bias_pipeline.results.rows import Result
    from bias_pipeline.run.compose import Sweep

_GROUPS = (
    "metric",
    "dataset",
    "attribute",
    "encoder",
    "prompt",
    "head",
    "probe",
    "trainer",
    "masking",
    "image_masking",
    "alignment",
    "scoring",
    "split",
    "debias",
    "cluster",
)

_EPILOG = """\
Examples:
  {program} metric=dbac encoder=lstm attribute=race
  {program} metric=lic,leakage captioner=all seeds=10
  {program} dataset=lic dataset.root=DIR captioner=all attribute=race
  {program} -m encoder=ngram attribute=gender,race processes=2

Values separated by commas make a sweep, with a job for each combination; captioner=all and
metric=all run all of them. --cfg job prints every key.

Choices:
{choices}
  captioner          a captioner of the data set, or all
  limit              score at most this many labelled images, null: all
  seeds              the first n of the published seeds, or a list
  paths.outputs      where results go (outputs)

Exit codes: 0 ok, 2 usage, 3 bad data, 4 a job of a sweep failed, 5 missing file or disk full,
75 asked to requeue, 130 interrupted, 143 terminated."""


def command(words: list[str]) -> int:
    """Run a cell or a sweep, or print what it would run."""
    words = arguments.expand_flags(words)
    if arguments.DRY_RUN in words:
        from bias_pipeline.run.planning import dry_run

        return dry_run([word for word in words if word != arguments.DRY_RUN])
    from bias_pipeline.run import launch, planning

    outcome = launch.run(words, announce=planning.announce)
    if not any("captioners" in word or word.startswith("--config-dir") for word in words):
        _print_planted(outcome.results)  # only for simulated captioners
    return outcome.exit_code


def _print_planted(results: Sequence[Result]) -> None:
    """Print the known bias of simulated captioners beside the measured bias."""
    from bias_pipeline.data.generator import generator
    from bias_pipeline.report.screen import print_table
    from bias_pipeline.report.table import Cell, NumberCell, Table
    from bias_pipeline.report.tables import headline_name
    from bias_pipeline.results.settings import label, with_settings

    lines: list[list[Cell]] = []
    meanings: dict[str, list[str]] = {}
    source = generator()
    simulated = [one for one in results if one.rows[0].dataset.partition(" ")[0] == source.name]
    for result in with_settings(simulated):
        row = result.rows[0]
        planted_parts = source.planted_bias(row.captioner, row.attribute, row.metric)
        for row in result.rows:
            if planted := planted_parts.get(row.part):
                known = NumberCell(planted.value, fraction=True, digits=1)
                name = headline_name(row, label(result))
                lines.append([row.captioner, name, known, NumberCell.of_row(row)])
                meanings.setdefault(planted.about, []).append(headline_name(row))
    if not lines:
        return
    print_out()
    head = ["captioner", "score", "planted", "found"]
    print_table(Table("what we planted, and what was found", head, lines, keys=2))
    print_out()
    for about, names in meanings.items():
        print_text(f"planted for {', '.join(dict.fromkeys(names))}: {about}")


def parser() -> Parser:
    """The parser that prints the help. Hydra parses the options."""
    parser = Parser(
        f"{PROGRAM} run",
        usage=f"{PROGRAM} [run] {KEYS} [options]",
        formatter_class=RawDescriptionHelpFormatter,
        epilog=_EPILOG.format(program=PROGRAM, choices="\n".join(_choices())),
    )
    parser.add_argument(
        arguments.DRY_RUN,
        action="store_true",
        help="print what is finished, what would run and how long that takes, but run nothing",
    )
    parser.add_argument(
        arguments.LIMIT,
        metavar="N",
        help="score only N labelled images, the same images for all captioners; a "
        "note in the results says so",
    )
    parser.add_argument(
        arguments.QUICK,
        action="store_true",
        help=f"{arguments.LIMIT} {arguments.QUICK_IMAGES} and two seeds",
    )
    parser.add_argument(
        "--config-dir", metavar="DIR", help="your own YAML files: DIR/attribute/..."
    )
    parser.add_argument(
        FLAG,
        metavar="PACKAGE",
        help="your own package; configurations may then use its classes. Every command has this "
        "option",
    )
    parser.add_argument(
        "-m",
        "--multirun",
        action="store_true",
        help="run a sweep even if every key has a single value",
    )
    parser.add_argument("--cfg", choices=["job", "hydra", "all"], help="print the configuration")
    parser.add_argument("--resolve", action="store_true", help="with --cfg: resolve references")
    parser.add_argument(
        "--package", metavar="KEY", help="with --cfg: print only the part under this key"
    )
    parser.add_argument("--info", metavar="WHAT", help="print how Hydra composed the configuration")
    parser.add_argument("--hydra-help", action="store_true", help="Hydra's own help")
    return parser


def _choices() -> list[str]:
    names = (*_GROUPS, "experiment")
    return [f"  {group + '=':<18} {' '.join(group_choices(group))}" for group in names]


PRESET = "cluster=slurm"
Shards = Annotated[int, Range(low=1, high=100_000)]

_SUBMIT_ABOUT = """\
Submit the jobs of a sweep to Slurm and return at once. It prints the job numbers, and the command
that prints the table at the end. Set how jobs are submitted with cluster=slurm or slurm_gpu and
hydra.launcher.KEY=VALUE (hydra.launcher.partition=gpu).
"""


def submit_command(words: Sequence[str]) -> int:
    from bias_pipeline.run.launch import check_captioners

    sweep = _prepare(arguments.expand_flags(words))
    check_captioners(sweep)
    _submit(sweep, [["run", *flags(), *_config_dir(sweep), *job] for job in _jobs(sweep)])
    ready = [word for word in sweep.words if word.partition("=")[0] != "cluster"]
    print_out("when all jobs are done, this prints the table and runs what failed:")
    print_out(f"  python -m bias_pipeline {shlex.join([*flags(), *ready])}")
    return 0


def submit_parser() -> Parser:
    return keys_parser("submit", _SUBMIT_ABOUT)


def _submit_shards(name: str, words: Sequence[str]) -> int:
    """Submit a command on photos, with a job for each share."""
    shards = Parser(f"{PROGRAM} submit {name}", allow_abbrev=False, add_help=False)
    _add_shards(shards)
    launching = [word for word in words if _of_launcher(word)]
    shard_options, rest = shards.parse_known_args([word for word in words if word not in launching])
    options = _photo_command(name).find("options_of")(rest)
    if getattr(options, "server", None) is not None:
        raise UsageError(
            "submit caption takes no --server: all jobs at once would be too much for one server, "
            "and cluster nodes often cannot reach it; run caption --server on one machine"
        )
    if options.shard or options.gather:
        raise UsageError(f"submit {name} needs --shards N, and neither --shard nor --gather")
    sweep = _prepare(launching)
    each = [f"{number}/{shard_options.shards}" for number in range(shard_options.shards)]
    _submit(sweep, [[*name.split(), *rest, "--shard", shard] for shard in each])
    print_out("when all jobs are done, this writes everything into one file:")
    print_out(f"  {PROGRAM} {name} --gather {shlex.quote(str(options.out))}")
    return 0


def _shards_parser(name: str) -> Parser:
    parser = _photo_command(name).parser()
    parser.prog = f"{PROGRAM} submit {name}"
    parser.usage = f"%(prog)s --shards N [options of {name}] {KEYS}"
    _add_shards(parser)
    return parser


def _add_shards(parser: Parser) -> None:
    parser.add_argument(
        "--shards", type=number(Shards), required=True, metavar="N", help="how many jobs"
    )


def _prepare(words: Sequence[str]) -> Sweep:
    """The checked sweep of a command line; if it names no cluster, Slurm's preset is used."""
    from bias_pipeline.run import launch

    chosen = any(word.startswith(("cluster=", "hydra/launcher=")) for word in words)
    sweep = launch.parse_sweep(words if chosen else [*words, PRESET])
    if slurm.launcher_of(sweep.config) != slurm.SLURM:
        raise UsageError("submit needs Slurm: cluster=slurm or cluster=slurm_gpu")
    slurm.check_slurm(sweep.config)
    return sweep


class SlurmCommand(slurm.Requeued):
    """Calls a command in the process that submitit starts."""

    def __call__(self, words: Sequence[str]) -> None:
        from bias_pipeline.commands.main import run_command

        if code := run_command([*words]):
            raise SystemExit(code)


def _submit(sweep: Sweep, jobs: Sequence[Sequence[str]]) -> None:
    """Submit jobs as arrays; each job is the words of a command."""
    from bias_pipeline.run.job import make_folder

    folder = Path(sweep.config.hydra.sweep.dir).resolve()
    make_folder(folder)
    submitted = slurm.submit(SlurmCommand(), jobs, sweep.config)
    for array, size in Counter(job.job_id.partition("_")[0] for job in submitted).items():
        place = folder / ".submitit" / f"{array}*"
        print_out(f"submitted {inflect(size, 'jobs')} as array {array}; logs {place}")


def _jobs(sweep: Sweep) -> list[list[str]]:
    """The overrides of each job, without launcher settings; composing every job checks it."""
    from bias_pipeline.run.compose import checked_cell
    from bias_pipeline.run.overrides import jobs_of

    overrides = [o for o in sweep.overrides if not _of_launcher(o)]
    jobs = jobs_of(overrides)
    if not jobs:
        raise UsageError("submit: a sweep must list its values, as key=a,b")
    for job in jobs:
        checked_cell(*sweep.loader.task(job))
    return jobs


def _config_dir(sweep: Sweep) -> list[str]:
    """The user's configuration folder as an absolute path, for jobs that start elsewhere."""
    folder = sweep.options.config_dir
    return ["--config-dir", str(Path(folder).resolve())] if folder else []


def _of_launcher(override: str) -> bool:
    key = override.lstrip("+~").partition("=")[0]
    return key in ("cluster", "hydra/launcher") or key.startswith("hydra.launcher.")


def _photo_command(name: str) -> Command:
    """The command with this name, which may belong to a wing."""
    from bias_pipeline.commands.main import resolve_command

    command, _ = resolve_command(name.split())
    assert command is not None
    return command


submit_embed_command = partial(_submit_shards, "embed")
submit_embed_parser = partial(_shards_parser, "embed")
submit_caption_command = partial(_submit_shards, "caption")
submit_caption_parser = partial(_shards_parser, "caption")
submit_data_detect_command = partial(_submit_shards, "data detect")
submit_data_detect_parser = partial(_shards_parser, "data detect")
