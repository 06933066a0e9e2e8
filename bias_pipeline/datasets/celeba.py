"""``dataset=celeba``: faces of celebrities with forty attributes.

Liu, Luo, Wang and Tang, Deep Learning Face Attributes in the Wild (ICCV 2015).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal

from bias_pipeline.datasets.people import Label, PeopleDataset
from bias_pipeline.datasets.tables import check_file
from bias_pipeline.errors import DataError

Part = Literal["train", "val", "test", "all"]
_PARTS = {"train": "0", "val": "1", "test": "2"}
_ATTRIBUTES, _PARTITION = "list_attr_celeba.txt", "list_eval_partition.txt"


class CelebADataset(PeopleDataset):
    """``list_attr_celeba.txt`` beside the folder ``img_align_celeba``.

    The file has the number of pictures, the forty names, and a line a picture: its name and 1 or -1
    for each. ``list_eval_partition.txt`` assigns pictures to parts.

    Args:
        root: the folder.
        strict: see the base.
        part: ``train``, ``val``, ``test`` or ``all``.
    """

    name = "celeba"
    columns: ClassVar[tuple[str, ...]] = ("Male", "Young")
    terms: ClassVar[str] = "CelebA is for non-commercial research only"

    def __init__(self, root: str, strict: bool = True, part: Part = "all") -> None:
        super().__init__(root, strict)
        self.part = part

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        """See the base."""
        path, parts = check_file(self.root / _ATTRIBUTES, "dataset.root"), self._parts()
        lines = _lines(path)
        header, names = next(lines, (1, [])), next(lines, (2, []))[1]
        if column not in names:
            raise DataError(f"{path}, line 2: attribute {column!r} is absent among {len(names)}")
        place, n = names.index(column), 0
        for number, cells in lines:
            if len(cells) != len(names) + 1:
                raise DataError(
                    f"{path}, line {number}: {len(cells)} cells, not a name and {len(names)} values"
                )
            n += 1
            if parts is None or parts.get(cells[0]) == _PARTS[self.part]:
                image = f"img_align_celeba/{cells[0]}"
                yield Label(image, column, cells[place + 1], f"{path}, line {number}")
        if header[1] != [str(n)]:
            raise DataError(f"{path}, line 1: {' '.join(header[1])!r} pictures, but {n} follow")

    def _parts(self) -> Mapping[str, str] | None:
        """Picture to part, None if all parts are read."""
        if self.part == "all":
            return None
        path = check_file(self.root / _PARTITION, "dataset.root")
        parts = {}
        for number, cells in _lines(path):
            if len(cells) != 2 or cells[1] not in _PARTS.values():
                raise DataError(f"{path}, line {number}: not a picture and 0, 1 or 2")
            parts[cells[0]] = cells[1]
        return parts


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line; blanks separate cells."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                yield number, line.split()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason})") from error
