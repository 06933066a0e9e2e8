"""``dataset=relic``: the table of captions and ages that RELIC published."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import BLANK_LIMIT, Corpus, Record
from bias_pipeline.datasets.base import Dataset, check_folder
from bias_pipeline.datasets.lic import load_vocabulary
from bias_pipeline.datasets.tables import Rows, check_file, open_rows
from bias_pipeline.errors import DataError, ResourceError

_WHAT = "RELIC's table: img_id, caption_list, pred_<captioner>, bb_age"
_LONGEST = 1 << 16  # characters of a list of captions: parsing Python costs far more than reading


class RelicDataset(Dataset):
    """One CSV file: five human captions, every captioner's caption and the label of each image.

    Args:
        root: the folder of the file.
        file: its name.
        captioners: captioner to its column; the table here may lack some.
        vocabularies: paths of a captioner's published vocabulary, relative to ``root``, with
            ``{vocabulary}`` for the captioner's name; the first existing one is read.
        trained_on_reference: whether the captioners were trained on this data set's captions.
        blank_limit: the share of blank captions of a side above which it is refused.
    """

    name = "relic"

    def __init__(
        self,
        root: str,
        file: str,
        captioners: Mapping[str, str],
        vocabularies: Sequence[str] = (),
        trained_on_reference: bool | None = None,
        blank_limit: float = BLANK_LIMIT,
    ) -> None:
        self.root = Path(root)
        self.path = self.root / file
        self.columns = captioners
        self.vocabularies = tuple(vocabularies)
        self.trained_on_reference = trained_on_reference
        self.blank_limit = blank_limit

    def captioners(self) -> Sequence[str]:
        """The names of the map."""
        return tuple(self.columns)

    def all_captioners(self, attribute: Attribute) -> Sequence[str]:
        """The captioners whose column is there."""
        del attribute
        rows = self._rows()
        return [name for name, column in self.columns.items() if rows.has(column)]

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        """See :meth:`Dataset.load`."""
        self.check_captioner(captioner)
        names, labels = attribute.groups_of(self.name)
        rows = self._rows()
        column = self.columns[captioner]
        if not rows.has(column):
            raise ResourceError(
                f"captioner {captioner!r} of dataset 'relic': {self.path} has no column "
                f"{column!r}; use RELIC's own file, or one of the captioners "
                f"{', '.join(self.all_captioners(attribute))}"
            )
        rows.require("img_id", "caption_list", labels.field)
        return Corpus.build(
            _records(rows, column, attribute.name, labels),
            dataset=self.name,
            captioner=captioner,
            groups={attribute.name: (names, labels)},
            vocabulary=self._vocabulary(captioner),
            trained_on_reference=self.trained_on_reference,
            blank_limit=self.blank_limit,
        )

    def _rows(self) -> Rows:
        check_folder(self.root, self.name)
        return open_rows(check_file(self.path, "dataset.root"), what=_WHAT)

    def _vocabulary(self, captioner: str) -> list[str] | None:
        places = (self.root / place.format(vocabulary=captioner) for place in self.vocabularies)
        path = next((place for place in places if place.is_file()), None)
        return None if path is None else load_vocabulary(path)


def _records(rows: Rows, column: str, attribute: str, labels: LabelMap) -> Iterator[Record]:
    for number, row in rows.items:
        label = rows.text(number, row, labels.field)
        try:
            labels.group_of(label)
        except DataError as error:
            rows.refuse(number, str(error))
        yield Record(
            id=rows.id(number, row, "img_id"),
            model=rows.text(number, row, column),
            human=_captions(rows, number, row),
            labels={attribute: label},
        )


def _captions(rows: Rows, number: int, row: Mapping[str, Any]) -> tuple[str, ...]:
    """The list in a cell, written as a Python literal; nothing is executed."""
    text = rows.text(number, row, "caption_list")
    if len(text) > _LONGEST:
        rows.refuse(number, f"'caption_list' has {len(text):,} characters, over {_LONGEST:,}")
    try:
        captions = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        captions = None
    if not isinstance(captions, list) or not all(isinstance(caption, str) for caption in captions):
        rows.refuse(number, f"'caption_list' must be a Python list of texts, found {text[:80]!r}")
    return tuple(captions)
