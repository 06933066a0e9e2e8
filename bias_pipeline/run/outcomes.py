"""Reads the outcomes of jobs from their folders, and prints the table and the failures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bias_pipeline.corpus.predictions import Training
from bias_pipeline.errors import SweepError, UsageError, inflect
from bias_pipeline.io.terminal import print_out, warn
from bias_pipeline.report.name_collisions import resolve_file_collisions
from bias_pipeline.results.rows import Result
from bias_pipeline.results.settings import ANNOTATOR, CHOICES, read_as, with_settings
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run.job import outcome_in


@dataclass(frozen=True)
class SweepOutcome:
    """The outcome of a job, of a sweep or of an audit's cells."""

    outputs: Path  # the folder of results
    results: Sequence[Result] = ()  # results of the cells that succeeded, in the order of the sweep
    exit_code: int = 0  # of the command
    swept: Sequence[Mapping[str, str]] = ()  # for each result, the overrides in which jobs differ
    skipped: Mapping[str, str] = field(default_factory=dict)  # the reason, by label of a cell
    made: Sequence[Result] = ()  # the results that this process computed, as they are stored

    def with_draws(self) -> list[Result]:
        """The results with their draws (headlines under every resampling), for comparisons."""
        store = ResultStore(self.outputs)
        return [replace(result, draws=store.draws(result)) for result in self.results]


def _print_results(results: Sequence[Result]) -> None:
    from bias_pipeline.report.tables import print_results

    print_results(results)


def conclude(
    folders: Sequence[Path],
    results_here: Iterable[Result | None],
    outputs: Path,
    seconds: float,
    *,
    multirun: bool = True,
    skips: Collection[int] = (),
    of_all: bool = False,
    say: Callable[[str], None] = print_out,
    show: Callable[[Sequence[Result]], None] = _print_results,
) -> SweepOutcome:
    """Show the results of a job or a sweep, say what failed, and write the table."""
    if not folders:
        raise UsageError("the sweep has no jobs")
    outcomes = [_outcome(folder) for folder in folders]
    store, known = ResultStore(outputs), {one.run_id: one for one in results_here if one}
    differences = differing([outcome["overrides"] for outcome in outcomes])
    for outcome, values in zip(outcomes, differences, strict=True):
        outcome["swept"] = values
    finished = [
        (read_as(result, outcome.get("text", {})), outcome["swept"])
        for outcome in outcomes
        if outcome["status"] != "failed"
        and (result := known.get(name := str(outcome["run_id"])) or store.load(name))
    ]
    results = _write_finished(finished, outputs, say, show) if finished else ()
    cached = sum(outcome["status"] == "cached" for outcome in outcomes)
    if cached:
        say(f"cached, not run again: {cached} of {inflect(len(outcomes), 'jobs')}")
    failed = [o for o in outcomes if o["status"] == "failed"]
    skipped = [
        outcome
        for outcome in failed
        if outcome.get("not_applicable") and (outcome["exit_code"] in skips or (of_all and results))
    ]
    for line in _skips(skipped):
        say(f"skipped: {line}")
    _print_work(results, outcomes, say)
    if results:
        n_processes = len({o["process"] for o in outcomes if "process" in o})
        by = f" by {n_processes} processes" if n_processes > 1 else ""
        summary = f"{inflect(len(outcomes), 'jobs')} in {seconds:.1f} s{by}; results in {outputs}"
        warn(summary)
    code = _exit_code([o for o in failed if o not in skipped], len(outcomes), multirun)
    reasons = {_label(outcome): str(outcome["error"]) for outcome in skipped}
    swept = [values for _, values in finished]
    done = {outcome["run_id"] for outcome in outcomes if outcome["status"] == "done"}
    made = [result for name, result in known.items() if name in done]
    return SweepOutcome(outputs, results, code, swept, reasons, made)


def _write_finished(
    finished: Sequence[tuple[Result, Mapping[str, str]]],
    outputs: Path,
    say: Callable[[str], None],
    show: Callable[[Sequence[Result]], None],
) -> Sequence[Result]:
    """Write the table of finished cells, and show them."""
    from bias_pipeline.report.tables import write_table

    apart, namesakes = resolve_file_collisions([result for result, _ in finished])
    swept = [values for _, values in finished]
    # A key that only some jobs set belongs to a choice, for which rows have a column.
    keys = set(swept[0]).intersection(*swept) - set(CHOICES)
    results = with_settings(
        replace(result, settings={key: values[key] for key in values if key in keys})
        for result, values in zip(apart, swept, strict=True)
    )
    # Jobs that differ only in settings that their metric does not use are one run, and one line.
    runs = {(result.run_id, *result.settings.items()): result for result in results}
    show([*runs.values()])
    for sentence in namesakes:
        say(sentence)
    if any(ANNOTATOR in values for values in swept):
        from bias_pipeline.report.sections import bounds

        for bound in bounds(results, swept):
            say(bound.sentence())
    write_table(outputs, [*runs.values()])
    return results


def _print_work(
    results: Sequence[Result], outcomes: Sequence[Mapping[str, Any]], say: Callable[[str], None]
) -> None:
    """Print how much work of the cells came from caches, and how many captions were cut."""
    ran = {str(outcome.get("run_id")) for outcome in outcomes if outcome["status"] == "done"}
    accounts = (result.facts.training for result in results if result.run_id in ran)
    work = Training.total(account for account in accounts if account)
    if work.cached and not work.trained:
        say(
            f"nothing was embedded or trained: all {work.cached} attackers' predictions were cached"
        )
    if work.embedded or work.embedded_before:
        say(
            f"embedded: {inflect(f'{work.embedded:,}', 'captions')}; "
            f"{inflect(f'{work.embedded_before:,}', 'were')} embedded before"
        )
    if work.cut:
        say(f"{inflect(f'{work.cut:,}', 'captions were')} cut to what the encoder reads")


def _outcome(job_folder: Path) -> dict[str, Any]:
    """The outcome of a job; a job without an outcome file counts as failed."""
    with suppress(OSError, ValueError):
        if (outcome := outcome_in(job_folder)) is not None:
            return {**outcome}
    error = f"the job ended without an outcome; its files are in {job_folder}"
    return {"status": "failed", "exit_code": 1, "error": error, "overrides": []}


def differing(jobs: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """For each job, its overrides (key to value) of those keys in which jobs differ.

    Example:
        >>> differing([["metric=lic", "seeds=1"], ["metric=dpa", "seeds=1"]])
        [{'metric': 'lic'}, {'metric': 'dpa'}]
    """
    all_overrides = []
    for overrides in jobs:
        parts = (override.partition("=") for override in overrides)
        all_overrides.append({key: value for key, _, value in parts})
    keys = dict.fromkeys(key for job_overrides in all_overrides for key in job_overrides)
    differing = [
        key for key in keys if len({job_overrides.get(key) for job_overrides in all_overrides}) > 1
    ]
    return [
        {key: job_overrides[key] for key in differing if key in job_overrides}
        for job_overrides in all_overrides
    ]


def _by_reason(failed: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each reason of failures, which begins with the labels of the failed jobs."""
    labels: dict[str, list[str]] = {}
    for outcome in failed:
        labels.setdefault(str(outcome["error"]), []).append(_label(outcome))
    return [": ".join(filter(None, (_join_labels(of), reason))) for reason, of in labels.items()]


def _skips(skipped: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each reason: metrics, their attributes, overrides in brackets, and the reason.

    The line leaves out overrides of label columns (``dataset.label_...``), since the attribute
    decides them.
    """
    cells: dict[str, dict[str, list[str]]] = {}  # reason, to attribute, to metrics
    for outcome in skipped:
        swept = {k: v for k, v in outcome["swept"].items() if not k.startswith("dataset.label_")}
        metric = swept.pop("metric", "")
        attribute = swept.pop("attribute", "")
        further = [f"{key}={value}" for key, value in swept.items()]
        whose = " ".join(filter(None, [attribute, *further]))
        cells.setdefault(str(outcome["error"]), {}).setdefault(whose, []).append(metric)
    lines = []
    for reason, metrics_by_whose in cells.items():
        whose_by_metrics: dict[str, list[str]] = {}
        for whose, metrics in metrics_by_whose.items():
            whose_by_metrics.setdefault(", ".join(filter(None, metrics)), []).append(whose)
        of = [
            " ".join(filter(None, [metrics, f"({', '.join(whose)})" if any(whose) else ""]))
            for metrics, whose in whose_by_metrics.items()
        ]
        lines.append(": ".join(filter(None, ["; ".join(of), reason])))
    return lines


def _join_labels(labels: Sequence[str]) -> str:
    """Labels as one text; labels that differ only in their last value are joined.

    Example:
        >>> _join_labels(["seeds=1 metric=dpa", "seeds=1 metric=lic", "seeds=2 metric=lic"])
        'seeds=1 metric=dpa,lic, seeds=2 metric=lic'
    """
    values: dict[str, list[str]] = {}
    for label in labels:
        before, sign, value = label.rpartition("=")
        values.setdefault(before + sign, []).append(value)
    return ", ".join(before + ",".join(alike) for before, alike in values.items())


def _label(outcome: Mapping[str, Any]) -> str:
    """The settings in which the job differs from other jobs of the sweep; may be empty."""
    return " ".join(f"{key}={value}" for key, value in outcome["swept"].items())


def _exit_code(failed: Sequence[Mapping[str, Any]], n_jobs: int, multirun: bool) -> int:
    reasons = {str(outcome["error"]) for outcome in failed}
    every_job_alike = len(failed) == n_jobs and len(reasons) == 1  # so no label tells more
    for line in reasons if every_job_alike else _by_reason(failed):
        warn(f"error: {line}")
    if not failed:
        return 0
    if not multirun:
        return int(failed[0]["exit_code"])
    others = "; the results of the others are saved" if len(failed) < n_jobs else ""
    warn(f"{len(failed)} of {inflect(n_jobs, 'jobs')} failed{others}")
    return SweepError.exit_code
