"""The first screen of a report: whose captions, the verdict, one figure, what is undecided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.metrics.base import LABELLED
from bias_pipeline.report.conclusion_checks import (
    LIMITS,
    Limits,
    caption_statistics_of,
    doubt_about,
)
from bias_pipeline.report.examples import NOTHING, ScreenExamples
from bias_pipeline.report.headline import headline
from bias_pipeline.report.panels import Panel, panels_of_all, panels_of_one
from bias_pipeline.report.table import percent
from bias_pipeline.report.tables import (
    BLANK,
    captioners,
    has_blanks,
    images_of,
    latest,
    legend,
    started,
    training_of,
)
from bias_pipeline.report.verdict import JUDGED, WRONG_IF, Finding, Verdict, verdict
from bias_pipeline.report.verdict_sentences import (
    ANSWER_CLAUSES,
    brief,
    brief_of_all,
    clause_of,
    finding_name,
    join_sentences,
    one_direction,
)
from bias_pipeline.results.rows import Result, Row, mapping_in, number_or_nan


@dataclass(frozen=True)
class Summary:
    """The answers on one attribute in one data set."""

    title: str  # the attribute and the data set
    facts: Sequence[tuple[str, str]]  # what was scored: name and value
    verdict: Sequence[str]  # about two sentences
    sure: str  # how many numbers they use, and what brackets and p mean
    panels: Sequence[Panel]  # the figure
    undecided: Sequence[str]  # numbers that are not used, and why
    several: bool = False  # whether the figure's lines are captioners


def summaries(
    results: Sequence[Result], behind: ScreenExamples = NOTHING, limits: Limits = LIMITS
) -> list[Summary]:
    """One for each data set and attribute, in the order of the results."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        row = result.rows[0]
        groups.setdefault((row.attribute, row.dataset), []).append(result)
    chosen = {key: latest(group) for key, group in groups.items()}
    verdicts = _verdicts([result for group in chosen.values() for result in group], limits)
    return [_summary(*key, group, verdicts, behind) for key, group in chosen.items()]


def _verdicts(results: Sequence[Result], limits: Limits) -> dict[tuple[str, str], Verdict]:
    """Data set and captioner to the verdict on all attributes, since p is corrected for all."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        row = result.rows[0]
        groups.setdefault((row.dataset, row.captioner), []).append(result)
    return {key: verdict(group, limits) for key, group in groups.items()}


def _summary(
    attribute: str,
    dataset: str,
    results: Sequence[Result],
    every: Mapping[tuple[str, str], Verdict],
    behind: ScreenExamples,
) -> Summary:
    names = captioners(results)
    by_id = {result.run_id: result for result in results}
    verdicts = {name: every[dataset, name].about(attribute) for name in names}
    one = names[0] if len(names) == 1 else ""
    return Summary(
        title=f"{attribute}, data set {dataset}",
        facts=facts(results),
        verdict=[
            *(headline(verdicts[one], attribute) if one else []),
            *(brief(verdicts[one], attribute, one) if one else brief_of_all(verdicts, attribute)),
            *_cautions(results, several=not one),
        ],
        sure=_basis(list(verdicts.values()), results),
        panels=panels_of_one(verdicts[one], by_id, attribute, behind)
        if one
        else panels_of_all(verdicts, by_id, attribute, behind),
        undecided=_undecided(verdicts, attribute, results),
        several=not one,
    )


def _cautions(results: Sequence[Result], *, several: bool) -> list[str]:
    """The warnings about the captions, such as of many that decline, each once."""
    start = "warning: "
    warnings = (
        (f"{result.rows[0].captioner}: " * several, note.removeprefix(start))
        for result in results
        for note in result.notes
        if note.startswith(start)
    )
    return [f"{whose}{text}." for whose, text in dict.fromkeys(warnings)]


def facts(results: Sequence[Result]) -> list[tuple[str, str]]:
    """File, date, images, coverage and the like, as name and value."""
    rows = [row for result in results for row in result.rows]
    names = captioners(results)
    corpora = [mapping_in(result.manifest, "corpus") for result in results]
    files = {str(corpus.get("file", "")) for corpus in corpora} - {""}
    whose = names[0] if len(names) == 1 else f"{len(names)} captioners"
    labelled = [_n_labelled(result) for result in results if images_of(result) == LABELLED]
    blanks = {result.rows[0].captioner: _blanks(result, "model") for result in results}
    blank_human = max(_blanks(result, "human") for result in results)
    declined = {
        result.rows[0].captioner: int(number_or_nan(corpus.get("declined", 0)))
        for result, corpus in zip(results, corpora, strict=True)
    }
    speech = {
        result.rows[0].captioner: 1 - caption_statistics_of(result)["neutral"] for result in results
    }
    return [
        ("Captions", files.pop() if len(files) == 1 and len(names) == 1 else whose),
        ("Run", max(map(started, results))[:10] or "–"),
        ("Labelled images", f"{max(labelled, default=0):,}"),
        (
            "With a caption",
            _span(number_or_nan(corpus.get("captioned")) for corpus in corpora),
        ),
        (
            "Blank captions",
            f"{sum(blanks.values()):,}"
            + (f" (annotators {blank_human:,})" if blank_human else "")
            + f" {BLANK}" * any(map(has_blanks, results)),
        ),
        *([("Declined captions", f"{sum(declined.values()):,}")] if any(declined.values()) else []),
        ("Words a caption", _lengths(results)),
        ("That name a group", _span(speech.values())),
        (
            "Seeds",
            "–".join(map(str, sorted({min(counts), max(counts)})))
            if (counts := _seeds(rows))
            else "–",
        ),
    ]


def _n_labelled(result: Result) -> int:
    """How many images belong to a group; in results of earlier versions by coverage."""
    stored = number_or_nan(mapping_in(result.manifest, "corpus").get("n_labelled"))
    if not math.isnan(stored):
        return int(stored)
    counted = (round(row.n_images / row.coverage) for row in result.rows if row.coverage > 0)
    return max(counted, default=0)


def _seeds(rows: Iterable[Row]) -> list[int]:
    return [len(row.seeds) for row in rows]


def _blanks(result: Result, side: str) -> int:
    return int(number_or_nan(mapping_in(result.manifest, "corpus", "blanks").get(side, 0)))


def _lengths(results: Sequence[Result]) -> str:
    """Mean words of captioners' captions, the fewest and the most, and of human captions."""
    words = {
        side: [n for r in results if (n := caption_statistics_of(r, side)["words"]) == n]
        for side in SIDES
    }
    ends = {
        side: "–".join(dict.fromkeys(f"{end:.1f}" for end in (min(numbers), max(numbers))))
        for side, numbers in words.items()
        if numbers
    }
    people = f" (annotators {ends['human']})" if "human" in ends else ""
    return f"{ends.get('model', '–')}{people}"


def _span(shares: Iterable[float]) -> str:
    """The lowest and highest of some shares, in per cent."""
    known = [share for share in shares if not math.isnan(share)]
    if not known:
        return "–"
    ends = dict.fromkeys(percent(end, 0) for end in (min(known), max(known)))
    return f"{'–'.join(ends)} %"


def _basis(verdicts: Sequence[Verdict], results: Sequence[Result]) -> str:
    """How many numbers the verdict uses, and what brackets and p mean."""
    decided = sum(not finding.doubt for verdict in verdicts for finding in verdict.findings)
    if not decided:
        return ""
    amplifies = all(map(training_of, results))
    return (
        f"Based on {decided} number{'s' * (decided > 1)} that caption length does not affect here. "
        "Brackets are 95 % intervals over images and seeds; p values are Holm-corrected within "
        "each question."
        + (
            ""
            if amplifies
            else " † A difference from annotators: we do not know that the captioner was trained "
            "on captions of this data set, so this is not evidence of amplification."
        )
    )


def _undecided(
    verdicts: Mapping[str, Verdict], attribute: str, results: Sequence[Result]
) -> list[str]:
    """Numbers that are not used, by reason; questions without a run; when answers are wrong."""
    findings = [finding for verdict in verdicts.values() for finding in verdict.findings]
    open_ = [finding for finding in findings if finding.doubt and finding.question in JUDGED]
    sentences = _by_reason(open_) if len(verdicts) == 1 else _by_stem(open_)
    questions = {finding.question for finding in findings}
    unasked = [clause_of(q, 0, attribute) for q in ANSWER_CLAUSES if q not in questions]
    if unasked:
        sentences.append(f"No run tests whether it {join_sentences(unasked, 'or')}.")
    clauses = (one_direction(Verdict(findings), question) for question in JUDGED)
    sentences += [f"{clause}." for clause in clauses if clause]
    more = dict.fromkeys(finding.question for finding in findings if finding.more)
    sentences += [
        f"“{clause_of(question, 0, attribute)}” is wrong if {WRONG_IF[question]}."
        for question in more
    ]
    return [*sentences, *(f"{text}." for text in legend(results))]


def _by_reason(findings: Iterable[Finding]) -> list[str]:
    reasons: dict[str, dict[str, None]] = {}
    for finding in findings:
        reasons.setdefault(finding.doubt, {})[finding_name(finding)] = None
    return [
        f"{join_sentences(names)}: {doubt_about(names, doubt)}." for doubt, names in reasons.items()
    ]


def _by_stem(findings: Iterable[Finding]) -> list[str]:
    """The same for several captioners; their reasons differ only in numbers."""
    stems: dict[tuple[str, str], dict[str, str]] = {}
    for finding in findings:
        stem, _, detail = finding.doubt.partition(": ")
        stems.setdefault((finding_name(finding), stem), {})[finding.row.captioner] = detail
    alike: dict[tuple[str, tuple[str, ...]], dict[str, str]] = {}
    metrics: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (metric, stem), details in stems.items():
        key = (stem, tuple(details))
        alike.setdefault(key, details)
        metrics.setdefault(key, []).append(metric)
    return [_sentence(metrics[key], key[0], details) for key, details in alike.items()]


def _sentence(metrics: Sequence[str], stem: str, details: Mapping[str, str]) -> str:
    name, detail = next(iter(details.items()))
    whom = f"for {len(details)} captioners " if len(details) > 1 else f"for {name} "
    such = f" ({'such as ' * (len(details) > 1)}{name}: {detail})" if detail else ""
    return f"{join_sentences(metrics)}: {whom}{doubt_about(metrics, stem)}{such}."
