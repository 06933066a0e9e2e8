"""Makes a card for every metric, and the list of behaviours that change each metric."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Sequence
from typing import Any

from bias_pipeline.io import plugins
from bias_pipeline.io.terminal import print_out
from bias_pipeline.metrics.base import MetricInfo
from bias_pipeline.metrics.catalogue import infos, metric_class, metric_names
from bias_pipeline.report.power import MATCHED, NO, ONLY_YES, YES, usability
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Table
from bias_pipeline.studies.behaviour import BEHAVIOURS, VERDICTS, is_tested, verdicts
from bias_pipeline.studies.feature_sensitivity import is_steady, shifts_of

# Properties by which papers compare metrics; each is a field of `MetricInfo`.
PROPERTIES = {
    "source_identifying": "separates bias of the data from bias that the captioner adds",
    "learnable": "learns what bias is instead of counting listed words",
    "amplification": "measures by how much the captioner amplifies",
    "full_context": "uses whole sentences",
    "image": "uses the picture too",
    "consistent": "ranks captioners alike under different attackers: seven captioners under n-grams"
    " and two of MiniLM, with a mean rank correlation of at least 0.9"
    " (experiments/encoder_sensitivity, which has more attackers and fewer captioners too)",
    "directional": "separates attribute-to-task from task-to-attribute",
    "language_aware": "corrects for how rich the language of annotators and models is",
}


def print_metrics() -> None:
    """Print every metric, the eight properties by which papers compare metrics, and its effects."""
    known = list(infos().values())
    header = ["metric", "title", "range", "no bias", *PROPERTIES, "reference"]
    lines = [_metric_line(info) for info in known]
    print_table(Table("Metrics", [name.replace("_", " ") for name in header], lines, texts=True))
    meanings = [f"{name.replace('_', ' ')}: {words}" for name, words in PROPERTIES.items()]
    print_out(*plugins.plugin_lines())
    print_out(*meanings, "✓ claimed; ✓✓ claimed, and shown by a tested line of the table below", "")
    _print_behaviours(known)


def _print_behaviours(infos: Sequence[MetricInfo]) -> None:
    lines = []
    for name, behaviour in BEHAVIOURS.items():
        responses = verdicts(name, infos)
        columns = [
            ", ".join(line for line, response in responses.items() if response == verdict)
            for verdict in VERDICTS
        ]
        lines.append([name, behaviour.title, *columns])
    caption = "What metrics detect: tested on small corpora"
    print_table(Table(caption, ["captions differ in", "", *VERDICTS], lines, texts=True))


def _metric_line(info: MetricInfo) -> list[str]:
    ticks = [
        ("✓✓" if is_tested(info, prop) else "✓") if getattr(info, prop) else ""
        for prop in PROPERTIES
    ]
    low, high = info.range
    bounds = f"{low:g} … {high:g}"
    return [info.name, info.title, bounds, f"{info.neutral:g}", *ticks, info.reference]


INTRODUCTION = """\
# Metric cards

Written by `python -m bias_pipeline metrics --cards`. [Which metric](which_metric.md) helps to
choose. `python -m bias_pipeline metrics` lists what each metric detects.

* **range**: the lowest and highest score, a fraction unless the card names a unit. Screens print
  fractions in per cent, but files do not. No bias gives 0 unless the card has another number.
* **needs**: what else a metric needs besides the captioner's captions.
* **conclusions**: whether `audit` draws conclusions from a number even if the captioner's style
  differs from the annotators' style. *Only a yes*: `audit` can find bias, but cannot exclude it.
  *None*: the number changes with style, or answers no question.
* **steady** (else **unsteady**): the number stays within its interval when the background of
  pictures is slightly blurred, or when one object in ten is hidden
  ([study](../experiments/feature_sensitivity/README.md)).
"""

# What a number allows, by the answer of `usability`.
ALLOWS = {YES: "any", NO: "none", ONLY_YES: ONLY_YES, MATCHED: f"conclusions {MATCHED}"}
_SECTION = re.compile(r"\n\n?(Args|Raises|Returns|Example|Attributes):\n.*", re.DOTALL)
_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")


def cards() -> str:
    """The cards of all metrics, as the Markdown page ``docs/metrics.md``."""
    return "\n".join([INTRODUCTION, *map(card, metric_names())])


def card(name: str) -> str:
    """One metric's card.

    Example:
        >>> card("lic").splitlines()[0]
        '## `lic`: Leakage for Image Captioning'
    """
    metric = metric_class(name)
    info = metric.info
    low, high = info.range
    unit = {"fraction": "", "nat": ", in nats", "CIDEr-D": ", in CIDEr-D"}.get(
        info.unit, f", a {info.unit}"
    )
    bounds = "unbounded" if math.isinf(high) else f"{low:g} to {high:g}"
    some = [
        f"{need} for `{'`, `'.join({*info.says} - {part})}`" for need, part in info.without.items()
    ]
    matched = {"matched": " under `alignment=matched`"}
    shifts: dict[bool, list[str]] = {True: [], False: []}
    for answer in usability(info):
        for measured in shifts_of(info.name, answer.part):
            where = matched.get(measured[0].alignment, "")
            shifts[is_steady(measured)].append(f"`{answer.part}`{where}")
    facts = {
        "score": _sentences(info.direction),
        "range": f"{bounds}{unit}" + (f". No bias gives {info.neutral:g}" if info.neutral else ""),
        "needs": ", ".join([*info.needs, *some]),
        "conclusions": ". ".join(
            f"`{answer.part}` allows {ALLOWS[answer.answer]}" for answer in usability(info)
        ),
        "steady": ", ".join(shifts[True]),
        "unsteady": ", ".join(shifts[False]),
        "source": _sentences(info.reference),
    }
    facts = {key: text for key, text in facts.items() if text}
    lines = "".join(f"* **{key}**: {text}.\n" for key, text in facts.items())
    return f"## `{name}`: {info.title}\n\n{prose_of(metric)}\n\n{lines}"


def _sentences(text: str) -> str:
    first, *others = text.split("; ")
    return ". ".join([first, *(clause[:1].upper() + clause[1:] for clause in others)])


def prose_of(documented: Any) -> str:
    """The prose of a docstring as Markdown, without arguments and examples.

    Example:
        >>> prose_of(card)
        "One metric's card."
    """
    prose = _SECTION.sub("", inspect.getdoc(documented) or "")
    named = _ROLE.sub(lambda match: f"`{match.group(1).rpartition('.')[2]}`", prose)
    return named.replace("``", "`").strip()
