"""The first screen of a report: facts on the captions, the verdict, and a figure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bias_pipeline.corpus.corpus import SIDES
from bias_pipeline.errors import join_words
from bias_pipeline.metrics.base import LABELLED
from bias_pipeline.report.answer_table import how_made, numbers_tables
from bias_pipeline.report.answer_texts import (
    amount,
    answer_text,
    deciding_number,
    headline,
    name_of_number,
    notes,
    rate,
)
from bias_pipeline.report.answers import Answer, answers_of, stored_question
from bias_pipeline.report.cards import TONES, AnswerCard, cards, lacking
from bias_pipeline.report.conclusion_checks import (
    LIMITS,
    Limits,
    caption_statistics_of,
    doubt_about,
)
from bias_pipeline.report.corrected import correction_sentences
from bias_pipeline.report.examples import NOTHING, ScreenExamples
from bias_pipeline.report.panels import Panel, panels_of_all, panels_of_one
from bias_pipeline.report.table import Table, p_cell, percent
from bias_pipeline.report.tables import (
    BLANK,
    captioners,
    has_blanks,
    latest_results,
    legend,
    training_of,
)
from bias_pipeline.report.verdict import JUDGED, Finding, Verdict, verdict
from bias_pipeline.report.verdict_sentences import (
    ANSWER_CLAUSES,
    clause_of,
    finding_name,
)
from bias_pipeline.results.rows import Result


@dataclass(frozen=True)
class Summary:
    """The answers on one attribute in one data set."""

    title: str  # the attribute and the data set
    facts: Sequence[tuple[str, str]]  # name and value of facts on what was scored
    verdict: Sequence[str]  # about two sentences
    sure: str  # what brackets and p mean
    panels: Sequence[Panel]  # the figure
    undecided: Sequence[str]  # numbers that are not used, and why
    several: bool = False  # whether the figure's lines are captioners
    # By captioner, the answers, and a table of all numbers for each question
    answers: Mapping[str, Sequence[Answer]] = field(default_factory=dict)
    numbers: Mapping[str, Sequence[Table]] = field(default_factory=dict)
    cards: Sequence[AnswerCard] = ()  # if there is one captioner
    lacking: Sequence[str] = ()  # what could not be tested, and what a test needs
    made: str = ""  # a text on seeds, splits, attackers and correction
    # Captioners that are not known to be trained on captions of the data set
    unsure: Collection[str] = ()

    def answer_in_short(self, question: str) -> tuple[str, str]:
        """The tone and the text of the answer; several captioners give the count of each answer."""
        on_question = [
            answer
            for answers in self.answers.values()
            for answer in answers
            if stored_question(answer.question) == question
        ]
        if len(on_question) == 1:
            return TONES[on_question[0].answer], answer_text(on_question[0])
        words = Counter(re.split("[:,]", answer_text(answer))[0] for answer in on_question)
        tone = "worse" if words["Yes"] else "level"
        return tone, ", ".join(f"{word} {count}" for word, count in words.most_common())


def summaries(
    results: Sequence[Result], behind: ScreenExamples = NOTHING, limits: Limits = LIMITS
) -> list[Summary]:
    """A summary for each data set and attribute, in the order of the results."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        row = result.rows[0]
        groups.setdefault((row.attribute, row.dataset), []).append(result)
    chosen = {key: latest_results(group) for key, group in groups.items()}
    verdicts = _verdicts([result for group in chosen.values() for result in group], limits)
    return [_summary(*key, group, verdicts, behind) for key, group in chosen.items()]


def _verdicts(results: Sequence[Result], limits: Limits) -> dict[tuple[str, str], Verdict]:
    """For each data set and captioner, a verdict on all attributes, over which p is corrected."""
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
    answers = {name: answers_of(verdicts[name], attribute) for name in names}
    return Summary(
        title=f"{attribute}, data set {dataset}",
        facts=facts(results),
        verdict=[
            *(_conclusion(verdicts, answers, attribute) or [_untested_sentence(results)]),
            *_cautions(results, several=not one),
        ],
        sure=_basis(results),
        panels=panels_of_one(verdicts[one], by_id, attribute, behind)
        if one
        else panels_of_all(verdicts, by_id, attribute, behind),
        undecided=_undecided_sentences(verdicts, answers, results),
        several=not one,
        answers=answers,
        numbers={name: [*numbers_tables(verdicts[name], answers[name])] for name in names},
        cards=cards(answers[one], by_id, behind) if one else (),
        lacking=lacking(verdicts[one], answers[one]) if one else (),
        made=how_made(results),
        unsure={result.rows[0].captioner for result in results if not training_of(result)},
    )


def _conclusion(
    verdicts: Mapping[str, Verdict], answers: Mapping[str, Sequence[Answer]], attribute: str
) -> list[str]:
    if len(verdicts) > 1:
        sentences = []
        for question in (question for question in ANSWER_CLAUSES if question in JUDGED):
            on_question = {
                captioner: next(
                    a for a in answers[captioner] if stored_question(a.question) == question
                )
                for captioner, verdict in verdicts.items()
                if verdict.answer(question, attribute)
            }
            if on_question:
                sentences.append(_sentence(question, on_question, list(verdicts)))
        return sentences
    (name,) = verdicts
    return headline(verdicts[name], answers[name])


def _untested_sentence(results: Sequence[Result]) -> str:
    """A sentence on runs that answer no question about captions."""
    questions = {result.facts.metric.question for result in results}
    if "retrieval" in questions:
        return "These runs test retrieval, not captions."
    return "No run here tests whether captions are biased."


def _cautions(results: Sequence[Result], *, several: bool) -> list[str]:
    """Warnings about the captions, for instance that many decline; each warning occurs once."""
    start = "warning: "
    warnings = (
        (f"{result.rows[0].captioner}: " * several, note.removeprefix(start))
        for result in results
        for note in result.notes
        if note.startswith(start)
    )
    texts = [f"{whose}{text}." for whose, text in dict.fromkeys(warnings)]
    return [*texts, *correction_sentences(results)]


def facts(results: Sequence[Result]) -> list[tuple[str, str]]:
    """The names and values of facts, such as the file, the date, the images and the coverage."""
    rows = [row for result in results for row in result.rows]
    names = captioners(results)
    corpora = [result.facts.corpus for result in results]
    files = {corpus.file for corpus in corpora} - {""}
    whose = names[0] if len(names) == 1 else f"{len(names)} captioners"
    labelled = [_n_labelled(result) for result in results if result.facts.metric.images == LABELLED]
    blanks = {result.rows[0].captioner: _blanks(result, "model") for result in results}
    blank_human = max(_blanks(result, "human") for result in results)
    declined = {
        result.rows[0].captioner: corpus.declined
        for result, corpus in zip(results, corpora, strict=True)
    }
    speech = {
        result.rows[0].captioner: 1 - caption_statistics_of(result)["neutral"] for result in results
    }
    return [
        ("Captions", files.pop() if len(files) == 1 and len(names) == 1 else whose),
        ("Run", max(result.facts.started for result in results)[:10] or "–"),
        ("Labelled images", f"{max(labelled, default=0):,}"),
        ("With a caption", _span(corpus.captioned for corpus in corpora)),
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
            if (counts := [len(row.seeds) for row in rows])
            else "–",
        ),
    ]


def _n_labelled(result: Result) -> int:
    """The number of images with a group; computed from coverage in results of old versions."""
    if (stored := result.facts.corpus.n_labelled) is not None:
        return stored
    counted = (round(row.n_images / row.coverage) for row in result.rows if row.coverage > 0)
    return max(counted, default=0)


def _blanks(result: Result, side: str) -> int:
    return result.facts.corpus.blanks.get(side, 0)


def _lengths(results: Sequence[Result]) -> str:
    """A text on the mean number of words in captions of captioners and of annotators."""
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
    """A text with the lowest and the highest of some shares, in per cent."""
    known = [share for share in shares if not math.isnan(share)]
    if not known:
        return "–"
    ends = dict.fromkeys(percent(end, 0) for end in (min(known), max(known)))
    return f"{'–'.join(ends)} %"


def _basis(results: Sequence[Result]) -> str:
    """A text that says what brackets and p mean, and whether a difference is amplification."""
    text = (
        "Brackets are 95 % intervals over images and seeds; p is Holm-corrected within each "
        "question."
    )
    if all(map(training_of, results)):
        return text
    return (
        f"{text} † A difference from annotators: we do not know that the captioner was trained on "
        "captions of this data set, so this is not evidence of amplification."
    )


def _undecided_sentences(
    verdicts: Mapping[str, Verdict],
    answers: Mapping[str, Sequence[Answer]],
    results: Sequence[Result],
) -> list[str]:
    """The sentences below the answers, with the meanings of the signs."""
    if len(verdicts) == 1:
        (name,) = verdicts
        lines = notes(verdicts[name], answers[name])
    else:
        findings = (finding for verdict in verdicts.values() for finding in verdict.findings)
        lines = not_used_by_all(f for f in findings if f.doubt and f.question in JUDGED)
    return [*lines, *(f"{text}." for text in legend(results))]


_MOST_NAMED = 4  # most captioners that a sentence names; of more it gives the number


def _sentence(question: str, answers: Mapping[str, Answer], everyone: Sequence[str]) -> str:
    attribute = next(iter(answers.values())).attribute
    given = {name: _kind(answer) for name, answer in answers.items()}
    more, no, chance, unknown = (
        [name for name, kind in given.items() if kind == one]
        for one in ("more", "no", "chance", "unknown")
    )
    rest = []
    if no and more:
        rest.append(f"{_captioners_text(no, everyone)} {'do' if len(no) > 1 else 'does'} not")
    if chance and more:
        rest.append(f"for {_captioners_text(chance, everyone)} not beyond chance")
    if len(unknown) == len(answers):
        whom = "they" if unknown == everyone else _captioners_text(unknown, everyone)
        first = f"It is unknown whether {whom} {clause_of(question, len(unknown) > 1, attribute)}"
    else:
        if unknown:
            rest.append(f"for {_captioners_text(unknown, everyone)} it is unknown")
        leads = [answers[name] for name in more]
        clause = clause_of(question, len(more) > 1, attribute, leads[0].metric if leads else "")
        first = f"{_captioners_text(more, everyone)} {clause}{_range_text(more, leads)}"
    if unasked := [name for name in everyone if name not in answers]:
        rest.append(f"no run tests it for {_captioners_text(unasked, everyone)}")
    return f"{'; '.join([first, *rest])}."


def _kind(answer: Answer) -> str:
    if answer.answer in ("yes", "no"):
        return {"yes": "more", "no": "no"}[answer.answer]
    return "chance" if answer.is_bounded or not math.isnan(answer.at_most) else "unknown"


def _range_text(names: Sequence[str], leads: Sequence[Answer]) -> str:
    """A text on the lowest and the highest captioner, if one number decides for all."""
    if len(leads) == 1:
        return f" ({deciding_number(leads[0])})"
    if not leads or len({(lead.metric, lead.part) for lead in leads}) > 1:
        return ""
    ends = [pick(range(len(leads)), key=lambda i: leads[i].value) for pick in (min, max)]
    span = " to ".join(f"{names[i]} {amount(leads[i], leads[i].value)}" for i in ends)
    # Annotators' numbers may differ too: they depend on each captioner's words and images.
    known = sorted(lead.annotators for lead in leads if not math.isnan(lead.annotators))
    people = dict.fromkeys(rate(leads[0], value) for value in (known[:1] + known[-1:]))
    beside = f", annotators {' to '.join(people)}" if people else ""
    p_value = p_cell(max(lead.p_value for lead in leads))
    p_text = f"p {p_value}" if p_value.startswith("<") else f"p = {p_value}"
    return f" ({name_of_number(leads[0])}: {span}{beside}; largest {p_text})"


def _captioners_text(names: Sequence[str], captioners: Sequence[str]) -> str:
    """Some captioners as text, by name or as their number out of all captioners."""
    if not names:
        return "None, beyond chance,"
    if len(names) == len(captioners) > 1:
        return f"All {len(captioners)}"
    if len(names) <= _MOST_NAMED:
        return join_words(names)
    return f"{len(names)} of {len(captioners)}"


def not_used_by_all(findings: Iterable[Finding]) -> list[str]:
    """A sentence for each reason not to use numbers; equal reasons of captioners are joined."""
    stems: dict[tuple[str, str], dict[str, str]] = {}
    for finding in findings:
        stem, _, detail = finding.doubt.partition(": ")
        stems.setdefault((finding_name(finding), stem), {})[finding.row.captioner] = detail
    by_reason: dict[tuple[str, tuple[str, ...]], dict[str, str]] = {}
    metrics: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (metric, stem), details in stems.items():
        key = (stem, tuple(details))
        by_reason.setdefault(key, details)
        metrics.setdefault(key, []).append(metric)
    return [_not_used(metrics[key], key[0], details) for key, details in by_reason.items()]


def _not_used(metrics: Sequence[str], stem: str, details: Mapping[str, str]) -> str:
    name, detail = next(iter(details.items()))
    whom = f"for {len(details)} captioners " if len(details) > 1 else f"for {name} "
    such = f" ({'such as ' * (len(details) > 1)}{name}: {detail})" if detail else ""
    return f"{join_words(metrics)}: {whom}{doubt_about(metrics, stem)}{such}."
