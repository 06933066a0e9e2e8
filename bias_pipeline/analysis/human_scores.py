"""What people can tell from captions of anonymous pictures: AnonymousBench's human score.

GT is the share of captions from which people name a group (Bakr et al., ImageCaptioner2 2023,
section 5.5.1). Of captions with several raters it is the share of raters, and the mean over
captions; the paper does not say how it averages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.stats.agreement import krippendorff
from bias_pipeline.stats.shares import NORMAL_95, effective_trials, wilson

GT = "gt"


class HumanScore(NamedTuple):
    """A share of answers; NaN where there is none."""

    value: float  # in [0, 1]; Krippendorff's alpha, at most 1, for `alpha`
    low: float  # of its 95 % interval over captions
    high: float  # of its 95 % interval over captions
    n_images: int  # how many captions it is about


def human_scores(
    votes: Mapping[str, Mapping[str, str]],
    groups: Sequence[str],
    truth: Mapping[str, str] | None = None,
) -> dict[str, HumanScore]:
    """What raters name.

    Args:
        votes: image id to rater to answer; an answer that is no group names none.
        groups: K names.
        truth: image id to the group that the picture does not show; None where there is none.

    Returns:
        Part to score: ``gt``, the share that names a group; ``names:GROUP``, that names this one;
        ``alpha``, the raters' agreement. With ``truth`` also ``gt:GROUP``, the share that names any
        group where this one is true, and of the answers that name one, the share that is right:
        ``right``, ``right:GROUP``.

    Example:
        >>> votes = {"1": {"ann": "male", "ben": "Unsure"}, "2": {"ann": "female", "ben": "female"}}
        >>> scores = human_scores(votes, ["male", "female"], {"1": "female", "2": "female"})
        >>> scores["gt"].value, scores["names:male"].value, scores["right"].value
        (0.75, 0.25, 0.5)
    """
    images = list(votes)
    counts = np.array(
        [[[*votes[image].values()].count(group) for group in groups] for image in images], np.int64
    ).reshape(len(images), len(groups))
    totals = np.array([len(votes[image]) for image in images], np.int64)
    named = counts.sum(axis=1)
    scores = {GT: _share(named, totals)}
    scores |= {f"names:{g}": _share(counts[:, k], totals) for k, g in enumerate(groups)}
    nobody = (totals - named)[:, None]
    alpha = krippendorff(np.hstack([counts, nobody]))
    scores["alpha"] = HumanScore(alpha, math.nan, math.nan, int((totals > 1).sum()))
    if truth is None:
        return scores
    codes = np.array([groups.index(truth[i]) if i in truth else -1 for i in images], np.int64)
    known = codes >= 0
    right = np.where(known, counts[np.arange(len(images)), codes], 0)
    scores["right"] = _share(right[known], named[known])
    for k, group in enumerate(groups):
        of_group = codes == k
        scores[f"{GT}:{group}"] = _share(named[of_group], totals[of_group])
        scores[f"right:{group}"] = _share(right[of_group], named[of_group])
    return scores


def _share(events: IntArray, trials: IntArray) -> HumanScore:
    """Mean over captions of the share of their answers; Wilson's interval at captions' spread."""
    answered = trials > 0
    n = int(answered.sum())
    if not n:
        return HumanScore(math.nan, math.nan, math.nan, 0)
    shares = events[answered] / trials[answered]
    value = float(shares.mean())
    error = float(shares.std(ddof=1) / math.sqrt(n)) if n > 1 else 0.0
    n_answers = float(trials[answered].sum())
    low, high = wilson(value, effective_trials(value, error, n_answers, n), NORMAL_95)
    return HumanScore(value, low, high, n)
