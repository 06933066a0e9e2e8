"""Reads data sets of pictures with labelled people but without captions: a base class, and faces.

``dataset=celeba`` has forty attributes of celebrities. Source: Liu, Luo, Wang and Tang, Deep
Learning Face Attributes in the Wild (ICCV 2015). ``dataset=fairface`` has age, gender and ethnic
origin. Source: Karkkainen and Joo, FairFace (WACV 2021); labels are CC BY 4.0. ``dataset=utkface``
reads age, gender and ethnic origin from names of files. Source: Zhang, Song and Qi, Age
Progression/Regression by Conditional Adversarial Autoencoder (CVPR 2017).
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NoReturn

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.pictures import PERSON, Region
from bias_pipeline.data.base import NO_CAPTIONER, Dataset, check_folder
from bias_pipeline.data.tables import check_file, open_rows
from bias_pipeline.errors import DataError, ResourceError, UsageError, did_you_mean, inflect
from bias_pipeline.io.json_files import decode

DISAGREEMENT = "disagreement"  # the label where annotators disagree
_SHOWN = 3


@dataclass(frozen=True)
class Label:
    """A label of one person in one picture."""

    image: str  # the picture's path in the data set's folder
    attribute: str  # the column's name
    value: str  # as it is written in the data set
    source: str  # file and place of the label, for messages
    person: str = ""  # which person of the picture; empty if the picture shows only one person
    # Left and upper edge, width and height, in units of `size`; None: the whole picture
    box: tuple[float, float, float, float] | None = None
    # Height and width of the box's units; (0, 0): the picture's own pixels
    size: tuple[int, int] = (0, 0)

    @property
    def id(self) -> str:
        """The id of the picture, or of the person in it."""
        return f"{self.image}#{self.person}" if self.person else self.image

    def refuse(self, fault: str) -> NoReturn:
        """Raise the DataError for a fault of this line."""
        raise DataError(f"{self.source}: {fault}")


class PeopleDataset(Dataset):
    """Pictures of people with labels and without captions.

    Metrics of captions do not apply. A picture with several labelled people occurs once for each
    person, and ``metric.crop=person`` shows this person.
    """

    columns: ClassVar[tuple[str, ...]]  # attributes that the data set labels
    terms: ClassVar[str]  # a sentence on the data set's licence

    def __init__(self, root: str, strict: bool = True) -> None:
        self.root, self.strict = Path(root), strict

    def captioners(self) -> Sequence[str]:
        return (NO_CAPTIONER,)

    def existing(self, names: Sequence[str]) -> list[Path]:
        """The paths of the files that exist; an error is raised if no file exists."""
        there = [path for name in names if (path := self.root / name).is_file()]
        return there or [check_file(self.root / names[0], "dataset.root")]

    @abstractmethod
    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        """The labels of one attribute."""

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        self.check_captioner(captioner)
        names, labels = attribute.groups_of(self.name)
        if labels.field not in self.columns:
            raise UsageError(
                f"attribute {attribute.name!r}, labels.{self.name}.field: there is no column "
                f"{labels.field!r} in dataset {self.name!r}; "
                f"{did_you_mean(labels.field, self.columns)}"
            )
        check_folder(self.root, self.name)
        notes: list[str] = []
        lines = self.labels(labels.field, notes)
        records = [self._record(line, attribute.name, labels) for line in lines]
        absent = [record.id for record in records if record.image is None]
        n_absent = inflect(len(absent), f"of {len(records)} pictures are")
        if absent and (self.strict or len(absent) == len(records)):
            raise ResourceError(
                f"dataset {self.name!r}: {n_absent} not in {self.root}, such as "
                f"{', '.join(absent[:_SHOWN])}; fetch them, or set dataset.strict=false"
            )
        if absent:
            notes.append(f"{n_absent} absent: not retrieved")
        return Corpus.build(
            records,
            dataset=self.name,
            captioner=captioner,
            groups={attribute.name: (names, labels)},
            notes=[*notes, self.terms],
        )

    def _record(self, label: Label, attribute: str, labels: LabelMap) -> Record:
        try:
            labels.group_of(label.value)
        except DataError as error:
            label.refuse(str(error))
        parts = Path(label.image).parts
        if not parts or ".." in parts or Path(label.image).is_absolute():
            label.refuse(f"file {label.image!r} is not within the folder of the label file")
        path = self.root / label.image
        return Record(
            id=label.id,
            labels={attribute: label.value},
            image=path if path.is_file() else None,
            regions=None if label.box is None else (Region(PERSON, label.box, label.size),),
            picture_id=label.image if label.person else "",
        )


def age_range(years: int) -> str:
    """The range that FairFace writes for an age in years.

    Example:
        >>> [age_range(years) for years in (2, 3, 45, 70, 116)]
        ['0-2', '3-9', '40-49', 'more than 70', 'more than 70']
    """
    if years < 10:
        return "0-2" if years < 3 else "3-9"
    tens = years // 10 * 10
    return f"{tens}-{tens + 9}" if tens < 70 else "more than 70"


Part = Literal["train", "val", "test", "all"]
_PARTS = {"train": "0", "val": "1", "test": "2"}
_ATTRIBUTES = ("list_attr_celeba.txt", "Anno/list_attr_celeba.txt", "list_attr_celeba.csv")
_PARTITION = ("list_eval_partition.txt", "Eval/list_eval_partition.txt", "list_eval_partition.csv")
_PICTURES = "img_align_celeba"
_FOLDERS = (
    f"{_PICTURES}/{_PICTURES}",
    _PICTURES,
    f"Img/{_PICTURES}/{_PICTURES}",
    f"Img/{_PICTURES}",
)
_WHAT_CELEBA = "CelebA's table: image_id and a column for each attribute"


class CelebADataset(PeopleDataset):
    """The file ``list_attr_celeba.txt`` beside the folder ``img_align_celeba``.

    The file has the number of pictures and the forty names of attributes. A line for each picture
    has its name, and 1 or -1 for each attribute. ``list_eval_partition.txt`` assigns pictures to
    parts. Files may also be in the published folders ``Anno``, ``Eval`` and ``Img``, or be tables
    (``.csv``), as on Kaggle.
    """

    name = "celeba"
    columns: ClassVar[tuple[str, ...]] = ("Male", "Young")
    terms: ClassVar[str] = "CelebA is for non-commercial research only"

    def __init__(self, root: str, strict: bool = True, part: Part = "all") -> None:
        super().__init__(root, strict)
        self.part = part

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        path, parts = self.existing(_ATTRIBUTES)[0], self._parts()
        folder = next((name for name in _FOLDERS if (self.root / name).is_dir()), _PICTURES)
        read = _values_of_table if path.suffix == ".csv" else _values_of_list
        for number, picture, value in read(path, column):
            if parts is None or parts.get(picture) == _PARTS[self.part]:
                yield Label(f"{folder}/{picture}", column, value, f"{path}, line {number}")

    def _parts(self) -> Mapping[str, str] | None:
        """Parts by picture, or None if all parts are read."""
        if self.part == "all":
            return None
        path = self.existing(_PARTITION)[0]
        if path.suffix == ".csv":
            lines = [(number, [*row]) for number, *row in _values_of_table(path, "partition")]
        else:
            lines = list(_lines(path))
        parts = {}
        for number, cells in lines:
            if len(cells) != 2 or cells[1] not in _PARTS.values():
                raise DataError(f"{path}, line {number}: must be a picture and 0, 1 or 2")
            parts[cells[0]] = cells[1]
        return parts


def _values_of_table(path: Path, column: str) -> Iterator[tuple[int, str, str]]:
    """The line, the picture and the value in one column of a table."""
    rows = open_rows(path, what=_WHAT_CELEBA)
    rows.require("image_id", column)
    for number, row in rows.items:
        yield number, rows.text(number, row, "image_id"), rows.text(number, row, column).strip()


def _values_of_list(path: Path, column: str) -> Iterator[tuple[int, str, str]]:
    """The line, the picture and the value of one attribute, from a list in the published form."""
    lines = _lines(path)
    header, names = next(lines, (1, [])), next(lines, (2, []))[1]
    if column not in names:
        raise DataError(f"{path}, line 2: attribute {column!r} is absent among {len(names)}")
    place, n = names.index(column), 0
    for number, cells in lines:
        if len(cells) != len(names) + 1:
            raise DataError(
                f"{path}, line {number}: {inflect(len(cells), 'cells')}, not a name and "
                f"{len(names)} values"
            )
        n += 1
        yield number, cells[0], cells[place + 1]
    if header[1] != [str(n)]:
        raise DataError(f"{path}, line 1: {' '.join(header[1])!r} pictures, but {n} follow")


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The number and the cells of each line, where blanks separate cells."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            yield number, decode(line, path, "a file of CelebA", number).split()


_WHAT = "FairFace's labels: file, age, gender, race, service_test"
# Spreadsheets turn 3-9 and 10-19 into dates: a day and a month, or a month and a year.
_DATE = re.compile(r"(0?[1-9]|[12]\d|3[01])[-/ ][A-Z][a-z]{2}|[A-Z][a-z]{2}[-/ ]\d{2,4}")


class FairFaceDataset(PeopleDataset):
    """Pictures of faces, with ``fairface_label_train.csv`` and ``fairface_label_val.csv``."""

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
        del notes
        parts = ("train", "val") if self.part == "all" else (self.part,)
        for path in self.existing([f"fairface_label_{part}.csv" for part in parts]):
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


# Age, gender (0 male, 1 female), race (0 White, 1 Black, 2 Asian, 3 Indian, 4 others), date.
_NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_\d+\..*")
_OLDEST = 116


class UTKFaceDataset(PeopleDataset):
    """Pictures named ``[age]_[gender]_[race]_[date&time].jpg``, or ``.jpg.chip.jpg`` if aligned.

    Pictures may be in subfolders of ``root``. A few published names lack a field. Files without a
    field are skipped, and a note says how many they are. Ages become FairFace's ranges.
    """

    name = "utkface"
    columns: ClassVar[tuple[str, ...]] = ("age", "gender", "race")
    terms: ClassVar[str] = "UTKFace is for non-commercial research only"

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
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
                f"{inflect(len(strange), f'of {len(paths)} pictures are')} skipped, whose names "
                "are not [age]_[gender]_[race]_[date].jpg, such as "
                f"{', '.join(strange[:_SHOWN])}"
            )
