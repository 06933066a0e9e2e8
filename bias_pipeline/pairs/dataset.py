"""``dataset=pairs`` reads PAIRS, which draws each scene with persons of each gender and race.

Source: Fraser and Kiritchenko, Examining Gender and Racial Bias in Large Vision-Language Models
Using a Novel Dataset of Parallel Images (EACL 2024).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.image_ids import ENDINGS
from bias_pipeline.data.base import check_folder
from bias_pipeline.data.coco import CocoDataset
from bias_pipeline.data.coco_files import CaptionerFile
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.label_files import Labels
from bias_pipeline.data.picture_files import PictureFiles
from bias_pipeline.declared import Range
from bias_pipeline.errors import (
    DataError,
    ResourceError,
    UsageError,
    did_you_mean,
    inflect,
    some_of,
)

_NAME = re.compile(r"(black|white)_(man|woman)\d*", re.IGNORECASE)
_PERSONS = ("black_man", "black_woman", "white_man", "white_woman")  # of each scene
_COLUMNS = ("race", "gender")


class _Picture(NamedTuple):
    """A picture, identified by the names of its folders and of its file."""

    path: Path
    scene: str  # PART/SCENE
    race: str
    gender: str

    @property
    def id(self) -> str:
        """The id PART/SCENE/RACE_GENDER, without digits of the file's name."""
        return f"{self.scene}/{self.race}_{self.gender}"


class PairsDataset(CocoDataset):
    """The folders of PAIRS, ``data/PART/SCENE/RACE_GENDER.png``, and your captions of them.

    A scene is a set of four pictures. The image id of a caption is the path of its picture or the
    end of this path (``occupations/bank/black_man``). File endings and a digit after the name do
    not matter. Labels say what the pictures should show, not how anybody identifies.
    """

    name = "pairs"

    def __init__(
        self,
        root: str,
        captioners: str | None = None,
        strict: bool = True,
        multi_caption: bool = False,
        caption_index: Annotated[int, Range(low=0)] = 0,
        id_column: str | None = None,
        caption_column: str | None = None,
        trained_on_reference: bool | None = None,
    ) -> None:
        super().__init__(
            root,
            captioners=captioners or str(Path(root) / "captioners"),
            strict=strict,
            multi_caption=multi_caption,
            caption_index=caption_index,
            id_column=id_column,
            caption_column=caption_column,
            trained_on_reference=trained_on_reference,
        )

    def _scenes(self) -> list[_Picture]:
        check_folder(self.root, self.name)
        by_scene: dict[str, list[_Picture]] = defaultdict(list)
        unknown: list[str] = []
        data = self.root / "data"
        for path in sorted((data if data.is_dir() else self.root).glob("*/*/*")):
            if path.suffix.lower() not in ENDINGS:
                continue
            match = _NAME.fullmatch(path.stem)
            if match is None:
                unknown.append(str(path))
                continue
            scene = f"{path.parts[-3]}/{path.parts[-2]}"
            by_scene[scene].append(_Picture(path, scene, match[1].lower(), match[2].lower()))
        if not by_scene:
            raise ResourceError(
                f"dataset 'pairs': {self.root} has no pictures data/PART/SCENE/RACE_GENDER.png; "
                "set dataset.root to the folder of PAIRS"
            )
        self._check(by_scene, unknown)
        return [picture for pictures in by_scene.values() for picture in pictures]

    def _check(self, by_scene: Mapping[str, Sequence[_Picture]], unknown: Sequence[str]) -> None:
        if unknown and self.strict:
            raise DataError(
                f"dataset 'pairs': names of {inflect(len(unknown), 'pictures')} do not say race "
                f"and gender, such as {unknown[0]}; name each black_man, black_woman, "
                "white_man or white_woman, or set dataset.strict=false"
            )
        for scene, pictures in by_scene.items():
            ids = [picture.id for picture in pictures]
            twice = next((p for p in pictures if ids.count(p.id) > 1), None)
            if twice:
                same = [p.path.name for p in pictures if p.id == twice.id]
                raise DataError(
                    f"dataset 'pairs': {scene} has two pictures of one person, {same[0]} and "
                    f"{same[1]}, whose names differ by a digit; keep one"
                )
        absent = [
            f"{scene}/{person}"
            for scene, pictures in by_scene.items()
            for person in _PERSONS
            if all(f"{scene}/{person}" != picture.id for picture in pictures)
        ]
        if absent and self.strict:
            raise DataError(
                f"dataset 'pairs': {inflect(len(absent), 'pictures are')} absent: "
                f"{some_of(absent)}; add them, or set dataset.strict=false"
            )

    def _labels(self, attribute: Attribute, layout: Layout) -> Labels:
        del layout
        groups, labels = attribute.groups_of(self.name)
        if labels.field not in _COLUMNS:
            raise UsageError(
                f"attribute {attribute.name!r}, labels.{self.name}.field: dataset 'pairs' has no "
                f"labels {labels.field!r}; {did_you_mean(labels.field, _COLUMNS)}"
            )
        pictures = self._scenes()
        raw = {picture.id: str(getattr(picture, labels.field)) for picture in pictures}
        sets = {picture.id: picture.scene for picture in pictures}
        return Labels(raw, labels, groups, {}, (), sets=sets)

    def _pictures(self, layout: Layout) -> PictureFiles:
        del layout
        return PictureFiles({picture.id: picture.path for picture in self._scenes()})

    def _model(self, path: Path, layout: Layout, *, in_sets: bool) -> CaptionerFile:
        """The captions with the ids of the pictures."""
        read = super()._model(path, layout, in_sets=in_sets)
        captions: dict[str, str] = {}
        for identifier, caption in read.captions.items():
            image = picture_id(identifier)
            if image in captions:
                raise DataError(
                    f"{path}: {identifier!r} and another image id are both {image}; keep one"
                )
            captions[image] = caption
        edits = [{picture_id(name): text for name, text in each.items()} for each in read.edits]
        return read._replace(captions=captions, human={}, edits=edits)


def picture_id(identifier: str) -> str:
    """The id of a picture, from its path or the end of its path; other ids are unchanged.

    Example:
        >>> picture_id("pairs/data/status/phone/white_man1.png"), picture_id("phone.png")
        ('status/phone/white_man', 'phone.png')
    """
    parts = identifier.replace("\\", "/").split("/")
    name = parts[-1]
    stem = name.rpartition(".")[0] if name.lower().endswith(ENDINGS) else name
    match = _NAME.fullmatch(stem)
    if match is None or len(parts) < 3:
        return identifier
    return f"{parts[-3]}/{parts[-2]}/{match[1].lower()}_{match[2].lower()}"
