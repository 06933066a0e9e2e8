"""Merges the files of ``conf/`` for calls from Python, as Hydra would but without Hydra.

So calls from Python have the defaults of the command line. Errors write a setting in Python's form:
``dataset={'strict': False}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.io import plugins
from bias_pipeline.io.paths import group_choices
from bias_pipeline.run.compose import Cell, checked_cell
from bias_pipeline.run.defaults_lists import merged_files, merged_over
from bias_pipeline.run.overrides import CHOICE, MOST_VALUES
from bias_pipeline.run.references import References

_NOTHING: Mapping[str, None] = MappingProxyType({})

_CHOICES = (
    "alignment|attribute|dataset|debias|encoder|head|masking|probe|scoring|split|stats|text|trainer"
)
_ENDING = "csv|jsonl?|npy|parquet|pkl|tsv|txt|ya?ml"  # endings of files, not keys
_KEY = rf"(?<![\w/.\\=-])({_CHOICES})\.(?!(?:{_ENDING})\b)([a-z]\w*)"
_CHOSEN = rf"\b({_CHOICES})=([a-z]\w*) \1\.(\w+)"  # one argument cannot set both
_VALUE = r"(\{[^}]*\}|\[[^\]]*\]|'[^']*'|[^\s,;:)]+)"
_PHRASES = {
    r"(?:--[a-z-]+[ =](?:'[^']*'|\S+) )+\((dataset\.\w+=[^)]+)\)": r"\1",
    r"--map[ =]('[^']*'|\S+): ": r"dataset={'label_map': ...}, \1: ",
    r"dataset\.captions=FILE, audit --captions FILE": "human=...",
    r"dataset\.instances=FILE \(audit --objects FILE\)": "objects=...",
    r"paths\.outputs=\.\.\. \(audit: --out\)": "out=...",
    r"dataset '[^']*', ": "",
    r"dataset '[^']*' (ha|list)s\b": r"the data \1",
    r"dataset '[^']*'": "the data",
    r"\bthe data ha\b": "the data have",
    r"\bor null\b": "or None",
    rf"(?<![\w/.])metric\.(?!(?:{_ENDING})\b)([a-z]\w*)": r"\1",
}
_PLAIN = {"true": "True", "false": "False", "null": "None"}


class UnknownSettingError(UsageError):
    def __init__(self, key: str, known: Set[str]) -> None:
        super().__init__(f"setting {key!r} is unknown; {did_you_mean(key, known)}")
        self.key, self.known = key, known


def preset(settings: Mapping[str, object], fixed: Mapping[str, str | None] = _NOTHING) -> Cell:
    """The checked cell that settings describe.

    Example:
        >>> cell = preset({"metric": "dbac", "seeds": 3, "positions": 2})
        >>> cell.choice("scoring"), cell.seeds, cell.tree["metric"]["positions"]
        ('inverse_ce', (0, 12, 456), 2)
    """
    choices = _choices(settings)
    values = {key: value for key, value in settings.items() if key not in choices}
    config, chosen = merged_files({**choices, **fixed})
    for key, value in values.items():
        # A key absent at the top is a parameter of the metric
        first = key.partition(".")[0]
        metric = config["metric"]
        if first not in config and first not in metric:
            known = {str(name) for name in (*config, *metric) if str(name)[0] != "_"}
            raise UnknownSettingError(key, known)
        tree: Any = _as_yaml(value, key)
        for name in reversed(key.split(".") if first in config else ["metric", *key.split(".")]):
            tree = {name: tree}
        nested: dict[str, object] = tree
        config = merged_over(config, nested, References(config))
    return checked_cell(config, chosen)


def _as_yaml(value: Any, key: str) -> object:
    """A setting in YAML's form: lists for sequences, Python's numbers for NumPy's numbers."""
    if isinstance(value, Mapping):
        return {name: _as_yaml(one, f"{key}.{name}") for name, one in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, range) and len(value) > MOST_VALUES:
        raise UsageError(f"{key}={value!r} has more than {MOST_VALUES:,} values; name fewer")
    if isinstance(value, list | tuple | range):
        return [_as_yaml(one, key) for one in value]
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    raise UsageError(
        f"{key}={value!r} must be a text, a number, or a list or mapping of texts and numbers"
    )


def _choices(settings: Mapping[str, object]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for key, value in settings.items():
        known = group_choices(key)
        if key == "attribute" and isinstance(value, list | tuple):
            chosen |= _intersection_choices(value)
        elif known and isinstance(value, list | tuple):
            raise UsageError(f"{key}={list(value)}: name one {key}, and call once for each")
        elif known and isinstance(value, str):
            if value not in known:
                unknown = f"{key}={value!r} is unknown; {did_you_mean(value, known)}"
                raise UsageError(plugins.advice(key, value) or unknown)
            chosen[key] = value
    return chosen


def _intersection_choices(names: Sequence[str]) -> dict[str, str]:
    if len(names) != 2:
        raise UsageError(f"attribute={list(names)}: name one attribute or two")
    parts = zip(("first", "second"), names, strict=True)
    return {"attribute": CHOICE, **{f"attribute@attribute.parts.{k}": v for k, v in parts}}


def in_python(message: str) -> str:
    """A message on settings of a command, reworded for the arguments of a Python call.

    Example:
        >>> in_python("complete it, or set dataset.strict=false; or raise split.folds")
        "complete it, or set dataset={'strict': False}; or raise split={'folds': ...}"
        >>> in_python("name it with --id-column COLUMN (dataset.id_column=COLUMN)")
        "name it with dataset={'id_column': COLUMN}"
        >>> in_python("choose encoder=sat encoder.backbone=boxes")
        "choose encoder='sat', **{'encoder.backbone': 'boxes'}"
        >>> in_python("dataset 'coco' has no objects; lower metric.min_support")
        'the data have no objects; lower min_support'
    """
    for pattern, words in _PHRASES.items():
        message = re.sub(pattern, words, message)
    message = re.sub(rf"{_CHOSEN}={_VALUE}", r"\1='\2', **{'\1.\3': '\4'}", message)
    message = re.sub(rf"{_KEY}={_VALUE}", _argument, message)
    return re.sub(rf"{_KEY}(?![\w.:=/'\]}}])", r"\1={'\2': ...}", message)


def _argument(setting: re.Match[str]) -> str:
    group, key, value = setting.groups()
    if re.fullmatch(r"[a-z_]+", value):
        value = _PLAIN.get(value, repr(value))
    value = re.sub(r"^\{([^':}]+): ", r"{'\1': ", value)
    return f"{group}={{'{key}': {value}}}"
