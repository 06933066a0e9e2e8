"""Finds the pictures that numbers in files mean; files in COCO's form explain their numbers.

Annotation programs number pictures themselves, so 95 may be ``000001.jpg`` in one file and
``000095.jpg`` in another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.data.binary_tables import file_of
from bias_pipeline.data.blocks import Block
from bias_pipeline.data.columns import IMAGE, Layout, plain_name
from bias_pipeline.data.file_names import Names, name_column, note_name, own_numbers
from bias_pipeline.data.tables import Rows
from bias_pipeline.errors import DataError

T = TypeVar("T")
# Maps new names of ids to the shares of words that the texts then have in common with
# another file's texts of the same images
Alike = Callable[[Names], Float64Array]

_ENOUGH = 0.95  # share of the labelled images that names must find to be preferred to numbers
_COMPARED = 2000  # images whose words are compared
_FEWEST = 20
_CLEAR = 4.0  # standard errors


def noting_names(rows: Rows, first: Mapping[str, Any], key: str, layout: Layout) -> Rows:
    """The same rows; the layout notes file names from the file's list or beside its ids."""
    names = layout.names[rows.path] = dict(rows.names)
    column = None if names or key == layout.id_column else name_column(first, key)
    return rows if column is None else replace(rows, blocks=_note_names(rows, names, key, column))


def _note_names(rows: Rows, names: dict[str, str], key: str, column: str) -> Iterator[Block]:
    for block in rows.blocks:
        for number, name in zip(block.cells(key), block.cells(column), strict=True):
            note_name(names, rows.path, number, name)
        yield block


def words_in_common(texts: Mapping[str, str], others: Mapping[str, str]) -> Float64Array:
    """The share of each text's words that the other text of the same image also has."""
    by_id = {short_id(image): text for image, text in others.items()}
    both = ((text, by_id[i]) for image, text in texts.items() if (i := short_id(image)) in by_id)
    words = ((set(a.lower().split()), set(b.lower().split())) for a, b in islice(both, _COMPARED))
    return np.array([len(a & b) / max(1, len(a)) for a, b in words])


def is_named(ids: Iterable[str]) -> bool:
    return any(short_id(image) != image for image in ids)


@dataclass
class LabelledImages:
    """The labelled images, among which the images of other files are found.

    File names are preferred to numbers if labels or captions use names, or if names match nearly
    all labelled images. Otherwise names or numbers are used, whichever match more images. In a tie,
    the column decides for which captions of the same image have more words in common. If this does
    not decide either, the file is refused. Numbers without names are looked up in another file's
    list if only the list matches labelled images.
    """

    ids: Collection[str]
    layout: Layout
    by_name: bool
    enough: float = _ENOUGH
    notes: list[str] = field(default_factory=list)
    decided: list[tuple[Names, bool]] = field(default_factory=list)
    numbers: dict[str, str] = field(default_factory=dict)
    readings: dict[Path, Names] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shorts = {short_id(image) for image in self.ids}
        self._short = len(shorts) == len(self.ids)
        self._long = is_named(self.ids)
        self._known = shorts if self._short else set(self.ids)
        lists = {path: own_numbers(names) for path, names in self.layout.names.items()}
        self._lists = {path: names for path, names in lists.items() if names}
        if self._lists and self._column_is_named("file_name"):
            self.layout.used.add(self.layout.id_column or "")

    def has_numbers(self, path: Path | None) -> bool:
        return path in self._lists

    def rename(
        self, path: Path | None, values: Mapping[str, T], alike: Alike | None = None
    ) -> Mapping[str, T]:
        """A file's values under the ids of labels and other files."""
        if path is None or not values:
            return values
        if path not in self.readings:
            self.readings[path] = self._reading(path, values, alike)
        return with_names(path, values, self.readings[path])

    def photos(self, photos: Mapping[str, T]) -> Mapping[str, T]:
        """Photos under the label file's numbers for their names, or else under their names."""
        through = self._through_numbers(photos)
        return {i: photos[photo] for photo, i in through.items()} if through else photos

    def _reading(self, path: Path, ids: Collection[str], alike: Alike | None) -> Names:
        """The new id, which is the picture's id, for each id that changes."""
        names = self._lists.get(path, {})
        named = self._names_of(names, ids)
        by_name, by_number = self._count(named.values()), self._count(ids)
        if not by_name and not (names and by_number):
            return self._of_others(path, ids, alike)
        if not self._differ(named):
            return {}
        counts = (by_name, by_number)
        chosen = by_name > 0 and self._names_win(path, names, named, counts, alike)
        self.decided.append((names, chosen))
        whole = f"of {len(self.ids)} images"
        if chosen:
            self.notes.append(
                f"{path.name}: joined by file_name, not by image id: names find {by_name} {whole}, "
                f"ids {by_number}"
            )
            return self._check_names(path, ids, named, "its images")
        self.numbers |= {self._key(name): number for number, name in names.items()}
        if by_name or self.by_name:
            self.notes.append(
                f"{path.name}: joined by image id, not by file_name: ids find {by_number} {whole}, "
                f"names {by_name}"
            )
        return {}

    def _names_win(
        self,
        path: Path,
        names: Names,
        named: Names,
        counts: tuple[int, int],
        alike: Alike | None,
    ) -> bool:
        for earlier, by_name in self.decided:
            both = earlier.keys() & names.keys()
            if both and all(earlier[image] == names[image] for image in both):
                return by_name
        if self.by_name or self._column_is_named("file_name"):
            return True
        clear = alike and _clear(alike(named), alike({}))
        if clear:
            return clear > 0
        if counts[0] >= self.enough * len(self.ids):
            return True
        if counts[0] == counts[1] and not self._column_is_named(IMAGE.name):
            raise DataError(
                f"{path}: its image ids are not the numbers in its file names, and both find "
                f"{counts[0]} of {len(self.ids)} images; choose with --id-column file_name "
                "(dataset.id_column=file_name) or --id-column image_id (dataset.id_column=image_id)"
            )
        return counts[0] > counts[1]

    def _column_is_named(self, name: str) -> bool:
        return plain_name(self.layout.id_column or "") == plain_name(name)

    def _of_others(self, path: Path, ids: Collection[str], alike: Alike | None) -> Names:
        """Names of ids that have no names in their own file, from the names in another file."""
        through = self._through_numbers(ids)
        as_is, written = self._count(ids), is_named(ids)
        if through and (written or not as_is):
            return through
        lists = {other: names for other, names in self._lists.items() if other != path}
        readings = {other: self._names_of(names, ids) for other, names in lists.items()}
        other = max(readings, key=lambda one: self._count(readings[one].values()), default=None)
        best = readings[other] if other else {}
        most = self._count(best.values())
        if other is None or not most or not self._differ(best):
            return {}
        if as_is and (written or not self._long or most < as_is):
            return {}
        clear = alike and _clear(alike(best), alike({}))
        if as_is and (clear or 0) < 0:
            return {}
        if as_is == most and not clear:
            raise DataError(
                f"{path}: its image ids may be the numbers in the names of the files, or the "
                f"image ids of {other.name}: both find {most} of {len(self.ids)} labelled "
                f"images; write the names of the files as ids, such as {min(self.ids)}"
            )
        self.notes.append(
            f"{path.name}: image ids are the ids of {other.name}, joined by file_name"
        )
        return self._check_names(path, ids, best, f"the images of {other.name}")

    def _through_numbers(self, ids: Collection[str]) -> Names:
        return {i: n for i in ids if (n := self.numbers.get(self._key(i))) is not None}

    def _names_of(self, names: Names, ids: Collection[str]) -> dict[str, str]:
        """For each id, the name of its file, or the number that labels have for this name."""
        known = ((image, names[image]) for image in ids if image in names)
        return {image: self.numbers.get(self._key(name), name) for image, name in known}

    def _check_names(self, path: Path, ids: Collection[str], named: Names, where: str) -> Names:
        """Return the names; refuse an id without a name that might be a labelled image."""
        for image in ids:
            if image not in named and self._key(image) in self._known:
                raise DataError(
                    f"{path}: image id {image} is not among {where}; add it there with file_name"
                )
        return named

    def _key(self, image: str) -> str:
        return short_id(image) if self._short else image

    def _count(self, ids: Iterable[str]) -> int:
        """The number of ids that belong to labelled images."""
        return len(self._known.intersection(map(self._key, ids)))

    def _differ(self, named: Names) -> bool:
        """Whether an id and its name differ and at least one of them finds a labelled image."""
        keys = ((self._key(image), self._key(name)) for image, name in named.items())
        return any(a != b and (a in self._known or b in self._known) for a, b in keys)


def _clear(first: Float64Array, second: Float64Array) -> int:
    """1 if the first mean is larger beyond chance, -1 if the second mean is, otherwise 0."""
    if min(len(first), len(second)) < _FEWEST:
        return 0
    error = np.sqrt(first.var() / len(first) + second.var() / len(second))
    difference = first.mean() - second.mean()
    return int(np.sign(difference)) if abs(difference) > _CLEAR * error else 0


def labelled_images(
    path: Path | None,
    labels: Mapping[str, str],
    captioner: Path | None,
    captions: Mapping[str, object],
    layout: Layout,
) -> tuple[Mapping[str, str], LabelledImages]:
    """The labels under the ids that are used, and the labelled images."""
    names = own_numbers(layout.names.get(captioner, {})) if captioner else {}
    by_name = bool(names) or is_named(captions)
    captioned = LabelledImages(with_names(captioner, captions, names), layout, by_name, enough=2.0)
    if captioned.has_numbers(path):
        labels = captioned.rename(path, labels)
    return labels, LabelledImages(
        labels,
        layout,
        by_name or is_named(labels),
        notes=captioned.notes,
        decided=captioned.decided,
        numbers=captioned.numbers,
        readings=captioned.readings,
    )


def of_photos(
    path: Path, values: Mapping[str, T], photos: Collection[str], layout: Layout
) -> dict[str, T]:
    """A file's values under the ids of photos, which are the names of their files."""
    by_name = LabelledImages(photos, layout, by_name=True).rename(file_of(path), values)
    return {short_id(image): value for image, value in by_name.items()}


def with_names(path: Path | None, values: Mapping[str, T], names: Names) -> Mapping[str, T]:
    """Values under the names of pictures' files."""
    if not names:
        return values
    first: dict[str, str] = {}
    for image in values:
        other = first.setdefault(names.get(image, image), image)
        if other != image:
            raise DataError(
                f"{path}: image ids {other} and {image} are one picture, "
                f"{names.get(image, image)!r}; "
                "give each picture one id"
            )
    return {names.get(image, image): value for image, value in values.items()}
