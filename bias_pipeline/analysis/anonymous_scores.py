"""Scores of captioners on anonymous pictures as rows, and how metrics go with what people name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bias_pipeline.analysis.anonymous_attack import AttackScore
from bias_pipeline.analysis.human_scores import GT, HumanScore
from bias_pipeline.errors import DataError
from bias_pipeline.metrics.value_names import HEADLINES
from bias_pipeline.results.store import Result
from bias_pipeline.stats.correlation import Correlation, of_pearson, pearson

PEOPLE, ANONYMOUS = "people", "anonymous"
LARGEST = "largest_s_a"
HERE, PAPER = "here", "Bakr et al. 2023"
# Nine captioners, gender: Table 5's columns, and the scores of Table 3, each with GT of Table 5.
# Only 0.55 and 0.80 are in the paper; all four follow from its printed cells.
_PRINTED = (
    ("lic", LARGEST, ANONYMOUS, 0.5474),
    ("imagecaptioner2", LARGEST, ANONYMOUS, 0.8006),
    ("lic", "score", "coco", -0.0559),
    ("imagecaptioner2", "score", "coco", 0.0321),
)
_N_PRINTED = 9


@dataclass(frozen=True)
class AnonymousRow:
    """A number of a captioner; NaN where absent.

    ``data`` is ``anonymous``, or the labelled data set of a metric's value.
    """

    captioner: str
    attribute: str
    metric: str
    part: str
    data: str
    value: float
    ci_low: float
    ci_high: float
    seed_std: float
    n_images: int


@dataclass(frozen=True)
class CorrelationRow:
    """Pearson's correlation over captioners of a metric's part with ``gt``; see Correlation.

    ``source`` is ``here``, or the paper whose printed cells give it.
    """

    attribute: str
    metric: str
    part: str
    data: str
    value: float
    ci_low: float
    ci_high: float
    p_value: float
    n_captioners: int
    source: str


def people_rows(
    captioner: str, attribute: str, scores: Mapping[str, HumanScore]
) -> list[AnonymousRow]:
    """The rows of what people named."""
    return [
        AnonymousRow(
            captioner, attribute, PEOPLE, part, ANONYMOUS,
            score.value, score.low, score.high, math.nan, score.n_images,
        )
        for part, score in scores.items()
    ]  # fmt: skip


def attack_row(captioner: str, attribute: str, metric: str, score: AttackScore) -> AnonymousRow:
    """The row of attackers."""
    return AnonymousRow(
        captioner, attribute, metric, LARGEST, ANONYMOUS,
        score.value, score.low, score.high, score.seed_std, score.n_images,
    )  # fmt: skip


def labelled_rows(
    results: Iterable[Result], captioners: Sequence[str], attribute: str
) -> list[AnonymousRow]:
    """The headlines of finished runs about these captioners.

    Raises:
        DataError: if two runs give one number of a captioner on one data set.
    """
    rows: dict[tuple[str, str, str, str], AnonymousRow] = {}
    for result in results:
        for row in result.rows:
            if row.part not in HEADLINES or row.attribute != attribute:
                continue
            key = (row.captioner, row.metric, row.part, row.dataset)
            if row.captioner not in captioners:
                continue
            if key in rows:
                raise DataError(
                    f"--runs: several runs of {row.metric} about {row.captioner} on {row.dataset}, "
                    f"such as {row.run_id}; name a folder with one of each"
                )
            rows[key] = AnonymousRow(
                row.captioner, attribute, row.metric, row.part, row.dataset,
                row.value, row.ci_low, row.ci_high, row.seed_std, row.n_images,
            )  # fmt: skip
    return list(rows.values())


def correlations(rows: Sequence[AnonymousRow]) -> list[CorrelationRow]:
    """How each metric goes with what people name, over captioners.

    Args:
        rows: of one attribute.

    Returns:
        A row for each number besides people's; captioners without it or without ``gt`` are left
        out.
    """
    named = _values(rows, (PEOPLE, GT, ANONYMOUS))
    keys = dict.fromkeys(_key(row) for row in rows if row.metric != PEOPLE)
    lines = []
    for key in keys:
        values = _values(rows, key)
        both = [name for name in values if name in named]
        one, two = ([column[name] for name in both] for column in (values, named))
        lines.append(_row(rows[0].attribute, key, pearson(one, two), HERE))
    return lines


def printed_correlations(lines: Sequence[CorrelationRow]) -> list[CorrelationRow]:
    """Those of the same metrics that ImageCaptioner2 prints, or that follow from its tables."""
    metrics = {line.metric for line in lines if line.attribute == "gender"}
    return [
        _row("gender", (metric, part, data), of_pearson(value, _N_PRINTED), PAPER)
        for metric, part, data, value in _PRINTED
        if metric in metrics
    ]


def _row(
    attribute: str, key: tuple[str, str, str], correlation: Correlation, source: str
) -> CorrelationRow:
    metric, part, data = key
    value, low, high, p_value, n = correlation
    return CorrelationRow(attribute, metric, part, data, value, low, high, p_value, n, source)


def _key(row: AnonymousRow) -> tuple[str, str, str]:
    return row.metric, row.part, row.data


def _values(rows: Iterable[AnonymousRow], key: tuple[str, str, str]) -> dict[str, float]:
    """Captioner to number, where there is one."""
    return {r.captioner: r.value for r in rows if _key(r) == key and not math.isnan(r.value)}
