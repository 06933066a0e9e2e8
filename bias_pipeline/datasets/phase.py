"""``dataset=phase``: people of Google's Conceptual Captions, labelled by crowd workers.

Garcia, Hirota, Wu and Nakashima, Uncurated Image-Text Datasets: Shedding Light on Demographic Bias
(CVPR 2023).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from bias_pipeline.datasets.people import DISAGREEMENT, Label, PeopleDataset
from bias_pipeline.datasets.tables import check_file
from bias_pipeline.errors import DataError
from bias_pipeline.io.json_files import expect, load_json

_PERSON = re.compile(r"person\d+")


class PHASEDataset(PeopleDataset):
    """``phase_gcc_{train,val}_all_20221101.json``, or ``..._regions_...`` where it is absent.

    A picture has a caption, which is not read, and people in boxes with every worker's answers: the
    label is the most frequent answer, or ``disagreement`` for a tie. The file of regions has the
    result already. Pictures are in ``images``.

    Args:
        root: the folder.
        strict: see the base.
        part: ``train`` or ``val``.
    """

    name = "phase"
    columns: ClassVar[tuple[str, ...]] = ("gender", "age", "ethnicity", "skintone", "emotion")
    terms: ClassVar[str] = "PHASE is for research alone; its pictures have licences of their own"

    def __init__(
        self, root: str, strict: bool = True, part: Literal["train", "val"] = "val"
    ) -> None:
        super().__init__(root, strict)
        self.part = part

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        """See the base."""
        del notes
        paths = [
            self.root / f"phase_gcc_{self.part}_{kind}_20221101.json" for kind in ("all", "regions")
        ]
        path = next((candidate for candidate in paths if candidate.is_file()), None) or check_file(
            paths[0], "dataset.root"
        )
        images = expect(load_json(path, what="PHASE's annotations"), dict, path, "")
        for image, entry in images.items():
            for name, person in expect(entry, dict, path, image).items():
                if _PERSON.fullmatch(name):
                    source = f"{path}, {image}, {name}"
                    fields = expect(person, dict, path, f"{image}.{name}")
                    value = _said(fields.get("annotations"), column, source)
                    box = _box(fields.get("region"), source)
                    yield Label(f"images/{image}", column, value, source, person=name, box=box)


def _said(annotations: Any, column: str, source: str) -> str:
    """The most frequent answer, or the answer itself if there is one."""
    listed = annotations if isinstance(annotations, list) else [annotations]
    if not listed or not all(isinstance(answer, Mapping) and column in answer for answer in listed):
        raise DataError(f"{source}: no annotations with {column!r}")
    first, *others = Counter(str(answer[column]) for answer in listed).most_common(2)
    return DISAGREEMENT if others and others[0][1] == first[1] else first[0]


def _box(region: Any, source: str) -> tuple[float, float, float, float]:
    """Left, upper, right and lower edge to a corner and a size."""
    try:
        left, upper, right, lower = (float(edge) for edge in region)
    except (TypeError, ValueError):
        raise DataError(f"{source}: region {region!r} is not x1, y1, x2, y2") from None
    return left, upper, right - left, lower - upper
