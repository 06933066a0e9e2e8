"""The metrics: ``conf/metric/NAME.yaml`` names a class, whose ``info`` describes the metric."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from bias_pipeline.declared import TARGET
from bias_pipeline.io.plugins import conf_file, group_choices

if TYPE_CHECKING:
    from bias_pipeline.metrics.base import Metric, MetricInfo


def metric_names() -> list[str]:
    """Names of the metrics, as in ``metric=``, from the names of files."""
    return group_choices("metric")


def infos() -> dict[str, MetricInfo]:
    """The info of every metric, by name."""
    return {name: metric_class(name).info for name in metric_names()}


def info_of(name: str) -> MetricInfo | None:
    """The info of a metric; None if there is no such metric (any more).

    Example:
        >>> info_of("lic").title
        'Leakage for Image Captioning'
    """
    return metric_class(name).info if name in metric_names() else None


@cache
def metric_class(name: str) -> type[Metric]:
    """The class that a metric's YAML names."""
    module, _, kind = str(settings_of(name)[TARGET]).rpartition(".")
    metric: type[Metric] = getattr(importlib.import_module(module), kind)
    return metric


def settings_of(name: str) -> dict[str, Any]:
    """A metric's settings as in its YAML."""
    text = conf_file("metric", name).read_text(encoding="utf-8")
    settings: dict[str, Any] = yaml.safe_load(text)
    return settings
