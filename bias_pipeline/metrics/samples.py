"""The score of a captioner that wrote several captions of each image: the mean over its samples.

The k-th captions of all images are one sample and are scored as if there were no others; every
number is the mean over samples. Resamples draw images with all their samples, so intervals contain
how much captions of an image differ, as those of a single sample do, and more samples make them
narrower. Splits and seeds are the same for all samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bias_pipeline.metrics.base import Metric, Part, Score
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.choices import mean_over_samples


def mean_score(scores: Sequence[Score], metric: Metric) -> Score:
    """The score of several samples; examples and stored predictions are of the first.

    A number that some sample lacks is NaN.

    Args:
        scores: of each sample.
        metric: that computed them.
    """
    if len(scores) == 1:
        return scores[0]
    level = getattr(metric, "stats", Bootstrap()).level
    names = dict.fromkeys(name for score in scores for name in score.parts)
    return replace(
        scores[0],
        parts={
            name: _mean_part([s.parts[name] for s in scores if name in s.parts], len(scores), level)
            for name in names
        },
        notes=list(dict.fromkeys(note for score in scores for note in score.notes)),
    )


def _mean_part(parts: Sequence[Part], n_samples: int, level: float) -> Part:
    estimate = mean_over_samples([part.estimate for part in parts], level)
    if len(parts) < n_samples:
        nan = math.nan
        estimate = replace(estimate, value=nan, ci_low=nan, ci_high=nan, p_value=nan, draws=None)
    return replace(
        parts[0],
        estimate=estimate,
        n_images=round(float(np.mean([part.n_images for part in parts]))),
        coverage=float(np.mean([part.coverage for part in parts])),
        neutral_rate=float(np.mean([part.neutral_rate for part in parts])),
    )
