"""A pytest plugin: tests of a captioner's fairness use the fixture ``bias_gate``.

Tests that use it have a marker of the same name. Other modules of the package are imported only
when a test requests the fixture.
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
    """Declare the marker, so that ``-m bias_gate`` and ``-m 'not bias_gate'`` select tests."""
    config.addinivalue_line("markers", f"{FIXTURE}: compares captioners; set by its fixture")


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark every test that uses the fixture."""
    for item in items:
        if FIXTURE in getattr(item, "fixturenames", ()):
            item.add_marker(FIXTURE)


@pytest.fixture
def bias_gate() -> Callable[..., Comparison]:
    """A function that compares a new with an old captioner, as ``compare --fail-if-worse`` does.

    The function takes the arguments of :func:`bias_pipeline.compare`; the captions of the new
    captioner come first. The test fails when the command would fail, and the message says why: the
    new captioner is less fair, no decision is possible, or data or settings are wrong. With a
    margin, the test fails if the new captioner is less fair by more than the margin, or if a
    decision is open. Otherwise the function returns the comparison. The arguments ``history`` and
    ``looks`` mean the same as the command's options. In the folder ``history``, versions that were
    compared on the same pictures are counted. After ``looks`` versions (default: 5) no further
    decision is made.
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
