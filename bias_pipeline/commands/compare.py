"""``compare``: is the first captioner fairer than the others?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.analysis import baseline
from bias_pipeline.analysis.compare import Leaderboard, rank_captioners
from bias_pipeline.analysis.conclusion_checks import COVERAGE, LIMITS, Limits
from bias_pipeline.analysis.gate import Decision, decisions
from bias_pipeline.analysis.name_collisions import resolve_name_collisions
from bias_pipeline.commands import arguments
from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.config.compose import cell
from bias_pipeline.config.overrides import choices_in, quoted, representative_overrides, sweeps
from bias_pipeline.declared import NotNegative, Share
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.io.terminal import print_out
from bias_pipeline.report.exports import check_places, write_file
from bias_pipeline.report.tables import print_leaderboards
from bias_pipeline.report.text_formats import junit
from bias_pipeline.results.settings import with_settings
from bias_pipeline.results.store import Result, ResultStore

if TYPE_CHECKING:
    from pandas import DataFrame

FLAG = "--fail-if-worse"
WORSE = 1

_ABOUT = """\
Is captioner A fairer than the others? Name captioners of the data set, files of captions, or
folders of finished runs; what has not run yet is run. Keys are those of `run`. Differences are
paired over images and seeds; p values are adjusted for all decisions (Holm). Only numbers that do
not change when captions say more or less decide, and only between captioners that describe the same
images and, for attackers, write captions of similar length and vocabulary; for all others it prints
why not.
"""


def command(words: Sequence[str]) -> int:
    """Run what has not been run, compare, print.

    Returns:
        The exit code.

    Raises:
        BiasPipelineError: if the words are wrong or nothing can be compared.
    """
    options, rest = parser().parse_known_args(arguments.expand_flags(words))
    names = [word for word in rest if "=" not in word and not word.startswith("-")]
    rest = [*(word for word in rest if word not in names), *arguments.column_overrides(options)]
    if len(set(names)) < (1 if options.baseline else 2):
        raise UsageError(
            "compare needs two captioners or more, or one and --baseline; you gave "
            f"{len(set(names))}"
        )
    check_places(options.json, options.junit)
    earlier = baseline.read(options.baseline) if options.baseline else []
    folders = [_folder(name) for name in names]
    results = _stored(folders) if all(folders) else _computed(names, rest)
    first = [r for r in results if r.rows[0].captioner == results[0].rows[0].captioner]
    if earlier:
        results += baseline.compare_to_baseline(first, earlier)
    limits = Limits(coverage=options.least_coverage, speech=options.alike)
    comparison = compared(results, margin=options.margin, limits=limits)
    for sentence in comparison.namesakes:
        print_out(sentence)
    print_leaderboards(comparison.leaderboards, comparison.decisions)
    if options.json:
        write_file(options.json, baseline.stored(first, decisions=comparison.lines()))
    if options.junit:
        write_file(options.junit, junit(comparison.decisions))
    return _gate(comparison) if options.fail_if_worse else 0


@dataclass(frozen=True)
class Comparison:
    """The first captioner against the others."""

    leaderboards: Sequence[Leaderboard]  # of headlines
    decisions: Sequence[Decision]  # who is fairer under each, or why there is no decision
    namesakes: Sequence[str] = ()  # a sentence on each name that two captioners shared

    @property
    def decided(self) -> list[Decision]:
        """The decisions without a doubt."""
        return [decision for decision in self.decisions if not decision.doubts]

    @property
    def lost(self) -> list[Decision]:
        """Decisions in which the first is less fair (or worse) by more than the margin."""
        return [decision for decision in self.decided if decision.outcome == "worse"]

    @property
    def undecided(self) -> list[Decision]:
        """Decisions whose interval includes the margin."""
        return [decision for decision in self.decided if decision.outcome == "undecided"]

    def __str__(self) -> str:
        """One sentence for each decision."""
        return "\n".join(decision.sentence() for decision in self.decisions)

    def lines(self) -> list[dict[str, object]]:
        """The decisions as plain data."""
        return [decision.line() for decision in self.decisions]

    def frame(self) -> DataFrame:
        """The decisions as a table, one line each."""
        from pandas import DataFrame

        return DataFrame(self.lines())


def compared(
    results: Sequence[Result], *, margin: float | None = None, limits: Limits = LIMITS
) -> Comparison:
    """Compare results, those of the first captioner first.

    Args:
        results: with their draws.
        margin: by how much the first may be worse, in the metric's unit.
        limits: when captioners cannot be compared.

    Raises:
        DataError: if no two of them can be compared.
    """
    apart, namesakes = resolve_name_collisions(results)
    apart = with_settings(apart)
    draws = {result.run_id: result.draws for result in apart}
    tables = rank_captioners(apart, draws)
    if not tables:
        raise DataError(
            "no two of these results have a score and differ only in the captioner; compare cells "
            "of one metric, attribute and configuration, and where the score needs human captions "
            "(dataset.captions=...) give them"
        )
    return Comparison(tables, decisions(apart, draws, margin=margin, limits=limits), namesakes)


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} compare",
        usage="%(prog)s A B [C ...] [key=value ...] [options]",
        description=_ABOUT,
        allow_abbrev=False,
    )
    parser.add_argument(
        FLAG,
        action="store_true",
        help=f"exit code {WORSE} if A is less fair (or worse) than one of the others beyond "
        f"chance, {DataError.exit_code} if nothing could be decided, or not by the margin",
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="file that --json of an earlier compare or audit wrote; A is compared with its "
        "captioner",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the decisions, and the results of A as a baseline for later",
    )
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="write the decisions as JUnit XML"
    )
    parser.add_argument(
        "--margin",
        type=number(NotNegative),
        metavar="DIFFERENCE",
        help=f"with {FLAG}: pass only if A is surely not worse by more than this, in the metric's "
        "unit (0.01 is one point): the whole interval of the difference must be below it",
    )
    parser.add_argument(
        "--least-coverage",
        type=number(Share),
        default=COVERAGE,
        metavar="SHARE",
        help=f"least share of the labelled images that a number must use ({COVERAGE})",
    )
    parser.add_argument(
        "--alike",
        type=number(NotNegative),
        default=LIMITS.speech,
        metavar="SHARE",
        help="how much caption length and vocabulary may differ between captioners where attackers "
        f"read captions ({LIMITS.speech})",
    )
    arguments.add_column_options(parser)
    return parser


def _gate(comparison: Comparison) -> int:
    """The exit code for CI.

    Raises:
        DataError: if nothing was decided; such a gate must not pass.
    """
    if not comparison.decided:
        raise DataError(
            f"{FLAG}: nothing could be decided, for the reasons above; compare captioners that "
            "describe the same images in as many words, or choose another metric (gender_error, "
            "ba_mals, ba_directional)"
        )
    n_decided, first = len(comparison.decided), comparison.decided[0].first
    if comparison.lost:
        print_out(
            f"gate failed: {first} is worse in {len(comparison.lost)} of {n_decided} comparisons"
        )
        return WORSE
    if comparison.undecided:
        raise DataError(
            f"gate failed: {len(comparison.undecided)} of {n_decided} comparisons cannot "
            "be decided by this margin; score more images, or choose a larger --margin"
        )
    print_out(f"gate passed: {first} is worse in none of {n_decided} comparisons")
    return 0


def _folder(name: str) -> Path | None:
    """The folder of a finished run, if the word names one."""
    path = Path(name)
    return path if (path / "result.json").is_file() else None


def _stored(folders: Sequence[Path | None]) -> list[Result]:
    results = []
    for folder in folders:
        assert folder is not None
        store = ResultStore(folder.resolve().parent)
        result = store.load(folder.resolve().name)
        if result is None:
            raise ResourceError(f"{folder} contains no complete result; run its cell again")
        results.append(replace(result, draws=store.draws(result.run_id)))
    return results


def _computed(names: Sequence[str], rest: Sequence[str]) -> list[Result]:
    """Read all captioners first, so that a mistake costs no run."""
    from bias_pipeline.sweeps import launch

    _check(names, rest)
    swept = ",".join(quoted(name) for name in names)
    finished = launch.run([*rest, f"captioner={swept}"])
    if finished.exit_code:
        raise DataError("not every captioner could be scored; see above")
    print_out()
    return finished.with_draws()


def _check(names: Sequence[str], rest: Sequence[str]) -> None:
    """Read every captioner's corpus.

    Raises:
        BiasPipelineError: if a captioner is unknown, a file is absent or cannot be scored, or two
            captioners are one.
    """
    name_by_digest: dict[str, str] = {}
    for chosen in _single(rest):
        for name in names:
            digest = cell([*chosen, f"captioner={quoted(name)}"]).corpus().digest
            if name_by_digest.setdefault(digest, name) != name:
                raise DataError(
                    f"{name_by_digest[digest]} and {name} have the same captions; there is nothing "
                    "to compare"
                )


def _single(rest: Sequence[str]) -> list[list[str]]:
    """The overrides of each corpus that a sweep reads: data sets and attributes one by one."""
    from bias_pipeline.sweeps import launch

    sweep = launch.parse_sweep(rest)
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
