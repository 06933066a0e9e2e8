"""Tells the command ``models`` which weights captioners and detectors read."""

from __future__ import annotations

from bias_pipeline.commands.models import ENCODER, WingWeights
from bias_pipeline.models import detection, generation, picture_text
from bias_pipeline.pictures.captioners import fitted
from bias_pipeline.pictures.vision import networks

WEIGHTS = WingWeights(
    kinds={
        ENCODER: (*picture_text.KINDS, *fitted.KINDS),
        "caption --model": (*generation.KINDS, *fitted.KINDS),
        "encoder.backbone": networks.KINDS,
        "data detect --model": detection.KINDS,
    }
)
