"""``dataset=facet``: people in boxes, with the votes of those who looked.

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

    A line is a person. ``gender_presentation_masc`` and the like count votes: what most say is the
    label, and where two have as many it is ``disagreement``. Columns are those of public loaders;
    the file itself is not public.

    Args:
        root: the folder.
        strict: see the base.
    """

    name = "facet"
    columns: ClassVar[tuple[str, ...]] = tuple(_VOTES)
    terms: ClassVar[str] = "FACET's licence is for evaluation alone: nothing may be trained on it"

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        """See the base."""
        del notes
        path, places = check_file(self.root / "annotations.csv", "dataset.root"), self._places()
        rows = open_rows(path, what="FACET's annotations")
        votes = {own: f"{column}_{own}" for own in _VOTES[column]}
        rows.require("person_id", "filename", "bounding_box", *votes.values())
        for number, row in rows.items:
            counts = {own: _count(rows, number, row, name) for own, name in votes.items()}
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
        folders = sorted(own for own in self.root.glob("imgs_*") if own.is_dir())
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
    """What most say, or that they disagree; ``na`` where nobody says anything.

    Example:
        >>> most({"masc": 2, "fem": 1}), most({"masc": 1, "fem": 1}), most({"masc": 0, "na": 0})
        ('masc', 'disagreement', 'na')
    """
    largest = max(votes.values())
    if largest == 0:
        return "na"
    leading = [own for own, count in votes.items() if count == largest]
    return leading[0] if len(leading) == 1 else DISAGREEMENT


def _count(rows: Rows, number: int, row: Mapping[str, Any], name: str) -> int:
    told = rows.text(number, row, name)
    try:
        found = float(told or 0)
    except ValueError:
        found = -1.0
    if found < 0 or not found.is_integer():
        rows.refuse(number, f"{name} {told!r} is no number of votes")
    return int(found)


def _box(rows: Rows, number: int, row: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """A mapping that is written as text, in JSON or in Python."""
    told = rows.text(number, row, "bounding_box")
    try:
        found = json.loads(told.replace("'", '"'))
        left, top, wide, high = (float(found[side]) for side in _SIDES)
    except (ValueError, KeyError, TypeError):
        rows.refuse(number, f"bounding_box {told[:60]!r} is no x, y, width and height")
    return left, top, wide, high
