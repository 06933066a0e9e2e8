"""A verdict in sentences: in about two, or an answer to each question and the numbers not used.

In the questions ``{attribute}`` is replaced by gender, race or another attribute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from bias_pipeline.metrics.base import HEADLINES, QUESTIONS
from bias_pipeline.metrics.value_names import A_TO_T, MODEL_PAIRED, T_TO_A
from bias_pipeline.report.conclusion_checks import doubt_about
from bias_pipeline.report.table import NumberCell, number, p_cell, percent
from bias_pipeline.report.tables import headline_name
from bias_pipeline.report.verdict import JUDGED, WRONG_IF, Finding, Verdict
from bias_pipeline.results.rows import Row

# The panels of the first screen's figure; "tasks" has two, by how it is measured.
PANELS: Mapping[str, str] = {
    "misgendering": "Does it name the wrong {attribute}?",
    "assuming": "Does it assume {attribute} that nobody can see?",
    "leakage": "Does it leak {attribute}?",
    "directions": "Does it link objects and activities to {attribute}?",
    "counting": "What do counts of its words show?",
    "describing": "Does it describe the groups differently?",
    "inventing": "Does it invent objects for one group?",
    "declining": "Does it decline to describe one group more often?",
    "quality": "How well does it describe?",
    "retrieval": "Do queries that name no {attribute} find all groups alike?",
}
# What a captioner does if the answer is yes; the second form stands after "does not".
ANSWER_CLAUSES: Mapping[str, tuple[str, str]] = {
    "misgendering": (
        "names the wrong {attribute} more often than annotators do",
        "name the wrong {attribute} more often than annotators do",
    ),
    "leakage": (
        "leaks {attribute} more than annotators do",
        "leak {attribute} more than annotators do",
    ),
    "assuming": (
        "assumes {attribute} where nobody can see it more often than annotators do",
        "assume {attribute} where nobody can see it more often than annotators do",
    ),
    "tasks": (
        "links objects and activities to {attribute} more than annotators do",
        "link objects and activities to {attribute} more than annotators do",
    ),
    "describing": (
        "describes the groups of {attribute} differently than annotators do",
        "describe the groups of {attribute} differently than annotators do",
    ),
    "inventing": (
        "invents objects for one group of {attribute}",
        "invent objects for one group of {attribute}",
    ),
}
# The first of these is shown if several numbers decide equally well.
LEADS = (
    "gender_error",
    "assumed_group",
    "lic",
    "dbac",
    "ba_directional",
    "dpa",
    "cooccurrence",
    "descriptions",
    "objects",
    "declines",
    "quality",
)


def panel_of(question: str, headline: str) -> str:
    """The panel of :data:`PANELS` that shows a finding.

    Example:
        >>> panel_of("tasks", "t_to_a"), panel_of("tasks", "score"), panel_of("quality", "score")
        ('directions', 'counting', 'quality')
    """
    if question == "tasks":
        return "counting" if headline == "score" else "directions"
    return "counting" if question == "mentions" else question


def rank(metric: str) -> int:
    """The rank of a metric among leading metrics."""
    return LEADS.index(metric) if metric in LEADS else len(LEADS)


_MOST_TOLD = 3  # sentences on what a metric names
MOST_NAMED = 4  # captioners that a sentence names; for more it gives their number


def brief(verdict: Verdict, attribute: str, captioner: str) -> list[str]:
    """An answer to each question on one captioner, as sentences: what it does, then the others."""
    answers = {question: verdict.answer(question, attribute) for question in ANSWER_CLAUSES}
    more, no, chance, unknown = (
        [question for question, given in answers.items() if given == answer]
        for answer in ("more", "no", "none", "unknown")
    )
    sentences = []
    if more:
        sentences.append(f"{captioner} {_with_evidence(more, 0, attribute, verdict)}.")
    if no:
        sentences.append(f"It does not {_with_evidence(no, 1, attribute, verdict)}.")
    if chance:
        sentences.append(
            f"It does not, beyond chance, {_with_evidence(chance, 1, attribute, verdict)}."
        )
    alone = [finding for question in unknown for finding in verdict.alone(question, attribute)]
    if alone:
        sentences.append(_by_itself(alone[0], attribute))
    blank = [question for question in unknown if not verdict.alone(question, attribute)]
    sentences += _unknown(blank, attribute, verdict)
    return sentences or [_untested([verdict], f"{captioner} is")]


def _unknown(questions: Sequence[str], attribute: str, verdict: Verdict) -> Iterable[str]:
    """A sentence on questions without an answer for each reason."""
    by_reason: dict[str, list[str]] = {}
    for question in questions:
        clause = clause_of(question, 0, attribute)
        by_reason.setdefault(verdict.withheld(question, attribute), []).append(clause)
    for withheld, clauses in by_reason.items():
        verb, colon, reason = withheld.partition(": ")
        known = "cannot be tested" if verb == "cannot be tested" else "is unknown"
        yield f"It {known} whether it {join_sentences(clauses, 'or')}{colon}{reason}."


def _untested(verdicts: Iterable[Verdict], whether: str) -> str:
    """The sentence on runs that answer no question about captions."""
    if any(finding.question == "retrieval" for verdict in verdicts for finding in verdict.findings):
        return "These runs test retrieval, not captions."
    return f"No run here tests whether {whether} biased."


def _by_itself(finding: Finding, attribute: str) -> str:
    """A sentence on a number without an annotators' number to compare it with."""
    row = finding.row
    value, low, high = (value_text(finding, x) for x in (row.value, row.ci_low, row.ci_high))
    clause = clause_of(finding.question, 0, attribute)
    return (
        f"{reading_name(finding)} is {value} [{low}, {high}]; without human captions it is "
        f"unknown whether it {clause}."
    )


def brief_of_all(verdicts: Mapping[str, Verdict], attribute: str) -> list[str]:
    """The verdict on several captioners, one sentence for each question."""
    everyone = list(verdicts)
    sentences = []
    for question in ANSWER_CLAUSES:
        answers = {name: verdict.answer(question, attribute) for name, verdict in verdicts.items()}
        captioners = [name for name, answer in answers.items() if answer]
        if not captioners:
            continue
        more, no, none, unknown = (
            [name for name in captioners if answers[name] == answer]
            for answer in ("more", "no", "none", "unknown")
        )
        rest = []
        if no and more:
            does = "do" if len(no) > 1 else "does"
            rest.append(f"{_named_captioners(no, everyone)} {does} not")
        if none and more:
            rest.append(f"for {_named_captioners(none, everyone)} not beyond chance")
        if len(unknown) == len(captioners):
            whom = "they" if unknown == everyone else _named_captioners(unknown, everyone)
            several = int(len(unknown) > 1)
            first = f"It is unknown whether {whom} {clause_of(question, several, attribute)}"
        else:
            if unknown:
                rest.append(f"for {_named_captioners(unknown, everyone)} it is unknown")
            clause = clause_of(question, int(len(more) > 1), attribute)
            leads = [lead(verdicts[name].decided(question, attribute)) for name in more]
            first = f"{_named_captioners(more, everyone)} {clause}{_between(leads)}"
        if unasked := [name for name in everyone if name not in captioners]:
            rest.append(f"no run tests it for {_named_captioners(unasked, everyone)}")
        sentences.append(f"{'; '.join([first, *rest])}.")
    return sentences or [_untested(verdicts.values(), "they are")]


def _between(leads: Sequence[Finding]) -> str:
    """The captioners with the lowest and highest value, if one number decides for all."""
    if len(leads) < 2 or len({finding_name(finding) for finding in leads}) > 1:
        return f" ({evidence_of(leads[0])})" if len(leads) == 1 else ""
    ends = [pick(leads, key=lambda finding: finding.row.value) for pick in (min, max)]
    span = " to ".join(
        f"{finding.row.captioner} {value_text(finding, finding.row.value)}" for finding in ends
    )
    people = sorted(finding.people for finding in leads if not math.isnan(finding.people))
    # The annotators' number may differ too: each captioner has its own words and images.
    people_ends = dict.fromkeys(value_text(ends[0], value) for value in (people[:1] + people[-1:]))
    people_text = f", annotators {' to '.join(people_ends)}" if people_ends else ""
    worst = max(finding.p_value for finding in leads)
    return f" ({reading_name(leads[0])}: {span}{people_text}; largest {_p_text(worst)})"


# Numbers that are rates; other fractions are differences, in points.
_RATES = {("gender_error", "named"), ("assumed_group", "model")}


def _unit(row: Row) -> str:
    """The unit in which a number is printed."""
    if row.unit != "fraction":
        return row.unit
    return "%" if _reading(row) in _RATES else "points"


def _reading(row: Row) -> tuple[str, str]:
    """The metric and the number, without the images that it is about."""
    return row.metric, row.part.removesuffix(f":{MODEL_PAIRED}").removesuffix(":paired")


def value_text(finding: Finding, value: float) -> str:
    """A value of a finding's number, with its unit if that is short."""
    fraction = finding.row.unit == "fraction"
    return f"{percent(value)} {_unit(finding.row)}" if fraction else number(value)


def _named_captioners(names: Sequence[str], captioners: Sequence[str]) -> str:
    """Some captioners by name, or their number out of all."""
    if not names:
        return "None, beyond chance,"
    if len(names) == len(captioners) > 1:
        return f"All {len(captioners)}"
    if len(names) <= MOST_NAMED:
        return join_sentences(names)
    return f"{len(names)} of {len(captioners)}"


def join_sentences(texts: Iterable[str], last: str = "and") -> str:
    """Texts as an enumeration.

    Example:
        >>> join_sentences(["a", "b", "c"])
        'a, b and c'
    """
    *most, final = texts
    return f"{', '.join(most)} {last} {final}" if most else final


def clause_of(question: str, form: int, attribute: str) -> str:
    """What a captioner does (form 0), or does not or several do (1), where the answer is yes."""
    return ANSWER_CLAUSES[question][form].format(attribute=attribute)


def _with_evidence(questions: Sequence[str], form: int, attribute: str, verdict: Verdict) -> str:
    """What a captioner does, each with its evidence; joined by "or" where it does not do it."""
    leads = (lead(verdict.decided(question, attribute)) for question in questions)
    clauses = [
        f"{clause_of(question, form, attribute)} ({evidence_of(finding)})"
        for question, finding in zip(questions, leads, strict=True)
    ]
    return join_sentences(clauses, "or" if form else "and")


def lead(findings: Sequence[Finding]) -> Finding:
    """The finding to show of several: one of more bias first, then the best known metric."""
    return min(findings, key=lambda finding: (not finding.more, rank(finding.row.metric)))


def named_parts(finding: Finding) -> list[str]:
    """What a metric names that answers its question itself, each with the groups' rates."""
    if finding.answered is None or not finding.more:
        return []
    return [text.partition(": ")[0] for text in finding.answered.on_named]


def evidence_of(finding: Finding) -> str:
    """The number behind an answer, the annotators' number, and p or what is still possible."""
    row = finding.row
    if parts := named_parts(finding):
        return "; ".join(parts)
    fraction = row.unit == "fraction"
    value, low, high, people = (
        percent(round(x, 3) + 0.0) if fraction else number(round(x, 2) + 0.0)  # no minus at zero
        for x in (row.value, row.ci_low, row.ci_high, finding.people)
    )
    ends = f"[{low}, {high}]"
    unit = _unit(row)
    if _reading(row) == ("gender_error", "named"):
        reading = f"in {value} % {ends} of the captions that name one"
    else:
        reading = f"{reading_name(finding)}: {value} {unit} {ends}"
    sign = " %" if unit == "%" else ""
    people_text = "" if math.isnan(finding.people) else f", annotators {people}{sign}"
    return (
        f"{reading}{people_text}; {_p_text(finding.p_value) if finding.more else possible(finding)}"
    )


def possible(finding: Finding) -> str:
    """How much bias the interval does not exclude.

    An interval above the no-bias value is not corrected for the question's other numbers, so p is
    shown.
    """
    row = finding.compared
    excess = row.ci_high - finding.neutral
    above = row.ci_low > finding.neutral and finding.p_value >= 0  # not NaN
    after = f"{_p_text(finding.p_value)} after Holm; " if above else ""
    if finding.matched and excess > 0:
        return f"{after}not above {percent(excess)} points"
    if math.isnan(excess):
        return "how much more it may be is unknown"
    if excess <= 0:
        return "more is not possible"
    amount = f"{percent(excess)} points" if row.unit == "fraction" else f"{number(excess)}"
    return f"{after}up to {amount} more is possible"


def _p_text(p_value: float) -> str:
    p = p_cell(p_value)
    return f"p {p}" if p.startswith("<") else f"p = {p}"


def reading_name(finding: Finding) -> str:
    """Metric, direction and settings of a finding, with its part if that is not the headline."""
    part = finding.row.part
    if finding.headline not in HEADLINES:
        return f"{finding_name(finding)} ({finding.headline})"
    if part == finding.headline:
        return finding_name(finding)
    return f"{finding_name(finding)} ({part.removeprefix(f'{finding.headline}:')})"


def finding_name(finding: Finding) -> str:
    """Metric, direction and settings of a finding's headline."""
    return headline_name(replace(finding.row, part=finding.headline), finding.settings)


def sentences(verdict: Verdict) -> list[str]:
    """A line for each question that was asked, then one for each reason not to use numbers."""
    judged = [finding for question in JUDGED for finding in verdict.on(question)]
    return [
        *(_answered(verdict, question) for question in JUDGED if verdict.on(question)),
        *_mentioned(verdict.on("mentions")),
        *_left_out(f for f in judged if f.doubt and not (f.alone or _is_told_above(f))),
    ]


def _is_told_above(finding: Finding) -> bool:
    """Whether its doubt is the answer to its question."""
    return finding.answered is not None or finding.doubt == f"it {finding.withheld}"


def _answered(verdict: Verdict, question: str) -> str:
    by: dict[str, list[str]] = {}
    for attribute in verdict.attributes:
        by.setdefault(verdict.answer(question, attribute), []).append(attribute)
    clauses = []
    decided = verdict.decided(question)
    if "more" in by:
        more = [reading for reading in decided if reading.more]
        named = [text for f in more if f.answered for text in f.answered.on_named]
        shown = "; ".join(named[:_MOST_TOLD]) if named else _by_metric(more, _shown)
        clauses.append(
            f"Yes, beyond chance: {shown}{_unsure_clause(verdict, question, by['more'])}"
        )
    for answer, words in (("no", "No"), ("none", "Not beyond chance")):
        if answer in by:
            answered = [f for f in decided if f.row.attribute in by[answer]]
            findings = [finding for finding in answered if not finding.of_few_words]
            if not findings:
                continue  # the others are told below
            values = _by_metric(findings, _value_and_possible)
            clauses.append(f"{words} on {', '.join(by[answer])}: {values}")
    if alone := one_direction(verdict, question):
        clauses.append(alone)
    if partly := [reading for reading in decided if reading.of_few_words]:
        clauses += _of_a_part(partly, bool(verdict.decided("describing")))
    matched = [reading for reading in decided if reading.matched and not reading.of_few_words]
    if matched:
        only = join_sentences(parts) if (parts := {f.only: None for f in matched if f.only}) else ""
        alone = f", by {only} alone; the rest is not compared" if only else ""
        equal = "Compared at equal style: annotators use each word as often as it does"
        clauses.append(f"{equal}{alone}")
    # Where no image is unsure, nobody can assume a group.
    refused = by.get("", []) if question != "assuming" else []
    clauses += _unanswered(verdict, question, [*by.get("unknown", []), *refused])
    wrong = [f"This is wrong if {WRONG_IF[question]}"] if "more" in by else []
    return " ".join([QUESTIONS[question], *(f"{text}." for text in [*clauses, *wrong])])


def _unsure_clause(verdict: Verdict, question: str, attributes: Sequence[str]) -> str:
    """That one of so many questions may have a Yes by chance, where it may."""
    unsure = [name for name in attributes if not verdict.sure(question, name)]
    if not unsure or len(verdict.overall) < 2:
        return ""
    return f"; alone on {', '.join(unsure)}: not after Holm over all {len(verdict.overall)} answers"


def _of_a_part(findings: Sequence[Finding], described: bool) -> Iterable[str]:
    """Numbers that rest on the words that annotators use as often, and so conclude no more."""
    by_share: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        unit = finding.only.partition(" in ")[2]
        of_words = f"of its words in {unit}" if unit else "of its words"
        by_share.setdefault((percent(finding.retained, 0), of_words), []).append(finding)
    for (share, of_words), some in by_share.items():
        rest = "; those that describe persons are tested below" if described else ""
        yield (
            f"On the {share} % {of_words} that annotators use as often: "
            f"{_by_metric(some, _shown)}. "
            f"The other {100 - int(share)} % were removed{rest}"
        )


def _unanswered(verdict: Verdict, question: str, attributes: Sequence[str]) -> Iterable[str]:
    """What is known of attributes without an answer, and what would give one."""
    alone = {name: verdict.alone(question, name) for name in attributes}
    if any(alone.values()):
        values = _by_metric([one for findings in alone.values() for one in findings], _shown)
        yield (
            f"{values}; to compare this with annotators, give human captions (--captions FILE, in "
            "Python human=...)"
        )
    by_reason: dict[str, list[str]] = {}
    for name in attributes:
        if not alone[name]:
            by_reason.setdefault(verdict.withheld(question, name), []).append(name)
    for withheld, names in by_reason.items():
        verb, colon, reason = (withheld or "there is no answer").partition(": ")
        yield f"{verb.capitalize()} on {', '.join(names)}{colon}{reason}"


def one_direction(verdict: Verdict, question: str) -> str:
    """That an answer is about A→T alone, where it is; a clause without a full stop."""
    if {finding.headline for finding in verdict.decided(question)} != {A_TO_T}:
        return ""
    objects = any(finding.headline == T_TO_A for finding in verdict.on(question))
    needs = (
        ""
        if objects
        else ", which needs the images' objects (--objects FILE, in Python objects=...)"
    )
    return f"This is about A→T alone; nothing is known of T→A{needs}"


def _mentioned(findings: Sequence[Finding]) -> list[str]:
    known = [f for f in findings if not f.withheld and not math.isnan(f.row.value)]
    if not known:
        return []
    return [f"{QUESTIONS['mentions']} {_by_metric(known, _beside_labels)}."]


def _left_out(findings: Iterable[Finding]) -> list[str]:
    """The numbers that are not used, a line for each reason."""
    doubted: dict[str, list[Finding]] = {}
    for finding in findings:
        doubted.setdefault(finding.doubt, []).append(finding)
    return [
        f"Not used: {_by_metric(some, _plain_value)}: "
        f"{doubt_about(set(map(reading_name, some)), doubt)}."
        for doubt, some in doubted.items()
    ]


def _by_metric(findings: Iterable[Finding], describe: Callable[[Finding], str]) -> str:
    """Attributes and values, values of one headline together."""
    names: dict[str, list[str]] = {}
    for finding in findings:
        name = reading_name(finding) if finding.question in JUDGED else finding_name(finding)
        names.setdefault(name, []).append(f"{finding.row.attribute} {describe(finding)}")
    return "; ".join(f"{name} ({', '.join(values)})" for name, values in names.items())


def _shown(finding: Finding) -> str:
    value = NumberCell.of(finding.row).text
    if math.isnan(finding.people):
        return value
    return f"{value} against the annotators' {_plain(finding.people, finding.row.unit)}"


def _value_and_possible(finding: Finding) -> str:
    return f"{_shown(finding)}; {possible(finding)}"


def _beside_labels(finding: Finding) -> str:
    row = finding.row
    return f"{_plain_value(finding)} in captions and {_plain(finding.people, row.unit)} in labels"


def _plain_value(finding: Finding) -> str:
    return _plain(finding.row.value, finding.row.unit)


def _plain(value: float, unit: str) -> str:
    return percent(value) if unit == "fraction" else number(value)
