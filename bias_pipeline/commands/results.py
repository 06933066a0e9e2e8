"""``compare``: says which of several captioners is fairer."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.commands import arguments
from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.commands.audit import add_config_dir, config_dir_in
from bias_pipeline.commands.audit_settings import add_settings
from bias_pipeline.commands.compare_audits import (
    audited_files,
    is_audit,
    print_questions,
    stored_audits,
)
from bias_pipeline.declared import Count, NotNegative, Positive
from bias_pipeline.errors import (
    DataError,
    NotApplicableError,
    ResourceError,
    TooFewImagesError,
    UndecidedError,
    UsageError,
    inflect,
)
from bias_pipeline.io.files import check_places, write_file
from bias_pipeline.io.paths import with_config_dir
from bias_pipeline.io.terminal import print_out
from bias_pipeline.report import baseline
from bias_pipeline.report.compared_questions import (
    ComparedQuestion,
    compared_questions,
    outcome_of,
    print_leaderboards,
)
from bias_pipeline.report.conclusion_checks import LIMITS, Limits, untried_ways
from bias_pipeline.report.gate import Comparison, check_margin, compare_results
from bias_pipeline.report.looks import MOST, counted_look
from bias_pipeline.report.name_collisions import check_distinct
from bias_pipeline.report.text_formats import (
    junit,
    skipped_cells,
)
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import RESULT, ResultStore
from bias_pipeline.run.compose import cell
from bias_pipeline.run.overrides import (
    choices_in,
    override_values,
    quote_value,
    representative_overrides,
    sweeps,
)

if TYPE_CHECKING:
    from bias_pipeline.run.compose import Sweep
    from bias_pipeline.run.outcomes import SweepOutcome


FLAG = "--fail-if-worse"
WORSE = 1

_COMPARE_ABOUT = """\
Is captioner A fairer than the others? Name files of captions (with --attributes), folders of
audits, captioners of a data set (with the keys of `run`), or folders of finished runs. Missing
runs are run first. Differences are paired over images and seeds, and p values are corrected for all
answers (Holm). A number leads to an answer only if it does not change with the length of captions
and if the captioners describe the same images. Attackers' scores also need captions of similar
length and vocabulary. If a number leads to no answer, the reason is printed.
"""


def compare_command(words: Sequence[str]) -> int:
    with with_config_dir(config_dir_in(words)):
        return _compare(words)


def _compare(words: Sequence[str]) -> int:
    options, rest = compare_parser().parse_known_args(arguments.expand_flags(words))
    names = [  # the name of a file may contain =
        word
        for word in rest
        if not word.startswith("-") and ("=" not in word or Path(word).is_file())
    ]
    rest = [*(word for word in rest if word not in names), *arguments.column_overrides(options)]
    if options.gold and options.attributes is None:  # audits add gold labels themselves
        rest.append(f"dataset.gold={quote_value(str(options.gold))}")
    if len(set(names)) < (1 if options.baseline else 2):
        hint = arguments.file_like_an_option(words)
        given = f"{names[0]} alone" if len(names) > 1 else len(names)
        raise UsageError(
            "compare needs two captioners or more, or one and --baseline; you gave "
            f"{given}{hint and '; '}{hint}"
        )
    check_places(options.json, options.junit)
    earlier = baseline.read(options.baseline) if options.baseline else None
    by_questions = options.attributes is not None or all(map(is_audit, names))
    if options.attributes is not None:
        first, others, skipped = audited_files(names, options, rest, earlier)
    elif by_questions:
        first, others, skipped = stored_audits(names, options.metrics)
    else:
        first, others, skipped = _cells(names, rest, options.margin)
    if earlier:
        more, passed_over = baseline.compare_to_baseline(first, earlier)
        for cell_name, reason in passed_over.items():
            print_out(f"skipped: {cell_name}, in {earlier.file}: {reason}")
        others, skipped = [*others, *more], {**skipped, **passed_over}
    results = [*first, *others]
    limits = Limits(coverage=options.least_coverage, speech=options.alike)
    comparison = compare_results(results, margin=options.margin, limits=limits, skipped=skipped)
    for sentence in comparison.namesakes:
        print_out(sentence)
    rows = compared_questions(comparison) if by_questions else []
    if by_questions:
        print_questions(rows, skipped)
    else:
        print_leaderboards(comparison.leaderboards, comparison.decisions)
    if options.json:
        decided = {"decisions": comparison.lines(), "skipped": skipped_cells(comparison.skipped)}
        if by_questions:
            decided["questions"] = [row.line() for row in rows]
        write_file(options.json, baseline.baseline_bytes(first, **decided))
    if options.junit:
        write_file(options.junit, junit(comparison))
    gate = (
        partial(_gate_of_questions, rows) if by_questions else partial(_gate, comparison, results)
    )
    return _decide(options, comparison, gate)


def _decide(options: Namespace, comparison: Comparison, gate: Callable[[], int]) -> int:
    """The exit code of a comparison; ``--history`` counts this comparison before."""
    gated = options.fail_if_worse or options.margin is not None
    if options.history:
        looks = counted_look(options.history, comparison)
        print_out(*looks.sentences())
        if gated:
            looks.check(options.looks)
    return gate() if gated else 0


def _cells(
    names: Sequence[str], rest: Sequence[str], margin: float | None
) -> tuple[list[Result], list[Result], Mapping[str, str]]:
    """The first captioner's results, the others' results, and the reason of each skipped cell."""
    runs = [Path(name) for name in names if (Path(name) / RESULT).is_file()]
    others = [name for name in names if Path(name) not in runs]
    if runs and others:
        raise UsageError(
            f"{runs[0]} is the folder of a run and {others[0]} is not; name runs alone, or "
            "captioners alone"
        )
    results, skipped = (_load_results(runs), {}) if runs else _compute_results(names, rest, margin)
    first = [r for r in results if r.rows[0].captioner == results[0].rows[0].captioner]
    return first, [result for result in results if result not in first], skipped


def _gate_of_questions(rows: Sequence[ComparedQuestion]) -> int:
    """The exit code for CI; questions without a decision do not count."""
    outcome = outcome_of(rows)
    decided = [row for row in rows if not row.decision.doubts]
    if outcome == "worse":
        lost = [row.question for row in decided if row.result == "worse"]
        print_out(f"gate failed: {rows[0].decision.first} is worse in {', '.join(lost)}")
        return WORSE
    if outcome == "undecided":
        open_ = [row.question for row in decided if row.decision.outcome == "undecided"]
        raise UndecidedError(
            "gate failed: "
            + (
                f"{', '.join(open_)} cannot be decided by this margin; caption more images, choose "
                "a larger --margin, or name metrics with --metrics"
                if open_
                else "no question can be decided, for the reasons above"
            )
        )
    counts = inflect(len(decided), "questions")
    print_out(f"gate passed: {rows[0].decision.first} is worse in none of {counts}")
    return 0


def compare_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} compare",
        usage="%(prog)s A B --attributes LABELS [options]\n       %(prog)s OUT_A OUT_B [options]\n"
        "       %(prog)s A B [C ...] [key=value ...] [options]",
        description=_COMPARE_ABOUT,
        allow_abbrev=False,
    )
    parser.add_argument(
        FLAG,
        action="store_true",
        help=f"end with exit code {WORSE} if A is significantly less fair, or of lower quality, "
        f"than one of the others, and with {UndecidedError.exit_code} if nothing could be "
        "decided",
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="file written earlier by 'compare --json' or 'audit --json'; A is compared with the "
        "captioner of this file",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the decisions and the results of A, as a baseline for later comparisons",
    )
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="write the decisions as JUnit XML"
    )
    parser.add_argument(
        "--margin",
        type=number(NotNegative),
        metavar="DIFFERENCE",
        help=f"like {FLAG}, with a margin in the metric's unit (0.01 is one point): exit code "
        f"{WORSE} if the whole interval of a difference lies above the margin, 0 only if "
        f"all intervals lie below it, {UndecidedError.exit_code} otherwise",
    )
    parser.add_argument(
        "--history",
        type=Path,
        metavar="FOLDER",
        help="folder in which compare counts how many versions were compared on the same pictures",
    )
    parser.add_argument(
        "--looks",
        type=number(Count),
        default=MOST,
        metavar="N",
        help="with --history: after N versions on the same pictures, the gate stays undecided "
        f"(exit code {UndecidedError.exit_code}) until there are new pictures (default: "
        f"{MOST})",
    )
    files = parser.add_argument_group("files, as audit takes them (A and B are files of captions)")
    what = {
        "--attributes": (
            "LABELS",
            "labels of the images; captioners are then compared by the questions of audit",
        ),
        "--captions": ("FILE", "human captions of the same images"),
        "--objects": ("FILE", "objects in the images"),
        "--out": ("DIR", "folder of runs (default: outputs/compare-NAME)"),
    }
    files.add_argument("--gold", type=Path, metavar="FILE", help=arguments.GOLD)
    for option, (metavar, text) in what.items():
        files.add_argument(option, type=Path, metavar=metavar, help=text)
    files.add_argument(
        "--metrics",
        metavar="NAMES",
        help="metrics, separated by commas (default: the metrics of audit)",
    )
    files.add_argument(
        "--minutes",
        type=number(Positive),
        help="longest time for each attribute and captioner, in minutes",
    )
    add_settings(parser)
    add_config_dir(parser)
    arguments.add_least_coverage(parser)
    parser.add_argument(
        "--alike",
        type=number(NotNegative),
        default=LIMITS.speech,
        metavar="SHARE",
        help="for metrics with attackers: how much the length and the vocabulary of captions may "
        f"differ between captioners (default: {LIMITS.speech})",
    )
    arguments.add_column_options(parser)
    return parser


def _gate(comparison: Comparison, results: Sequence[Result]) -> int:
    if not comparison.decided:
        raise UndecidedError(
            "gate failed: nothing could be decided, for the reasons above; compare "
            "captioners that describe the same images in equally many words and name groups "
            f"equally often{untried_ways(results)}"
        )
    first = comparison.decided[0].first
    worse = "worse" if comparison.decided[0].margin is None else "worse by more than the margin"
    total = inflect(len(comparison.decided), "comparisons")
    if comparison.outcome == "worse":
        print_out(f"gate failed: {first} is {worse} in {len(comparison.lost)} of {total}")
        return WORSE
    if comparison.outcome == "undecided":
        raise UndecidedError(
            f"gate failed: {len(comparison.undecided)} of {total} cannot be decided by this "
            "margin; score more images, or choose a larger --margin"
        )
    print_out(f"gate passed: {first} is {worse} in 0 of {total}")
    return 0


def _load_results(folders: Sequence[Path]) -> list[Result]:
    results = []
    for folder in folders:
        store = ResultStore(folder.resolve().parent)
        result = store.load(folder.resolve().name)
        if result is None:
            raise ResourceError(f"{folder} contains no complete result; run the job again")
        results.append(replace(result, draws=store.draws(result)))
    return results


def _compute_results(
    names: Sequence[str], rest: Sequence[str], margin: float | None
) -> tuple[list[Result], Mapping[str, str]]:
    """The results, and the reason of each skipped cell.

    All captions are read before any cell runs.
    """
    from bias_pipeline.run import launch

    try:
        _check(names, rest, margin)
    except UsageError:
        for name in names:
            if runs := sorted(Path(name).glob("*/result.json")):
                raise UsageError(
                    f"{name}: holds {inflect(len(runs), 'runs')}, and compare takes the folder of "
                    f"one, such as {runs[0].parent}"
                ) from None
        raise
    swept = ",".join(quote_value(name) for name in names)
    skips = (NotApplicableError.exit_code, TooFewImagesError.exit_code)
    finished = launch.run([*rest, f"captioner={swept}"], skips=skips)
    if finished.exit_code:
        raise DataError("not every captioner could be scored; see above")
    print_out()
    return _results_in_same_cells(names[0], finished), finished.skipped


def _results_in_same_cells(first: str, finished: SweepOutcome) -> list[Result]:
    """The results of the first captioner, then of the others in the same cells."""
    cells = [dict(swept) for swept in finished.swept]
    captioners = [
        override_values(f"captioner={cell.pop('captioner', quote_value(first))}")[0]
        for cell in cells
    ]
    results = list(zip(captioners, cells, finished.with_draws(), strict=True))
    of_first = [cell for captioner, cell, _ in results if captioner == first]
    ordered = sorted(results, key=lambda scored: scored[0] != first)
    return [result for _, cell, result in ordered if cell in of_first]


def _check(names: Sequence[str], rest: Sequence[str], margin: float | None) -> None:
    """Check the margin for every metric, and read every captioner's corpus."""
    from bias_pipeline.run import launch

    sweep = launch.parse_sweep(rest)
    for config in sweep.sample if margin is not None else ():
        check_margin(margin, config.build("metric"))
    for chosen in _corpus_overrides(sweep):
        cells = {name: cell([*chosen, f"captioner={quote_value(name)}"]) for name in names}
        check_distinct({name: cell.corpus().digest for name, cell in cells.items()})


def _corpus_overrides(sweep: Sweep) -> list[list[str]]:
    """The overrides of each corpus that a sweep reads: one for each data set and attribute."""
    flags = [w for w in sweep.words if w not in (*sweep.options.overrides, "-m", "--multirun")]
    several = [
        word
        for word in sweep.overrides
        if sweeps(word) and word.lstrip("+").startswith(("dataset", "attribute"))
    ]
    others = representative_overrides([word for word in sweep.overrides if word not in several])
    return [
        [*flags, *others, *chosen] for chosen in product(*(choices_in(word) for word in several))
    ]
