"""What there is to choose from: the help text and the list of metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bias_pipeline.io.grid import print_table
from bias_pipeline.io.included import group_choices
from bias_pipeline.io.terminal import say

if TYPE_CHECKING:
    from bias_pipeline.metrics.base import MetricInfo

_HELP = """\
bias_pipeline: does an image captioner amplify societal bias?

Usage:
  python -m bias_pipeline [run] [key=value ...]     run a cell, or a sweep of cells
  python -m bias_pipeline submit [key=value ...]    a sweep as Slurm jobs that need no parent;
                                                    submit embed|caption ... --shards N
  python -m bias_pipeline audit FILE --attributes LABELS [--captions HUMAN] [--objects OBJECTS]
                                                    one file of captions, start to report
  python -m bias_pipeline compare A B [key=value ...]  is captioner A fairer than B?
  python -m bias_pipeline report [FOLDER] [--export DIR]  finished runs as one HTML page; as
                                                    LaTeX, CSV, Parquet, SVG, BibTeX, ...
  python -m bias_pipeline report wandb [FOLDER] [--workspace]
                                                    finished runs as Weights & Biases runs, and
                                                    a workspace there that compares them
  python -m bias_pipeline caption PHOTOS --model MODEL --out DIR [--shard K/N]
  python -m bias_pipeline embed PHOTOS --model MODEL --out DIR [--shard K/N]
                                                    captions, or CLIP vectors, of a folder of
                                                    photos; --gather DIR makes one file
  python -m bias_pipeline metrics [--cards]         what each metric can tell
  python -m bias_pipeline analysis claims           do the papers' conclusions hold?
  python -m bias_pipeline analysis words [...]      words that give the attribute away
  python -m bias_pipeline analysis survivors [...]  revealing words that a word list leaves
  python -m bias_pipeline analysis beside [...]     what an attribute's words stand beside
  python -m bias_pipeline data validate [...]       what a data set's files hold
  python -m bias_pipeline data convert FILE ...     pickles and JSON to Parquet (--out DIR)
  python -m bias_pipeline data fetch [NAME ...]     where to get the published files; --out DIR
                                                    downloads those that anyone may have

Examples:
  python -m bias_pipeline
  python -m bias_pipeline metric=lic,leakage captioner=all seeds=10
  python -m bias_pipeline dataset=lic dataset.root=DIR captioner=all attribute=race
  python -m bias_pipeline -m encoder=ngram attribute=gender,race hydra/launcher=joblib

A comma sweeps, captioner=all and metric=all sweep over what there is. Any other key:
  --cfg job prints the whole configuration, --info and --hydra-help tell of Hydra.

First looks:
  --dry-run          which cells would run, which are there, how long it takes; runs nothing
  --limit N          the same N labelled images for all captioners; results are marked
  --quick            --limit 500 and two seeds

Choices:
{choices}
  captioner          a captioner of the data set, or all
  limit              at most so many labelled images, null: all
  seeds              the first n of the published seeds, or a list
  paths.outputs      where results go (outputs)

Exit codes: 0 ok, 2 usage, 3 bad data, 4 a job of a sweep failed, 5 missing file or disk full,
75 asked to requeue, 130 interrupted, 143 terminated."""

PROPERTIES = (
    "source_identifying",
    "learnable",
    "amplification",
    "full_context",
    "image",
    "consistent",
    "directional",
    "language_aware",
)
_GROUPS = (
    "metric",
    "dataset",
    "attribute",
    "encoder",
    "head",
    "trainer",
    "masking",
    "alignment",
    "scoring",
    "split",
    "cluster",
)


def help_text() -> str:
    """The text of ``--help``; reads file names alone, so it costs no import.

    Example:
        >>> "metric=" in help_text()
        True
    """
    lines = [
        f"  {group + '=':<18} {' '.join(group_choices(group))}"
        for group in (*_GROUPS, "experiment")
    ]
    return _HELP.format(choices="\n".join(lines))


def print_metrics() -> None:
    """Print every metric with the eight properties of the papers' tables, and what each sees."""
    from bias_pipeline.catalogue.registry import infos

    known = list(infos().values())
    header = ["metric", "title", "range", "neutral", *PROPERTIES, "reference"]
    say("Metrics")
    lines = [_described(info) for info in known]
    print_table([name.replace("_", " ") for name in header], lines, keys=1, left=len(header))
    say("✓ it is claimed; ✓✓ and a line of the table below, which is a test, shows it", "")
    _print_behaviours(known)


def _print_behaviours(infos: Sequence[MetricInfo]) -> None:
    """What moves which headline."""
    from bias_pipeline.calibration.behaviour import BEHAVIOURS, VERDICTS, verdicts

    lines = []
    for name, behaviour in BEHAVIOURS.items():
        found = verdicts(name, infos)
        told = [
            ", ".join(line for line, own in found.items() if own == verdict) for verdict in VERDICTS
        ]
        lines.append([name, behaviour.title, *told])
    say("What metrics see: tested on small corpora")
    header = ["captions differ in", "", *VERDICTS]
    print_table(header, lines, keys=1, left=len(header))


def _described(info: MetricInfo) -> list[str]:
    from bias_pipeline.calibration.behaviour import is_tested

    ticks = [
        ("✓✓" if is_tested(info, prop) else "✓") if getattr(info, prop) else ""
        for prop in PROPERTIES
    ]
    low, high = info.range
    bounds = f"{low:g} … {high:g}"
    return [info.name, info.title, bounds, f"{info.neutral:g}", *ticks, info.reference]
