"""Tables of how often labels err, as ``rate --gather`` writes them.

A line an attribute, group and label: the share of the group's images that are labelled so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.array_types import Float64Array
from bias_pipeline.datasets.tables import check_file, open_rows
from bias_pipeline.io.files import replace_file, table_csv

NAME = "label_errors.csv"
_COLUMNS = ("attribute", "group", "label", "share")
_WHAT = "label errors: a table of attribute, group, label and share"


def write_label_errors(
    path: Path, attribute: str, groups: Sequence[str], confusion: Float64Array
) -> None:
    """Write the table of one attribute.

    Args:
        path: of the file.
        attribute: its name.
        groups: its K groups.
        confusion: (K, K) share of each group (first) that is labelled as each; rows of NaN, of
            groups that nobody has, are left out.
    """
    lines = [
        dict(zip(_COLUMNS, (attribute, group, label, round(share, 6)), strict=True))
        for group, shares in zip(groups, confusion.tolist(), strict=True)
        for label, share in zip(groups, shares, strict=True)
        if share == share
    ]
    replace_file(path, table_csv(lines).encode())


def read_label_errors(path: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Attribute to group to label to share.

    Raises:
        DataError: if the table is broken.
        ResourceError: if it is absent.
    """
    rows = open_rows(check_file(path), what=_WHAT)
    rows.require(*_COLUMNS)
    shares: defaultdict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for number, row in rows.items:
        attribute, group, label = (rows.text(number, row, name) for name in _COLUMNS[:3])
        try:
            share = float(rows.value(number, row, "share"))
        except (TypeError, ValueError):
            share = -1.0
        if not 0 <= share <= 1:
            rows.refuse(number, f"share {row['share']!r} is no number between 0 and 1")
        labels = shares[attribute].setdefault(group, {})
        if label in labels:
            rows.refuse(number, f"{attribute}, {group}, {label} occurs twice; keep one line")
        labels[label] = share
    return dict(shares)
