"""Which groups captions name together with an object.

``pairs`` is (..., K, T): how often group a and object t are named together.
"""

from __future__ import annotations

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.metrics.functional.counts import nanmean, share

HENDRICKS_OFFSET = 0.0005


def group_shares(pairs: Float64Array) -> Float64Array:
    """(..., K, T) share of each group among the captions that name an object and one group.

    With two groups the first row is the ratio to men, c(o, man) / (c(o, man) + c(o, woman)). NaN
    where an object is named with no group.

    Example:
        >>> group_shares(np.array([[3.0, 0.0], [1.0, 0.0]]))[0].tolist()
        [0.75, nan]
    """
    return share(pairs, pairs.sum(axis=-2, keepdims=True))


def skew(pairs: Float64Array) -> Float64Array:
    """(..., T) how far each object's groups are from even, half the sum of |share - 1/K|.

    With two groups it is |ratio to men - 1/2|. The skew of a model minus that of people is the
    percentage-point increase of Seshadri et al. 2024, |G - 50| - |T - 50|.

    Example:
        >>> skew(np.array([[3.0], [1.0]])).tolist()
        [0.25]
    """
    shares = group_shares(pairs)
    distance: Float64Array = np.abs(shares - 1 / pairs.shape[-2]).sum(axis=-2) / 2
    return distance


def bias_disparity(model: Float64Array, human: Float64Array) -> Float64Array:
    """(..., K, T) (PR_M - PR_H) / PR_H, PR the share of object t in all that is named with group a.

    0: the object has the same share of the group's mentions; 1: twice as much; NaN where people
    never name the two together.

    Args:
        model: pairs of the captioner.
        human: pairs of people.

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
    """(..., K) mean over objects of |model's rate - people's rate| of naming it with each group.

    A rate is the captions that name object and group over the images that contain the object
    (plus the offset). An object that no image contains is left out, where the public loop would
    add the previous object's value again.

    Args:
        model: pairs of the captioner.
        human: pairs of people.
        images: (..., T) images that contain each object.
        offset: of the denominator.

    Source: Hendricks et al. 2018.

    Example:
        >>> mention_distance(np.array([[4.0]]), np.array([[2.0]]), np.array([10.0])).round(2)
        array([0.2])
    """
    change = np.abs(model - human) / (images + offset)[..., None, :]
    return nanmean(np.where(images[..., None, :] > 0, change, np.nan), 1)
