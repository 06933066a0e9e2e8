"""``dataset=fairface``: faces with age, gender and ethnic origin, and no captions.

Karkkainen and Joo, FairFace (WACV 2021); labels CC BY 4.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.datasets.base import Dataset, check_folder
from bias_pipeline.datasets.tables import Rows, check_file, open_rows
from bias_pipeline.errors import DataError, ResourceError, UsageError, did_you_mean

CAPTIONER = "none"  # there are no captions
COLUMNS = ("age", "gender", "race")
_WHAT = "FairFace's labels: file, age, gender, race, service_test"
# What spreadsheets make of 3-9 and 10-19: a day and a month, or a month and a year.
_DATE = re.compile(r"(0?[1-9]|[12]\d|3[01])[-/ ][A-Z][a-z]{2}|[A-Z][a-z]{2}[-/ ]\d{2,4}")
_SHOWN = 3


class FairFaceDataset(Dataset):
    """Pictures of faces and a label file for each part, ``fairface_label_train.csv`` and ``_val``.

    Nobody describes the pictures, so metrics of captions do not apply.

    Args:
        root: the folder of the label files; ``file`` in them is relative to it.
        part: ``train``, ``val``, or ``all``, those of both whose label file is there.
        strict: whether a picture that is absent is an error; else its face is not retrieved, which
            is noted.
    """

    name = "fairface"

    def __init__(
        self, root: str, part: Literal["train", "val", "all"] = "all", strict: bool = True
    ) -> None:
        self.root, self.part, self.strict = Path(root), part, strict

    def captioners(self) -> Sequence[str]:
        """A name for having none."""
        return (CAPTIONER,)

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        """See :meth:`Dataset.load`."""
        self.check_captioner(captioner)
        names, labels = attribute.groups_of(self.name)
        if labels.field not in COLUMNS:
            raise UsageError(
                f"attribute {attribute.name!r}, labels.fairface.field: there is no column "
                f"{labels.field!r} in dataset 'fairface'; {did_you_mean(labels.field, COLUMNS)}"
            )
        records = [own for path in self._files() for own in self._records(path, attribute, labels)]
        absent = [own.id for own in records if own.image is None]
        if absent and (self.strict or len(absent) == len(records)):
            raise ResourceError(
                f"dataset 'fairface': {len(absent)} of {len(records)} pictures are not in "
                f"{self.root}, such as {', '.join(absent[:_SHOWN])}; fetch them, or set "
                "dataset.strict=false"
            )
        told = f"{len(absent)} of {len(records)} pictures are absent: not retrieved"
        return Corpus.build(
            records,
            dataset=self.name,
            captioner=captioner,
            groups={attribute.name: (names, labels)},
            notes=[told] if absent else [],
        )

    def _files(self) -> list[Path]:
        check_folder(self.root, self.name)
        parts = ("train", "val") if self.part == "all" else (self.part,)
        paths = [self.root / f"fairface_label_{part}.csv" for part in parts]
        there = [path for path in paths if path.is_file()]
        return there or [check_file(paths[0], "dataset.root")]

    def _records(self, path: Path, attribute: Attribute, labels: LabelMap) -> Iterator[Record]:
        rows = open_rows(path, what=_WHAT)
        rows.require("file", labels.field)
        for number, row in rows.items:
            file = rows.text(number, row, "file")
            picture = self._picture(rows, number, file)
            yield Record(
                id=file,
                labels={attribute.name: self._label(rows, number, row, labels)},
                image=picture if picture.is_file() else None,
            )

    def _picture(self, rows: Rows, number: int, file: str) -> Path:
        """A picture's path, within the folder whatever the label file says.

        Raises:
            DataError: if it leads out of it.
        """
        parts = Path(file).parts
        if not parts or ".." in parts or Path(file).is_absolute():
            rows.refuse(number, f"file {file!r} is not within the folder of the label file")
        return self.root / file

    @staticmethod
    def _label(rows: Rows, number: int, row: object, labels: LabelMap) -> str:
        found = rows.text(number, row, labels.field)  # type: ignore[arg-type]
        if _DATE.fullmatch(found):
            rows.refuse(
                number,
                f"{labels.field} {found!r} is a date that a spreadsheet made of an age such as "
                "3-9; take FairFace's own file",
            )
        known = "more than 70" if found == "70+" else found  # as its authors' predictions write it
        try:
            labels.group_of(known)
        except DataError as error:
            rows.refuse(number, str(error))
        return known
