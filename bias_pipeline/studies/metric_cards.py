"""A card for every metric, and the list of what moves each."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from bias_pipeline.io import plugins
from bias_pipeline.io.terminal import print_out
from bias_pipeline.metrics.base import QUESTIONS, MetricInfo
from bias_pipeline.metrics.catalogue import infos, metric_class, metric_names, settings_of
from bias_pipeline.report.power import Movement, Usability, movements_of, usability
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Table
from bias_pipeline.studies.behaviour import BEHAVIOURS, VERDICTS, is_tested, verdicts
from bias_pipeline.studies.feature_sensitivity import TITLES, Shift, is_steady, shifts_of

# By which the papers compare metrics, each a field of `MetricInfo`.
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
    """Print every metric with the eight properties of the papers' tables, and what each detects."""
    known = list(infos().values())
    header = ["metric", "title", "range", "no bias", *PROPERTIES, "reference"]
    lines = [_metric_line(info) for info in known]
    print_table(Table("Metrics", list(map(_in_words, header)), lines, texts=True))
    meanings = [f"{name.replace('_', ' ')}: {words}" for name, words in PROPERTIES.items()]
    print_out(*plugins.plugin_lines())
    print_out(*meanings, "✓ claimed; ✓✓ claimed, and shown by a tested line of the table below", "")
    _print_behaviours(known)


def _print_behaviours(infos: Sequence[MetricInfo]) -> None:
    """Print which behaviours move which headlines."""
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


_INTRODUCTION = """\
# Metric cards

Written by `python -m bias_pipeline metrics --cards`; a test checks that this page is up to date.
There are pages on [pitfalls](footguns.md), and on the formulas and choices of
[counting metrics](counting.md), [DBAC](dbac.md) and [DPA](dpa.md).

If the unit is `fraction`, values are fractions in files and per cent on screen. *No bias* is the
value of a model without bias. *Properties* are the columns of papers' tables of metrics
(ImageCaptioner2, Table 1; DBAC, Table 1). *Planted habits* are changes made to captions; tests
check their effects (`python -m bias_pipeline metrics`).

*Usable for a conclusion* says whether `audit` draws a conclusion from a headline if the captioner
writes differently from annotators, as the published captioners do. *Only a yes*: if the metric
finds bias, you may conclude that there is some. If it finds none, there may still be some: it
missed planted bias in [experiments/power](../experiments/power/README.md). The amounts come from
[experiments/flatness](../experiments/flatness/README.md), in points or in the unit of the score:
the largest change between speakers without bias (human captions that were shortened, joined or
reworded, and simulated captioners), with half the width of its interval, and the largest change by
planted bias.

*Background and objects* says whether a number stays within its interval if pictures get a slightly
blurred background, or one object in ten is hidden, before they are captioned
([experiments/feature_sensitivity](../experiments/feature_sensitivity/README.md)): the number with
its interval, and the change by each, in per cent if the unit is `fraction`. [The page on what
metrics can show](which_metric.md) says what to use for which question, and from how many images.
"""

_SECTION = re.compile(r"\n\n?(Args|Raises|Returns|Example|Attributes):\n.*", re.DOTALL)
_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")


def cards() -> str:
    """Every metric's card, as the Markdown page ``docs/metrics.md``."""
    return "\n".join([introduction(), *map(card, metric_names())])


def introduction() -> str:
    """How to read a card, and what the properties mean."""
    meanings = "".join(f"* {_in_words(name)}: {text}\n" for name, text in PROPERTIES.items())
    return f"{_INTRODUCTION}\n{meanings}"


def card(name: str) -> str:
    """One metric's card.

    Example:
        >>> card("lic").splitlines()[0]
        '## `lic`: Leakage for Image Captioning'
    """
    metric = metric_class(name)
    info = metric.info
    facts = {
        "read": info.direction,
        "asks": QUESTIONS[info.question],
        "usable for a conclusion": _usable(info),
        "background and objects": _features(info),
        "planted habits": _responses(info),
        "range": _range(info),
        "source": _sources(info),
        "family": info.family,
        "needs": _needs(info),
        "properties": ", ".join(_in_words(p) for p in PROPERTIES if getattr(info, p)) or "none",
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


def _in_words(name: str) -> str:
    return name.replace("_", " ")


def _range(info: MetricInfo) -> str:
    low, high = info.range
    unit = {"fraction": "a fraction", "nat": "in nats"}.get(info.unit, f"a {info.unit}")
    bounds = "unbounded" if math.isinf(high) else f"{low:g} to {high:g}"
    return f"{bounds}, {unit}; no bias: {info.neutral:g}"


def _needs(info: MetricInfo) -> str:
    """What there must be for any number, and which headlines need more."""
    alone = "model captions" if info.without else "model captions alone"
    absent = (
        f"without {need} there is `{part}` but no `{'`, `'.join({*info.says} - {part})}`"
        for need, part in info.without.items()
    )
    return "; ".join([", ".join(info.needs) or alone, *absent])


def _usable(info: MetricInfo) -> str:
    """Whether a conclusion on a real captioner may rest on each headline, and what moves it."""
    return "; ".join(
        f"`{answer.part}`: {answer.answer}"
        + (f", because {answer.reason}" if answer.reason else "")
        + _movement_text(info.name, answer)
        for answer in usability(info)
    )


def _movement_text(metric: str, answer: Usability) -> str:
    """The largest changes in ``experiments/flatness``, as published and at equal style."""
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


_FINE = 0.02  # fractions below it have two digits after the point


def _features(info: MetricInfo) -> str:
    """Whether each headline stays within its interval in ``experiments/feature_sensitivity``."""
    matched = {"matched": " under `alignment=matched`"}
    texts = [
        f"`{answer.part}`{matched.get(lines[0].alignment, '')}: "
        f"{'steady' if is_steady(lines) else 'not steady'} ({_shift_text(lines)})"
        for answer in usability(info)
        for lines in shifts_of(info.name, answer.part)
    ]
    return "; ".join(texts) or "not in the study"


def _shift_text(lines: Sequence[Shift]) -> str:
    """A number's interval, and by how much each change shifts it."""
    first = lines[0]
    fraction = first.unit == "fraction"
    digits = 2 if not fraction or abs(first.score) < _FINE else 1

    def interval_text(value: float, low: float, high: float) -> str:
        texts = [
            f"{round(100 * x if fraction else x, digits) + 0.0:.{digits}f}"
            for x in (value, low, high)
        ]
        return texts[0] if math.isnan(low) else f"{texts[0]} [{texts[1]}, {texts[2]}]"

    shifted = (
        f"{TITLES[line.change]} {interval_text(line.shift, line.shift_low, line.shift_high)}"
        for line in lines
    )
    return f"{interval_text(first.score, first.ci_low, first.ci_high)}; {', '.join(shifted)}"


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
    """The metric's own settings with their defaults, without settings of other groups."""
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
