"""What a report answers first: whose captions, the verdict, one figure, what stays open."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bias_pipeline.analysis.doubts import speech_of
from bias_pipeline.analysis.verdict import JUDGED, WRONG_IF, Finding, Verdict, verdict
from bias_pipeline.report.brief import brief, brief_of_all, joined, named
from bias_pipeline.report.cells import captioners, corpus_of, latest, started, trained
from bias_pipeline.report.examples import NOTHING, Behind
from bias_pipeline.report.panels import Panel, panels_of_all, panels_of_one
from bias_pipeline.report.plain import DEEDS
from bias_pipeline.report.tables import BLANK, has_blanks, legend, percent
from bias_pipeline.results.store import Result, Row


@dataclass(frozen=True)
class Summary:
    """The answers on one attribute in one data set.

    Attributes:
        title: the attribute and the data set.
        facts: what was scored: name and value.
        verdict: about two sentences.
        sure: what they rest on.
        panels: the figure.
        undecided: what nothing is concluded from, and why.
        several: whether the figure's lines are captioners.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    verdict: Sequence[str]
    sure: str
    panels: Sequence[Panel]
    undecided: Sequence[str]
    several: bool = False


def summaries(results: Sequence[Result], behind: Behind = NOTHING) -> list[Summary]:
    """One for each data set and attribute, in the order of the results.

    Args:
        results: of any captioners, each name standing for one corpus.
        behind: examples for the numbers.
    """
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        row = result.rows[0]
        groups.setdefault((row.attribute, row.dataset), []).append(result)
    return [_summary(*key, own, behind) for key, own in groups.items()]


def _summary(attribute: str, dataset: str, runs: Sequence[Result], behind: Behind) -> Summary:
    results = latest(runs)
    names = captioners(results)
    by_id = {result.run_id: result for result in results}
    found = {
        name: verdict([own for own in results if own.rows[0].captioner == name]) for name in names
    }
    one = names[0] if len(names) == 1 else ""
    return Summary(
        title=f"{attribute}, data set {dataset}",
        facts=facts(results),
        verdict=brief(found[one], attribute, one) if one else brief_of_all(found, attribute),
        sure=_sure(list(found.values()), results),
        panels=panels_of_one(found[one], by_id, attribute, behind)
        if one
        else panels_of_all(found, by_id, attribute, behind),
        undecided=_undecided(found, attribute, results),
        several=not one,
    )


def facts(results: Sequence[Result]) -> list[tuple[str, str]]:
    """File, date, images, coverage and the like, as name and value."""
    rows = [row for result in results for row in result.rows]
    names = captioners(results)
    files = {str(corpus_of(own).get("file", "")) for own in results} - {""}
    whose = names[0] if len(names) == 1 else f"{len(names)} captioners"
    labelled = [round(row.n_images / row.coverage) for row in rows if row.coverage > 0]
    blanks = {own.rows[0].captioner: _blanks(own) for own in results}
    speech = {own.rows[0].captioner: 1 - speech_of(own)["neutral"] for own in results}
    return [
        ("Captions", files.pop() if len(files) == 1 and len(names) == 1 else whose),
        ("Run", max(map(started, results))[:10] or "–"),
        ("Labelled images", f"{max(labelled, default=0):,}"),
        ("With a caption", _span(_number(corpus_of(own).get("captioned")) for own in results)),
        (
            "Blank captions",
            f"{sum(blanks.values()):,}" + f" {BLANK}" * any(map(has_blanks, results)),
        ),
        ("That name a group", _span(speech.values())),
        (
            "Seeds",
            "–".join(map(str, sorted({min(own), max(own)}))) if (own := _seeds(rows)) else "–",
        ),
    ]


def _seeds(rows: Iterable[Row]) -> list[int]:
    return [len(row.seeds) for row in rows]


def _blanks(result: Result) -> int:
    blanks = corpus_of(result).get("blanks", {})
    return int(_number(blanks.get("model"))) if isinstance(blanks, Mapping) and blanks else 0


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _span(shares: Iterable[float]) -> str:
    """The least and the most of some shares, in per cent."""
    known = [share for share in shares if not math.isnan(share)]
    if not known:
        return "–"
    ends = dict.fromkeys(percent(end, 0) for end in (min(known), max(known)))
    return f"{'–'.join(ends)} %"


def _sure(found: Sequence[Verdict], results: Sequence[Result]) -> str:
    """What conclusions rest on."""
    decided = sum(not own.doubt for verdict in found for own in verdict.findings)
    if not decided:
        return ""
    amplifies = all(map(trained, results))
    return (
        f"From {decided} reading{'s' * (decided > 1)} that how much is said does not move here. "
        "Brackets are 95 % intervals over images and seeds; p is corrected for the "
        "readings of a question (Holm)."
        + (
            ""
            if amplifies
            else " † A bias difference: it is not known that the captioner learnt "
            "from captions of this data set, so nothing need have been amplified."
        )
    )


def _undecided(
    found: Mapping[str, Verdict], attribute: str, results: Sequence[Result]
) -> list[str]:
    """What nothing is concluded from, by reason; then what no run asks; then what may be wrong."""
    findings = [own for verdict in found.values() for own in verdict.findings]
    open_ = [own for own in findings if own.doubt and own.question in JUDGED]
    told = _by_reason(open_) if len(found) == 1 else _by_stem(open_)
    asked = {own.question for own in findings}
    deeds = [DEEDS[own][0].format(attribute=attribute) for own in DEEDS if own not in asked]
    if deeds:
        told.append(f"No run asks whether it {joined(deeds, 'or')}.")
    more = dict.fromkeys(own.question for own in findings if own.more)
    told += [
        f"“{DEEDS[own][0].format(attribute=attribute)}” is wrong if {WRONG_IF[own]}."
        for own in more
    ]
    return [*told, *(f"{text}." for text in legend(results))]


def _by_reason(findings: Iterable[Finding]) -> list[str]:
    reasons: dict[str, dict[str, None]] = {}
    for own in findings:
        reasons.setdefault(own.doubt, {})[named(own)] = None
    return [f"{joined(names)}: {reason}." for reason, names in reasons.items()]


def _by_stem(findings: Iterable[Finding]) -> list[str]:
    """The same of several captioners, whose reasons differ in numbers alone."""
    stems: dict[tuple[str, str], dict[str, str]] = {}
    for own in findings:
        stem, _, detail = own.doubt.partition(": ")
        stems.setdefault((named(own), stem), {})[own.row.captioner] = detail
    alike: dict[tuple[str, tuple[str, ...]], dict[str, str]] = {}
    metrics: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (metric, stem), details in stems.items():
        key = (stem, tuple(details))
        alike.setdefault(key, details)
        metrics.setdefault(key, []).append(metric)
    return [_told(metrics[key], key[0], details) for key, details in alike.items()]


def _told(metrics: Sequence[str], stem: str, details: Mapping[str, str]) -> str:
    name, detail = next(iter(details.items()))
    whom = f"of {len(details)} captioners, " if len(details) > 1 else f"of {name}, "
    such = f" ({'such as ' * (len(details) > 1)}{name}: {detail})" if detail else ""
    return f"{joined(metrics)}: {whom}{stem}{such}."
