"""Leakage: the attacker's plain accuracy, on captions."""

from __future__ import annotations

from typing import ClassVar

from bias_pipeline.metrics.attack.caption_attack import CaptionAttack
from bias_pipeline.metrics.base import Cost, EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.references import BAKR_2023, WANG_2019


class Leakage(CaptionAttack):
    """Leakage amplification = accuracy on model captions - accuracy on human ones.

    Source: Wang et al. 2019, applied to captions. ``model`` and ``human`` are accuracies in
    [0, 1], 1 / K by chance; ``score`` is their difference on the images that have both. It uses
    the same predictions as LIC.

    Example:
        >>> Leakage.info.range
        (-1.0, 1.0)
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="leakage",
        title="Leakage amplification",
        version=2,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0 the captioner leaks more than people do",
        family="attack",
        question="leakage",
        sources={WANG_2019: "section 3", BAKR_2023: "section 3: on captions"},
        cost=Cost(per_caption=0.0),
        responses={
            "score": ExpectedResponse(
                moves=("word order", "unlisted word", "object follows group"),
                stays=("biased people",),
            )
        },
        says={
            "score": "an attacker guesses the {attribute} correctly more often than from people's",
        },
        readings={"score": EvidenceRule("score", follows=("words", "vocabulary"), matched=True)},
        source_identifying=True,
        learnable=True,
        amplification=True,
        full_context=True,
    )
