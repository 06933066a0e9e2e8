"""The base of data sets that label people in pictures, without captions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NoReturn

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.pictures import PERSON, Region
from bias_pipeline.datasets.base import Dataset, check_folder
from bias_pipeline.errors import DataError, ResourceError, UsageError, did_you_mean

CAPTIONER = "none"  # there are no captions
DISAGREEMENT = "disagreement"  # the label where annotators disagree
_SHOWN = 3


@dataclass(frozen=True)
class Label:
    """A label of one person in one picture.

    Attributes:
        image: the picture's path in the data set's folder.
        attribute: the column's name.
        value: as it is written in the data set.
        source: file and place, for messages.
        person: which person of the picture; empty if it shows one.
        box: left and upper edge, width and height, in units of ``size``; None: all of it.
        size: height and width of the box's units; (0, 0): the picture's own pixels.
    """

    image: str
    attribute: str
    value: str
    source: str
    person: str = ""
    box: tuple[float, float, float, float] | None = None
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

    Metrics of captions do not apply. A picture with several labelled people occurs once per person,
    and ``metric.crop=person`` shows that person.

    Args:
        root: the folder.
        strict: whether an absent picture is an error; else it is not retrieved, and a note gives
            the share.
    """

    columns: ClassVar[tuple[str, ...]]  # attributes that the data set labels
    terms: ClassVar[str]  # its licence, in a sentence

    def __init__(self, root: str, strict: bool = True) -> None:
        self.root, self.strict = Path(root), strict

    def captioners(self) -> Sequence[str]:
        """One placeholder name, since there are no captions."""
        return (CAPTIONER,)

    @abstractmethod
    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        """The labels of one attribute.

        Args:
            column: which.
            notes: gets notes for readers of the result.

        Raises:
            BiasPipelineError: if a file is absent, or is not as the data set has it.
        """

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        """See :meth:`Dataset.load`."""
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
        if absent and (self.strict or len(absent) == len(records)):
            raise ResourceError(
                f"dataset {self.name!r}: {len(absent)} of {len(records)} pictures are not in "
                f"{self.root}, such as {', '.join(absent[:_SHOWN])}; fetch them, or set "
                "dataset.strict=false"
            )
        if absent:
            notes.append(f"{len(absent)} of {len(records)} pictures are absent: not retrieved")
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
        path = self._picture(label)
        return Record(
            id=label.id,
            labels={attribute: label.value},
            image=path if path.is_file() else None,
            regions=None if label.box is None else (Region(PERSON, label.box, label.size),),
        )

    def _picture(self, label: Label) -> Path:
        """A picture's path, which must be within the folder.

        Raises:
            DataError: if it leads out of it.
        """
        parts = Path(label.image).parts
        if not parts or ".." in parts or Path(label.image).is_absolute():
            label.refuse(f"file {label.image!r} is not within the folder of the label file")
        return self.root / label.image


def age_range(years: int) -> str:
    """The range of an age in years, as FairFace writes it.

    Example:
        >>> [age_range(years) for years in (2, 3, 45, 70, 116)]
        ['0-2', '3-9', '40-49', 'more than 70', 'more than 70']
    """
    if years < 10:
        return "0-2" if years < 3 else "3-9"
    tens = years // 10 * 10
    return f"{tens}-{tens + 9}" if tens < 70 else "more than 70"
