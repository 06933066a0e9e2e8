"""Which metrics a conclusion on a real captioner may rest on, and what moves them.

The answer is the rule that :mod:`~bias_pipeline.analysis.verdict` applies, and whether the number
found planted bias in ``power.csv``; the amounts are those of ``flatness.csv``. ``python -m
experiments.power.study`` and ``experiments.flatness.study`` write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bias_pipeline.analysis.conclusion_checks import LIMITS, NO_RULE
from bias_pipeline.analysis.power import measured_of
from bias_pipeline.analysis.verdict import JUDGED
from bias_pipeline.io.files import read_csv
from bias_pipeline.metrics.base import HEADLINES, MetricInfo
from bias_pipeline.metrics.value_names import sibling_name

YES, MATCHED, NO = "yes", "only under `alignment=matched`", "no"
ONLY_YES = "only a yes"
PLANTED = 20  # per cent of planted bias that a usable number must find
_SHOWN = {
    True: "`audit` shows it and answers nothing by it, and `compare` decides by it",
    False: "it is shown and decides nothing",
}
_DIFFERING = (
    "it follows {}, and published captioners differ from people by more than "
    f"{LIMITS.speech:.0%} in words and vocabulary; `compare` decides by it between captioners "
    "that write alike"
)


@dataclass(frozen=True)
class Usability:
    """Whether a headline may be concluded from."""

    headline: str  # which one
    part: str  # the part that decides, the headline itself where none does
    answer: str  # `YES`, `MATCHED`, `NO`, or `ONLY_YES` where planted bias stays unseen
    reason: str = ""  # for `NO` and `ONLY_YES`; else empty


@dataclass(frozen=True)
class Movement:
    """How far a number moves, in its unit."""

    metric: str  # its name
    alignment: str  # of people's captions
    part: str  # which number
    unit: str  # of the number
    world: str  # whether people or simulated captioners speak
    moved: float  # the largest change between speakers without bias
    half_width: float  # of the interval of that speaker's number; NaN if it has none
    speaker: str  # who changes it most
    planted: float  # the largest change by planted bias
    bias: str  # which bias changes it most


def usability(info: MetricInfo) -> list[Usability]:
    """The answer for each headline of a metric.

    Example:
        >>> from bias_pipeline.metrics.catalogue import info_of
        >>> [answer.answer for answer in usability(info_of("dbac"))]
        ['only under `alignment=matched`', 'no']
    """
    known = {*info.readings, *info.responses, *info.says}
    headlines = [headline for headline in HEADLINES if headline in known]
    return [_of(headline, info) for headline in headlines]


def _of(headline: str, info: MetricInfo) -> Usability:
    rule = info.readings.get(headline)
    part = rule.part if rule else str(headline)
    if info.question not in JUDGED:
        return Usability(headline, part, NO, _SHOWN[rule is not None])
    if rule is None:
        return Usability(headline, part, NO, NO_RULE)
    if rule.matched:
        return Usability(headline, part, MATCHED)
    if rule.follows:
        return Usability(headline, part, NO, _DIFFERING.format(" and ".join(rule.follows)))
    unseen = _unseen(info.name, part)
    return Usability(headline, part, ONLY_YES if unseen else YES, unseen)


def _unseen(metric: str, part: str) -> str:
    """A sentence on planted bias that a number finds with no measured size; empty if it does."""
    powers = measured_of(metric, part)
    if not powers or any(power.seen_from(PLANTED) for power in powers):
        return ""
    sizes = {m.n_images for power in powers for m in power.measurements}
    return (
        f"with {min(sizes)} to {max(sizes):,} images it did not find a planted bias of "
        f"{PLANTED} % in four of five trials; that it finds nothing says nothing"
    )


@cache
def movements() -> Sequence[Movement]:
    """All that the study has."""
    text = files("bias_pipeline.analysis").joinpath("flatness.csv").read_text(encoding="utf-8")
    return [
        Movement(
            metric=line["metric"],
            alignment=line["alignment"],
            part=line["part"],
            unit=line["unit"],
            world=line["world"],
            moved=float(line["moved"]),
            half_width=float(line["half_width"] or "nan"),
            speaker=line["speaker"],
            planted=float(line["planted"]),
            bias=line["bias"],
        )
        for line in read_csv(text)
    ]


def movements_of(metric: str, part: str, alignment: str) -> list[Movement]:
    """Those of a number, or of its difference from people where that is compared."""
    increase = sibling_name(part, "increase")
    return [
        movement
        for movement in movements()
        if movement.metric == metric
        and movement.alignment == alignment
        and movement.part in (part, increase)
    ]
