"""Which published weights encoders and metrics of the configuration need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bias_pipeline.io.paths import choices_of, conf_dir

MAIN = "main"
# The keys of a configuration that name a model, and those of its revision.
_NAMING = {"model": "revision", "language_model": "lm_revision", "sentence_encoder": ""}


PUBLISHED = "published"  # the key of the default model


@dataclass(frozen=True)
class Need:
    """What an encoder or a metric needs.

    Attributes:
        model: a folder or a name on the hub.
        revision: of a name.
    """

    model: str
    revision: str = MAIN


def encoder_needs() -> dict[str, Need]:
    """The model of each encoder of the configuration that needs one.

    Example:
        >>> encoder_needs()["minilm"].model
        'sentence-transformers/all-MiniLM-L6-v2'
    """
    import yaml

    needs: dict[str, Need] = {}
    for name in choices_of(conf_dir() / "encoder"):
        read = yaml.safe_load((conf_dir() / "encoder" / f"{name}.yaml").read_text())
        settings: Mapping[str, Any] = read.get("encoder", {})
        named = settings.get("model") or settings.get(PUBLISHED)
        if named:
            needs[name] = Need(named, settings.get("revision", MAIN))
    return needs


def metric_needs() -> dict[str, Need]:
    """Models of metrics, independent of the encoder: ``metric.key`` to model.

    Example:
        >>> metric_needs()["gender_score.sentence_encoder"].model
        'sentence-transformers/all-MiniLM-L6-v2'
    """
    import yaml

    needs: dict[str, Need] = {}
    for name in choices_of(conf_dir() / "metric"):
        read = yaml.safe_load((conf_dir() / "metric" / f"{name}.yaml").read_text())
        needs |= {f"{name}.{key}": need for key, need in needs_within(read).items()}
    return needs


def needs_within(node: object) -> dict[str, Need]:
    """The models that a part of a configuration names, by their keys.

    Example:
        >>> needs_within({"probe": {"encoder": {"model": "gpt2"}}, "sentence_encoder": None})
        {'probe.encoder.model': Need(model='gpt2', revision='main')}
    """
    return dict(_named(node, ""))


def _named(node: object, start: str) -> Iterator[tuple[str, Need]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key in _NAMING and isinstance(value, str):
                yield f"{start}{key}", Need(value, node.get(_NAMING[key]) or MAIN)
            yield from _named(value, f"{start}{key}.")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from _named(value, f"{start}{number}.")
