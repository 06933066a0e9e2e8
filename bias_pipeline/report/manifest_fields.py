"""Facts on finished cells: the latest of each, and entries of their manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bias_pipeline.metrics.base import LABELLED
from bias_pipeline.results.settings import NAMED
from bias_pipeline.results.store import Result


def latest(results: Iterable[Result]) -> list[Result]:
    """The latest result of each cell, in the order of their start."""
    return list({_cell(result): result for result in sorted(results, key=started)}.values())


def _cell(result: Result) -> tuple[object, ...]:
    row = result.rows[0]
    names = ("dataset", "attribute", "captioner", "metric", *NAMED)
    return (*(getattr(row, name) for name in names), *result.settings.items())


def started(result: Result) -> str:
    """When a run began, as its manifest says; empty if it does not."""
    return str(result.manifest.get("started", ""))


def manifest_corpus(result: Result) -> Mapping[str, object]:
    """The manifest's entry on the captions that were scored."""
    corpus = result.manifest.get("corpus", {})
    return corpus if isinstance(corpus, Mapping) else {}


def images_of(result: Result) -> str:
    """The images a metric is about; for results of earlier versions, those of a group."""
    metric = result.manifest.get("metric", {})
    return str(metric.get("images", LABELLED)) if isinstance(metric, Mapping) else LABELLED


def training_of(result: Result) -> bool:
    """Whether the captioner is known to be trained on captions of this data set."""
    return manifest_corpus(result).get("trained_on_reference") is True


def captioners(results: Sequence[Result]) -> list[str]:
    """Their names, in the order of the results."""
    return list(dict.fromkeys(result.rows[0].captioner for result in results))
