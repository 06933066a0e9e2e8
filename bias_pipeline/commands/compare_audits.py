"""The command ``compare`` for audits: compares files of captions, or folders of finished audits."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bias_pipeline.commands.audit import slug, source_of_file
from bias_pipeline.data.binary_tables import stem
from bias_pipeline.errors import DataError, UsageError, did_you_mean
from bias_pipeline.io.terminal import print_out
from bias_pipeline.metrics.catalogue import metric_names
from bias_pipeline.report import baseline
from bias_pipeline.report.answer_texts import fold
from bias_pipeline.report.baseline import Baseline
from bias_pipeline.report.compared_questions import ComparedQuestion, compared_screen
from bias_pipeline.report.name_collisions import check_distinct
from bias_pipeline.report.page import finished_runs
from bias_pipeline.report.tables import captioners, latest_results
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import RESULT
from bias_pipeline.run.audit import EQUAL_SPEECH, plan_audit

_CAPTIONER = re.compile(r"captioner=('(?:\\.|[^'\\])*'|\S*) ?")  # as quote_value writes it
Audited = tuple[list[Result], list[Result], Mapping[str, str]]  # A, others, skipped cell to reason


def chosen_metrics(text: str | None) -> list[str]:
    """The metrics that ``--metrics`` names; if empty, the metrics of an audit are compared."""
    names = [name.strip() for name in text.split(",")] if text else []
    for name in names:
        if name not in metric_names():
            raise UsageError(f"--metrics {name}: {did_you_mean(name, metric_names())}")
    return names


def audited_files(
    files: Sequence[str], options: Namespace, further: Sequence[str], earlier: Baseline | None
) -> Audited:
    """Run the cells of an audit for each file of captions. All files have the same cells."""
    from bias_pipeline.run.launch import run_cells

    chosen = chosen_metrics(options.metrics)
    out = options.out or Path("outputs") / f"compare-{slug(stem(Path(files[0])))}"
    fixed = {"quick": False, "limit": None, "label_noise": None, "only": None, "stream": False}
    every = [
        source_of_file(Namespace(**{**vars(options), **fixed, "file": Path(file)}), out, further)
        for file in files
    ]
    corpora, plans = plan_audit(every[0], options.minutes)
    attribute = next(iter(corpora))
    digests = [source.corpus(attribute).digest for source in every]
    check_distinct(dict(zip(files, digests, strict=True)))
    for source in every[1:]:
        plans = {  # for the file whose words annotators use least
            name: replace(plan, reach=min(plan.reach, source.reach(name, EQUAL_SPEECH)))
            if plan.matched
            else plan
            for name, plan in plans.items()
        }
    known = set(chosen) or (earlier and {result.rows[0].metric for result in earlier.results})
    if known:
        plans = {
            name: replace(
                plan, metrics=sorted(known), matched=[one for one in plan.matched if one in known]
            )
            for name, plan in plans.items()
        }
    finished = run_cells([cell for source in every for cell in source.cells(plans)])
    results = finished.with_draws()
    if not results:
        raise DataError("nothing could be scored: no metric applies to these data")
    name = results[0].rows[0].captioner
    first = [result for result in results if result.rows[0].captioner == name]
    return first, [result for result in results if result not in first], finished.skipped


def is_audit(name: str) -> bool:
    """Whether a word is the name of a folder that contains several runs."""
    folder = Path(name)
    return not (folder / RESULT).is_file() and any(folder.glob(f"*/{RESULT}"))


def stored_audits(folders: Sequence[str], metrics: str | None) -> Audited:
    """The results of two or more audits, paired cell by cell."""
    chosen = set(chosen_metrics(metrics))
    audits = [_read(Path(folder), chosen) for folder in folders]
    first = audits[0]
    others: list[Result] = []
    skipped: dict[str, str] = {}
    for folder, results in zip(folders[1:], audits[1:], strict=True):
        known = {(r.rows[0].metric, r.rows[0].attribute) for r in results}
        both = [r for r in first if (r.rows[0].metric, r.rows[0].attribute) in known]
        if not both:
            raise DataError(f"{folders[0]} and {folder} have no metric and attribute in common")
        pairs, passed_over = baseline.compare_to_baseline(both, Baseline(Path(folder), results, {}))
        others += pairs
        skipped |= passed_over
    return first, others, skipped


def _read(folder: Path, chosen: set[str]) -> list[Result]:
    results, draws = finished_runs(folder)
    names = captioners(results)
    if len(names) > 1:
        raise UsageError(
            f"{folder} has runs of {len(names)} captioners ({', '.join(names[:3])}); name the "
            "folder of an audit"
        )
    return [
        replace(result, draws=draws.get(result.run_id, {}))
        for result in latest_results(results)
        if not chosen or result.rows[0].metric in chosen
    ]


def print_questions(rows: Sequence[ComparedQuestion], skipped: Mapping[str, str]) -> None:
    """Print a block for each attribute and each other captioner, and why cells were skipped."""
    pairs = dict.fromkeys((row.decision.attribute, row.decision.other) for row in rows)
    for attribute, other in pairs:
        chosen = [
            row
            for row in rows
            if (row.decision.attribute, row.decision.other) == (attribute, other)
        ]
        print_out(*compared_screen(chosen), "")
    cells = dict.fromkeys(
        (_CAPTIONER.sub("", cell).strip(), reason) for cell, reason in skipped.items()
    )
    for cell, reason in cells:
        print_out(*fold(f"not tested: {cell}: {reason}"))
