"""What is seen in a picture: labels, and how sure each is."""

from __future__ import annotations

from collections.abc import Mapping

Labels = tuple[tuple[str, float], ...]  # a label and its confidence in [0, 1], the surest first

_NOTHING = ("n/a", "none", "background", "no object")  # what detectors call no category


def plain_label(text: str) -> str:
    """A label as words, the first of those that mean the same; empty if it is no category.

    ImageNet's labels list synonyms with commas, other lists join words with ``_``.

    Example:
        >>> plain_label("motor scooter, scooter"), plain_label("Traffic_light"), plain_label("N/A")
        ('motor scooter', 'traffic light', '')
    """
    first = " ".join(text.lower().partition(",")[0].replace("_", " ").split())
    return "" if first in _NOTHING else first


def surest_first(confidences: Mapping[str, float]) -> Labels:
    """Labels in the order of their confidence, equal ones in that of the alphabet.

    Example:
        >>> surest_first({"dog": 0.5, "cat": 0.5, "horse": 0.75})
        (('horse', 0.75), ('cat', 0.5), ('dog', 0.5))
    """
    return tuple(sorted(confidences.items(), key=lambda pair: (-pair[1], pair[0])))
