"""Finished cells side by side: which of them is shown, and what their manifests say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bias_pipeline.results.settings import NAMED
from bias_pipeline.results.store import Result


def latest(results: Iterable[Result]) -> list[Result]:
    """One result a cell, in the order of their start: of two runs the one that started later."""
    return list({_cell(own): own for own in sorted(results, key=started)}.values())


def _cell(result: Result) -> tuple[object, ...]:
    row = result.rows[0]
    names = ("dataset", "attribute", "captioner", "metric", *NAMED)
    return (*(getattr(row, name) for name in names), *result.settings.items())


def started(result: Result) -> str:
    """When a run began, as its manifest says; empty if it does not."""
    return str(result.manifest.get("started", ""))


def corpus_of(result: Result) -> Mapping[str, object]:
    """What a manifest says of the captions that were scored."""
    found = result.manifest.get("corpus", {})
    return found if isinstance(found, Mapping) else {}


def trained(result: Result) -> bool:
    """Whether the captioner is known to be trained on captions of this data set."""
    return corpus_of(result).get("trained_on_reference") is True


def captioners(results: Sequence[Result]) -> list[str]:
    """Their names, in the order of the results."""
    return list(dict.fromkeys(result.rows[0].captioner for result in results))
