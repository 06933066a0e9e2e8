"""Labels of pictures with confidences."""

from __future__ import annotations

from collections.abc import Mapping

Labels = tuple[tuple[str, float], ...]  # labels and confidences in [0, 1], the most confident first

_NOTHING = ("n/a", "none", "background", "no object")  # detectors' names for no category


def plain_label(text: str) -> str:
    """A label as words, the first of several synonyms; empty if it is not a category.

    ImageNet's labels list synonyms with commas, other lists join words with ``_``.

    Example:
        >>> plain_label("motor scooter, scooter"), plain_label("Traffic_light"), plain_label("N/A")
        ('motor scooter', 'traffic light', '')
    """
    first = " ".join(text.lower().partition(",")[0].replace("_", " ").split())
    return "" if first in _NOTHING else first


def surest_first(confidences: Mapping[str, float]) -> Labels:
    """Labels by descending confidence, ties in alphabetical order.

    Example:
        >>> surest_first({"dog": 0.5, "cat": 0.5, "horse": 0.75})
        (('horse', 0.75), ('cat', 0.5), ('dog', 0.5))
    """
    return tuple(sorted(confidences.items(), key=lambda pair: (-pair[1], pair[0])))
