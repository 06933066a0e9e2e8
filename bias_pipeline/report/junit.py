"""Decisions as JUnit XML for CI: lost is a failure, undecided is skipped."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from bias_pipeline.analysis.gate import Decision
from bias_pipeline.io.terminal import printable

_KINDS = {"worse": "failure", "undecided": "skipped", "passed": "system-out"}
_NOTHING = "nothing could be decided, so nothing has passed"


def junit(decisions: Sequence[Decision]) -> bytes:
    """One test case for each decision; an error if nothing was decided.

    Args:
        decisions: of the first captioner against others.

    Example:
        >>> print(junit([]).decode().splitlines()[1][:67])
        <testsuite name="bias_pipeline compare" tests="1" failures="0" skip
    """
    kinds = [_KINDS[decision.outcome] for decision in decisions]
    undecided = kinds.count("skipped") == len(decisions)
    suite = ElementTree.Element(
        "testsuite",
        name="bias_pipeline compare",
        tests=str(len(decisions) + undecided),
        failures=str(kinds.count("failure")),
        skipped=str(kinds.count("skipped")),
        errors=str(int(undecided)),
    )
    for decision, kind in zip(decisions, kinds, strict=True):
        subject = f"{decision.metric} {decision.headline} {decision.settings}".rstrip()
        name = f"{subject}: {decision.first} against {decision.other}"
        case = _case(suite, f"bias_pipeline.{decision.attribute}", name)
        _add_outcome(case, kind, decision.sentence())
    if undecided:
        _add_outcome(_case(suite, "bias_pipeline", "gate"), "error", _NOTHING)
    ElementTree.indent(suite)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return (head + ElementTree.tostring(suite, "unicode") + "\n").encode("utf-8", "replace")


def _case(suite: ElementTree.Element, group: str, name: str) -> ElementTree.Element:
    attributes = {"classname": printable(group), "name": printable(name)}
    return ElementTree.SubElement(suite, "testcase", attributes)


def _add_outcome(case: ElementTree.Element, kind: str, sentence: str) -> None:
    element = ElementTree.SubElement(case, kind)
    if kind == "system-out":
        element.text = printable(sentence)
    else:
        element.set("message", printable(sentence))
