"""Words for questions and answers, and the choice of one number out of several.

In the questions, ``{attribute}`` stands for gender, race or another attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.catalogue import info_of
from bias_pipeline.metrics.value_names import A_TO_T
from bias_pipeline.report.tables import headline_name
from bias_pipeline.report.verdict import Finding, Verdict

# The panels of the first screen's figure; the question "tasks" has two, by the kind of measure.
PANELS: Mapping[str, str] = {
    "misgendering": "Does it name the wrong {attribute}?",
    "assuming": "Does it assume {attribute} that nobody can see?",
    "leakage": "Does it leak {attribute}?",
    "directions": "Does it link objects and activities to {attribute}?",
    "counting": "What do counts of its words show?",
    "describing": "Does it describe the groups differently?",
    "inventing": "Does it invent objects for one group?",
    "changing": "Does the caption change with the group?",
    "declining": "Does it decline to describe one group more often?",
    "quality": "How well does it describe?",
    "retrieval": "Do queries that name no {attribute} find all groups alike?",
}
# What one captioner does, or several do, if the answer is yes; the second form also follows
# "does not".
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
        "links objects and activities to {attribute} more than {others}",
        "link objects and activities to {attribute} more than {others}",
    ),
    "describing": (
        "describes the groups of {attribute} differently than annotators do",
        "describe the groups of {attribute} differently than annotators do",
    ),
    "inventing": (
        "invents objects for one group of {attribute}",
        "invent objects for one group of {attribute}",
    ),
    "changing": (
        "changes captions of one scene with the {attribute} of the person",
        "change captions of one scene with the {attribute} of the person",
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
    "counterfactual",
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
    return LEADS.index(metric) if metric in LEADS else len(LEADS)


def clause_of(question: str, form: int, attribute: str, metric: str = "") -> str:
    """What a captioner does if the answer of a metric is yes; form 1 is for several captioners."""
    others = "the labels do" if _by_labels(metric) else "annotators do"
    return ANSWER_CLAUSES[question][form].format(attribute=attribute, others=others)


def _by_labels(metric: str) -> bool:
    """Whether a metric compares captions with labels and never with annotators' captions."""
    info = info_of(metric)
    return info is not None and "human captions" not in {*info.needs, *info.without}


def lead(findings: Sequence[Finding]) -> Finding:
    """The finding to show, which shows bias or else comes from the best known metric."""
    return min(findings, key=lambda finding: (not finding.is_biased, rank(finding.row.metric)))


def named_parts(finding: Finding) -> list[str]:
    """The concepts or objects that a metric's own answer names, with the rates of the groups."""
    if finding.answered is None or not finding.is_biased:
        return []
    return [text.partition(": ")[0] for text in finding.answered.on_named]


def reading_name(finding: Finding) -> str:
    """The metric, direction and settings of a finding, with its part unless this is a headline."""
    part = finding.row.part
    if finding.headline not in HEADLINES:
        return f"{finding_name(finding)} ({finding.headline})"
    if part == finding.headline:
        return finding_name(finding)
    return f"{finding_name(finding)} ({part.removeprefix(f'{finding.headline}:')})"


def finding_name(finding: Finding) -> str:
    """The metric, direction and settings of a finding's headline."""
    return headline_name(replace(finding.row, part=finding.headline), finding.settings)


def one_direction(verdict: Verdict, question: str) -> bool:
    """Whether an answer is about A→T only."""
    return {finding.headline for finding in verdict.findings_used(question)} == {A_TO_T}
