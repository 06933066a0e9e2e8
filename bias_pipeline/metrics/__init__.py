"""Metrics of societal bias in captions and in retrieval, a class each, imported on first use.

``metric=NAME`` names the same metrics; :mod:`bias_pipeline.metrics.functional` has their formulas.

Example:
    >>> from bias_pipeline.metrics import LIC, GenderError
    >>> LIC.info.title, GenderError.info.name
    ('Leakage for Image Captioning', 'gender_error')
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bias_pipeline.metrics.attack.dbac import DBAC
    from bias_pipeline.metrics.attack.dpa import DPA
    from bias_pipeline.metrics.attack.imagecaptioner2 import ImageCaptioner2
    from bias_pipeline.metrics.attack.lic import LIC, Leakage
    from bias_pipeline.metrics.counting.assumed_group import AssumedGroup
    from bias_pipeline.metrics.counting.ba_directional import DirectionalBiasAmplification
    from bias_pipeline.metrics.counting.ba_mals import BiasAmplificationMALS
    from bias_pipeline.metrics.counting.cooccurrence import Cooccurrence
    from bias_pipeline.metrics.counting.descriptions import GroupDescriptions
    from bias_pipeline.metrics.counting.differential_fairness import DifferentialFairness
    from bias_pipeline.metrics.counting.gender_error import GenderError, GroupAccuracy
    from bias_pipeline.metrics.counting.gender_ratio import GenderRatio
    from bias_pipeline.metrics.counting.multi_directional import MultiDirectional
    from bias_pipeline.metrics.counting.objects import InventedObjects
    from bias_pipeline.metrics.language.gender_distance import GenderDistance
    from bias_pipeline.metrics.language.gender_score import GenderScore
    from bias_pipeline.metrics.language.quality import Quality
    from bias_pipeline.metrics.retrieval.fairness import RetrievalFairness

_MODULES = {
    "AssumedGroup": "counting.assumed_group",
    "BiasAmplificationMALS": "counting.ba_mals",
    "Cooccurrence": "counting.cooccurrence",
    "DBAC": "attack.dbac",
    "DPA": "attack.dpa",
    "DifferentialFairness": "counting.differential_fairness",
    "DirectionalBiasAmplification": "counting.ba_directional",
    "GenderDistance": "language.gender_distance",
    "GenderError": "counting.gender_error",
    "GenderRatio": "counting.gender_ratio",
    "GenderScore": "language.gender_score",
    "GroupAccuracy": "counting.gender_error",
    "GroupDescriptions": "counting.descriptions",
    "ImageCaptioner2": "attack.imagecaptioner2",
    "InventedObjects": "counting.objects",
    "LIC": "attack.lic",
    "Leakage": "attack.lic",
    "MultiDirectional": "counting.multi_directional",
    "Quality": "language.quality",
    "RetrievalFairness": "retrieval.fairness",
}
__all__ = [
    "DBAC",
    "DPA",
    "LIC",
    "AssumedGroup",
    "BiasAmplificationMALS",
    "Cooccurrence",
    "DifferentialFairness",
    "DirectionalBiasAmplification",
    "GenderDistance",
    "GenderError",
    "GenderRatio",
    "GenderScore",
    "GroupAccuracy",
    "GroupDescriptions",
    "ImageCaptioner2",
    "InventedObjects",
    "Leakage",
    "MultiDirectional",
    "Quality",
    "RetrievalFairness",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
