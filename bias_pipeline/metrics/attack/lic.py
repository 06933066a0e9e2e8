"""LIC and Leakage measure whether a captioner leaks the attribute more than annotators do.

Both metrics score the attackers of
:class:`~bias_pipeline.metrics.attack.caption_attack.CaptionAttack`. The setting ``metric.scoring``
says how guesses are scored.
"""

from __future__ import annotations

from typing import ClassVar

from bias_pipeline.metrics.attack.gold_guesses import CorrectedGuesses
from bias_pipeline.metrics.base import Cost, EvidenceRule, ExpectedResponse, MetricInfo
from bias_pipeline.metrics.references import BAKR_2024, HIROTA_2022, RELIC_2023, WANG_2019
from bias_pipeline.metrics.value_names import MODEL

_COST = Cost(per_caption=0.0, per_attacked=1e-5)


class LIC(CorrectedGuesses):
    """LIC is LIC_M - LIC_D (Hirota et al. 2022, eq. 2-4).

    ``model`` is LIC_M. ``human`` is LIC_D, averaged over attackers that read the first human
    caption of each image, the second caption, and so on. A uniform guess among K groups gives 1 /
    K^2. ``score`` is LIC on the images that both sides describe. ``lic_from:accuracy`` and
    ``lic_from:confidence`` add up to ``score``. Under ``alignment=matched``, conclusions rest on
    ``matched:beyond``.

    Example:
        >>> LIC.info.neutral
        0.0
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="lic",
        title="Leakage for Image Captioning",
        version=4,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0, captions reveal the group more than human captions do",
        family="attack",
        question="leakage",
        sources={HIROTA_2022: "eq. 2-4", RELIC_2023: "eq. 1-3"},
        without={"human captions": MODEL},
        cost=_COST,
        responses={
            "score": ExpectedResponse(
                moves=(
                    "negation",
                    "synonym",
                    "word order",
                    "unlisted word",
                    "object follows group",
                ),
                stays=(
                    "group follows object",
                    "women called men",
                    "names no group",
                    "no group instead of wrong",
                    "tire and diaper",
                    "biased annotators",
                ),
            )
        },
        says={
            "score": "an attacker is surer of the true {attribute} than with human captions",
        },
        readings={"score": EvidenceRule("score", follows=("words", "vocabulary"), matched=True)},
        source_identifying=True,
        learnable=True,
        amplification=True,
        full_context=True,
        language_aware=True,
    )


class Leakage(CorrectedGuesses):
    """Attackers' accuracy on the captioner's captions minus their accuracy on human captions.

    ``model`` and ``human`` are the two accuracies. A random guess among K groups gives 1 / K.
    Leakage scores the same guesses as LIC.

    Example:
        >>> Leakage.info.range
        (-1.0, 1.0)
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="leakage",
        title="Leakage amplification",
        version=4,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0, captions reveal the group more than human captions do",
        family="attack",
        question="leakage",
        sources={WANG_2019: "section 3", BAKR_2024: "section 3: on captions"},
        without={"human captions": MODEL},
        cost=_COST,
        responses={
            "score": ExpectedResponse(
                moves=("word order", "unlisted word", "object follows group"),
                stays=("biased annotators",),
            )
        },
        says={
            "score": "an attacker guesses the {attribute} correctly more often than with human "
            "captions",
        },
        readings={"score": EvidenceRule("score", follows=("words", "vocabulary"), matched=True)},
        source_identifying=True,
        learnable=True,
        amplification=True,
        full_context=True,
    )
