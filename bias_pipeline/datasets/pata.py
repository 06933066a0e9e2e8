"""``dataset=pata``: people in scenes, by race, gender and age.

Seth, Hemani and Agarwal, DeAR: Debiasing Vision-Language Models (CVPR 2023).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from bias_pipeline.datasets.people import Label, PeopleDataset
from bias_pipeline.datasets.tables import check_file
from bias_pipeline.errors import DataError

_FILE = "pata_fairness.files.lst"


class PATADataset(PeopleDataset):
    """``pata_fairness.files.lst``, lines of ``scene_race_gender_age|url``.

    Scenes have underscores too (``gun_range``), so lines are split from the right; splitting from
    the left misreads 415 of 4,934. The list has URLs and no files: the picture of line 7 is
    expected as ``images/7.jpg`` (ours). Some URLs are dead: ``dataset.strict=false`` may be needed.

    Args:
        root: the folder.
        strict: see the base.
    """

    name = "pata"
    columns: ClassVar[tuple[str, ...]] = ("scene", "race", "gender", "age")
    terms: ClassVar[str] = "PATA has no licence: its pictures belong to their photographers"

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        """See the base."""
        path = check_file(self.root / _FILE, "dataset.root")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if not line.strip():
                continue
            name, bar, _ = line.partition("|")
            labels = dict(zip(self.columns, name.strip().rsplit("_", 3), strict=False))
            if not bar or len(labels) < len(self.columns):
                raise DataError(f"{path}, line {number}: not scene_race_gender_age|url: {line!r}")
            yield Label(f"images/{number}.jpg", column, labels[column], f"{path}, line {number}")
