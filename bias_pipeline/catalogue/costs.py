"""Expected computing time of a cell, from measured costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bias_pipeline.catalogue.registry import info_of
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.metrics.base import Cost, MetricInfo

_PER_CELL = 0.45  # seconds of any cell
_TYPICAL = 60_000  # captions of an unknown data set


def seconds(metric: str, captions: int, seeds: int) -> float:
    """Expected seconds of a cell, with attackers of ``encoder=ngram``.

    Args:
        metric: its name; an unknown one has the default cost.
        captions: of the model and of people.
        seeds: how many.

    Example:
        >>> seconds("dbac", 12_000, 5) > seconds("lic", 12_000, 5) > seconds("dpa", 0, 5)
        True
    """
    info = info_of(metric)
    cost = info.cost if info else Cost()
    return _PER_CELL + captions * (cost.per_caption + seeds * cost.per_attacked)


def seconds_of(
    metric: str, corpus: Corpus, seeds: int, settings: Mapping[str, object] | None = None
) -> float:
    """Expected seconds of a cell of a corpus; a metric that lacks data ends at once.

    Args:
        metric: its name.
        corpus: its captions.
        seeds: how many.
        settings: see :func:`captions`; if unknown, all captions count.
    """
    info = info_of(metric)
    refused = info is not None and not permitted(info, corpus)
    size = captions(len(corpus), len(corpus.model), len(corpus.human), settings or {})
    return seconds(metric, 0 if refused else size, seeds)


def permitted(info: MetricInfo, corpus: Corpus) -> bool:
    """Whether a corpus has what a metric needs."""
    return set(info.needs) <= _available(corpus)


def captions(images: int, model: int, human: int, settings: Mapping[str, object]) -> int:
    """How many captions a metric reads, at most.

    Args:
        images: of the corpus.
        model: captions of the model.
        human: captions of people.
        settings: of the metric; ``positions`` limits people's captions of an image, and ``sides``
            names those that count.

    Example:
        >>> captions(2000, 2000, 10_000, {"positions": 1, "sides": ["model", "human"]})
        4000
        >>> captions(2000, 2000, 10_000, {})
        12000
    """
    positions = settings.get("positions")
    if isinstance(positions, int):
        human = min(human, positions * images)
    sides = settings.get("sides")
    attacked = sides if isinstance(sides, list) else SIDES
    sizes = {"model": model, "human": human}
    return sum(size for side, size in sizes.items() if side in attacked)


def _available(corpus: Corpus) -> set[str]:
    """Those of :data:`~bias_pipeline.metrics.base.NEEDS` that a corpus has."""
    available = {
        "human captions": len(corpus.human) > 0,
        "objects": corpus.objects is not None,
        "pictures": corpus.pictures is not None,
        "published weights": True,  # do not depend on the corpus
    }
    return {need for need, has in available.items() if has}


def weight(metric: str, seeds: int) -> float:
    """Expected seconds of a cell of an unknown data set, to compare cells."""
    return seconds(metric, _TYPICAL, seeds)


def spared(infos: Iterable[MetricInfo]) -> list[str]:
    """Metrics that a short audit can leave out, in the order in which it does.

    They train attackers for a question that counting answers too; the costliest come first.
    """
    known = list(infos)
    counted = {info.question for info in known if info.family != "attack"}
    sparable = [info for info in known if info.family == "attack" and info.question in counted]
    return [info.name for info in sorted(sparable, key=lambda info: -info.cost.per_attacked)]
