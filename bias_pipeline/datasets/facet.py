"""``dataset=facet``: people in boxes, with annotators' votes.

Gustafson et al., FACET: Fairness in Computer Vision Evaluation Benchmark (ICCV 2023).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from bias_pipeline.datasets.people import DISAGREEMENT, Label, PeopleDataset
from bias_pipeline.datasets.tables import Rows, check_file, open_rows
from bias_pipeline.errors import ResourceError

# Attribute to the columns of its votes, by what they vote for.
_VOTES: Mapping[str, tuple[str, ...]] = {
    "gender_presentation": ("masc", "fem", "non_binary", "na"),
    "age_presentation": ("young", "middle", "older", "na"),
}
_SIDES = ("x", "y", "width", "height")


class FACETDataset(PeopleDataset):
    """``annotations.csv`` beside the folders ``imgs_1`` to ``imgs_3``.

    A line is a person. ``gender_presentation_masc`` and the like count votes: the label is that
    with most votes, or ``disagreement`` for a tie. The column names are those of public loaders;
    the file itself is not public.

    Args:
        root: the folder.
        strict: see the base.
    """

    name = "facet"
    columns: ClassVar[tuple[str, ...]] = tuple(_VOTES)
    terms: ClassVar[str] = "FACET's licence allows evaluation only: nothing may be trained on it"

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        """See the base."""
        del notes
        path, places = check_file(self.root / "annotations.csv", "dataset.root"), self._places()
        rows = open_rows(path, what="FACET's annotations")
        votes = {option: f"{column}_{option}" for option in _VOTES[column]}
        rows.require("person_id", "filename", "bounding_box", *votes.values())
        for number, row in rows.items:
            counts = {option: _count(rows, number, row, name) for option, name in votes.items()}
            file = rows.text(number, row, "filename")
            yield Label(
                places.get(file, f"imgs_1/{file}"),
                column,
                most(counts),
                f"{path}, line {number}",
                person=rows.text(number, row, "person_id"),
                box=_box(rows, number, row),
            )

    def _places(self) -> dict[str, str]:
        """Name of a picture to its path; they lie in several folders."""
        folders = sorted(path for path in self.root.glob("imgs_*") if path.is_dir())
        if not folders and self.strict:
            raise ResourceError(
                f"dataset 'facet': {self.root} has none of the folders imgs_1, imgs_2 and imgs_3; "
                "unpack FACET's pictures there"
            )
        return {
            file.name: f"{folder.name}/{file.name}"
            for folder in folders
            for file in folder.iterdir()
        }


def most(votes: Mapping[str, int]) -> str:
    """The option with most votes, ``disagreement`` for a tie, ``na`` without votes.

    Example:
        >>> most({"masc": 2, "fem": 1}), most({"masc": 1, "fem": 1}), most({"masc": 0, "na": 0})
        ('masc', 'disagreement', 'na')
    """
    largest = max(votes.values())
    if largest == 0:
        return "na"
    leading = [label for label, count in votes.items() if count == largest]
    return leading[0] if len(leading) == 1 else DISAGREEMENT


def _count(rows: Rows, number: int, row: Mapping[str, Any], name: str) -> int:
    text = rows.text(number, row, name)
    try:
        count = float(text or 0)
    except ValueError:
        count = -1.0
    if count < 0 or not count.is_integer():
        rows.refuse(number, f"{name} {text!r} is no number of votes")
    return int(count)


def _box(rows: Rows, number: int, row: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """The box in a cell, a mapping written as JSON or Python text."""
    text = rows.text(number, row, "bounding_box")
    try:
        box = json.loads(text.replace("'", '"'))
        left, top, wide, high = (float(box[side]) for side in _SIDES)
    except (ValueError, KeyError, TypeError):
        rows.refuse(number, f"bounding_box {text[:60]!r} is no x, y, width and height")
    return left, top, wide, high
