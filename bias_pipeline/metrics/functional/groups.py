"""Computes numbers on the groups that captions name, compared with labels or with objects.

``outcomes`` is (..., K, K + 1) and counts the images labelled with group a whose caption names
group b alone. The last column counts captions that name no group or several groups. For images
whose group annotators could not see, ``outcomes`` is (..., K + 2). Then the columns count images
whose caption names each of K groups alone, no group, and several groups. An image with several
captions adds a share to each column. ``pairs`` (..., K, T) says how often captions name group a and
object t together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from scipy.special import binom

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.metrics.functional.counts import nanmean, share


def outcomes(labels: IntArray, named: IntArray, n_groups: int) -> Float64Array:
    """(K, K + 1): the counts of outcomes, which the module describes.

    Args:
        labels: (N,) labelled groups.
        named: (N,) named groups, below 0 if the caption does not name exactly one group.
        n_groups: K.

    Example:
        >>> outcomes(np.array([0, 0, 1]), np.array([0, 1, -1]), 2).tolist()
        [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    column = np.where(named < 0, n_groups, named)
    cells = np.bincount(labels * (n_groups + 1) + column, minlength=n_groups * (n_groups + 1))
    return cells.reshape(n_groups, n_groups + 1).astype(np.float64)


def rates(outcomes: Float64Array) -> Float64Array:
    """(..., K, 3): for each group, the shares of correct, incorrect and other; they sum to 1.

    Source: Hendricks et al. 2018, section 4.

    Example:
        >>> rates(np.array([[6.0, 1.0, 3.0], [0.0, 4.0, 0.0]])).tolist()
        [[0.6, 0.1, 0.3], [1.0, 0.0, 0.0]]
    """
    counts = by_outcome(outcomes)
    return share(counts, counts.sum(axis=-1, keepdims=True))


def by_outcome(outcomes: Float64Array) -> Float64Array:
    """(..., K, 3): for each group, the counts of correct, incorrect and other.

    Example:
        >>> by_outcome(np.array([[6.0, 1.0, 3.0], [0.0, 4.0, 0.0]])).tolist()
        [[6.0, 1.0, 3.0], [4.0, 0.0, 0.0]]
    """
    named, other = outcomes[..., :-1], outcomes[..., -1]
    correct = np.diagonal(named, axis1=-2, axis2=-1)
    return np.stack([correct, named.sum(axis=-1) - correct, other], axis=-1)


def gender_error(outcomes: Float64Array, over: str = "all") -> Float64Array:
    """(...): the share of images whose caption names a group other than the labelled one.

    Args:
        outcomes: see the module.
        over: the denominator: ``all`` labelled images, or only the images whose caption has a
            ``named`` group.

    Source: Hendricks et al. 2018, section 4; published tables divide by all images.

    Example:
        >>> counts = np.array([[6.0, 1.0, 3.0], [0.0, 4.0, 6.0]])
        >>> gender_error(counts).item(), round(gender_error(counts, "named").item(), 4)
        (0.05, 0.0909)
    """
    wrong, whole = wrongly_named(outcomes, over)
    return share(wrong.sum(axis=-1), whole.sum(axis=-1))


def wrongly_named(outcomes: Float64Array, over: str = "all") -> tuple[Float64Array, Float64Array]:
    """(..., K): images of each group whose caption names another group, and all counted images.

    Args:
        outcomes: see the module.
        over: see :func:`gender_error`.

    Example:
        >>> wrong, named = wrongly_named(np.array([[6.0, 1.0, 3.0], [0.0, 4.0, 6.0]]), "named")
        >>> wrong.tolist(), named.tolist()
        ([1.0, 0.0], [7.0, 4.0])
    """
    counts = by_outcome(outcomes)
    return counts[..., 1], counts[..., : 3 if over == "all" else 2].sum(axis=-1)


def gender_ratio(counts: Float64Array, numerator: int = 0) -> Float64Array:
    """(...): one group's count divided by the other group's count, or NaN if the divisor is 0.

    Args:
        counts: (..., 2) captions or labels of each of two groups.
        numerator: which group is divided by the other. Published tables divide men by women;
            Hendricks et al. 2018 divide women by men.

    Example:
        >>> counts = np.array([30.0, 10.0])
        >>> gender_ratio(counts).item(), round(gender_ratio(counts, 1).item(), 2)
        (3.0, 0.33)
    """
    return share(counts[..., numerator], counts[..., 1 - numerator])


def divergence(distributions: Float64Array) -> Float64Array:
    """The Jensen-Shannon divergence of K distributions, in bits, from 0 to log2 K.

    Args:
        distributions: (..., K, C), the last axis sums to 1.

    Source: Hendricks et al. 2018 (two groups); for more groups, Lin 1991 with equal weights.

    Example:
        >>> divergence(np.array([[1.0, 0.0], [0.0, 1.0]])).item()
        1.0
    """
    mean = distributions.mean(axis=-2)
    return _entropy(mean) - _entropy(distributions).mean(axis=-1)


def _entropy(p: Float64Array) -> Float64Array:
    bits: Float64Array = -(p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=-1)
    return np.maximum(bits, 0.0) + 0.0


def named_shares(outcomes: Float64Array) -> Float64Array:
    """(..., K): the share of images whose caption names each group alone; NaN without images.

    Args:
        outcomes: see the module.

    Example:
        >>> import numpy as np
        >>> named_shares(np.array([30.0, 10.0, 50.0, 10.0])).tolist()
        [0.3, 0.1]
    """
    return share(outcomes[..., :-2], outcomes.sum(axis=-1, keepdims=True))


def one_named(outcomes: Float64Array) -> Float64Array:
    """(...): the share of images whose caption names exactly one group; NaN without images.

    Args:
        outcomes: see the module.

    Example:
        >>> import numpy as np
        >>> one_named(np.array([30.0, 10.0, 50.0, 10.0])).item()
        0.4
    """
    return share(outcomes[..., :-2].sum(axis=-1), outcomes.sum(axis=-1))


def several_named(outcomes: Float64Array) -> Float64Array:
    """(...): the share of images whose caption names several groups; NaN without images.

    Args:
        outcomes: see the module.

    Example:
        >>> import numpy as np
        >>> several_named(np.array([30.0, 10.0, 50.0, 10.0])).item()
        0.1
    """
    return share(outcomes[..., -1], outcomes.sum(axis=-1))


def joined_names_one(
    silent: IntArray, alone: IntArray, captions: IntArray, drawn: IntArray
) -> Float64Array:
    """(N,): the chance that randomly drawn captions of an image together name exactly one group.

    Of the C captions of an image, let c name no group and a_g name group g alone. If m captions are
    drawn without replacement, the chance that they name g alone is [binom(c + a_g, m) - binom(c,
    m)] / binom(C, m). The chances of all groups are added.

    Args:
        silent: (N,) c.
        alone: (N, K) a.
        captions: (N,) C, captions that name several groups included.
        drawn: (N,) m, at most C.

    Returns:
        In [0, 1], or NaN where an image has no caption.

    Example:
        >>> one = np.array([1])
        >>> joined_names_one(2 * one, np.array([[1, 0]]), 3 * one, 2 * one).round(3).tolist()
        [0.667]
    """
    quiet = binom(silent, drawn)
    favourable = binom(silent[:, None] + alone, drawn[:, None]) - quiet[:, None]
    return share(favourable.sum(axis=1), np.where(captions > 0, binom(captions, drawn), 0.0))


Prior = Literal["none", "jeffreys", "laplace", "proportional", "share"]
PRIORS: Mapping[str, float] = {
    "none": 0.0,
    "jeffreys": 0.5,
    "laplace": 1.0,
    "proportional": 1.0,
    "share": 0.02,
}


def pseudo_counts(groups: Float64Array, prior: str) -> Float64Array:
    """(..., K): the alpha of each group, which :func:`epsilons` uses.

    Args:
        groups: (..., K) captions of a group.
        prior: of :data:`PRIORS`.

    Example:
        >>> pseudo_counts(np.array([30.0, 10.0]), "proportional").tolist()
        [1.5, 0.5]
    """
    if prior == "share":
        return PRIORS[prior] * groups
    if prior == "proportional":
        return np.asarray(groups / groups.mean(axis=-1, keepdims=True), np.float64)
    return PRIORS[prior] * np.ones_like(groups)


def epsilons(
    joint: Float64Array, groups: Float64Array, prior: str = "proportional"
) -> Float64Array:
    """The inequality of each task: the maximum of |ln P(t|a) - ln P(t|a')| over pairs of groups.

    P(t|a) = (c(a, t) + alpha) / (c(a) + 2 alpha), the mean of a beta posterior. If groups differ in
    size, the same alpha for all groups is not fair: a task that is never named then seems more
    frequent in the smaller group. ``proportional`` distributes alpha by the groups' sizes (ours).

    Args:
        joint: (..., K, T) captions of a group that name a task.
        groups: (..., K) captions of a group.
        prior: name of alpha: ``laplace`` 1, ``jeffreys`` 1/2, ``none`` 0, ``proportional`` 1 on
            average, K c(a) / c for a group, ``share`` 0.02 c(a), which adds 2 % of captions to
            every task, however many images there are. With the other priors epsilon depends on the
            number of images, since the largest ratio is larger among few captions (ours).

    Returns:
        (..., T), 0 or more; NaN if a group has no caption, or if there is no prior and no caption
        of a group names the task.

    Example:
        >>> counts = np.array([[20.0], [10.0]])
        >>> epsilons(counts, np.array([100.0, 100.0]), "none").round(4).tolist()
        [0.6931]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = pseudo_counts(groups, prior)
        rate = (joint + alpha[..., :, None]) / (groups + 2 * alpha)[..., :, None]
        logs = np.log(np.where((rate > 0) & (groups > 0)[..., :, None], rate, np.nan))
    spread: Float64Array = logs.max(axis=-2) - logs.min(axis=-2)
    return spread


def differential_fairness(
    joint: Float64Array, groups: Float64Array, prior: str = "proportional"
) -> Float64Array:
    """Differential fairness, the largest of the :func:`epsilons`, or NaN if all are unknown.

    Example:
        >>> joint, groups = np.array([[20.0, 5], [10, 5]]), np.array([100.0, 100])
        >>> differential_fairness(joint, groups, "none").round(4).item()
        0.6931
    """
    each = epsilons(joint, groups, prior)
    known = np.isfinite(each)
    largest = np.where(known, each, -np.inf).max(axis=-1, initial=-np.inf)
    return np.where(known.any(axis=-1), largest, np.nan)


HENDRICKS_OFFSET = 0.0005


def group_shares(pairs: Float64Array) -> Float64Array:
    """(..., K, T): the share of each group among captions that name the object and one group.

    ``pairs`` may also count labelled images. With two groups the first row is the ratio to men,
    c(o, man) / (c(o, man) + c(o, woman)). The share is NaN where an object is named with no group.

    Example:
        >>> group_shares(np.array([[3.0, 0.0], [1.0, 0.0]]))[0].tolist()
        [0.75, nan]
    """
    return share(pairs, pairs.sum(axis=-2, keepdims=True))


def skew(pairs: Float64Array) -> Float64Array:
    """(..., T): the skew of each object, which is half the sum of |share - 1/K| over groups.

    With two groups the skew is |ratio to men - 1/2|. The model's skew minus the annotators' skew is
    the percentage-point increase of Seshadri et al. 2024, |G - 50| - |T - 50|.

    Example:
        >>> skew(np.array([[3.0], [1.0]])).tolist()
        [0.25]
    """
    shares = group_shares(pairs)
    distance: Float64Array = np.abs(shares - 1 / pairs.shape[-2]).sum(axis=-2) / 2
    return distance


def bias_disparity(model: Float64Array, human: Float64Array) -> Float64Array:
    """(..., K, T): (PR_M - PR_H) / PR_H, the relative difference between two shares.

    PR is the share of object t among all objects named together with group a. The value is 0 if the
    model's share equals the annotators' share, and 1 if the model's share is twice as large. The
    value is NaN where annotators never name group and object together.

    Args:
        model: pairs of the captioner.
        human: pairs of annotators.

    Source: Lin et al. 2019, eq. 1-3 (bias disparity of recommenders; P(category) cancels).

    Example:
        >>> bias_disparity(np.array([[2.0, 2.0]]), np.array([[1.0, 3.0]])).round(2).tolist()
        [[1.0, -0.33]]
    """
    before, after = (share(p, p.sum(axis=-1, keepdims=True)) for p in (human, model))
    return share(after - before, before)


def mention_distance(
    model: Float64Array, human: Float64Array, images: Float64Array, offset: float = HENDRICKS_OFFSET
) -> Float64Array:
    """(..., K): the mean over objects of |model's rate - annotators' rate| for each group.

    A rate is the number of captions that name object and group, divided by the number of images
    that contain the object (plus the offset). Objects that no image contains are left out. For
    these objects the public code repeats the value of the previous object.

    Args:
        model: pairs of the captioner.
        human: pairs of annotators.
        images: (..., T) images that contain each object.
        offset: of the denominator.

    Source: Hendricks et al. 2018.

    Example:
        >>> mention_distance(np.array([[4.0]]), np.array([[2.0]]), np.array([10.0])).round(2)
        array([0.2])
    """
    change = np.abs(model - human) / (images + offset)[..., None, :]
    return nanmean(np.where(images[..., None, :] > 0, change, np.nan), 1)
