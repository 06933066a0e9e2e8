"""Captioners' files: their folder, and whether captions, labels and objects fit each other."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from pathlib import Path

from bias_pipeline.corpus.image_ids import first_ids, short_id
from bias_pipeline.data.binary_tables import is_saved
from bias_pipeline.data.foreign_files import way_to_read
from bias_pipeline.data.label_files import Labels
from bias_pipeline.data.tables import SUFFIXES, check_file
from bias_pipeline.data.text_folders import check_not_one_of_many, is_text_folder
from bias_pipeline.errors import DataError, UsageError, did_you_mean, inflect

_FACE = re.compile(r"(.+)(_face\d+)")  # names from programs that cut faces out of pictures
# Least share of a file's captions of labelled images; with less, ids may fit by accident
LEAST_LABELLED = 0.2
PARTLY = "what fits is scored"  # words in every note on images that do not fit


@dataclass(frozen=True)
class CaptionerFolder:
    """Captioners by the names of their files."""

    dataset: str  # the data set's name, for messages
    path: Path  # the folder, which need not exist

    @classmethod
    def find(cls, dataset: str, named: str | None, root: Path) -> CaptionerFolder:
        """The named folder, or ``captioners`` in the data set's folder or beside it."""
        inside, beside = root / "captioners", root.parent / "captioners"
        usual = beside if beside.is_dir() and not inside.is_dir() else inside
        return cls(dataset, Path(named) if named else usual)

    def names(self) -> list[str]:
        return sorted(self._stems())

    def file(self, captioner: str) -> Path:
        stems = self._stems()
        files = stems.get(captioner, [])
        if len(files) > 1:
            raise DataError(
                f"{self.path}: {files[0].name} and {files[1].name} are both captioner "
                f"{captioner!r}; rename one, or give its path"
            )
        if files:
            return files[0]
        place = Path(captioner)
        if place.suffix.lower() in SUFFIXES or "/" in captioner or is_saved(place):
            return check_file(place, "captioner")
        if place.is_file():
            check_not_one_of_many(place)
            raise UsageError(
                f"{captioner}: the name of a file of captions ends in {', '.join(SUFFIXES)}. "
                f"{way_to_read(place)}"
            )
        absent = "" if self.path.is_dir() else f"the folder {self.path} is absent (dataset.root)."
        raise UsageError(
            f"captioner {captioner!r} is unknown to dataset {self.dataset!r}; "
            f"{absent or did_you_mean(captioner, stems)} Or give a file: captioner=FILE.json"
        )

    def _stems(self) -> dict[str, list[Path]]:
        stems: dict[str, list[Path]] = {}
        if not self.path.is_dir():
            return stems
        for path in sorted(self.path.iterdir()):
            if path.suffix.lower() in SUFFIXES or is_text_folder(path):
                stems.setdefault(path.stem, []).append(path)
        return stems


@dataclass(frozen=True)
class ImageMatch:
    path: Path | None  # the file of captions; None for pictures without a captioner
    attribute: str  # the attribute whose groups are scored
    labels: Labels  # labels of the images
    images: Sequence[str]  # the labelled images of the parts that are scored
    strict: bool  # whether files that do not fit are refused instead of noted

    def check_captions(
        self, model: Mapping[str, str], known: Sequence[Collection[str]]
    ) -> Iterator[str]:
        """Refuse or note images without a caption, and captions of unknown images."""
        if self.path is None:
            return
        self.check_any(self.path, model)
        labelled = set(self.images)
        lacking = labelled.difference(model)
        group_of = self.labels.map.group_of
        scored = [image for image in lacking if group_of(self.labels.raw[image]) is not None]
        if scored:
            yield self._fault(
                self.path,
                f"{inflect(len(lacking), f'of {len(self.images)} labelled images have')} no "
                f"caption ({len(scored)} of them in a group of {self.attribute})",
                scored,
            )
        elif lacking:
            yield f"{inflect(len(lacking), 'images of no group have')} no caption"
        foreign = set(model).difference(*known)
        if foreign:
            yield self._fault(
                self.path,
                f"{inflect(len(foreign), f'of {len(model)} captions are')} of images that are in "
                "neither the labels nor another file",
                foreign,
            )
        unlabelled = len(model) - len(labelled) + len(lacking) - len(foreign)
        if unlabelled:
            yield (
                f"{inflect(unlabelled, 'captions are')} left out, whose images are not scored here"
            )

    def file_share(self, model: Mapping[str, str]) -> float:
        """The share of the labelled images that the file is about, in (0, 1].

        It is 1 if hardly any caption is of a labelled image, since ids may then fit by accident.
        """
        described = sum(map(model.__contains__, self.images))
        return described / len(self.images) if described >= LEAST_LABELLED * len(model) > 0 else 1.0

    def check_any(self, path: Path | None, captions: Collection[str]) -> None:
        """Refuse captions if none is of a labelled image."""
        if any(image in captions for image in self.images):
            return
        raise DataError(
            f"{path}: no caption is of a labelled image: the captions have ids such as "
            f"{first_ids(captions)}, the labels such as {first_ids(self.images)}; "
            f"{self._fix(captions)}"
        )

    def _fix(self, captions: Collection[str]) -> str:
        """A sentence on how to make captions and labels fit."""
        if all(image.isdigit() for image in (*captions, *self.images)):
            return (
                "they are of another split or data set: name captions and labels of the same images"
            )
        faces = (match for image in self.images if (match := _FACE.fullmatch(image)))
        face = next((match for match in faces if short_id(f"{match[1]}.jpg") in captions), None)
        if face:
            return (
                f"these labels are of faces, not of images: take {face[2]!r} out of their ids, as "
                f"sed 's/{face[2]}//' does, and keep the images with one face"
            )
        return (
            "write both alike, or name the column that does with --id-column COLUMN "
            "(dataset.id_column=COLUMN)"
        )

    def check_objects(
        self, objects: Mapping[str, frozenset[str]], path: Path | None
    ) -> Iterator[str]:
        """Refuse or note images whose objects the file does not know."""
        lacking = [*filterfalse(objects.__contains__, self.images)]
        if lacking:
            yield self._fault(
                path,
                f"{inflect(len(lacking), f'of {len(self.images)} labelled images are')} absent, "
                "so their objects are unknown",
                lacking,
            )

    def _fault(self, path: Path | None, fault: str, images: Collection[str]) -> str:
        """The note on images that do not fit; in strict mode this is an error."""
        if not self.strict:
            return f"{fault}, such as {first_ids(images)}; {PARTLY}"
        raise DataError(
            f"{path}: {fault}, such as {first_ids(images)}; complete it, or score what fits "
            "with dataset.strict=false"
        )
