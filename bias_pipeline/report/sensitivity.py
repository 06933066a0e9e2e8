"""Tables and sentences on how far scores can be trusted.

How far they vary with attackers, changed pictures and wrong labels, and how small a bias so many
images can show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np

from bias_pipeline.analysis.attacker_variants import OVER, Stored, Variants, variants
from bias_pipeline.analysis.feature_sensitivity import (
    CHANGES,
    TITLES,
    Shift,
    is_steady,
)
from bias_pipeline.analysis.power import Measurement, balanced_images, measured
from bias_pipeline.analysis.sensitivity import (
    Agreement,
    Interval,
    Sensitivity,
    agreements,
    sensitivity,
)
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import DataError, counted
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.repeated_scores import NOISE
from bias_pipeline.metrics.value_names import T_TO_A, direction_of
from bias_pipeline.report.report_tables import Cell, Section, Sheet, SheetNumber
from bias_pipeline.report.tables import ARROWS, headline_name, number, percent
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.results.settings import label

MOST_PAIRS = 15
_NAMED = 4  # headlines that the sentence names
TEXT = (
    "CV: the standard deviation of a captioner's scores over attackers, divided by the size of "
    "their mean; it is large where the mean is near 0. Conflicts: the share of captioners that one "
    "attacker calls biased and the other does not. Intervals resample images; their noise adds to "
    "the spread, so resampled CVs are higher and some intervals miss their number. No attacker was "
    "trained for this section."
)


def steadiness(results: Sequence[Result], draws: Stored) -> Iterator[Section]:
    """A section for each number that two attackers or more have scored for two captioners or more.

    Args:
        results: of any metrics.
        draws: run id to the headlines under resampling.
    """
    try:
        all_scores = variants(results, draws, OVER)
    except DataError:  # runs that differ in nothing are reported elsewhere
        return
    for scores in all_scores:
        yield Section(
            title=f"{scores.setting.headline} under {counted(len(scores.variants), 'attackers')}",
            texts=[TEXT],
            sheets=[_coefficients(sensitivity(scores)), *_agreement(scores)],
            notes=_left_out(scores),
            chapter="Does it depend on the attacker?",
        )


def _coefficients(result: Sensitivity) -> Sheet:
    scores = result.scores
    values = dict(zip(scores.captioners, scores.values.tolist(), strict=True))
    lines: list[list[Cell]] = [
        [
            name,
            *map(_score, values[name], scores.units),
            _number(coefficient),
        ]
        for name, coefficient in result.per_captioner.items()
    ]
    mean: list[Cell] = ["mean", *(None for _ in scores.variants), _number(result.mean)]
    return Sheet("Scores by attacker", ["captioner", *scores.variants, "CV"], [*lines, mean])


def _score(value: float, unit: str) -> SheetNumber:
    fraction = unit == "fraction"
    return SheetNumber(value, fraction=fraction, digits=1 if fraction else 2)


def _agreement(scores: Variants) -> Iterator[Sheet]:
    pairs = agreements(scores)
    if len(pairs) <= MOST_PAIRS:
        head = ["attackers", "conflicts", "Pearson", "Spearman", "Kendall", "who"]
        yield Sheet("Agreement of attackers", head, [_pair(pair) for pair in pairs])


def _pair(pair: Agreement) -> list[Cell]:
    return [
        f"{pair.first}, {pair.second}",
        _number(pair.conflicts, fraction=True),
        *(_number(one) for one in (pair.pearson, pair.spearman, pair.kendall)),
        ", ".join(pair.conflicting),
    ]


def _number(interval: Interval, *, fraction: bool = False) -> SheetNumber:
    low, high = (None, None) if math.isnan(interval.low) else (interval.low, interval.high)
    return SheetNumber(interval.value, low, high, fraction=fraction, digits=1 if fraction else 2)


def _left_out(scores: Variants) -> list[str]:
    if not scores.absent:
        return []
    return [f"left out, since an attacker has not scored them: {', '.join(scores.absent)}"]


def print_title(scores: Variants) -> None:
    """Print what was scored under which variants, and which captioners are left out."""
    print_out(
        f"{scores.setting} · {counted(len(scores.variants), 'variants')}: "
        f"{', '.join(scores.variants)}"
    )
    if scores.absent:
        print_out(f"left out, since a variant lacks them: {', '.join(scores.absent)}")


def _interval_text(interval: Interval, written: Callable[[float], str]) -> str:
    """A number with its interval, where there is one."""
    if math.isnan(interval.low):
        return written(interval.value)
    return f"{written(interval.value)} [{written(interval.low)}, {written(interval.high)}]"


def print_sensitivity(result: Sensitivity, what: str, written: Callable[[float], str]) -> None:
    """Print a table of captioners; ``what`` heads its column."""
    lines = [
        [name, _interval_text(interval, written)] for name, interval in result.per_captioner.items()
    ]
    print_table(
        ["captioner", what], [*lines, ["mean", _interval_text(result.mean, written)]], keys=1
    )
    if result.one_sided:
        print_out(
            "some intervals do not include their number: noise of images adds to the spread of "
            "attackers, so resampled coefficients are higher"
        )
    print_out()


def print_agreements(pairs: Sequence[Agreement]) -> None:
    """Print how far attackers, or metrics, agree."""
    lines = [
        [
            f"{pair.first}, {pair.second}",
            _interval_text(pair.conflicts, percent),
            *(_interval_text(one, number) for one in (pair.pearson, pair.spearman, pair.kendall)),
            ", ".join(pair.conflicting),
        ]
        for pair in pairs
    ]
    header = ["pair", "conflicts", "Pearson", "Spearman", "Kendall", "who"]
    print_table(header, lines, keys=1)
    print_out()


def print_shifts(lines: Sequence[Shift]) -> None:
    """Each number with its shifts, in per cent where it is a fraction."""
    table = []
    several = len({line.attribute for line in lines}) > 1
    for (metric, attribute, alignment, part), both in groupby(
        lines, key=lambda line: (line.metric, line.attribute, line.alignment, line.part)
    ):
        numbers = list(both)
        cells = {line.change: _text(line.shift, line.shift_low, line.shift_high, line.unit)
                 for line in numbers}  # fmt: skip
        first = numbers[0]
        table.append(
            [
                metric,
                *([attribute] if several else []),
                alignment,
                part,
                _text(first.score, first.ci_low, first.ci_high, first.unit),
                *(cells.get(change, "") for change in CHANGES),
                "steady" if is_steady(numbers) else "not",
            ]
        )
    print_out("Score, and by how much it shifts; per cent where it is a fraction")
    header = ["metric", *(["attribute"] if several else []), "alignment", "number", "score"]
    header += [*(TITLES[name] for name in CHANGES), ""]
    print_table(header, table, keys=header.index("score"), left=len(header))


def _text(value: float, low: float, high: float, unit: str) -> str:
    written = percent if unit == "fraction" else number
    return f"{written(value)} [{written(low)}, {written(high)}]"


def noise_sentences(results: Sequence[Result]) -> list[str]:
    """One for each attribute whose label errors were asked for.

    It names the headlines that would leave their interval, those that would move furthest first.

    Args:
        results: of one captioner; their settings make the names of headlines differ.
    """
    by_attribute: dict[str, list[Result]] = {}
    for result in results:
        if _wrong(result):
            by_attribute.setdefault(result.rows[0].attribute, []).append(result)
    return [_sentence(name, noisy) for name, noisy in by_attribute.items()]


def _sentence(attribute: str, results: Sequence[Result]) -> str:
    rates = ", ".join(f"{share:.1%} of {group}" for group, share in _wrong(results[0]).items())
    moved: list[tuple[float, str]] = []
    n_tested = 0
    for result in results:
        rows = {row.part: row for row in result.rows}
        for name in HEADLINES:
            row, move = rows.get(name), rows.get(_part(name))
            if row is None or move is None or math.isnan(row.ci_low + move.value):
                continue
            n_tested += 1
            wide = max(row.ci_high - row.value, row.value - row.ci_low)
            if not row.ci_low <= row.value + move.value <= row.ci_high:
                what = f"{headline_name(row, label(result))} by {_amount(move)}"
                moved.append((abs(move.value) / wide if wide else math.inf, what))
    first = f"If more {attribute} labels were wrong (a further {rates})"
    if not moved:
        return f"{first}, none of {counted(n_tested, 'headlines')} would leave its interval."
    names = [what for _, what in sorted(moved, key=lambda one: -one[0])]
    more = f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
    intervals = "its interval" if len(names) == 1 else "their intervals"
    return (
        f"{first}, {len(names)} of {counted(n_tested, 'headlines')} would leave {intervals}: "
        f"{', '.join(names[:_NAMED])}{more}."
    )


def _part(headline: str) -> str:
    return NOISE if headline == "score" else f"{headline}:{NOISE}"


def _amount(move: Row) -> str:
    if move.unit != "fraction":
        return f"{move.value:+.3g}"
    sign = "+" if move.value > 0 else ""
    return f"{sign}{percent(move.value)} points"


def _wrong(result: Result) -> Mapping[str, float]:
    """Group to the share of wrong labels that was asked for; empty if none was."""
    audit = result.manifest.get("audit")
    noise = audit.get(NOISE) if isinstance(audit, Mapping) else None
    wrong = noise.get("wrong") if isinstance(noise, Mapping) else None
    return wrong if isinstance(wrong, Mapping) else {}


def smallest_bias_lines(balanced: float) -> list[list[str]]:
    """A line for each metric and planted bias.

    Args:
        balanced: images in groups of equal size.

    Returns:
        Metric, where the bias is planted, the smallest score that is detected with a power of 80
        per cent, and for each planted share how many of the trials concluded it.
    """
    return [
        [
            reading_of(power.first),
            power.first.design,
            amount(power.smallest(balanced), power.first.unit),
            *(_concluded(m) for m in power.at(balanced) if m.planted),
        ]
        for power in measured()
    ]


def planted_shares() -> list[int]:
    """The planted shares, per cent."""
    return sorted({m.planted for power in measured() for m in power.measurements if m.planted})


def unseen(
    corpus: Corpus, attribute: str, metrics: Collection[str], matched: Collection[str]
) -> str:
    """What the images of a corpus cannot show; of several planted biases, the worst seen counts.

    Args:
        corpus: that will be scored.
        attribute: whose groups.
        metrics: that will run.
        matched: those that will run at equal speech.
    """
    sizes = [size for size in _described(corpus, attribute) if size]
    if len(sizes) != 2:
        return "how small a bias these images can show was measured for two groups only"
    balanced = balanced_images(sizes)
    largest: dict[str, tuple[float, str]] = {}
    for power in measured():
        name = reading_of(power.first)
        runs = matched if power.first.alignment == "matched" else metrics
        # From objects to groups nothing is scored without objects.
        scored = corpus.objects is not None or direction_of(power.first.part) != T_TO_A
        if power.first.metric in runs and scored:
            score = (power.smallest(balanced), power.first.unit)
            largest[name] = max(score, largest.get(name, score))
    amounts = ", ".join(f"{amount(*score)} ({name})" for name, score in largest.items())
    return f"the smallest biases that {sum(sizes)} images show with a power of 80 %: {amounts}"


def _described(corpus: Corpus, attribute: str) -> list[int]:
    """Images of each group that the captioner describes, and people where they wrote captions."""
    rows = np.unique(corpus.model.image_rows)
    if len(corpus.human):
        rows = np.intersect1d(rows, corpus.human.image_rows)
    grouping = corpus.groupings[attribute]
    codes = grouping.codes[rows]
    return np.bincount(codes[codes >= 0], minlength=len(grouping.names)).tolist()


def reading_of(measurement: Measurement) -> str:
    """Metric, direction and alignment, with the part if it is not the headline."""
    direction = direction_of(measurement.part)
    part = measurement.part.removeprefix(f"{direction}:")
    words = (
        measurement.metric,
        ARROWS.get(direction, ""),
        measurement.alignment.removeprefix("constant"),
        "" if part in HEADLINES else f"({part})",
    )
    return " ".join(filter(None, words))


def amount(score: float, unit: str) -> str:
    """A score with its unit.

    Example:
        >>> amount(0.0612, "fraction"), amount(0.39, "nat")
        ('6.1 points', '0.39 nat')
    """
    return f"{percent(score)} points" if unit == "fraction" else f"{number(score)} {unit}"


def _concluded(measurement: Measurement) -> str:
    """Trials that concluded it out of all; a dash where most gave no answer."""
    if 2 * measurement.withheld > measurement.trials:
        return "–"
    return f"{measurement.concluded}/{measurement.trials}"
