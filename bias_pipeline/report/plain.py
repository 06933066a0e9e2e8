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
# Metric, then its headline, to what a number above neutral says.
READINGS: Mapping[str, Mapping[str, str]] = {
    "lic": {"score": "an attacker is surer of the {attribute} than from people's captions"},
    "leakage": {"score": "an attacker is oftener right on the {attribute} than with people's"},
    "gender_error": {
        "score": "of captions that name one {attribute}, those that name the wrong one"
    },
    "group_accuracy": {"score": "groups lie apart in how often they are named rightly"},
    "gender_ratio": {"score": "it names the first group oftener than labels have it"},
    "dbac": {
        "a_to_t": "{attribute} tells an attacker more of the tasks than in people's captions",
        "t_to_a": "tasks tell an attacker more of the {attribute} than in people's captions",
    },
    "dpa": {
        "a_to_t": "{attribute} predicts the tasks it mentions better than those in the labels",
        "t_to_a": "tasks predict the {attribute} it names better than the labelled one",
    },
    "ba_directional": {
        "a_to_t": "where a {attribute} is common with a task, it mentions the task oftener",
        "t_to_a": "where a task is common with a {attribute}, it names that one oftener",
    },
    "multi_directional": {
        "a_to_t": "sets of tasks move with the {attribute}, either way",
        "t_to_a": "the {attribute} it names moves with sets of tasks, either way",
    },
    "ba_mals": {"score": "objects lean to the {attribute} they lean to anyway"},
    "cooccurrence": {"score": "objects go with one {attribute} more than people put them"},
    "differential_fairness": {"score": "groups differ more in what is said than in people's words"},
    "quality": {"score": "CIDEr-D, less what one more person reaches; higher is better"},
}


def panel_of(question: str, headline: str) -> str:
    """Which of :data:`PANELS` a finding stands in.

    Example:
        >>> panel_of("tasks", "t_to_a"), panel_of("tasks", "score"), panel_of("quality", "score")
        ('directions', 'counting', 'quality')
    """
    if question == "tasks":
        return "counting" if headline == "score" else "directions"
    return "counting" if question == "mentions" else question


def meaning(metric: str, headline: str, attribute: str, otherwise: str = "") -> str:
    """A headline in plain words.

    Args:
        metric: its name.
        headline: which of its headlines.
        attribute: whose groups.
        otherwise: what is told of a metric that is not known here.

    Example:
        >>> meaning("gender_error", "score", "race")
        'of captions that name one race, those that name the wrong one'
    """
    known = READINGS.get(metric, {}).get(headline)
    return known.format(attribute=attribute) if known else otherwise


def rank(metric: str) -> int:
    """The place of a metric among those that lead."""
    return LEADS.index(metric) if metric in LEADS else len(LEADS)
