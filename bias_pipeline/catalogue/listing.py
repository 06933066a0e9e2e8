"""The list of metrics, and what moves each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bias_pipeline.io.terminal import print_out, print_table

if TYPE_CHECKING:
    from bias_pipeline.metrics.base import MetricInfo

PROPERTIES = (
    "source_identifying",
    "learnable",
    "amplification",
    "full_context",
    "image",
    "consistent",
    "directional",
    "language_aware",
)


def print_metrics() -> None:
    """Print every metric with the eight properties of the papers' tables, and what each detects."""
    from bias_pipeline.catalogue.registry import infos

    known = list(infos().values())
    header = ["metric", "title", "range", "neutral", *PROPERTIES, "reference"]
    print_out("Metrics")
    lines = [_described(info) for info in known]
    print_table([name.replace("_", " ") for name in header], lines, keys=1, left=len(header))
    print_out("✓ claimed; ✓✓ claimed, and shown by a tested line of the table below", "")
    _print_behaviours(known)


def _print_behaviours(infos: Sequence[MetricInfo]) -> None:
    """Print which behaviours move which headlines."""
    from bias_pipeline.calibration.behaviour import BEHAVIOURS, VERDICTS, verdicts

    lines = []
    for name, behaviour in BEHAVIOURS.items():
        responses = verdicts(name, infos)
        columns = [
            ", ".join(line for line, response in responses.items() if response == verdict)
            for verdict in VERDICTS
        ]
        lines.append([name, behaviour.title, *columns])
    print_out("What metrics detect: tested on small corpora")
    header = ["captions differ in", "", *VERDICTS]
    print_table(header, lines, keys=1, left=len(header))


def _described(info: MetricInfo) -> list[str]:
    from bias_pipeline.calibration.behaviour import is_tested

    ticks = [
        ("✓✓" if is_tested(info, prop) else "✓") if getattr(info, prop) else ""
        for prop in PROPERTIES
    ]
    low, high = info.range
    bounds = f"{low:g} … {high:g}"
    return [info.name, info.title, bounds, f"{info.neutral:g}", *ticks, info.reference]
