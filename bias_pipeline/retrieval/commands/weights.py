"""Tells the command ``models`` which weights the encoders of pictures and texts read."""

from __future__ import annotations

from bias_pipeline.commands.models import ENCODER, WingWeights
from bias_pipeline.models import clip
from bias_pipeline.models.pretrained import Pretrained
from bias_pipeline.retrieval.dual_encoders import KINDS
from bias_pipeline.retrieval.encoders import Fiber, OpenClip
from bias_pipeline.retrieval.fiber.folder import find_fiber, is_fiber
from bias_pipeline.retrieval.open_clip_folder import find_open_clip, is_open_clip


def _find_folder(name: str, revision: str) -> Pretrained | None:
    if is_fiber(name):
        return find_fiber(name)
    return find_open_clip(name, revision=revision) if is_open_clip(name) else None


WEIGHTS = WingWeights(
    kinds={ENCODER: KINDS, "embed --model": clip.KINDS},
    formats={ENCODER: _find_folder},
    encoders=(Fiber, OpenClip),
)
