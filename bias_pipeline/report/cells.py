"""Finished cells side by side: in what they differ, and which of them is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bias_pipeline.results.store import Result

SETTINGS = ("encoder", "head", "masking", "alignment", "scoring")


def latest(results: Iterable[Result]) -> list[Result]:
    """One result a cell, in the order of their start: of two runs the one that started later."""
    return list({_cell(own): own for own in sorted(results, key=started)}.values())


def passed_over(results: Iterable[Result]) -> list[str]:
    """Metrics of which a run is not the latest of its cell though it has other settings."""
    every = list(results)
    shown = {_cell(own): own.manifest.get("config") for own in latest(every)}
    other = (own for own in every if own.manifest.get("config") != shown[_cell(own)])
    return list(dict.fromkeys(own.rows[0].metric for own in other))


def _cell(result: Result) -> tuple[object, ...]:
    row = result.rows[0]
    names = ("dataset", "attribute", "captioner", "metric", *SETTINGS)
    return tuple(getattr(row, name) for name in names)


def varying(results: Iterable[Result]) -> list[str]:
    """Settings in which cells of one metric and captioner differ."""
    every = list(results)
    found = []
    for key in SETTINGS:
        seen: dict[tuple[str, str], set[object]] = {}
        for result in every:
            row = result.rows[0]
            seen.setdefault((row.metric, row.captioner), set()).add(getattr(row, key))
        if any(len(values) > 1 for values in seen.values()):
            found.append(key)
    return found


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
