"""The commands ``metrics`` and ``analysis``: what metrics detect, power, and how scores vary."""

from __future__ import annotations

import shlex
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.commands.arguments import PROGRAM, Parser, file_of, number
from bias_pipeline.data.image_weights import write_weights
from bias_pipeline.declared import Count
from bias_pipeline.errors import (
    DataError,
    NotApplicableError,
    ResourceError,
    UsageError,
    did_you_mean,
    inflect,
)
from bias_pipeline.io.files import replace_file, require_new, table_csv, write_file
from bias_pipeline.io.terminal import print_out
from bias_pipeline.report.caption_pairs import PAIRS, caption_pairs, write_pairs
from bias_pipeline.report.power import (
    balanced_images,
    measured_sizes,
    planted_shares,
    smallest_bias_lines,
)
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Cell, NumberCell, Table, percent
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run import compose
from bias_pipeline.studies.attacker_agreement import (
    KEYS,
    OVER,
    Variants,
    agreements,
    print_agreements,
    print_sensitivity,
    print_title,
    reduction,
    sensitivity,
    variants,
)
from bias_pipeline.studies.feature_sensitivity import CHANGES, WHOLE, print_shifts, shifts
from bias_pipeline.studies.rebalance import (
    METRIC,
    effective_share,
    groups_of,
    image_weights,
    too_often,
)

if TYPE_CHECKING:
    from bias_pipeline.commands.main import Command


def metrics_command(words: list[str]) -> int:
    from bias_pipeline.studies.metric_cards import cards, print_metrics

    if metrics_parser().parse_args(words).cards:
        print_out(*cards().splitlines())
    else:
        print_metrics()
    return 0


def metrics_parser() -> Parser:
    parser = Parser(f"{PROGRAM} metrics", description="Print what each metric can detect")
    parser.add_argument(
        "--cards",
        action="store_true",
        help="print a Markdown page with a card for each metric: docs/metrics.md",
    )
    return parser


_NOTES = (
    "5 %, 10 %, 20 %: trials in which an audit of the metric alone detected a planted bias of this "
    "size, with the measured number of images nearest to yours; a dash where it gave no answer",
    "people words: the planted bias is a word that annotators use for the group in that "
    "share of captions; scenes a_to_t, t_to_a: settings of simulated captioners "
    "(docs/which_metric.md)",
)


def power_command(words: Sequence[str]) -> int:
    sizes = power_parser().parse_args(list(words)).sizes
    balanced = balanced_images(sizes)
    smallest, largest = measured_sizes()
    print_out(
        f"{inflect(sum(sizes), 'images')} in groups of {sizes[0]} and {sizes[1]}; smallest score "
        "that is detected with a power of 80 %"
    )
    if not smallest <= balanced <= largest:
        print_out(
            f"measured with {smallest:.0f} to {largest:.0f} images in groups of equal size; beyond "
            "that, the smallest score is taken to fall with the root of the number of images"
        )
    header = ["metric", "planted bias", "smallest score"]
    header += [f"{share} %" for share in planted_shares()]
    print_table(Table("", header, smallest_bias_lines(balanced), keys=2))
    for note in _NOTES:
        print_out(note)
    return 0


def power_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} analysis power",
        description="Print, for each metric, the smallest bias that can be detected with a "
        "given number of images",
    )
    sizes = parser.add_mutually_exclusive_group(required=True)
    sizes.add_argument(
        "--n",
        type=_halves,
        dest="sizes",
        metavar="N",
        help="number of labelled images with captions, of which half belong to each group",
    )
    sizes.add_argument(
        "--groups",
        type=_pair,
        dest="sizes",
        metavar="N,N",
        help="number of images in each of two groups",
    )
    return parser


def _halves(text: str) -> tuple[int, int]:
    images: int = number(Count)(text)
    return (images + 1) // 2, images // 2


def _pair(text: str) -> tuple[int, int]:
    sizes = tuple(number(Count)(part) for part in text.split(","))
    if len(sizes) != 2:
        raise ArgumentTypeError(f"{text}: give the images of two groups, such as 300,200")
    return sizes


def _runs_parser(word: str, about: str) -> Parser:
    parser = Parser(f"{PROGRAM} analysis {word}", description=about)
    parser.add_argument(
        "outputs", type=Path, help="a folder of finished runs; the command trains nothing"
    )
    help_text = (
        f"what varies: {', '.join(KEYS)}, or a setting in which the runs differ, such as "
        f"encoder.order or seeds (default: {' '.join(OVER)})"
    )
    parser.add_argument("--over", nargs="+", default=list(OVER), metavar="KEY", help=help_text)
    return parser


def _variants_in(folder: Path, over: Sequence[str], fewest: int = 2) -> list[Variants]:
    """The scores of a folder's runs under several variants, for at least ``fewest`` captioners."""
    from bias_pipeline.report.page import finished_runs

    results, draws = finished_runs(folder)
    tables = variants(results, draws, over, fewest)
    if not tables:
        subject = "no captioner was" if fewest == 1 else "no two captioners were"
        raise DataError(
            f"{folder}: {subject} scored under all variants of {', '.join(over)} in the runs, "
            "or there is only one variant; run a sweep such as captioner=all "
            "encoder=ngram,lstm"
        )
    return tables


def sensitivity_command(arguments: Sequence[str]) -> int:
    options = sensitivity_parser().parse_args(list(arguments))
    all_scores = _variants_in(options.outputs, options.over, fewest=1)
    for scores in all_scores:
        print_title(scores)
        print_sensitivity(sensitivity(scores), "CV")
    for one, two in _opponents(all_scores, options.against):
        print_out(
            f"{one.setting} · how far its CV is below the CV of {two.setting.headline}, per cent"
        )
        gain = reduction(one, two)
        if gain.left_out:
            print_out(f"left out, since only one of the two has them: {', '.join(gain.left_out)}")
        print_sensitivity(gain, "reduction", fraction=True)
    return 0


def sensitivity_parser() -> Parser:
    parser = _runs_parser(
        "sensitivity",
        "Print how much scores vary between attackers: coefficients of variation (DBAC, 5.3).",
    )
    parser.add_argument(
        "--against",
        metavar="METRIC",
        help="also print how much less the other metrics vary than this metric",
    )
    return parser


def _opponents(
    all_scores: Sequence[Variants], against: str | None
) -> list[tuple[Variants, Variants]]:
    """Pairs of numbers: each number, and the number with which it is compared."""
    if against is None:
        return []
    others = [scores for scores in all_scores if scores.setting.headline == against]
    pairs = [(one, two) for one in all_scores for two in others if one.setting.rivals(two.setting)]
    if not pairs:
        headlines = sorted({scores.setting.headline for scores in all_scores})
        raise UsageError(
            f"--against {against}: no other number of the same captions; "
            f"{did_you_mean(against, headlines)}"
        )
    return pairs


def consistency_command(arguments: Sequence[str]) -> int:
    """Print how far the attackers or metrics of finished runs agree."""
    options = consistency_parser().parse_args(list(arguments))
    for scores in _variants_in(options.outputs, options.over):
        print_title(scores)
        print_agreements(agreements(scores))
    return 0


def consistency_parser() -> Parser:
    about = "Print whether attackers agree: conflict scores and correlations (ImageCaptioner2, "
    "5.5.2)."
    return _runs_parser("consistency", about)


SHIFTS = "feature_sensitivity.csv"
_SHIFTS_ABOUT = (
    "Caption photos three times: unchanged, with a slightly blurred background, and with one "
    "annotated object in ten hidden. Every metric of captions scores all three: a number is "
    "steady if it stays within its interval. The command has the options of caption and the "
    "settings of run (labels and human captions: dataset.attributes=, dataset.captions=). "
    "image_masking.blur= and image_masking.share= say how much is changed."
)


def feature_sensitivity_parser() -> Parser:
    """The parser, which also has the options of the command ``caption``."""
    parser = _caption_command().parser()
    parser.prog = f"{PROGRAM} analysis feature_sensitivity"
    parser.usage = (
        "%(prog)s PHOTOS --model MODEL --regions FILE --out DIR [key=value ...] [options]"
    )
    parser.description = _SHIFTS_ABOUT
    return parser


def feature_sensitivity_command(words: Sequence[str]) -> int:
    """Change pictures, caption the pictures, score the captions, and compare the scores."""
    from bias_pipeline.run.audit import scored_captions

    masking = [word for word in words if word.startswith("image_masking.")]
    overrides = [word for word in words if _is_setting(word) and word not in masking]
    options = [word for word in words if not _is_setting(word)]
    given = feature_sensitivity_parser().parse_args(options)
    for flag in ("gather", "image_masking", "crop", "shard", "to", "run", "to_batch"):
        if getattr(given, flag):
            raise UsageError(f"--{flag.replace('_', '-')}: this analysis sets it; leave it out")
    if given.regions is None or given.out is None:
        raise UsageError("--regions FILE and --out DIR are needed; see --help")
    files = _changed_captions(given.out, options, masking)
    lines = shifts(scored_captions(given.out, overrides, files))
    if not lines:
        raise NotApplicableError(
            f"{given.out}: no metric has a number with an interval; give labels of groups "
            "(dataset.attributes=FILE)"
        )
    replace_file(given.out / SHIFTS, table_csv([asdict(line) for line in lines]).encode())
    print_shifts(lines)
    print_out(given.out / SHIFTS)
    return 0


def _caption_command() -> Command:
    from bias_pipeline.commands.main import resolve_command

    command, _ = resolve_command(["caption"])
    assert command is not None
    return command


def _is_setting(word: str) -> bool:
    return "=" in word and not word.startswith("-")


def _changed_captions(folder: Path, options: Sequence[str], masking: Sequence[str]) -> list[Path]:
    """The files of captions: first for unchanged pictures, then for each change."""
    caption = _caption_command()
    (folder / "captioners").mkdir(parents=True, exist_ok=True)
    files = []
    for name, choice in {WHOLE: "none", **CHANGES}.items():
        file, blocks = folder / "captioners" / f"{name}.json", str(folder / f"written_{name}")
        files.append(file)
        changed = [] if name == WHOLE else masking
        shown = [f"image_masking={choice}", *changed]
        store = caption.find("write_captions")(
            caption.find("options_of")([*options, "--out", blocks, *shown])
        )
        run = ["--run", store.signature]  # not the captions of an earlier call
        caption.command(["--gather", blocks, *run, "--to", str(file), "--no-strict"])
    return files


def rebalance_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} analysis rebalance",
        usage="%(prog)s RUN --out FILE.parquet [key=value ...] [options]",
        description="Compute weights of training images for 'fit --weights'. If a captioner "
        "names an object together with a group too often, images of this object "
        "and group are drawn less often",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help=f"folder of a run of metric={METRIC}")
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=value",
        help="settings of the data that the captioner learns from, as for fit",
    )
    parser.add_argument(
        "--out",
        type=file_of("Parquet", ".parquet"),
        required=True,
        help="the table to write, with the columns image and weight",
    )
    parser.add_argument(
        "--captions",
        choices=["human", "model"],
        default="human",
        help="the captions that the captioner will learn from: human captions, or the captions of "
        "captioner=...; give fit the same option (default: human)",
    )
    return parser


def rebalance_command(words: Sequence[str]) -> int:
    """Compute from a finished run the weights for ``--weights`` of the command ``fit``."""
    options = rebalance_parser().parse_intermixed_args(list(words))
    folder = options.run.resolve()
    result = ResultStore(folder.parent).read(folder.name)
    if result is None:
        raise ResourceError(f"{options.run} is not the folder of a finished run; give one")
    objects, groups = too_often(result), groups_of(result)
    cell = compose.cell([f"metric={METRIC}", *options.overrides])
    attribute = cell.build("attribute").name
    if attribute != result.rows[0].attribute:
        raise UsageError(
            f"{options.run}: is of attribute={result.rows[0].attribute}, not {attribute}; give "
            f"attribute={result.rows[0].attribute}"
        )
    corpus = cell.corpus()
    weights = image_weights(
        corpus, options.captions, attribute, cell.build("task"), groups, objects
    )
    write_weights(options.out, dict(zip(corpus.ids, weights.tolist(), strict=True)))
    first, second = groups
    header = ["object", f"{first}, people", f"{first}, {result.rows[0].captioner}", *groups]
    lines: list[list[Cell]] = [
        [
            item.name,
            NumberCell(item.human, fraction=True, digits=1),
            NumberCell(item.model, fraction=True, digits=1),
            *map(NumberCell, item.factors),
        ]
        for item in objects
    ]
    print_out(
        f"{result.run_id}: {inflect(len(objects), 'objects are')} with one group more often than "
        "in human captions"
    )
    caption = f"share of {first}, per cent; how often captions of {first} and {second} are drawn"
    print_table(Table(caption, header, lines))
    print_out(
        f"{options.out}: weights of {inflect(len(weights), 'images')}, {weights.min():.2f} to "
        f"{weights.max():.2f}, as precise as equal weights of "
        f"{percent(effective_share(weights))} % of the images; use them with fit sat "
        f"--weights {shlex.quote(str(options.out))}"
    )
    return 0


def pairs_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} analysis pairs",
        usage="%(prog)s --out FILE.csv [key=value ...] [options]",
        description="Write pairs of captions for 'rate --pairs': one captioner's captions of two "
        "pictures that show the same scene with persons of different groups",
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=value",
        help="settings of the captions and labels, as for run",
    )
    parser.add_argument(
        "--out",
        type=file_of("CSV", ".csv"),
        required=True,
        help="the file to write, which must not exist yet",
    )
    parser.add_argument(
        "--n",
        type=number(Count),
        default=PAIRS,
        metavar="N",
        help=f"largest number of pairs (default: {PAIRS})",
    )
    parser.add_argument(
        "--groups",
        default="",
        metavar="A,B",
        help="the two groups that the pictures of a pair show, if the attribute has "
        "more than two groups",
    )
    return parser


def pairs_command(words: Sequence[str]) -> int:
    options = pairs_parser().parse_intermixed_args(list(words))
    require_new(options.out)
    cell = compose.cell(["metric=descriptions", *options.overrides])
    metric, corpus = cell.build("metric"), cell.corpus()
    groups = [name.strip() for name in options.groups.split(",") if name.strip()]
    pairs = caption_pairs(corpus, metric.attribute, metric.concepts, groups, options.n)
    write_file(options.out, write_pairs(pairs))
    if len(pairs) < options.n:
        print_out(
            f"only {inflect(len(pairs), 'pairs')} of pictures show the same scene; caption more "
            "pictures for more"
        )
    study = shlex.quote(str(options.out.with_suffix("")))
    print_out(
        f"{options.out}: {inflect(len(pairs), 'pairs')} of {corpus.captioner}; ask raters with "
        f"{PROGRAM} rate --pairs {shlex.quote(str(options.out))} --out {study}"
    )
    return 0
