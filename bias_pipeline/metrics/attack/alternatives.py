"""The mean of scores under equally good choices, such as several word vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bias_pipeline.metrics.base import HEADLINES, Part, Score
from bias_pipeline.stats.choices import mean_over_choices
from bias_pipeline.text.transform import Transform, alternatives

CHOICES = "choices"  # the table's name


def over_alternatives(
    transforms: Sequence[Transform], level: float, compute: Callable[[Sequence[Transform]], Score]
) -> Score:
    """The mean of the scores under all alternatives of transforms.

    Args:
        transforms: of which one may have several alternatives.
        level: coverage of intervals, in (0, 1).
        compute: the score under one alternative.
    """
    scores = {name: compute(chosen) for name, chosen in alternatives(transforms).items()}
    return next(iter(scores.values())) if len(scores) == 1 else _mean(scores, level)


def _mean(scores: Mapping[str, Score], level: float) -> Score:
    """Averages of the parts that all scores have; predictions and tables of all, by name."""
    all_scores = list(scores.values())
    shared = [
        name for name in all_scores[0].parts if all(name in other.parts for other in all_scores)
    ]
    parts = {name: _part([score.parts[name] for score in all_scores], level) for name in shared}
    tables = {name: _lines(scores, name) for name in all_scores[0].tables}
    return Score(
        parts=parts,
        predictions=[
            replace(predictions, name=f"{name}:{predictions.name}")
            for name, score in scores.items()
            for predictions in score.predictions
        ],
        audit={
            key: {n: one.audit.get(key) for n, one in scores.items()} for key in all_scores[0].audit
        },
        notes=[
            *dict.fromkeys(note for one in all_scores for note in one.notes),
            *_notes(scores, parts),
        ],
        tables={**tables, CHOICES: list(_values(scores, shared))},
    )


def _part(parts: Sequence[Part], level: float) -> Part:
    return replace(parts[0], estimate=mean_over_choices([part.estimate for part in parts], level))


def _lines(scores: Mapping[str, Score], table: str) -> list[dict[str, object]]:
    return [
        {"choice": name, **line}
        for name, score in scores.items()
        for line in score.tables.get(table, ())
    ]


def _values(scores: Mapping[str, Score], shared: Sequence[str]) -> list[dict[str, object]]:
    """The value under each choice, of all numbers that differ between choices."""
    return [
        {"choice": name, "part": str(part), "value": estimate.value, "seed_std": estimate.seed_std}
        for part in shared
        if len({score.parts[part].estimate.value for score in scores.values()}) > 1
        for name, score in scores.items()
        for estimate in [score.parts[part].estimate]
    ]


def _notes(scores: Mapping[str, Score], parts: Mapping[str, Part]) -> list[str]:
    return [
        f"{name} is the mean over {', '.join(scores)}, between which it varies by "
        f"{part.estimate.choice_std:.2g} (standard deviation)"
        for name, part in parts.items()
        if name in HEADLINES
    ]
