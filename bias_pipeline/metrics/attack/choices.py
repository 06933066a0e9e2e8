"""One score of several, each with another choice that is equally good, such as word vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bias_pipeline.metrics.base import HEADLINES, Part, Score
from bias_pipeline.stats.choices import mean_over
from bias_pipeline.text.transform import Transform, alternatives

CHOICES = "choices"  # the table's name


def over_alternatives(
    transforms: Sequence[Transform], level: float, compute: Callable[[Sequence[Transform]], Score]
) -> Score:
    """The mean of the scores under every alternative that transforms stand for.

    Args:
        transforms: of which one may stand for several.
        level: coverage of intervals, in (0, 1).
        compute: the score under transforms that stand for themselves.
    """
    scores = {name: compute(own) for name, own in alternatives(transforms).items()}
    return next(iter(scores.values())) if len(scores) == 1 else _mean(scores, level)


def _mean(scores: Mapping[str, Score], level: float) -> Score:
    """Parts that all scores have, averaged; predictions and tables of all, told apart by name."""
    own = list(scores.values())
    shared = [name for name in own[0].parts if all(name in other.parts for other in own)]
    parts = {name: _part([score.parts[name] for score in own], level) for name in shared}
    tables = {name: _lines(scores, name) for name in own[0].tables}
    return Score(
        parts=parts,
        predictions=[
            replace(predictions, name=f"{name}:{predictions.name}")
            for name, score in scores.items()
            for predictions in score.predictions
        ],
        audit={key: {n: one.audit.get(key) for n, one in scores.items()} for key in own[0].audit},
        notes=[*dict.fromkeys(note for one in own for note in one.notes), *_told(scores, parts)],
        tables={**tables, CHOICES: list(_values(scores, shared))},
    )


def _part(parts: Sequence[Part], level: float) -> Part:
    return replace(parts[0], estimate=mean_over([part.estimate for part in parts], level))


def _lines(scores: Mapping[str, Score], table: str) -> list[dict[str, object]]:
    return [
        {"choice": name, **line}
        for name, score in scores.items()
        for line in score.tables.get(table, ())
    ]


def _values(scores: Mapping[str, Score], shared: Sequence[str]) -> list[dict[str, object]]:
    """What each choice gives for every number on which it has a say."""
    return [
        {"choice": name, "part": str(part), "value": own.value, "seed_std": own.seed_std}
        for part in shared
        if len({score.parts[part].estimate.value for score in scores.values()}) > 1
        for name, score in scores.items()
        for own in [score.parts[part].estimate]
    ]


def _told(scores: Mapping[str, Score], parts: Mapping[str, Part]) -> list[str]:
    return [
        f"{name} is the mean over {', '.join(scores)}, between which it varies by "
        f"{part.estimate.choice_std:.2g} (standard deviation)"
        for name, part in parts.items()
        if name in HEADLINES
    ]
