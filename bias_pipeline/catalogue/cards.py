"""Metric cards: what each metric says and how it is read, from its ``MetricInfo`` and docstring."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from typing import Any

import yaml

from bias_pipeline.calibration.behaviour import VERDICTS
from bias_pipeline.catalogue.listing import PROPERTIES
from bias_pipeline.catalogue.registry import metric_class, metric_names, settings_of
from bias_pipeline.metrics.base import QUESTIONS, MetricInfo

_INTRODUCTION = """\
# Metric cards

Written by `python -m bias_pipeline metrics --cards`; a test holds this page to the code.
[footguns.md](footguns.md) has what goes wrong with them, [counting.md](counting.md),
[dbac.md](dbac.md) and [dpa.md](dpa.md) have formulas and choices.

Values are fractions in files and per cent on screen, where the unit is `fraction`. Properties are
those by which papers compare metrics (ImageCaptioner2, Table 1; DBAC, Table 1). What planted habits
do is tested (`python -m bias_pipeline metrics` describes them).
"""

_MEANINGS = {
    "source_identifying": "tells bias of the data from bias that the captioner adds",
    "learnable": "learns what bias is instead of counting listed words",
    "amplification": "says by how much the captioner amplifies",
    "full_context": "looks at whole sentences",
    "image": "looks at the picture too",
    "consistent": "ranks captioners alike under different attackers: seven captioners under n-grams"
    " and two of MiniLM, with a mean rank correlation of at least 0.9"
    " (experiments/encoder_sensitivity, which has more attackers and fewer captioners too)",
    "directional": "tells attribute-to-task from task-to-attribute",
    "language_aware": "evens out the richness of people's and models' language",
}
_SECTION = re.compile(r"\n\n?(Args|Raises|Returns|Example|Attributes):\n.*", re.DOTALL)
_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")


def cards() -> str:
    """Every metric's card, as the Markdown page ``docs/metrics.md``."""
    meanings = "".join(f"* {_spoken(name)}: {text}\n" for name, text in _MEANINGS.items())
    own = [card(name) for name in metric_names()]
    return "\n".join([f"{_INTRODUCTION}\n{meanings}", *own])


def card(name: str) -> str:
    """One metric's card.

    Args:
        name: as in ``metric=``.

    Example:
        >>> card("lic").splitlines()[0]
        '## `lic`: Leakage for Image Captioning'
    """
    metric = metric_class(name)
    info = metric.info
    facts = {
        "read": f"{info.direction}; {info.neutral:g} means no bias",
        "asks": QUESTIONS[info.question],
        "concluded from": _concluded(info),
        "planted habits": _responses(info),
        "range": _range(info),
        "source": _sources(info),
        "family": info.family,
        "needs": ", ".join(info.needs) or "model captions alone",
        "properties": ", ".join(_spoken(p) for p in PROPERTIES if getattr(info, p)) or "none",
        "version": str(info.version),
        "settings": _settings(settings_of(name)),
        "run": f"`python -m bias_pipeline metric={name}`",
    }
    table = "".join(f"| {key} | {_cell(text)} |\n" for key, text in facts.items())
    head = f"## `{name}`: {info.title}"
    return f"{head}\n\n{told(metric)}\n\n| | |\n| --- | --- |\n{table}"


def told(documented: Any) -> str:
    """The prose of a docstring as Markdown; its arguments and examples are left out.

    Example:
        >>> told(card)
        "One metric's card."
    """
    prose = _SECTION.sub("", inspect.getdoc(documented) or "")
    named = _ROLE.sub(lambda found: f"`{found.group(1).rpartition('.')[2]}`", prose)
    return named.replace("``", "`").strip()


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _range(info: MetricInfo) -> str:
    low, high = info.range
    unit = {"fraction": "a fraction", "nat": "in nats"}.get(info.unit, f"a {info.unit}")
    bounds = "unbounded" if math.isinf(high) else f"{low:g} to {high:g}"
    return f"{bounds}, {unit}"


def _concluded(info: MetricInfo) -> str:
    """The readings that audits and gates conclude from, and between whom."""
    told = [
        f"`{reading.part}`"
        + (f", among captioners of like {' and '.join(reading.follows)}" if reading.follows else "")
        for reading in info.readings.values()
    ]
    return "; ".join(told) or "nothing: its headlines follow how much is said, or have no side"


def _responses(info: MetricInfo) -> str:
    """What planted habits of a captioner do to the headlines; each claim is a test."""
    verbs = {"moves": "moves with", "stays": "stays with", "absent": "says nothing with"}
    told = [
        f"`{headline}` {verbs[verdict]} {', '.join(f'*{own}*' for own in habits)}"
        for headline, response in info.responses.items()
        for verdict in VERDICTS
        if (habits := getattr(response, verdict))
    ]
    return "; ".join(told) or "none claimed"


def _sources(info: MetricInfo) -> str:
    keys = ", ".join(f"`{source.key}`" for source in info.sources)
    return f"{info.reference} (BibTeX in every report: {keys})" if keys else info.reference


def _settings(tree: Mapping[str, Any]) -> str:
    """The metric's own settings with their defaults; what other groups decide is left out."""
    own = {
        key: value
        for key, value in tree.items()
        if key not in ("_target_", "defaults") and "${" not in str(value)
    }
    return ", ".join(f"`metric.{key}={_yaml(value)}`" for key, value in own.items()) or "none"


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("\n...\n").strip()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
