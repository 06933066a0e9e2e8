"""What questions and metrics ask, in words that need no paper: for the first screen of a report.

``{attribute}`` stands for gender, race or whatever groups are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

# The groups of the first screen's figure; "tasks" is told apart by how it is measured.
PANELS: Mapping[str, str] = {
    "misgendering": "Does it name the wrong {attribute}?",
    "leakage": "Does it give {attribute} away?",
    "directions": "Does it tie tasks to {attribute}?",
    "counting": "What do its words say, counted?",
    "quality": "How well does it describe?",
    "retrieval": "Do queries that name no {attribute} find all alike?",
}
# What is said of a captioner to which a question is answered with yes; after "does not" too.
DEEDS: Mapping[str, tuple[str, str]] = {
    "misgendering": (
        "names the wrong {attribute} more often than people do",
        "name the wrong {attribute} more often than people do",
    ),
    "leakage": (
        "gives {attribute} away more than people do",
        "give {attribute} away more than people do",
    ),
    "tasks": (
        "ties tasks to {attribute} more than people do",
        "tie tasks to {attribute} more than people do",
    ),
}
# Of several readings that decide as much, the first of these is shown.
LEADS = ("gender_error", "lic", "dbac", "ba_directional", "dpa", "cooccurrence", "quality")


def panel_of(question: str, headline: str) -> str:
    """Which of :data:`PANELS` a finding stands in.

    Example:
        >>> panel_of("tasks", "t_to_a"), panel_of("tasks", "score"), panel_of("quality", "score")
        ('directions', 'counting', 'quality')
    """
    if question == "tasks":
        return "counting" if headline == "score" else "directions"
    return "counting" if question == "mentions" else question


def rank(metric: str) -> int:
    """The place of a metric among those that lead."""
    return LEADS.index(metric) if metric in LEADS else len(LEADS)
