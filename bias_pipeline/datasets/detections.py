"""Results of a detector or a classifier, as rows of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bias_pipeline.datasets.scenes.categories import NAMES_BY_NUMBER
from bias_pipeline.datasets.tables import Rows, open_rows
from bias_pipeline.errors import DataError
from bias_pipeline.vision.labels import Labels, plain_label, surest_first

DETECTIONS = "detections: rows with image_id, label (or category_id) and score (or confidence)"
_LABELS = ("label", "category_id")
_CONFIDENCES = ("score", "confidence")


def detections_by_id(path: Path) -> dict[str, Labels]:
    """The labels detected in each image of a file.

    Args:
        path: a JSON list of objects, as COCO's results are, JSON Lines, CSV, TSV or Parquet; a
            row has ``label`` or ``category_id``, COCO's number; other keys are ignored.

    Returns:
        Canonical image id to pairs of a label and a confidence in [0, 1], the most confident first;
        of several detections of one label the most confident counts.

    Raises:
        DataError: if the file is broken, a row has no label, or its confidence is none.
        ResourceError: if it is absent or cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "seen.csv")
        ...     _ = path.write_text(chr(10).join(["image_id,label,score", "7,Dog,0.9", "7,dog,.5"]))
        ...     detections_by_id(path)
        {'7': (('dog', 0.9),)}
    """
    rows = open_rows(path, what=DETECTIONS, wanted=("image_id", *_LABELS, *_CONFIDENCES))
    rows.require("image_id")
    if not any(rows.has(name) for name in _LABELS):
        rows.require(_LABELS[0])
    if not any(rows.has(name) for name in _CONFIDENCES):
        rows.require(_CONFIDENCES[0])
    detections: dict[str, dict[str, float]] = {}
    for number, row in rows.items:
        label = _label(rows, number, row)
        confidences = detections.setdefault(rows.id(number, row, "image_id"), {})
        confidences[label] = max(confidences.get(label, 0.0), _confidence(rows, number, row))
    if not detections:
        raise DataError(f"{path}: holds no row; expected {DETECTIONS}")
    return {image: surest_first(confidences) for image, confidences in detections.items()}


def _label(rows: Rows, number: int, row: Mapping[str, Any]) -> str:
    name, category = _LABELS
    if category in row and name not in row:
        identifier = rows.id(number, row, category)
        if identifier not in NAMES_BY_NUMBER:
            rows.refuse(
                number, f"category_id {identifier} is not one of COCO's; give 'label', its name"
            )
        return NAMES_BY_NUMBER[identifier]
    label = plain_label(rows.text(number, row, name))
    if not label:
        rows.refuse(number, "the label is blank; name what was seen, or leave the row out")
    return label


def _confidence(rows: Rows, number: int, row: Mapping[str, Any]) -> float:
    name = next((column for column in _CONFIDENCES if column in row), _CONFIDENCES[0])
    raw = rows.value(number, row, name)
    try:
        value = float("nan" if isinstance(raw, bool) else raw)
    except (TypeError, ValueError):
        value = float("nan")
    if not 0 <= value <= 1:
        rows.refuse(number, f"{name!r} is {str(raw)[:40]!r}; a confidence is a number from 0 to 1")
    return value
