"""The embedded data set ``scenes``, described by people and by captioners.

Its default world shows people doing things; the affective world has pictures that make people feel
something.

A generator of our own: a grammar and word lists, no third-party text. What leans towards which
group, and how much each simulated captioner amplifies it, is known exactly (see :mod:`truth`).
"""

from bias_pipeline.datasets.scenes.captioners import CAPTIONERS, world_captions
from bias_pipeline.datasets.scenes.dataset import write_affect, write_drawn, write_scenes
from bias_pipeline.datasets.scenes.slots import BiasSettings
from bias_pipeline.datasets.scenes.truth import Truth, truth
from bias_pipeline.datasets.scenes.world import Image, World, generate

__all__ = [
    "CAPTIONERS",
    "BiasSettings",
    "Image",
    "Truth",
    "World",
    "generate",
    "truth",
    "world_captions",
    "write_affect",
    "write_drawn",
    "write_scenes",
]
