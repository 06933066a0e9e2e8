"""Groups that captions name where annotators could not see the group.

``outcomes`` is (..., K + 2): images whose caption names each of K groups alone, none, and several;
an image with many captions has a share in each.
"""

from __future__ import annotations

from bias_pipeline.array_types import Float64Array
from bias_pipeline.metrics.functional.counts import share


def named_shares(outcomes: Float64Array) -> Float64Array:
    """(..., K) share of images whose caption names each group alone; NaN of no images.

    Args:
        outcomes: see the module.

    Example:
        >>> import numpy as np
        >>> named_shares(np.array([30.0, 10.0, 50.0, 10.0])).tolist()
        [0.3, 0.1]
    """
    return share(outcomes[..., :-2], outcomes.sum(axis=-1, keepdims=True))


def one_named(outcomes: Float64Array) -> Float64Array:
    """(...) share of images whose caption names exactly one group, in [0, 1]; NaN of no images.

    Args:
        outcomes: see the module.

    Example:
        >>> import numpy as np
        >>> one_named(np.array([30.0, 10.0, 50.0, 10.0])).item()
        0.4
    """
    return share(outcomes[..., :-2].sum(axis=-1), outcomes.sum(axis=-1))


def several_named(outcomes: Float64Array) -> Float64Array:
    """(...) share of images whose caption names several groups, in [0, 1]; NaN of no images.

    Args:
        outcomes: see the module.

    Example:
        >>> import numpy as np
        >>> several_named(np.array([30.0, 10.0, 50.0, 10.0])).item()
        0.1
    """
    return share(outcomes[..., -1], outcomes.sum(axis=-1))
