"""``run``, the default command: a cell, or a sweep of cells."""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter

from bias_pipeline.commands import arguments
from bias_pipeline.commands.arguments import KEYS, PROGRAM, Parser
from bias_pipeline.io.paths import FLAG, group_choices

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
  {program}
  {program} metric=lic,leakage captioner=all seeds=10
  {program} dataset=lic dataset.root=DIR captioner=all attribute=race
  {program} -m encoder=ngram attribute=gender,race processes=2

A comma makes a sweep; captioner=all and metric=all run all there are. --cfg job prints every key.

Choices:
{choices}
  captioner          a captioner of the data set, or all
  limit              score at most this many labelled images, null: all
  seeds              the first n of the published seeds, or a list
  paths.outputs      where results go (outputs)

Exit codes: 0 ok, 2 usage, 3 bad data, 4 a job of a sweep failed, 5 missing file or disk full,
75 asked to requeue, 130 interrupted, 143 terminated."""


def command(words: list[str]) -> int:
    """Run a cell or a sweep, or print what it would run; returns the exit code.

    Raises:
        BiasPipelineError: if the configuration is wrong, or the job failed for that reason.
    """
    from bias_pipeline.sweeps import launch, planning

    words = arguments.expand_flags(words)
    if arguments.DRY_RUN in words:
        return planning.dry_run([word for word in words if word != arguments.DRY_RUN])
    return launch.run(words).exit_code


def parser() -> Parser:
    """The options, for the help text; Hydra parses them. Reads only file names."""
    parser = Parser(
        f"{PROGRAM} run",
        usage=f"{PROGRAM} [run] {KEYS} [options]",
        formatter_class=RawDescriptionHelpFormatter,
        epilog=_EPILOG.format(program=PROGRAM, choices="\n".join(_choices())),
    )
    parser.add_argument(
        arguments.DRY_RUN,
        action="store_true",
        help="print which cells would run, which are finished, how long it takes; run nothing",
    )
    parser.add_argument(
        arguments.LIMIT,
        metavar="N",
        help="score only N labelled images, the same for all captioners; results are marked",
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
        help="your own package, whose classes a configuration may then use; for every command",
    )
    parser.add_argument(
        "-m", "--multirun", action="store_true", help="treat single values as a sweep too"
    )
    parser.add_argument("--cfg", choices=["job", "hydra", "all"], help="print the configuration")
    parser.add_argument("--resolve", action="store_true", help="with --cfg: resolve references")
    parser.add_argument("--package", metavar="KEY", help="with --cfg: print only this key")
    parser.add_argument("--info", metavar="WHAT", help="print how Hydra composed the configuration")
    parser.add_argument("--hydra-help", action="store_true", help="Hydra's own help")
    return parser


def _choices() -> list[str]:
    names = (*_GROUPS, "experiment")
    return [f"  {group + '=':<18} {' '.join(group_choices(group))}" for group in names]
