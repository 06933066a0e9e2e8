"""``compare``: is the first captioner fairer than the others?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.analysis import baseline
from bias_pipeline.analysis.compare import Contest, contests
from bias_pipeline.analysis.doubts import COVERAGE, LIMITS, Limits
from bias_pipeline.analysis.gate import Decision, decisions
from bias_pipeline.analysis.namesakes import told_apart
from bias_pipeline.commands import own_columns, shorthand
from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.config.compose import cell
from bias_pipeline.config.overrides import choices_in, first_choices, quoted, sweeps
from bias_pipeline.declared import NotNegative, Share
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.io.terminal import say
from bias_pipeline.report.contest import print_contests
from bias_pipeline.report.files import check_places, write_file
from bias_pipeline.report.junit import junit
from bias_pipeline.results.settings import with_settings
from bias_pipeline.results.store import Result, ResultStore

if TYPE_CHECKING:
    from pandas import DataFrame

FLAG = "--fail-if-worse"
WORSE = 1

_ABOUT = """\
Is captioner A fairer than the others? They are captioners of the data set (files of captions are
too), run where they have not been yet, or folders of finished runs. Keys are those of `run`.
Differences are paired over images and seeds, and p values adjusted for all that are decided (Holm).
Only readings that saying more or less cannot move decide, and only between captioners that describe
the same images and, where attackers read captions, speak alike; of all others it is said why not.
"""


def command(words: Sequence[str]) -> int:
    """Run what has not been run, compare, print.

    Returns:
        The exit code.

    Raises:
        BiasPipelineError: if the words are wrong or nothing can be compared.
    """
    options, rest = parser().parse_known_args(shorthand.keys_of(words))
    names = [word for word in rest if "=" not in word and not word.startswith("-")]
    rest = [*(word for word in rest if word not in names), *own_columns.overrides_of(options)]
    if len(set(names)) < (1 if options.baseline else 2):
        raise UsageError(
            f"compare needs two captioners or more, or one and --baseline, found {len(set(names))}"
        )
    check_places(options.json, options.junit)
    earlier = baseline.read(options.baseline) if options.baseline else []
    folders = [_folder(name) for name in names]
    results = _stored(folders) if all(folders) else _computed(names, rest)
    first = [r for r in results if r.rows[0].captioner == results[0].rows[0].captioner]
    if earlier:
        results += baseline.beside(first, earlier)
    limits = Limits(coverage=options.least_coverage, speech=options.alike)
    found = compared(results, margin=options.margin, limits=limits)
    for told in found.namesakes:
        say(told)
    print_contests(found.contests, found.decisions)
    if options.json:
        write_file(options.json, baseline.stored(first, decisions=found.lines()))
    if options.junit:
        write_file(options.junit, junit(found.decisions))
    return _gate(found) if options.fail_if_worse else 0


@dataclass(frozen=True)
class Comparison:
    """The first captioner against the others.

    Attributes:
        contests: leaderboards of headlines.
        decisions: who is fairer under each, or why nothing is decided.
        namesakes: a sentence on each name that two captioners had.
    """

    contests: Sequence[Contest]
    decisions: Sequence[Decision]
    namesakes: Sequence[str] = ()

    @property
    def decided(self) -> list[Decision]:
        """What could be decided."""
        return [decision for decision in self.decisions if not decision.doubts]

    @property
    def lost(self) -> list[Decision]:
        """Under which the first is less fair (or worse) than another, by more than the margin."""
        return [decision for decision in self.decided if decision.outcome == "worse"]

    @property
    def undecided(self) -> list[Decision]:
        """Those whose interval holds the margin."""
        return [decision for decision in self.decided if decision.outcome == "undecided"]

    def __str__(self) -> str:
        """All that is decided, a sentence a line."""
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
    apart, namesakes = told_apart(results)
    apart = with_settings(apart)
    draws = {result.run_id: result.draws for result in apart}
    tables = contests(apart, draws)
    if not tables:
        raise DataError(
            "no two of these results have a score and differ in the captioner alone; compare cells "
            "of one metric, attribute and configuration, and where the score needs human captions "
            "(dataset.captions=...) give them"
        )
    return Comparison(tables, decisions(apart, draws, margin=margin, limits=limits), namesakes)


def parser() -> Parser:
    """What it takes."""
    own = Parser(
        f"{PROGRAM} compare",
        usage="%(prog)s A B [C ...] [key=value ...] [options]",
        description=_ABOUT,
        allow_abbrev=False,
    )
    own.add_argument(
        FLAG,
        action="store_true",
        help=f"exit code {WORSE} if A is less fair (or worse) than one of the others beyond "
        f"chance, {DataError.exit_code} if nothing could be decided, or not by the margin",
    )
    own.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="what --json of an earlier compare or audit wrote; its captioner is one of the others",
    )
    own.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the decisions, and the results of A as a baseline for later",
    )
    own.add_argument("--junit", type=Path, metavar="FILE", help="write the decisions as JUnit XML")
    own.add_argument(
        "--margin",
        type=number(NotNegative),
        metavar="DIFFERENCE",
        help=f"with {FLAG}: pass only if A is surely not worse by more than this, in the metric's "
        "unit (0.01 is one point): the whole interval of the difference lies below it",
    )
    own.add_argument(
        "--least-coverage",
        type=number(Share),
        default=COVERAGE,
        metavar="SHARE",
        help=f"of the labelled images that a number must rest on ({COVERAGE})",
    )
    own.add_argument(
        "--alike",
        type=number(NotNegative),
        default=LIMITS.speech,
        metavar="SHARE",
        help="by which words a caption and vocabularies may differ where attackers read captions "
        f"({LIMITS.speech})",
    )
    own_columns.add_options(own)
    return own


def _gate(found: Comparison) -> int:
    """What a team's CI is told.

    Raises:
        DataError: if nothing was decided; a gate that cannot tell must not let pass.
    """
    if not found.decided:
        raise DataError(
            f"{FLAG}: nothing could be decided, for the reasons above; compare captioners that "
            "describe the same images in as many words, or choose another metric (gender_error, "
            "ba_mals, ba_directional)"
        )
    if found.lost:
        say(f"gate not passed: {len(found.lost)} of {len(found.decided)} comparisons are lost")
        return WORSE
    if found.undecided:
        raise DataError(
            f"gate not passed: {len(found.undecided)} of {len(found.decided)} comparisons cannot "
            "be decided by this margin; score more images, or choose a larger --margin"
        )
    say(f"gate passed: none of {len(found.decided)} comparisons is lost")
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
            raise ResourceError(f"{folder} holds no whole result; run its cell again")
        results.append(replace(result, draws=store.draws(result.run_id)))
    return results


def _computed(names: Sequence[str], rest: Sequence[str]) -> list[Result]:
    """Everything is read before anything is run, so that a mistake costs no work."""
    from bias_pipeline.sweeps import launch

    _check(names, rest)
    swept = ",".join(quoted(name) for name in names)
    finished = launch.run([*rest, f"captioner={swept}"])
    if finished.exit_code:
        raise DataError("not every captioner could be scored; see above")
    store = ResultStore(finished.outputs)
    say()
    return [replace(r, draws=store.draws(r.run_id)) for r in finished.results]


def _check(names: Sequence[str], rest: Sequence[str]) -> None:
    """Read every captioner's corpus.

    Raises:
        BiasPipelineError: if a captioner is unknown, a file is absent or cannot be scored, or two
            captioners are one.
    """
    found: dict[str, str] = {}
    for chosen in _single(rest):
        for name in names:
            digest = cell([*chosen, f"captioner={quoted(name)}"]).corpus().digest
            if found.setdefault(digest, name) != name:
                raise DataError(
                    f"{found[digest]} and {name} hold the same captions; there is nothing to "
                    "compare"
                )


def _single(rest: Sequence[str]) -> list[list[str]]:
    """The words of each corpus that a sweep reads: data sets and attributes one by one."""
    from bias_pipeline.sweeps import launch

    sweep = launch.prepare(rest)
    flags = [w for w in sweep.words if w not in (*sweep.options.overrides, "-m", "--multirun")]
    several = [
        word
        for word in sweep.overrides
        if sweeps(word) and word.lstrip("+").startswith(("dataset", "attribute"))
    ]
    others = first_choices([word for word in sweep.overrides if word not in several])
    return [
        [*flags, *others, *chosen] for chosen in product(*(choices_in(word) for word in several))
    ]
