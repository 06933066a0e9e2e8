"""``dataset=fairface``: faces with age, gender and ethnic origin, and no captions.

Karkkainen and Joo, FairFace (WACV 2021); labels CC BY 4.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

from bias_pipeline.datasets.people import Label, PeopleDataset
from bias_pipeline.datasets.tables import check_file, open_rows

_WHAT = "FairFace's labels: file, age, gender, race, service_test"
# Spreadsheets turn 3-9 and 10-19 into dates: a day and a month, or a month and a year.
_DATE = re.compile(r"(0?[1-9]|[12]\d|3[01])[-/ ][A-Z][a-z]{2}|[A-Z][a-z]{2}[-/ ]\d{2,4}")


class FairFaceDataset(PeopleDataset):
    """Pictures of faces and a label file for each part, ``fairface_label_train.csv`` and ``_val``.

    Args:
        root: the folder of the label files; ``file`` in them is relative to it.
        part: ``train``, ``val``, or ``all``, those of both whose label file is there.
        strict: see the base.
    """

    name = "fairface"
    columns: ClassVar[tuple[str, ...]] = ("age", "gender", "race")
    terms: ClassVar[str] = "FairFace is CC BY 4.0"
    shown_under = "FairFace by Karkkainen and Joo 2021, CC BY 4.0; cut and made smaller"

    def __init__(
        self, root: str, part: Literal["train", "val", "all"] = "all", strict: bool = True
    ) -> None:
        super().__init__(root, strict)
        self.part = part

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        """See the base."""
        del notes
        for path in self._files():
            rows = open_rows(path, what=_WHAT)
            rows.require("file", column)
            for number, row in rows.items:
                raw = rows.text(number, row, column)
                # Its authors' predictions write the oldest range this way.
                value = "more than 70" if raw == "70+" else raw
                file = rows.text(number, row, "file")
                label = Label(file, column, value, f"{path}, line {number}")
                if _DATE.fullmatch(value):
                    label.refuse(
                        f"{column} {value!r} is a date that a spreadsheet made of an age such as "
                        "3-9; take FairFace's own file"
                    )
                yield label

    def _files(self) -> list[Path]:
        parts = ("train", "val") if self.part == "all" else (self.part,)
        paths = [self.root / f"fairface_label_{part}.csv" for part in parts]
        there = [path for path in paths if path.is_file()]
        return there or [check_file(paths[0], "dataset.root")]
