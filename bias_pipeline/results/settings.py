"""Several results together: the settings in which they differ, so that none passes for another.

Rows have columns for the choices of a configuration. Values within a choice (``encoder.order``),
seeds and versions decide numbers too; what of them differs between cells of one metric stands in
:attr:`Result.settings`, and from there in every table, title and file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from bias_pipeline.corpus.split import seeds_of
from bias_pipeline.declared import TARGET
from bias_pipeline.results.identity import deciding
from bias_pipeline.results.store import COLUMNS, Result

if TYPE_CHECKING:
    from pandas import DataFrame

NAMED = ("encoder", "head", "masking", "alignment", "scoring")
_OF_ONE_METRIC = ("metric", "attribute", "dataset")
CHOICES = (*_OF_ONE_METRIC, "captioner", *NAMED)  # columns of a row that tell cells apart
ABSENT = "–"
_LONGEST = 40  # of a value, in characters
_MOST = 6  # settings in a label


class Results(tuple[Result, ...]):
    """Several results, in order.

    Example:
        >>> Results().frame().columns[:4].tolist()
        ['run_id', 'metric', 'metric_version', 'part']
    """

    __slots__ = ()

    def frame(self) -> DataFrame:
        """All rows as one table; fractions in ``value``, NaN where there is nothing.

        Settings in which cells differ, and which no other column tells, are further columns.
        """
        from pandas import DataFrame

        apart = with_settings(self)
        rows = [{**own.settings, **asdict(row)} for own in apart for row in own.rows]
        return DataFrame(rows, columns=[*COLUMNS, *further_columns(own.settings for own in apart)])


def with_settings(results: Iterable[Result]) -> list[Result]:
    """Results with what tells them from others of their metric, attribute and data set.

    Choices come first, then of cells whose choices are the same the values that differ.

    Args:
        results: of any metrics and captioners; settings that they have already are kept.
    """
    every = list(results)
    chosen = _differing_within(every, _OF_ONE_METRIC, _choices)
    valued = _differing_within(every, (*_OF_ONE_METRIC, *NAMED), values_of)
    return [
        replace(own, settings={**choices, **_untold(values, own.settings), **own.settings})
        for own, choices, values in zip(every, chosen, valued, strict=True)
    ]


def _untold(values: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
    """The values that no chosen whole tells: ``split=dbac`` tells ``split.test_share``.

    ``prompt=cloze`` tells ``encoder.prompt.template``.
    """
    return {key: v for key, v in values.items() if told.keys().isdisjoint(key.split("."))}


def label(result: Result) -> str:
    """A result's settings as part of a name: choices by their names, values with their keys.

    Example:
        >>> label(Result("x", [], {}, settings={"encoder": "ngram", "encoder.order": "1"}))
        'ngram encoder.order=1'
    """
    told = [v if k in NAMED else f"{k}={v}" for k, v in result.settings.items() if v]
    if len(told) > _MOST:
        told[_MOST:] = [f"and {len(told) - _MOST} more ({_digest(' '.join(told))})"]
    return " ".join(told)


def further_columns(settings: Iterable[Mapping[str, str]]) -> list[str]:
    """The keys of some results' settings that rows have no column for."""
    keys = dict.fromkeys(key for own in settings for key in own)
    return [key for key in keys if key not in COLUMNS]


def seeds_text(seeds: Sequence[int]) -> str:
    """Seeds as they are asked for.

    Example:
        >>> seeds_text((0, 12)), seeds_text((456, 789))
        ('2', '[456,789]')
    """
    first = tuple(seeds) == seeds_of(len(seeds)) if seeds else False
    return str(len(seeds)) if first else f"[{','.join(map(str, seeds))}]"


def _differing_within(
    results: Sequence[Result], names: Sequence[str], tell: Callable[[Result], dict[str, str]]
) -> list[dict[str, str]]:
    """For each result what of it differs from others that agree in the named columns."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, result in enumerate(results):
        key = tuple(getattr(result.rows[0], name) for name in names)
        groups.setdefault(key, []).append(number)
    found: list[dict[str, str]] = [{} for _ in results]
    for members in groups.values():
        told = [tell(results[number]) for number in members] if len(members) > 1 else []
        keys = dict.fromkeys(key for own in told for key in own)
        differing = [key for key in keys if len({own.get(key, ABSENT) for own in told}) > 1]
        for number, own in zip(members, told, strict=False):
            found[number] = {key: own.get(key, ABSENT) for key in differing}
    return found


def _choices(result: Result) -> dict[str, str]:
    return {name: str(getattr(result.rows[0], name)) for name in NAMED}


def values_of(result: Result) -> dict[str, str]:
    """Everything that decides numbers and is no choice, by the key that sets it."""
    row = result.rows[0]
    keys = result.manifest.get("keys", {})
    mounts = keys if isinstance(keys, Mapping) else {}
    tree = deciding(result.manifest.get("config"))
    return {
        **{_key(path, mounts): _text(leaf) for path, leaf in _leaves(tree, ())},
        "seeds": seeds_text(row.seeds),
        "metric_version": str(row.metric_version),
    }


def _leaves(node: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(node, Mapping):
        inner: Iterable[tuple[object, object]] = node.items()
    elif isinstance(node, list) and any(isinstance(item, Mapping | list) for item in node):
        inner = enumerate(node)
    else:
        yield path, node
        return
    for name, value in inner:
        yield from _leaves(value, path if name == TARGET else (*path, str(name)))


def _key(path: tuple[str, ...], mounts: Mapping[str, object]) -> str:
    """The key that sets a place of the metric's tree: that of what is mounted there.

    Example:
        >>> _key(("probe", "encoder", "order"), {"probe": "probe", "probe.encoder": "encoder"})
        'encoder.order'
    """
    for length in range(len(path), 0, -1):
        mounted = mounts.get(".".join(path[:length]))
        if mounted:
            return ".".join([str(mounted), *path[length:]])
    return ".".join(["metric", *path])


def _text(value: object) -> str:
    """A value as it would be typed; of a long one the beginning and its digest."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}… {_digest(text)}"
    return short.replace('"', "")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:6]
