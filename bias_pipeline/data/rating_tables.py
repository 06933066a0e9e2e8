"""Reads and writes the tables of ``rate``: raters' answers, and the rates at which labels err.

A line in a table of label errors has an attribute, a group, a label, and the share of the group's
images with this label.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.data.tables import check_file, open_rows
from bias_pipeline.io.files import replace_file, table_csv

CANNOT_TELL, SEVERAL = "Unsure", "Both"  # as data sets write these labels
_ANSWERS = "answers: a table of image_id, attribute, value and rater"


def rater_answers(
    path: Path, attribute: str, values: Collection[str], images: Collection[str]
) -> dict[str, dict[str, str]]:
    rows = open_rows(check_file(path), what=_ANSWERS)
    rows.require("image_id", "attribute", "value", "rater")
    votes: dict[str, dict[str, str]] = {}
    for number, row in rows.items:
        image = short_id(rows.id(number, row, "image_id"))
        question, value = (rows.text(number, row, name) for name in ("attribute", "value"))
        if question != attribute or value not in values:
            rows.refuse(
                number,
                f"{value!r} answers another question ({question}); ask for {attribute} "
                f"({', '.join(values)}), or remove the line",
            )
        if image not in images:
            rows.refuse(
                number,
                f"image {image} is not among the pictures that were built, or that filter kept; "
                "remove the line",
            )
        votes.setdefault(image, {})[rows.text(number, row, "rater")] = value
    return votes


LABEL_ERRORS = "label_errors.csv"
_ERROR_COLUMNS = ("attribute", "group", "label", "share")
_ERRORS = "label errors: a table of attribute, group, label and share"


def write_label_errors(
    path: Path, attribute: str, groups: Sequence[str], confusion: Float64Array
) -> None:
    """Write the table of one attribute.

    ``confusion`` is (K, K), the share of each group (first axis) labelled as each group. Rows of
    NaN, which belong to groups without images, are left out.
    """
    lines = [
        dict(zip(_ERROR_COLUMNS, (attribute, group, label, round(share, 6)), strict=True))
        for group, shares in zip(groups, confusion.tolist(), strict=True)
        for label, share in zip(groups, shares, strict=True)
        if share == share
    ]
    replace_file(path, table_csv(lines).encode())


def read_label_errors(path: Path) -> dict[str, dict[str, dict[str, float]]]:
    """The share of a group's images with a label, by attribute, group and label."""
    rows = open_rows(check_file(path), what=_ERRORS)
    rows.require(*_ERROR_COLUMNS)
    shares: defaultdict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for number, row in rows.items:
        attribute, group, label = (rows.text(number, row, name) for name in _ERROR_COLUMNS[:3])
        try:
            share = float(rows.value(number, row, "share"))
        except (TypeError, ValueError, OverflowError):
            share = -1.0
        if not 0 <= share <= 1:
            rows.refuse(number, f"share {row['share']!r} is not a number between 0 and 1")
        labels = shares[attribute].setdefault(group, {})
        if label in labels:
            rows.refuse(number, f"{attribute}, {group}, {label} occurs twice; keep one line")
        labels[label] = share
    return dict(shares)
