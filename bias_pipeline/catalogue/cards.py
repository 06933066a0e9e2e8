"""Metric cards: what each metric measures and how to read it, from its info and docstring."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from bias_pipeline.analysis.usability import Movement, Usability, movements_of, usability
from bias_pipeline.calibration.behaviour import VERDICTS
from bias_pipeline.catalogue.listing import PROPERTIES
from bias_pipeline.catalogue.registry import metric_class, metric_names, settings_of
from bias_pipeline.metrics.base import QUESTIONS, MetricInfo

_INTRODUCTION = """\
# Metric cards

Written by `python -m bias_pipeline metrics --cards`; a test checks that this page is up to date.
[footguns.md](footguns.md) lists what can go wrong with them, [counting.md](counting.md),
[dbac.md](dbac.md) and [dpa.md](dpa.md) have formulas and choices.

If the unit is `fraction`, values are fractions in files and per cent on screen. Properties are
those by which papers compare metrics (ImageCaptioner2, Table 1; DBAC, Table 1). The effects of
planted habits are tested (`python -m bias_pipeline metrics` describes them).

*Usable for a conclusion* says whether `audit` concludes from a headline of a captioner that writes
unlike people, as the published ones do, by the rule that it applies. *Only a yes*: what it
finds may be concluded; that it finds nothing says nothing, for it did not find planted bias in
[experiments/power](../experiments/power/README.md). The amounts are of
[experiments/flatness](../experiments/flatness/README.md), in points, or in the unit of the score:
the largest change between speakers without bias, with half of the interval, and the largest change
by planted bias. [which_metric.md](which_metric.md) says what to use for which question, and from
how many images.
"""

_MEANINGS = {
    "source_identifying": "separates bias of the data from bias that the captioner adds",
    "learnable": "learns what bias is instead of counting listed words",
    "amplification": "measures by how much the captioner amplifies",
    "full_context": "uses whole sentences",
    "image": "uses the picture too",
    "consistent": "ranks captioners alike under different attackers: seven captioners under n-grams"
    " and two of MiniLM, with a mean rank correlation of at least 0.9"
    " (experiments/encoder_sensitivity, which has more attackers and fewer captioners too)",
    "directional": "separates attribute-to-task from task-to-attribute",
    "language_aware": "corrects for how rich people's and models' language is",
}
_SECTION = re.compile(r"\n\n?(Args|Raises|Returns|Example|Attributes):\n.*", re.DOTALL)
_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")


def cards() -> str:
    """Every metric's card, as the Markdown page ``docs/metrics.md``."""
    meanings = "".join(f"* {_spoken(name)}: {text}\n" for name, text in _MEANINGS.items())
    all_cards = [card(name) for name in metric_names()]
    return "\n".join([f"{_INTRODUCTION}\n{meanings}", *all_cards])


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
        "usable for a conclusion": _usable(info),
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
    return f"{head}\n\n{prose_of(metric)}\n\n| | |\n| --- | --- |\n{table}"


def prose_of(documented: Any) -> str:
    """The prose of a docstring as Markdown; its arguments and examples are left out.

    Example:
        >>> prose_of(card)
        "One metric's card."
    """
    prose = _SECTION.sub("", inspect.getdoc(documented) or "")
    named = _ROLE.sub(lambda match: f"`{match.group(1).rpartition('.')[2]}`", prose)
    return named.replace("``", "`").strip()


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _range(info: MetricInfo) -> str:
    low, high = info.range
    unit = {"fraction": "a fraction", "nat": "in nats"}.get(info.unit, f"a {info.unit}")
    bounds = "unbounded" if math.isinf(high) else f"{low:g} to {high:g}"
    return f"{bounds}, {unit}"


def _usable(info: MetricInfo) -> str:
    """Whether a conclusion on a real captioner may rest on each headline, and what moves it."""
    return "; ".join(
        f"`{answer.part}`: {answer.answer}"
        + (f", because {answer.reason}" if answer.reason else "")
        + _moved(info.name, answer)
        for answer in usability(info)
    )


def _moved(metric: str, answer: Usability) -> str:
    """The largest changes in ``experiments/flatness``, as published and at equal speech."""
    alignments = {"constant": "", "matched": "under `alignment=matched` "}
    parts = [
        f"{where}{_amounts(lines)}"
        for alignment, where in alignments.items()
        if (lines := movements_of(metric, answer.part, alignment))
    ]
    return f" ({'; '.join(parts) or 'not in the study'})"


def _amounts(lines: Sequence[Movement]) -> str:
    most = max(lines, key=lambda line: line.moved)
    biased = max(lines, key=lambda line: abs(line.planted))
    fraction = most.unit == "fraction"
    moved, half, planted = (
        f"{100 * x + 0.0:.1f}" if fraction else f"{x:.2f}"
        for x in (most.moved, most.half_width, biased.planted)
    )
    return (
        f"speakers without bias move it by up to {moved} ±{half} ({most.speaker}), planted bias by "
        f"{planted} ({biased.bias})"
    )


def _responses(info: MetricInfo) -> str:
    """The effects of planted habits on the headlines; each claim is tested."""
    verbs = {"moves": "moves with", "stays": "stays with", "absent": "is absent with"}
    claims = [
        f"`{headline}` {verbs[verdict]} {', '.join(f'*{habit}*' for habit in habits)}"
        for headline, response in info.responses.items()
        for verdict in VERDICTS
        if (habits := getattr(response, verdict))
    ]
    return "; ".join(claims) or "none claimed"


def _sources(info: MetricInfo) -> str:
    keys = ", ".join(f"`{source.key}`" for source in info.sources)
    return f"{info.reference} (BibTeX in every report: {keys})" if keys else info.reference


def _settings(tree: Mapping[str, Any]) -> str:
    """The metric's own settings with their defaults, without those of other groups."""
    settings = {
        key: value
        for key, value in tree.items()
        if key not in ("_target_", "defaults") and "${" not in str(value)
    }
    return ", ".join(f"`metric.{key}={_yaml(value)}`" for key, value in settings.items()) or "none"


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("\n...\n").strip()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
