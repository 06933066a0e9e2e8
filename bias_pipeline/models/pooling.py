"""How the vectors of a text's tokens become one vector, read from the model's files.

Sentence models describe it in ``modules.json`` and its folders (the format of Reimers and
Gurevych's sentence-transformers, 2019). For other models the user chooses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bias_pipeline.errors import DataError
from bias_pipeline.io.json_files import expect, load_json

How = Literal["mean", "cls", "last"]
_HOWS: Mapping[str, How] = {"mean": "mean", "mean_tokens": "mean", "cls": "cls",
                            "cls_token": "cls", "lasttoken": "last"}  # fmt: skip
_MODULES = "modules.json"
_KNOWN = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class Pooling:
    """How the vectors of tokens become one.

    Attributes:
        how: the mean, the first token's or the last token's.
        normalize: whether it gets length 1.
        lowercase: whether texts are lower-cased first.
        longest: tokens that are read, including special ones; None: as many as the model has
            positions.
    """

    how: How
    normalize: bool = False
    lowercase: bool = False
    longest: int | None = None


def own_pooling(folder: Path, otherwise: How) -> Pooling:
    """The pooling that a model's own files describe.

    Args:
        folder: the model's.
        otherwise: the pooling if they do not say.

    Raises:
        DataError: if they need something unsupported, naming the file.
    """
    path = folder / _MODULES
    if not path.is_file():
        return Pooling(otherwise)
    modules = expect(load_json(path, what="a sentence model's parts"), list, path, "")
    paths = {_kind(module, path): str(module.get("path", "")) for module in modules}
    unknown = sorted(set(paths) - set(_KNOWN))
    if unknown:
        raise DataError(f"{path}: a part {unknown[0]!r} is not supported; parts are {_KNOWN}")
    reading = _optional(folder / "sentence_bert_config.json")
    longest = reading.get("max_seq_length")
    return Pooling(
        _how(folder / paths["Pooling"] / "config.json") if "Pooling" in paths else otherwise,
        normalize="Normalize" in paths,
        lowercase=reading.get("do_lower_case") is True,
        longest=longest if type(longest) is int and longest > 0 else None,
    )


def _kind(module: Any, path: Path) -> str:
    """The last part of a module's class."""
    return str(expect(module, dict, path, "").get("type")).rpartition(".")[2]


def _optional(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    settings: Mapping[str, Any] = expect(load_json(path, what="a model's settings"), dict, path, "")
    return settings


def _how(path: Path) -> How:
    """The one way that is switched on."""
    settings = expect(load_json(path, what="a model's pooling"), dict, path, "")
    named = settings.get("pooling_mode")
    prefix = "pooling_mode_"
    chosen = (
        [named]
        if isinstance(named, str)
        else [
            key.removeprefix(prefix)
            for key, on in settings.items()
            if key.startswith(prefix) and on
        ]
    )
    if len(chosen) != 1 or chosen[0] not in _HOWS:
        raise DataError(
            f"{path}: pools by {' and '.join(chosen) or 'nothing'}; mean, cls and last token are "
            "known: choose one with encoder.pooling=..."
        )
    return _HOWS[chosen[0]]
