"""Finds metrics by name, estimates how long they take, and says what to cite.

``conf/metric/NAME.yaml`` names a class. The ``info`` and docstring of the class describe the
metric.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.declared import TARGET
from bias_pipeline.io.paths import conf_file, group_choices
from bias_pipeline.metrics.base import SETS, Cost, MetricInfo

if TYPE_CHECKING:
    from bias_pipeline.metrics.base import Metric


def metric_names() -> list[str]:
    return group_choices("metric")


def infos() -> dict[str, MetricInfo]:
    return {name: metric_class(name).info for name in metric_names()}


def info_of(name: str) -> MetricInfo | None:
    """The info of a metric, or None if no metric has this name.

    Example:
        >>> info_of("lic").title
        'Leakage for Image Captioning'
    """
    return metric_class(name).info if name in metric_names() else None


@cache
def metric_class(name: str) -> type[Metric]:
    module, _, kind = str(settings_of(name)[TARGET]).rpartition(".")
    metric: type[Metric] = getattr(importlib.import_module(module), kind)
    return metric


@cache
def settings_of(name: str) -> Mapping[str, Any]:
    text = conf_file("metric", name).read_text(encoding="utf-8")
    settings: dict[str, Any] = yaml.safe_load(text)
    return settings


_PER_CELL = 0.2  # seconds of any cell
_NETWORK = 1e-3  # only metrics with networks of their own take longer per caption (seconds)
_NOISY = 21  # times the cost of a cell, for label noise: 20 trainings, or 200 cheap counts
_AT_EQUAL_STYLE = 2.5  # times the trainings: annotators' captions are attacked too
_TYPICAL = 60_000  # captions of an unknown data set


def seconds(metric: str, captions: int, seeds: float) -> float:
    """Expected processor seconds of a cell whose attackers have ``encoder=ngram``.

    Example:
        >>> seconds("dbac", 12_000, 5) > seconds("lic", 12_000, 5) > seconds("dpa", 0, 5)
        True
    """
    info = info_of(metric)
    cost = info.cost if info else Cost()
    return _PER_CELL + captions * (cost.per_caption + seeds * cost.per_attacked)


def seconds_of(
    metric: str,
    corpus: Corpus,
    seeds: int,
    settings: Mapping[str, object] | None = None,
    *,
    noisy: bool = False,
    matched: bool = False,
    trained: bool = False,
) -> float:
    """Expected processor seconds of a cell. A cell ends at once if the metric lacks data.

    ``matched`` says whether styles are made equal in the cell. ``trained`` says whether an earlier
    cell has already trained the attackers.
    """
    info = info_of(metric)
    refused = info is not None and not has_needs(info, corpus)
    known = settings or (settings_of(metric) if info else {})
    human = corpus.human.n_in_turn if "positions" in known else len(corpus.human)
    size = captions(len(corpus), len(corpus.model), human, known)
    times = float(_NOISY if noisy and not refused else 1)
    if info is not None and corpus.objects is None:
        times *= info.cost.without_objects
    attacks = 0 if trained else seeds * (_AT_EQUAL_STYLE if matched else 1.0)
    return times * len(corpus.each_sample) * seconds(metric, 0 if refused else size, attacks)


_OF_GUESSES = {"_target_", "defaults", "scoring", "relation", "stats"}  # change no attackers


def attackers(settings: Mapping[str, object]) -> str:
    """The settings that determine a metric's attackers, as JSON; empty without attackers.

    Example:
        >>> attackers(settings_of("lic")) == attackers(settings_of("leakage"))
        True
    """
    if not {"probe", "scoring"} <= settings.keys():
        return ""
    decides = {key: settings[key] for key in settings.keys() - _OF_GUESSES}
    return json.dumps(decides, sort_keys=True)


def has_needs(info: MetricInfo, corpus: Corpus) -> bool:
    return not missing(info.needs, corpus) and (info.streams or corpus.in_memory)


def missing(needs: Iterable[str], corpus: Corpus) -> set[str]:
    available = {
        "human captions": len(corpus.human) > 0,
        "objects": corpus.objects is not None,
        "pictures": corpus.pictures is not None,
        "published weights": True,  # do not depend on the corpus
        SETS: corpus.set_ids is not None,
    }
    return {need for need in needs if not available[need]}


def captions(images: int, model: int, human: int, settings: Mapping[str, object]) -> int:
    """The largest number of captions that a metric reads.

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


def weight(metric: str, seeds: int) -> float:
    """Expected seconds of a cell if the data set is unknown, only to compare cells."""
    return seconds(metric, _TYPICAL, seeds)


def kind(metric: str, encoder: str) -> str:
    """The kind of a cell. Cells of one kind (same encoder or slow metric) take similar times.

    Example:
        >>> kind("lic", "ngram"), kind("gender_score", "ngram")
        ('ngram', 'gender_score')
    """
    info = info_of(metric)
    cost = info.cost if info else Cost()
    return metric if cost.per_caption + cost.per_attacked > _NETWORK else encoder


def sparable_metrics(infos: Iterable[MetricInfo]) -> list[str]:
    """Metrics that a short audit leaves out, the slowest first.

    Metrics that count answer the same questions without attackers.
    """
    known = list(infos)
    counted = {info.question for info in known if info.family != "attack"}
    sparable = [info for info in known if info.family == "attack" and info.question in counted]
    return [info.name for info in sorted(sparable, key=lambda info: -info.cost.per_attacked)]


def corrected_by_gold(metric: str) -> bool:
    """Whether gold labels (``dataset.gold``) correct a metric."""
    from bias_pipeline.metrics.gold import CorrectableByGold

    return issubclass(metric_class(metric), CorrectableByGold)


def bibtex(metrics: Iterable[str]) -> str:
    """The sources of metrics as BibTeX, each source once. Unknown metrics are ignored.

    Example:
        >>> bibtex(["lic", "gone"]).startswith("@inproceedings{hirota2022lic,")
        True
    """
    known = [info for metric in metrics if (info := info_of(metric))]
    sources = dict.fromkeys(source for info in known for source in info.sources)
    return "\n".join(source.bibtex() for source in sources)
