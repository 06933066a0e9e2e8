"""Table 5 of ImageCaptioner2 without labels: what attackers make of captions of anonymous pictures.

No picture has a true group, so a guess cannot be right, and LIC's indicator has no meaning. What is
left of both metrics is the largest s_a, the attacker's probability of its guess. The readings are
ours: the paper says neither how it scores without labels nor on what its attackers are trained.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from bias_pipeline.captioners.backbones import BoxBackbone
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.attack.attack_runner import labelled
from bias_pipeline.metrics.attack.caption_attack import CaptionAttack
from bias_pipeline.metrics.attack.imagecaptioner2 import ImageCaptioner2
from bias_pipeline.metrics.value_names import MODEL
from bias_pipeline.text.scored_text import ScoredText
from bias_pipeline.text.transform import Transform, applied


class AttackScore(NamedTuple):
    """The mean over captions of the largest s_a."""

    value: float  # in [1 / K, 1], the mean over attackers too
    low: float  # of its 95 % interval over captions
    high: float  # of its 95 % interval over captions
    n_images: int  # captions that were read
    seed_std: float  # between attackers; NaN for one


def anonymous_corpus(
    captioner: str, captions: Mapping[str, str], photos: Mapping[str, Path], scored: ScoredText
) -> Corpus:
    """Captions of anonymous pictures, without groups and without anything to mask in pictures."""
    records = [
        Record(image, model=text, image=photos[image], regions=())
        for image, text in captions.items()
    ]
    corpus = Corpus.build(records, dataset="anonymous", captioner=captioner, groups={})
    return scored.of(corpus)


def anonymous_attack(
    metric: CaptionAttack,
    transforms: Sequence[Transform],
    reference: Corpus,
    anonymous: Corpus,
    seeds: Sequence[int],
) -> AttackScore:
    """Attackers learn from captions of labelled images and read those of anonymous pictures.

    Each learns from all labelled images but those of a validation part, as many of each group, with
    the metric's masked words; one of ImageCaptioner2 with their masked pictures too. It then reads
    the masked captions of anonymous pictures, and looks at these as they are, since they show no
    group.

    Args:
        metric: LIC or ImageCaptioner2, with its attackers.
        transforms: what tokenises and masks captions.
        reference: the captioner's captions of labelled images.
        anonymous: its captions of anonymous pictures.
        seeds: of the attackers.
    """
    ready = applied(transforms, reference)
    if isinstance(metric, ImageCaptioner2):
        _check_pictures(metric)
        ready = metric.image_masking(ready)
    data = joined(_learnt(metric, ready), applied(transforms, anonymous), len(ready))
    splits = _splits(metric.draw_splits(ready, seeds), len(ready), len(anonymous))
    probs = metric.predictions(data, splits).probs
    largest = np.stack([one.max(axis=1) for one in probs])  # (S, N)
    captions = largest.mean(axis=0)
    half = float(stats.t.ppf(0.975, len(captions) - 1) * stats.sem(captions))
    value = float(captions.mean())
    std = float(largest.mean(axis=1).std(ddof=1)) if len(largest) > 1 else math.nan
    return AttackScore(value, value - half, min(value + half, 1.0), len(captions), std)


def _check_pictures(metric: ImageCaptioner2) -> None:
    encoder = metric.probe.encoder
    if encoder.sees == "objects" or isinstance(getattr(encoder, "visual", None), BoxBackbone):
        raise NotApplicableError(
            "anonymous pictures have no annotated objects; choose attackers that look at pixels "
            "(encoder.backbone=own or timm:NAME)"
        )


def _learnt(metric: CaptionAttack, ready: Corpus) -> LabelledCaptions:
    """The labelled captions, with their pictures where attackers look at them."""
    grouping = ready.groupings[metric.attribute.name]
    images = grouping.labelled & metric.attackable(ready)
    captions = ready.model.take(images[ready.model.image_rows])
    for table in labelled(MODEL, captions, grouping, 1):
        return metric.shown(table, ready)
    raise NotApplicableError(
        f"captioner {ready.captioner!r}, dataset {ready.dataset!r}: attackers need two groups or "
        "more with at least ten captioned images each"
    )


def joined(data: LabelledCaptions, anonymous: Corpus, n_images: int) -> LabelledCaptions:
    """Both tables as one; the rows of anonymous images follow those of the n labelled ones."""
    more = anonymous.model
    texts = [table.text(row) for table in (data.captions, more) for row in range(len(table))]
    rows = np.concatenate([data.captions.image_rows, n_images + more.image_rows])
    pictures = data.pictures
    if pictures is not None and anonymous.pictures is not None:
        shown = anonymous.pictures.take(more.image_rows)
        regions = pictures.regions or (None,) * len(pictures)
        pictures = Pictures(
            (*pictures.files, *shown.files), (*regions, *[()] * len(shown)), pictures.edits
        )
    return replace(
        data,
        captions=Captions.from_texts(texts, rows.tolist()),
        labels=np.concatenate([data.labels, np.zeros(len(more), np.int64)]),  # never learnt from
        pictures=pictures,
    )


def _splits(splits: Sequence[Split], n_images: int, n_anonymous: int) -> list[Split]:
    """For each seed one split that learns from labelled images and tests all anonymous ones."""
    tested = np.arange(n_images, n_images + n_anonymous)
    first = {split.seed: split for split in reversed(splits)}
    return [
        replace(
            split,
            train=np.concatenate([split.train, split.test]),
            test=tested,
            balanced=True,
            whole_test=True,
        )
        for split in reversed(first.values())
    ]
