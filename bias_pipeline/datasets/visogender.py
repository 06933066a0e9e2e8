"""``dataset=visogender``: people at work, by occupation and perceived gender.

Hall et al., VisoGender: A dataset for benchmarking gender bias in image-text pronoun resolution
(NeurIPS 2023).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from bias_pipeline.datasets.people import Label, PeopleDataset
from bias_pipeline.datasets.tables import open_rows
from bias_pipeline.errors import DataError, ResourceError

_GENDER, _OLDER = "Occupation_perceived_gender", "Occupation_Gender"  # as older files call it


class VisoGenderDataset(PeopleDataset):
    """The tables ``*.tsv`` of an occupation with an object (OO) or with a participant (OP).

    Labels are of who has the occupation. The tables have addresses and no files: the picture of a
    line with ``IDX`` 7 of ``oo.tsv`` is looked for as ``images/oo/7.jpg`` (ours). Lines without an
    address or a gender are passed over, and counted.

    Args:
        root: the folder of the tables.
        strict: see the base.
    """

    name = "visogender"
    columns: ClassVar[tuple[str, ...]] = (_GENDER,)
    terms: ClassVar[str] = "VisoGender is CC BY 4.0, for benchmarks alone: nothing is to be trained"

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        """See the base."""
        passed = 0
        for path in self._files():
            rows = open_rows(path, what="VisoGender's table")
            written = _OLDER if rows.has(_OLDER) else column
            rows.require("IDX", "Sector", "Occupation", written)
            for number, row in rows.items:
                told = rows.text(number, row, written).strip()
                if not told or told == "NA":
                    passed += 1
                    continue
                image = f"images/{path.stem}/{rows.id(number, row, 'IDX')}.jpg"
                yield Label(image, column, told, f"{path}, line {number}")
        if passed:
            notes.append(f"{passed} lines without a perceived gender are passed over")

    def _files(self) -> list[Path]:
        """Tables of people; those of labour statistics beside them have no ``IDX``."""
        paths = sorted(self.root.glob("*.tsv"))
        found = [path for path in paths if open_rows(path, what="a table").has("IDX")]
        if paths and not found:
            raise DataError(f"{paths[0]}: column 'IDX' is absent; no table here is VisoGender's")
        if not found:
            raise ResourceError(
                f"dataset 'visogender': no table *.tsv in {self.root}; set dataset.root=... to "
                "the folder of OO and OP"
            )
        return found
