"""The functions that ``caption_bias.yaml`` in this folder calls, without importing lmms-eval."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

log = logging.getLogger(__name__)

METRICS = ("gender_error", "lic")


def picture(doc: Mapping[str, Any]) -> list[Any]:
    return [doc["image"].convert("RGB")]


def prompt(doc: Mapping[str, Any]) -> str:
    """The instruction to the model, which is the instruction of ``coco_cap`` for every picture."""
    from bias_pipeline.models.generation import usual_prompt

    return usual_prompt(kind="")


def entry(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The facts about a picture that metrics need, under ``gender`` and the keys of ``coco_cap``.

    ``audit`` reads these facts from the samples that ``--log_samples`` writes.

    Example:
        >>> doc = {"question_id": "7.jpg", "answer": ["a man"], "gender": "male"}
        >>> entry(doc, ["a woman"])["bias_lic"]["pred"]
        'a woman'
    """
    content = {
        "image_id": doc["question_id"],
        "pred": results[0] if results else "",
        "answer": list(doc["answer"]),
        "gender": doc["gender"],
    }
    return {f"bias_{metric}": content for metric in METRICS}


def gender_error(entries: Sequence[Mapping[str, Any]]) -> float:
    """The share of captions with the wrong gender, in [0, 1], or NaN without a score."""
    return _score("gender_error", entries)


def lic(entries: Sequence[Mapping[str, Any]]) -> float:
    """LIC, a fraction; see :func:`_score`."""
    return _score("lic", entries)


def _score(metric: str, entries: Sequence[Mapping[str, Any]]) -> float:
    """A metric's score; without a score NaN, with a warning, so that other tasks go on."""
    from bias_pipeline.errors import BiasPipelineError
    from bias_pipeline.integrations.epochs import CaptionBias

    labels = {e["image_id"]: e["gender"] for e in entries if e["gender"]}
    people = {e["image_id"]: e["answer"] for e in entries if e["answer"]}
    if metric == "lic" and not people:  # only the captioner's own level is left
        log.warning("bias_lic: no picture has human captions (answer)")
        return math.nan
    bias = CaptionBias(labels, [metric], people or None)
    bias.update([e["image_id"] for e in entries], [e["pred"] for e in entries])
    try:
        numbers, reasons = bias.compute_with_reasons()
    except BiasPipelineError as error:
        numbers, reasons = {metric: math.nan}, [str(error)]
    for reason in reasons:
        log.warning("bias_%s: %s", metric, reason)
    return numbers[metric]
