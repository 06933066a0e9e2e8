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

    Labels are of who has the occupation. The tables have URLs and no files: the picture of the line
    with ``IDX`` 7 of ``oo.tsv`` is expected as ``images/oo/7.jpg`` (ours). Lines without a URL or a
    gender are skipped and counted.

    Args:
        root: the folder of the tables.
        strict: see the base.
    """

    name = "visogender"
    columns: ClassVar[tuple[str, ...]] = (_GENDER,)
    terms: ClassVar[str] = "VisoGender is CC BY 4.0, for benchmarks only: do not train on it"

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        """See the base."""
        passed = 0
        for path in self._files():
            rows = open_rows(path, what="VisoGender's table")
            written = _OLDER if rows.has(_OLDER) else column
            rows.require("IDX", "Sector", "Occupation", written)
            for number, row in rows.items:
                label = rows.text(number, row, written).strip()
                if not label or label == "NA":
                    passed += 1
                    continue
                image = f"images/{path.stem}/{rows.id(number, row, 'IDX')}.jpg"
                yield Label(image, column, label, f"{path}, line {number}")
        if passed:
            notes.append(f"{passed} lines without a perceived gender are skipped")

    def _files(self) -> list[Path]:
        """Tables of people; those of labour statistics beside them have no ``IDX``."""
        paths = sorted(self.root.glob("*.tsv"))
        tables = [path for path in paths if open_rows(path, what="a table").has("IDX")]
        if paths and not tables:
            raise DataError(f"{paths[0]}: column 'IDX' is absent; no table here is VisoGender's")
        if not tables:
            raise ResourceError(
                f"dataset 'visogender': no table *.tsv in {self.root}; set dataset.root=... to "
                "the folder of OO and OP"
            )
        return tables
