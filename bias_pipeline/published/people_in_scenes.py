"""Reads data sets that label people in scenes, most of them in boxes.

``dataset=facet`` has annotators' votes. Source: Gustafson et al., FACET: Fairness in Computer
Vision Evaluation Benchmark (ICCV 2023). ``dataset=miap`` labels every person in many Open Images.
Source: Schumann et al., A Step Toward More Inclusive People Annotations for Fairness (AIES 2021).
``dataset=phase`` has pictures of Google's Conceptual Captions that crowd workers labelled. Source:
Garcia, Hirota, Wu and Nakashima, Uncurated Image-Text Datasets: Shedding Light on Demographic Bias
(CVPR 2023). ``dataset=visogender`` has people at work. Source: Hall et al., VisoGender: A dataset
for benchmarking gender bias in image-text pronoun resolution (NeurIPS 2023). ``dataset=pata`` has
people by race, gender and age. Source: Seth, Hemani and Agarwal, DeAR: Debiasing Vision-Language
Models (CVPR 2023).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from bias_pipeline.data.tables import Rows, open_rows
from bias_pipeline.errors import DataError, ResourceError, inflect
from bias_pipeline.io.json_files import decode, expect, load_json
from bias_pipeline.published.people import DISAGREEMENT, Label, PeopleDataset

# Attribute to its options; each option has a column of votes.
_VOTES: Mapping[str, tuple[str, ...]] = {
    "gender_presentation": ("masc", "fem", "non_binary", "na"),
    "age_presentation": ("young", "middle", "older", "na"),
}
_SIDES = ("x", "y", "width", "height")


class FACETDataset(PeopleDataset):
    """The file ``annotations.csv`` beside the folders ``imgs_1`` to ``imgs_3``.

    Each line is about one person. ``gender_presentation_masc`` and similar columns count votes. The
    label is the option with most votes, or ``disagreement`` for a tie. Public loaders use these
    column names, but the file is not public.
    """

    name = "facet"
    columns: ClassVar[tuple[str, ...]] = tuple(_VOTES)
    terms: ClassVar[str] = "FACET's licence allows evaluation only: nothing may be trained on it"

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        del notes
        path, places = self.existing(["annotations.csv"])[0], self._places()
        rows = open_rows(path, what="FACET's annotations")
        votes = {option: f"{column}_{option}" for option in _VOTES[column]}
        rows.require("person_id", "filename", "bounding_box", *votes.values())
        for number, row in rows.items:
            counts = {option: _count(rows, number, row, name) for option, name in votes.items()}
            file = rows.text(number, row, "filename")
            text = rows.text(number, row, "bounding_box")
            try:
                box = json.loads(text.replace("'", '"'))
                left, top, wide, high = (float(box[side]) for side in _SIDES)
            except (ValueError, KeyError, TypeError, OverflowError):
                rows.refuse(number, f"bounding_box {text[:60]!r} is no x, y, width and height")
            yield Label(
                places.get(file, f"imgs_1/{file}"),
                column,
                most_voted(counts),
                f"{path}, line {number}",
                person=rows.text(number, row, "person_id"),
                box=(left, top, wide, high),
            )

    def _places(self) -> dict[str, str]:
        """The path of each picture by its name; pictures are in several folders."""
        folders = sorted(path for path in self.root.glob("imgs_*") if path.is_dir())
        if not folders and self.strict:
            raise ResourceError(
                f"dataset 'facet': {self.root} has none of the folders imgs_1, imgs_2 and imgs_3; "
                "unpack FACET's pictures there"
            )
        return {
            file.name: f"{folder.name}/{file.name}"
            for folder in folders
            for file in folder.iterdir()
        }


def most_voted(votes: Mapping[str, int]) -> str:
    """The option with most votes, ``disagreement`` for a tie, or ``na`` without votes.

    Example:
        >>> [most_voted({"masc": n, "fem": 1}) for n in (2, 1)], most_voted({"masc": 0, "na": 0})
        (['masc', 'disagreement'], 'na')
    """
    largest = max(votes.values())
    if largest == 0:
        return "na"
    leading = [label for label, count in votes.items() if count == largest]
    return leading[0] if len(leading) == 1 else DISAGREEMENT


def _count(rows: Rows, number: int, row: Mapping[str, Any], name: str) -> int:
    text = rows.text(number, row, name)
    try:
        count = float(text or 0)
    except ValueError:
        count = -1.0
    if count < 0 or not count.is_integer():
        rows.refuse(number, f"{name} {text!r} is no number of votes")
    return int(count)


Part = Literal["train", "val", "test", "all"]
_FOLDERS = {"train": "train", "val": "validation", "test": "test"}  # folders of Open Images
_EDGES = ("XMin", "XMax", "YMin", "YMax")  # in this order, shares of the picture
_WHAT = "MIAP's boxes"


class MIAPDataset(PeopleDataset):
    """The files ``open_images_extended_miap_boxes_{train,val,test}.csv`` beside the pictures.

    A box has one person. Boxes of groups (``IsGroupOf``) and of pictures of people
    (``IsDepictionOf``) are skipped and counted. Presentation is what annotators perceived, not
    identity.
    """

    name = "miap"
    columns: ClassVar[tuple[str, ...]] = ("GenderPresentation", "AgePresentation")
    terms: ClassVar[str] = "MIAP's boxes are CC BY 4.0; its pictures have licences of their own"

    def __init__(self, root: str, strict: bool = True, part: Part = "val") -> None:
        super().__init__(root, strict)
        self.part = part

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        passed = 0
        parts = tuple(_FOLDERS) if self.part == "all" else (self.part,)
        file_of = "open_images_extended_miap_boxes_{}.csv".format
        part_of = {file_of(part): part for part in parts}
        for path in self.existing(list(part_of)):
            part = part_of[path.name]
            rows, people = open_rows(path, what=_WHAT), Counter[str]()
            rows.require("ImageID", *_EDGES, "IsGroupOf", "IsDepictionOf", column)
            for number, row in rows.items:
                image = rows.text(number, row, "ImageID")
                people[image] += 1
                if row["IsGroupOf"] == "1" or row["IsDepictionOf"] == "1":
                    passed += 1
                    continue
                left, right, upper, lower = (_share(rows, number, row[name]) for name in _EDGES)
                yield Label(
                    f"{_FOLDERS[part]}/{image}.jpg",
                    column,
                    rows.text(number, row, column),
                    f"{path}, line {number}",
                    person=str(people[image]),
                    box=(left, upper, right - left, lower - upper),
                    size=(1, 1),
                )
        if passed:
            notes.append(inflect(passed, "boxes of groups or depictions are skipped"))


def _share(rows: Rows, number: int, value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        rows.refuse(number, f"{value!r} is no share of the picture from 0 to 1")
    return share


_PERSON = re.compile(r"person\d+")


class PHASEDataset(PeopleDataset):
    """The files ``phase_gcc_{train,val}_all_20221101.json``, or else the file of ``regions``.

    A picture has a caption, which is not read, and people in boxes with the answers of every
    worker. The label is the most frequent answer, or ``disagreement`` if there is a tie. The file
    of regions already has one label for each person. Pictures are in ``images``.
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
        del notes
        kinds = ("all", "regions")
        path = self.existing([f"phase_gcc_{self.part}_{kind}_20221101.json" for kind in kinds])[0]
        images = expect(load_json(path, what="PHASE's annotations"), dict, path, "")
        for image, entry in images.items():
            for name, person in expect(entry, dict, path, image).items():
                if _PERSON.fullmatch(name):
                    source = f"{path}, {image}, {name}"
                    fields = expect(person, dict, path, f"{image}.{name}")
                    value = _answer_in(fields.get("annotations"), column, source)
                    region: Any = fields.get("region")
                    try:
                        left, upper, right, lower = map(float, region or ())
                    except (TypeError, ValueError, OverflowError):
                        fault = f"{source}: region {region!r} is not x1, y1, x2, y2"
                        raise DataError(fault) from None
                    box = (left, upper, right - left, lower - upper)
                    yield Label(f"images/{image}", column, value, source, person=name, box=box)


def _answer_in(annotations: Any, column: str, source: str) -> str:
    """The most frequent of several answers, or the only answer."""
    listed = annotations if isinstance(annotations, list) else [annotations]
    if not listed or not all(isinstance(answer, Mapping) and column in answer for answer in listed):
        raise DataError(f"{source}: no annotations with {column!r}")
    first, *others = Counter(str(answer[column]) for answer in listed).most_common(2)
    return DISAGREEMENT if others and others[0][1] == first[1] else first[0]


# The column's name in older files
_GENDER, _OLDER = "Occupation_perceived_gender", "Occupation_Gender"


class VisoGenderDataset(PeopleDataset):
    """The tables ``*.tsv`` of an occupation with an object (OO) or with a participant (OP).

    The tables are in the folder, or in its published folders ``OO`` and ``OP``. Labels describe the
    person who has the occupation. The tables have URLs and no files. The picture of the line with
    ``IDX`` 7 of ``oo.tsv`` is expected as ``images/oo/7.jpg`` (ours), in the folder or beside the
    table. Lines without a URL or a gender are skipped and counted.
    """

    name = "visogender"
    columns: ClassVar[tuple[str, ...]] = (_GENDER,)
    terms: ClassVar[str] = "VisoGender is CC BY 4.0, for benchmarks only: do not train on it"

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        passed = 0
        for path in self._files():
            rows = open_rows(path, what="VisoGender's table")
            written = _OLDER if rows.has(_OLDER) else column
            rows.require("IDX", "Sector", "Occupation", written)
            beside = (path.parent / "images" / path.stem).relative_to(self.root)
            places = (Path("images", path.stem), beside)
            there = (place for place in places if (self.root / place).is_dir())
            folder = next(there, places[0]).as_posix()
            for number, row in rows.items:
                label = rows.text(number, row, written).strip()
                if not label or label == "NA":
                    passed += 1
                    continue
                image = f"{folder}/{rows.id(number, row, 'IDX')}.jpg"
                yield Label(image, column, label, f"{path}, line {number}")
        if passed:
            notes.append(inflect(passed, "lines without a perceived gender are skipped"))

    def _files(self) -> list[Path]:
        """The tables of people; tables of labour statistics in the folder have no ``IDX``."""
        paths = [*sorted(self.root.glob("*.tsv")), *sorted(self.root.glob("O[OP]/*.tsv"))]
        tables = [path for path in paths if open_rows(path, what="a table").has("IDX")]
        if paths and not tables:
            raise DataError(f"{paths[0]}: column 'IDX' is absent; no table here is VisoGender's")
        if not tables:
            raise ResourceError(
                f"dataset 'visogender': no table *.tsv in {self.root}, nor in its folders OO and "
                "OP; set dataset.root=... to the folder of the tables, or to the folder that "
                "holds OO and OP"
            )
        for kind in ("Object", "Participant"):
            same = [path for path in tables if open_rows(path, what="a table").has(kind)]
            if len(same) > 1:
                raise DataError(
                    f"{same[0]} and {same[1]} are two versions of one table (column {kind!r}), so "
                    "people would count twice; remove one"
                )
        return tables


_FILE = "pata_fairness.files.lst"


class PATADataset(PeopleDataset):
    """The file ``pata_fairness.files.lst``, with lines of ``scene_race_gender_age|url``.

    Names of scenes also contain underscores (``gun_range``), so lines are split from the right.
    Splits from the left misread 415 of 4,934 lines. The list has URLs and no files. The picture of
    line 7 is expected as ``images/7.jpg`` (ours). Since some URLs are dead,
    ``dataset.strict=false`` may be needed.
    """

    name = "pata"
    columns: ClassVar[tuple[str, ...]] = ("scene", "race", "gender", "age")
    terms: ClassVar[str] = "PATA has no licence: its pictures belong to their photographers"

    def labels(self, column: str, notes: list[str]) -> Iterator[Label]:
        path = self.existing([_FILE])[0]
        text = decode(path.read_bytes(), path, "lines of scene_race_gender_age|url")
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip():
                continue
            name, bar, _ = line.partition("|")
            labels = dict(zip(self.columns, name.strip().rsplit("_", 3), strict=False))
            if not bar or len(labels) < len(self.columns):
                raise DataError(f"{path}, line {number}: not scene_race_gender_age|url: {line!r}")
            yield Label(f"images/{number}.jpg", column, labels[column], f"{path}, line {number}")
