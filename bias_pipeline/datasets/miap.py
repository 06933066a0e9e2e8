"""``dataset=miap``: every person of many Open Images, in boxes.

Schumann et al., A Step Toward More Inclusive People Annotations for Fairness (AIES 2021).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

from bias_pipeline.datasets.people import Label, PeopleDataset
from bias_pipeline.datasets.tables import Rows, check_file, open_rows

Part = Literal["train", "val", "test", "all"]
_FOLDERS = {"train": "train", "val": "validation", "test": "test"}  # of Open Images
_EDGES = ("XMin", "XMax", "YMin", "YMax")  # in this order, shares of the picture
_WHAT = "MIAP's boxes"


class MIAPDataset(PeopleDataset):
    """``open_images_extended_miap_boxes_{train,val,test}.csv`` beside Open Images' folders.

    A box is a person; boxes of groups (``IsGroupOf``) and of pictures of people (``IsDepictionOf``)
    are skipped and counted. Presentation is annotators' perception, not identity.

    Args:
        root: the folder; pictures are in ``train``, ``validation`` and ``test`` within it.
        strict: see the base.
        part: ``train``, ``val``, ``test``, or ``all``, those whose file is there.
    """

    name = "miap"
    columns: ClassVar[tuple[str, ...]] = ("GenderPresentation", "AgePresentation")
    terms: ClassVar[str] = "MIAP's boxes are CC BY 4.0; its pictures have licences of their own"

    def __init__(self, root: str, strict: bool = True, part: Part = "val") -> None:
        super().__init__(root, strict)
        self.part = part

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        """See the base."""
        passed = 0
        for part, path in self._files():
            rows, people = open_rows(path, what=_WHAT), Counter[str]()
            rows.require("ImageID", *_EDGES, "IsGroupOf", "IsDepictionOf", column)
            for number, row in rows.items:
                image = rows.text(number, row, "ImageID")
                people[image] += 1
                if row["IsGroupOf"] == "1" or row["IsDepictionOf"] == "1":
                    passed += 1
                    continue
                left, right, upper, lower = (_share(rows, number, row[name]) for name in _EDGES)
                yield Label(
                    f"{_FOLDERS[part]}/{image}.jpg",
                    column,
                    rows.text(number, row, column),
                    f"{path}, line {number}",
                    person=str(people[image]),
                    box=(left, upper, right - left, lower - upper),
                    size=(1, 1),
                )
        if passed:
            notes.append(f"{passed} boxes of groups or depictions are skipped")

    def _files(self) -> list[tuple[str, Path]]:
        parts = tuple(_FOLDERS) if self.part == "all" else (self.part,)
        names = {part: f"open_images_extended_miap_boxes_{part}.csv" for part in parts}
        there = [(part, self.root / name) for part, name in names.items()]
        present = [(part, path) for part, path in there if path.is_file()]
        return present or [(there[0][0], check_file(there[0][1], "dataset.root"))]


def _share(rows: Rows, number: int, value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        rows.refuse(number, f"{value!r} is no share of the picture from 0 to 1")
    return share
