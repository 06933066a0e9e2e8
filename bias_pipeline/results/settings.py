"""Puts several results together, with the settings in which they differ.

Rows have columns for the choices of a configuration. Values within a choice (``encoder.order``),
seeds and versions decide numbers too. :attr:`Result.settings` has the settings in which cells of
one metric differ. Every table, title and file shows them, so that nobody confuses results.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from bias_pipeline.corpus.split import seeds_of
from bias_pipeline.declared import TARGET
from bias_pipeline.results.identity import deciding
from bias_pipeline.results.rows import COLUMNS, Result
from bias_pipeline.text.scored_text import ScoredText

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Table

NAMED = ("encoder", "head", "masking", "alignment", "scoring")
_OF_ONE_METRIC = ("metric", "attribute", "dataset")
CHOICES = (*_OF_ONE_METRIC, "captioner", *NAMED)  # columns of a row in which cells may differ
ABSENT = "–"
ANNOTATOR = "dataset.annotator"  # the key whose labels are used
# Settings of how captions are read, with their defaults. A manifest has them under `text`.
READ_AS = {
    field.name: str(field.default) for field in fields(ScoredText) if field.name != "subjects"
}
_LONGEST = 40  # characters of a printed value
_MOST = 6  # settings in a label


class Results(tuple[Result, ...]):
    """Several results, in order.

    Example:
        >>> Results().frame().columns[:4].tolist()
        ['run_id', 'metric', 'metric_version', 'part']
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no results"

    def frame(self) -> DataFrame:
        """All rows as one table; ``value`` has fractions, and NaN for absent numbers.

        Settings in which cells differ become further columns, unless a column already shows them.
        """
        from pandas import DataFrame

        apart = with_settings(self)
        rows = [{**result.settings, **vars(row)} for result in apart for row in result.rows]
        return DataFrame(
            rows, columns=[*COLUMNS, *further_columns(result.settings for result in apart)]
        )

    def arrow(self) -> Table:
        """All rows as an Arrow table, in which absent numbers are null."""
        from pyarrow import Table

        return Table.from_pandas(self.frame(), preserve_index=False)


def with_settings(results: Iterable[Result]) -> list[Result]:
    """Results with the settings that differ within a metric, attribute and data set.

    Choices that differ come first, followed by the values in which cells with equal choices differ.
    """
    every = list(results)
    chosen = _differing_within(every, _OF_ONE_METRIC, _choices)
    valued = _differing_within(every, (*_OF_ONE_METRIC, *NAMED), values_of)
    described = []
    for result, choices, values in zip(every, chosen, valued, strict=True):
        # A chosen file implies values: split=dbac split.test_share, prompt=cloze
        # encoder.prompt.template.
        apart = {k: v for k, v in values.items() if result.settings.keys().isdisjoint(k.split("."))}
        described.append(replace(result, settings={**choices, **apart, **result.settings}))
    return described


def label(result: Result) -> str:
    """The settings of a result as part of a name: a choice by its name, a value as ``key=value``.

    Settings for reading captions are left out if they have their default.

    Example:
        >>> label(Result("x", [], {}, settings={"encoder": "ngram", "encoder.order": "1"}))
        'ngram encoder.order=1'
    """
    usual = {f"text.{key}": default for key, default in READ_AS.items()}
    others = {k: v for k, v in result.settings.items() if v and v != usual.get(k)}
    parts = [v if k in NAMED else f"{k}={v}" for k, v in others.items()]
    if len(parts) > _MOST:
        parts[_MOST:] = [f"and {len(parts) - _MOST} more ({_digest(' '.join(parts))})"]
    return " ".join(parts)


def further_columns(settings: Iterable[Mapping[str, str]]) -> list[str]:
    """The keys of settings for which rows have no column."""
    keys = dict.fromkeys(key for result_settings in settings for key in result_settings)
    return [key for key in keys if key not in COLUMNS]


def deciding_seeds(result: Result) -> tuple[int, ...]:
    """The seeds on which a result's numbers depend; empty if nothing is trained."""
    return result.rows[0].seeds if any(row.n_seeds for row in result.rows) else ()


def seeds_text(seeds: Sequence[int]) -> str:
    """Seeds in the form for a command.

    Example:
        >>> seeds_text((0, 12)), seeds_text((456, 789))
        ('2', '[456,789]')
    """
    first = tuple(seeds) == seeds_of(len(seeds)) if seeds else False
    return str(len(seeds)) if first else f"[{','.join(map(str, seeds))}]"


def read_as(result: Result, text: Mapping[str, object]) -> Result:
    """The result under other settings for reading captions that change none of its captions."""
    return replace(result, manifest={**result.manifest, "text": text})


def _differing_within(
    results: Sequence[Result], names: Sequence[str], describe: Callable[[Result], dict[str, str]]
) -> list[dict[str, str]]:
    """The facts in which a result differs from results with equal ``names``, for each result."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, result in enumerate(results):
        key = tuple(getattr(result.rows[0], name) for name in names)
        groups.setdefault(key, []).append(number)
    differences: list[dict[str, str]] = [{} for _ in results]
    for members in groups.values():
        facts = [describe(results[number]) for number in members] if len(members) > 1 else []
        keys = dict.fromkeys(key for values in facts for key in values)
        differing = [key for key in keys if len({values.get(key, ABSENT) for values in facts}) > 1]
        for number, values in zip(members, facts, strict=False):
            differences[number] = {key: values.get(key, ABSENT) for key in differing}
    return differences


def _choices(result: Result) -> dict[str, str]:
    return {name: str(getattr(result.rows[0], name)) for name in NAMED} | text_settings(result)


def text_settings(result: Result) -> dict[str, str]:
    """How captions were read, by key (:class:`~bias_pipeline.text.scored_text.ScoredText`)."""
    stored = result.facts.text
    return {f"text.{key}": str(stored.get(key, usual)) for key, usual in READ_AS.items()}


def values_of(result: Result) -> dict[str, str]:
    """Each value that decides numbers, by key, without names of chosen files."""
    row, facts = result.rows[0], result.facts
    return {
        **_values_in(json.dumps([facts.config, facts.keys]), row.dataset),
        "seeds": seeds_text(deciding_seeds(result)),
        "metric_version": str(row.metric_version),
        **gold_setting(result),
    }


def gold_setting(result: Result) -> dict[str, str]:
    """``dataset.gold`` with a digest of the gold labels that corrected the result; may be empty."""
    digest = result.facts.gold
    return {"dataset.gold": digest[:6]} if digest else {}


@lru_cache(maxsize=1024)  # runs of a sweep share many values
def _values_in(written: str, dataset: str) -> Mapping[str, str]:
    """The values of a configuration by key; ``written`` is its JSON with its keys."""
    config, keys = json.loads(written)
    return {_key(path, keys): _text(leaf) for path, leaf in _leaves(deciding(config, dataset), ())}


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
    """The key that sets a path in the metric's tree.

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
    """A value in the form that a user would type; a long value is cut and gets a digest."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}… {_digest(text)}"
    return short.replace('"', "")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:6]
