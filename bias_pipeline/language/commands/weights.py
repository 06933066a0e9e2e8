"""Declares the weights that language metrics read, for the command ``models``."""

from __future__ import annotations

from itertools import chain

from bias_pipeline.commands.models import WingWeights
from bias_pipeline.language import gguf, likelihoods
from bias_pipeline.language.visual_context import networks
from bias_pipeline.models import recognition, sentences

_LANGUAGE_MODEL = "metric.language_model"

WEIGHTS = WingWeights(
    kinds={
        _LANGUAGE_MODEL: (*chain(*likelihoods.KINDS.values()), gguf.KIND),
        "metric.sentence_encoder": sentences.KINDS,
        "metric.context": recognition.KINDS,
    },
    formats={_LANGUAGE_MODEL: gguf.find_gguf},
    networks=lambda metric: networks(metric.get("context")),
)
