"""``dataset=utkface``: faces whose names tell age, gender and ethnic origin.

Zhang, Song and Qi, Age Progression/Regression by Conditional Adversarial Autoencoder (CVPR 2017).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from bias_pipeline.datasets.people import Label, PeopleDataset, age_range
from bias_pipeline.errors import ResourceError

# Age, gender (0 male, 1 female), race (0 White, 1 Black, 2 Asian, 3 Indian, 4 others), date.
_NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_\d+\..*")
_OLDEST = 116
_SHOWN = 3


class UTKFaceDataset(PeopleDataset):
    """Pictures named ``[age]_[gender]_[race]_[date&time].jpg``, aligned ones ``.jpg.chip.jpg``.

    They may be in subfolders of ``root``. A few published names lack a field: those are skipped,
    and a note gives their number. Ages become FairFace's ranges.

    Args:
        root: the folder.
        strict: see the base; here a label without a picture cannot be.
    """

    name = "utkface"
    columns: ClassVar[tuple[str, ...]] = ("age", "gender", "race")
    terms: ClassVar[str] = "UTKFace is for non-commercial research only"

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        """See the base."""
        paths = sorted(path for path in self.root.rglob("*.jpg") if path.is_file())
        if not paths:
            raise ResourceError(
                f"dataset 'utkface': no picture [age]_[gender]_[race]_[date].jpg in {self.root}; "
                "set dataset.root=... to their folder"
            )
        strange = []
        for path in paths:
            match = _NAME.fullmatch(path.name)
            if match is None or int(match[1]) > _OLDEST:
                strange.append(path.name)
                continue
            labels = {"age": age_range(int(match[1])), "gender": match[2], "race": match[3]}
            image = path.relative_to(self.root).as_posix()
            yield Label(image, column, labels[column], str(path))
        if strange:
            notes.append(
                f"{len(strange)} of {len(paths)} pictures are skipped, whose names are not "
                f"[age]_[gender]_[race]_[date].jpg, such as {', '.join(strange[:_SHOWN])}"
            )
