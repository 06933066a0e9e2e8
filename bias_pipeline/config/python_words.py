"""Messages in Python's words: ``dataset={'strict': False}``, where a command has an override."""

from __future__ import annotations

import re

_CHOICES = (
    "alignment|attribute|dataset|debias|encoder|head|masking|probe|scoring|split|stats|text|trainer"
)
_ENDING = "csv|jsonl?|npy|parquet|pkl|tsv|txt|ya?ml"  # of files, which are no settings
_KEY = rf"(?<![\w/.\\=-])({_CHOICES})\.(?!(?:{_ENDING})\b)([a-z]\w*)"
_VALUE = r"(\{[^}]*\}|\[[^\]]*\]|'[^']*'|[^\s,;:)]+)"
_PHRASES = {
    r"(?:--[a-z-]+ (?:'[^']*'|\S+) )+\((dataset\.\w+=[^)]+)\)": r"\1",
    r"--map ('[^']*'|\S+): ": r"dataset={'label_map': ...}, \1: ",
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


def in_python(message: str) -> str:
    """A message about a command's data and settings, about the arguments of a call.

    Example:
        >>> in_python("complete it, or set dataset.strict=false; or raise split.folds")
        "complete it, or set dataset={'strict': False}; or raise split={'folds': ...}"
        >>> in_python("name it with --id-column COLUMN (dataset.id_column=COLUMN)")
        "name it with dataset={'id_column': COLUMN}"
        >>> in_python("dataset 'coco' has no objects; lower metric.min_support")
        'the data have no objects; lower min_support'
    """
    for pattern, words in _PHRASES.items():
        message = re.sub(pattern, words, message)
    message = re.sub(rf"{_KEY}={_VALUE}", _argument, message)
    return re.sub(rf"{_KEY}(?![\w.:=/'\]}}])", r"\1={'\2': ...}", message)


def _argument(setting: re.Match[str]) -> str:
    group, key, value = setting.groups()
    if re.fullmatch(r"[a-z_]+", value):
        value = _PLAIN.get(value, repr(value))
    value = re.sub(r"^\{([^':}]+): ", r"{'\1': ", value)
    return f"{group}={{'{key}': {value}}}"
