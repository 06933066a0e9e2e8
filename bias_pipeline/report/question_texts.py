"""The questions in plain words, for the first screen of a report.

``{attribute}`` is replaced by gender, race or another attribute.
"""

from __future__ import annotations

from collections.abc import Mapping

# The panels of the first screen's figure; "tasks" has two, by how it is measured.
PANELS: Mapping[str, str] = {
    "misgendering": "Does it name the wrong {attribute}?",
    "assuming": "Does it assume {attribute} that nobody can see?",
    "leakage": "Does it give {attribute} away?",
    "directions": "Does it link objects and activities to {attribute}?",
    "counting": "What do counts of its words show?",
    "quality": "How well does it describe?",
    "retrieval": "Do queries that name no {attribute} find all groups alike?",
}
# What a captioner does if the answer is yes; the second form stands after "does not".
DEEDS: Mapping[str, tuple[str, str]] = {
    "misgendering": (
        "names the wrong {attribute} more often than people do",
        "name the wrong {attribute} more often than people do",
    ),
    "leakage": (
        "gives {attribute} away more than people do",
        "give {attribute} away more than people do",
    ),
    "assuming": (
        "assumes {attribute} where nobody can see it more often than people do",
        "assume {attribute} where nobody can see it more often than people do",
    ),
    "tasks": (
        "links objects and activities to {attribute} more than people do",
        "link objects and activities to {attribute} more than people do",
    ),
}
# The first of these is shown if several readings decide equally well.
LEADS = (
    "gender_error",
    "assumed_group",
    "lic",
    "dbac",
    "ba_directional",
    "dpa",
    "cooccurrence",
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
    """The place of a metric among those that lead."""
    return LEADS.index(metric) if metric in LEADS else len(LEADS)
