"""The embedded data set ``scenes``, described by people and by captioners.

Its default world shows people doing things; the affective world has pictures that make people feel
something.

A generator of our own: a grammar and word lists, no third-party text. What leans towards which
group, and how much each simulated captioner amplifies it, is known exactly (see
:mod:`bias_pipeline.scenes.truth`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bias_pipeline.scenes.captioners import CAPTIONERS, world_captions
    from bias_pipeline.scenes.dataset import write_affect, write_drawn, write_scenes
    from bias_pipeline.scenes.slots import BiasSettings
    from bias_pipeline.scenes.world import Image, World, generate

_MODULES = {
    "CAPTIONERS": "captioners",
    "BiasSettings": "slots",
    "Image": "world",
    "World": "world",
    "generate": "world",
    "world_captions": "captioners",
    "write_affect": "dataset",
    "write_drawn": "dataset",
    "write_scenes": "dataset",
}
__all__ = [
    "CAPTIONERS",
    "BiasSettings",
    "Image",
    "World",
    "generate",
    "world_captions",
    "write_affect",
    "write_drawn",
    "write_scenes",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
