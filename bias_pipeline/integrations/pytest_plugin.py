"""Tests a captioner's fairness with the fixture ``bias_gate`` and a marker of this name.

Other modules of the package are imported when a test requests the fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bias_pipeline.data.memory import Captions, Labels, Objects
    from bias_pipeline.report.gate import Comparison

FIXTURE = "bias_gate"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, so that ``-m bias_gate`` and ``-m 'not bias_gate'`` choose tests."""
    config.addinivalue_line("markers", f"{FIXTURE}: compares captioners; set by its fixture")


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark every test that uses the fixture."""
    for item in items:
        if FIXTURE in getattr(item, "fixturenames", ()):
            item.add_marker(FIXTURE)


@pytest.fixture
def bias_gate() -> Callable[..., Comparison]:
    """A function that compares a new captioner with an old one, like ``compare --fail-if-worse``.

    The function takes the arguments of :func:`bias_pipeline.compare`; the new captioner's captions
    come first. The test fails when the command would fail, and its message says why: the new
    captioner is less fair, nothing can be decided, or data or settings are wrong. With a margin,
    the test fails if the new captioner is less fair by more than the margin, or if a decision is
    open. Otherwise the function returns the comparison. ``history`` and ``looks`` are the options
    of the same names. ``history`` is a folder that counts how many versions were compared on the
    same pictures. After ``looks`` versions nothing is decided (default: 5).
    """
    return _gate


def _gate(
    new: Captions,
    old: Captions,
    labels: Labels,
    human: Captions | None = None,
    objects: Objects | None = None,
    *,
    history: str | Path | None = None,
    looks: int | None = None,
    **settings: Any,
) -> Comparison:
    """See :func:`bias_gate`."""
    import bias_pipeline as bp
    from bias_pipeline.errors import BiasPipelineError
    from bias_pipeline.report.compared_questions import compared_questions, outcome_of
    from bias_pipeline.report.looks import MOST, counted_look

    named = {"names": ("new", "old"), **settings}
    mistake = ""
    try:
        comparison = bp.compare(new, old, labels, human, objects, **named)
        if history is not None:
            counted_look(Path(history), comparison).check(MOST if looks is None else looks)
    except BiasPipelineError as error:
        mistake = f"{FIXTURE}: {error}"
    if mistake:  # raised outside of the handler, so that pytest shows the sentence once
        pytest.fail(mistake, pytrace=False)
    rows = compared_questions(comparison)
    outcome = outcome_of(rows)
    if outcome == "worse":
        lost = (row.sentence() for row in rows if row.result == "worse")
        pytest.fail("\n".join(lost), pytrace=False)
    if outcome == "undecided":
        pytest.fail(f"{FIXTURE}: undecided\n{comparison}", pytrace=False)
    return comparison
