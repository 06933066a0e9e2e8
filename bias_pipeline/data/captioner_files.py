"""Finds the files of captioners, and checks whether captions, labels and objects fit each other."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import filterfalse
from pathlib import Path

from bias_pipeline.corpus.image_ids import first_ids, id_key, short_id
from bias_pipeline.data.binary_tables import is_saved
from bias_pipeline.data.foreign_files import way_to_read
from bias_pipeline.data.label_files import Labels
from bias_pipeline.data.tables import SUFFIXES, check_file
from bias_pipeline.data.text_folders import check_not_one_of_many, is_text_folder
from bias_pipeline.errors import DataError, UsageError, did_you_mean, inflect

_FACE = re.compile(r"(.+)(_face\d+)")  # names from programs that cut faces out of pictures
# Least share of a file's captions of labelled images; with less, ids may fit by accident
LEAST_LABELLED = 0.2
_NAMED = 5  # images in a note
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


@dataclass
class _Images:
    """Some images: their number and the first of them."""

    n: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, images: Collection[str]) -> None:
        self.n += len(images)
        self.first = nsmallest(_NAMED, [*self.first, *images], key=id_key) if images else self.first


@dataclass
class ImageMatch:
    """Whether captions, labels and objects are of the same images; files may be read in parts."""

    path: Path | None  # the file of captions; None for pictures without a captioner
    attribute: str  # the attribute whose groups are scored
    strict: bool  # whether files that do not fit are refused instead of noted
    n_captions: int = 0
    n_images: int = 0  # labelled, and of the parts that are scored
    lacking: _Images = field(default_factory=_Images)  # labelled images without a caption
    scored: _Images = field(default_factory=_Images)  # those of them that are in a group
    foreign: _Images = field(default_factory=_Images)  # images of captions that no file knows
    objectless: _Images = field(default_factory=_Images)  # labelled images that no objects name

    def add(
        self,
        images: Collection[str],
        labels: Labels,
        model: Mapping[str, str],
        known: Sequence[Collection[str]],
        objects: Mapping[str, frozenset[str]] | None,
    ) -> None:
        """Count images of the files, or of a part of the files."""
        self.n_images += len(images)
        self.n_captions += len(model)
        lacking = set(images).difference(model)
        group_of = labels.map.group_of
        self.lacking.add(lacking)
        self.scored.add([image for image in lacking if group_of(labels.raw[image]) is not None])
        self.foreign.add(set(model).difference(*known))
        if objects is not None:
            self.objectless.add([*filterfalse(objects.__contains__, images)])

    def caption_notes(self) -> Iterator[str]:
        """Refuse or note images without a caption, and captions of unknown images."""
        if self.path is None:
            return
        of_labelled = f"of {self.n_images} labelled images have"
        if self.scored.n:
            yield self._fault(
                self.path,
                f"{inflect(self.lacking.n, of_labelled)} no caption ({self.scored.n} of them in a "
                f"group of {self.attribute})",
                self.scored,
            )
        elif self.lacking.n:
            yield f"{inflect(self.lacking.n, 'images of no group have')} no caption"
        if self.foreign.n:
            yield self._fault(
                self.path,
                f"{inflect(self.foreign.n, f'of {self.n_captions} captions are')} of images that "
                "are in neither the labels nor another file",
                self.foreign,
            )
        unlabelled = self.n_captions - self.n_described - self.foreign.n
        if unlabelled:
            yield f"{inflect(unlabelled, 'captions of images not scored here are')} left out"

    @property
    def n_described(self) -> int:
        """How many labelled images have a caption."""
        return self.n_images - self.lacking.n

    @property
    def file_share(self) -> float:
        """The share of the labelled images that the file is about, in (0, 1].

        If hardly any caption is of a labelled image, ids may fit by accident, and the share is 1.
        """
        enough = self.n_described >= LEAST_LABELLED * self.n_captions > 0
        return self.n_described / self.n_images if enough else 1.0

    def object_notes(self, path: Path | None) -> Iterator[str]:
        """Refuse or note images whose objects the file does not know."""
        if self.objectless.n:
            yield self._fault(
                path,
                f"{inflect(self.objectless.n, f'of {self.n_images} labelled images are')} absent, "
                "so their objects are unknown",
                self.objectless,
            )

    def _fault(self, path: Path | None, fault: str, images: _Images) -> str:
        """The note on images that do not fit; in strict mode this is an error."""
        if not self.strict:
            return f"{fault}, such as {first_ids(images.first)}; {PARTLY}"
        raise DataError(
            f"{path}: {fault}, such as {first_ids(images.first)}; complete it, or score what fits "
            "with dataset.strict=false"
        )


def check_any_labelled(
    path: Path | None, captions: Collection[str], images: Collection[str]
) -> None:
    """Refuse captions if none is of a labelled image."""
    if any(image in captions for image in images):
        return
    raise DataError(
        f"{path}: no caption is of a labelled image: the captions have ids such as "
        f"{first_ids(captions)}, the labels such as {first_ids(images)}; "
        f"{_way_to_fit(captions, images)}"
    )


def _way_to_fit(captions: Collection[str], images: Collection[str]) -> str:
    """A sentence on how to make captions and labels fit."""
    if all(image.isdigit() for image in (*captions, *images)):
        return "they are of another split or data set: name captions and labels of the same images"
    faces = (match for image in images if (match := _FACE.fullmatch(image)))
    face = next((match for match in faces if short_id(f"{match[1]}.jpg") in captions), None)
    if face:
        return (
            f"these labels are of faces, not of images: take {face[2]!r} out of their ids, as "
            f"sed 's/{face[2]}//' does, and keep the images with one face"
        )
    return (
        "write the ids of both alike, or name the column that has such ids with --id-column "
        "COLUMN (dataset.id_column=COLUMN)"
    )
