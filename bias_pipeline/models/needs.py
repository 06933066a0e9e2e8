"""Which published weights the encoders of the configuration need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bias_pipeline.io.paths import choices_of, conf_dir

MAIN = "main"


@dataclass(frozen=True)
class Need:
    """What an encoder needs.

    Attributes:
        model: a folder or a name on the hub.
        revision: of a name.
    """

    model: str
    revision: str = MAIN


def encoder_needs() -> dict[str, Need]:
    """What each encoder of the configuration needs, of those that need a model.

    Example:
        >>> encoder_needs()["minilm"].model
        'sentence-transformers/all-MiniLM-L6-v2'
    """
    import yaml

    found = {}
    for name in choices_of(conf_dir() / "encoder"):
        read = yaml.safe_load((conf_dir() / "encoder" / f"{name}.yaml").read_text())
        own: Mapping[str, Any] = read.get("encoder", {})
        if "model" in own:
            found[name] = Need(own["model"], own.get("revision", MAIN))
    return found
