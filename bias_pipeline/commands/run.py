"""``run``, which no word means too: a cell, or a sweep of cells."""

from __future__ import annotations

from argparse import RawDescriptionHelpFormatter

from bias_pipeline.commands import shorthand
from bias_pipeline.commands.arguments import KEYS, PROGRAM, Parser
from bias_pipeline.io.included import FLAG, group_choices

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
  {program} -m encoder=ngram attribute=gender,race hydra/launcher=joblib

A comma sweeps; captioner=all and metric=all sweep over what there is. --cfg job prints every key
there is.

Choices:
{choices}
  captioner          a captioner of the data set, or all
  limit              at most so many labelled images, null: all
  seeds              the first n of the published seeds, or a list
  paths.outputs      where results go (outputs)

Exit codes: 0 ok, 2 usage, 3 bad data, 4 a job of a sweep failed, 5 missing file or disk full,
75 asked to requeue, 130 interrupted, 143 terminated."""


def command(words: list[str]) -> int:
    """Run a cell or a sweep, or say what would be run; returns the exit code.

    Raises:
        BiasPipelineError: if the configuration is wrong, or the job failed for that reason.
    """
    from bias_pipeline.sweeps import launch, planning

    words = shorthand.keys_of(words)
    if shorthand.DRY_RUN in words:
        return planning.foretell([word for word in words if word != shorthand.DRY_RUN])
    return launch.run(words).exit_code


def parser() -> Parser:
    """What it takes; Hydra reads it, this tells of it. Reads file names alone."""
    own = Parser(
        f"{PROGRAM} run",
        usage=f"{PROGRAM} [run] {KEYS} [options]",
        formatter_class=RawDescriptionHelpFormatter,
        epilog=_EPILOG.format(program=PROGRAM, choices="\n".join(_choices())),
    )
    own.add_argument(
        shorthand.DRY_RUN,
        action="store_true",
        help="say which cells would run, which are there, how long it takes; run nothing",
    )
    own.add_argument(
        shorthand.LIMIT,
        metavar="N",
        help="the same N labelled images for all captioners; results are marked",
    )
    own.add_argument(
        shorthand.QUICK,
        action="store_true",
        help=f"{shorthand.LIMIT} {shorthand.QUICK_IMAGES} and two seeds",
    )
    own.add_argument("--config-dir", metavar="DIR", help="your own YAML files: DIR/attribute/...")
    own.add_argument(
        FLAG,
        metavar="PACKAGE",
        help="your own package, whose classes may then be built; for every word",
    )
    own.add_argument("-m", "--multirun", action="store_true", help="sweep over one value too")
    own.add_argument("--cfg", choices=["job", "hydra", "all"], help="print the configuration")
    own.add_argument("--resolve", action="store_true", help="with --cfg: references filled in")
    own.add_argument("--package", metavar="KEY", help="with --cfg: what stands under a key")
    own.add_argument("--info", metavar="WHAT", help="how Hydra came to the configuration")
    own.add_argument("--hydra-help", action="store_true", help="Hydra's own help")
    return own


def _choices() -> list[str]:
    names = (*_GROUPS, "experiment")
    return [f"  {group + '=':<18} {' '.join(group_choices(group))}" for group in names]
