"""``dataset=coco``: your own captions, in COCO's formats or plain tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import BLANK_LIMIT, Corpus, Record, id_key
from bias_pipeline.corpus.image_ids import short_forms
from bias_pipeline.datasets.base import Dataset
from bias_pipeline.datasets.coco_files import (
    human_captions,
    model_captions,
    objects_by_id,
    splits_by_id,
)
from bias_pipeline.datasets.columns import LabelWords, Layout, label_words
from bias_pipeline.datasets.label_files import MAJORITY, Labels, read_labels, strata_note
from bias_pipeline.datasets.picture_check import shown
from bias_pipeline.datasets.picture_files import PictureFiles
from bias_pipeline.datasets.tables import SUFFIXES, check_file
from bias_pipeline.declared import Range
from bias_pipeline.errors import DataError, ResourceError, UsageError, did_you_mean

T = TypeVar("T")

_EXAMPLES = 5


class CocoDataset(Dataset):
    """Captions of people and of one captioner, labels and objects, each a file of its own.

    The images are those of the label file. Human captions may cover a part of them: the score then
    rests on that part and says so. The captioner's file must fit, unless ``strict`` is off: a
    caption for every labelled image of a group, and no image that no other file knows.

    Files that are not named are looked for in ``root`` under their usual names, but only if
    ``attributes`` is not named either: your own labels are never mixed with what lies there.

    Args:
        root: a folder with ``annotations/captions_val2014.json``,
            ``annotations/instances_val2014.json`` and ``attributes/images_val2014.csv``.
        attributes: the label file, see :mod:`bias_pipeline.datasets.label_files`.
        captions: human captions; without them only the model side is scored.
        instances: the objects in each image.
        images: a folder of the pictures, named by their image ids; what is in them is part of what
            is scored, and equal pictures stay in one part of a split.
        regions: what is where in the pictures, as COCO's instances or a detector's results; if left
            out, ``instances``, where it says that. Without ``images`` the pictures are elsewhere,
            and no more is seen of them.
        captioners: the folder where a captioner given by name has its file; if left out,
            ``captioners`` in ``root`` or beside it.
        strict: whether a captioner's file that does not fit the labels is refused, and an image
            without a picture where there is a folder of them.
        multi_caption: whether a captioner's file may hold different captions of an image, such as
            several samples; one of each image is scored.
        caption_index: which of them, in the file's order, from 0; an image that has fewer counts
            as one without a caption.
        split_file: the part that each image belongs to; if left out, column ``split`` of the
            label file.
        split: the parts that are scored, one name or several; all images if left out.
        annotator: whose labels are used where several people labelled; their majority, if not
            named. One run an annotator shows how far a score rests on whose labels are used.
        labels: attribute name to how the label file writes it, where that differs from what the
            attribute knows.
        trained_on_reference: whether the captioner was trained on captions of this data set;
            None if unknown.
        blank_limit: the share of blank captions of a side above which it is refused.
        id_column: the column of image ids, in every file that has it; without it a usual name is
            taken if there is just one (:mod:`bias_pipeline.datasets.columns`).
        caption_column: the column of captions in captioners' files.
        human_caption_column: that in the file of people's captions.
        label_column: the column of the attribute's labels.
        label_map: label to group, or to a known label of no group ("Unsure"), beside those that
            the attribute knows; or the same as texts, ``"M=male"``.
        shown_under: the terms under which the pictures may be shown to others, such as "our own,
            with the consent of those in them"; None: no report holds them.
    """

    name = "coco"

    def __init__(
        self,
        root: str,
        attributes: str | None = None,
        captions: str | None = None,
        instances: str | None = None,
        images: str | None = None,
        regions: str | None = None,
        captioners: str | None = None,
        strict: bool = True,
        multi_caption: bool = False,
        caption_index: Annotated[int, Range(low=0)] = 0,
        split_file: str | None = None,
        split: str | Sequence[str] | None = None,
        annotator: str = MAJORITY,
        labels: Mapping[str, LabelMap] | None = None,
        trained_on_reference: bool | None = None,
        blank_limit: float = BLANK_LIMIT,
        id_column: str | None = None,
        caption_column: str | None = None,
        human_caption_column: str | None = None,
        label_column: str | None = None,
        label_map: LabelWords | None = None,
        shown_under: str | None = None,
    ) -> None:
        self.root, self.shown_under = Path(root), shown_under or ""
        usual = attributes is None
        self.files = {
            "attributes": self._file(attributes, "attributes/images_val2014.csv", usual),
            "captions": self._file(captions, "annotations/captions_val2014.json", usual),
            "instances": self._file(instances, "annotations/instances_val2014.json", usual),
        }
        self.images = Path(images) if images else None
        self.regions = Path(regions) if regions else None
        self.folder = Path(captioners) if captioners else self._captioners_folder()
        self.strict = strict
        if caption_index < 0 or (caption_index and not multi_caption):
            raise UsageError(
                f"dataset.caption_index={caption_index} must be at least 0, and 0 without "
                "dataset.multi_caption=true"
            )
        self.caption_index = caption_index if multi_caption else None
        self.split_file = Path(split_file) if split_file else None
        self.split = [split] if isinstance(split, str) else list(split or ())
        self.annotator = annotator
        self.labels = labels or {}
        self.trained_on_reference = trained_on_reference
        self.blank_limit = blank_limit
        self.layout = Layout(
            id_column,
            caption_column,
            human_caption_column,
            label_column,
            label_words(label_map or {}),
        )

    def _file(self, named: str | None, usual: str, look: bool) -> Path | None:
        if named:
            return Path(named)
        place = self.root / usual
        return place if look and place.is_file() else None

    def _captioners_folder(self) -> Path:
        inside, beside = self.root / "captioners", self.root.parent / "captioners"
        return beside if beside.is_dir() and not inside.is_dir() else inside

    def captioners(self) -> Sequence[str]:
        """The names of the files in the captioners' folder.

        Raises:
            ResourceError: if there are none.
        """
        found = self._stems()
        if not found:
            raise ResourceError(
                f"dataset {self.name!r}: no captioner's file in {self.folder}; give a file "
                "(captioner=FILE.json) or the folder of several (dataset.captioners=FOLDER)"
            )
        return sorted(found)

    def _stems(self) -> dict[str, list[Path]]:
        """The files of each name."""
        found: dict[str, list[Path]] = {}
        if not self.folder.is_dir():
            return found
        for path in sorted(self.folder.iterdir()):
            if path.suffix in SUFFIXES:
                found.setdefault(path.stem, []).append(path)
        return found

    def check_captioner(self, captioner: str) -> None:
        """Refuse what is neither a file nor the name of one; see :meth:`Dataset.check_captioner`.

        Raises:
            DataError: if two files have the name.
            ResourceError: if a path is given and the file is absent.
        """
        self._captions_file(captioner)

    def _captions_file(self, captioner: str) -> Path:
        stems = self._stems()
        own = stems.get(captioner, [])
        if len(own) > 1:
            raise DataError(
                f"{self.folder}: {own[0].name} and {own[1].name} are both captioner "
                f"{captioner!r}; rename one, or give its path"
            )
        if own:
            return own[0]
        if Path(captioner).suffix.lower() in SUFFIXES or "/" in captioner:
            return check_file(Path(captioner), "captioner")
        raise UsageError(
            f"captioner {captioner!r} is unknown to dataset {self.name!r}; "
            f"{did_you_mean(captioner, stems)} Or give a file: captioner=FILE.json"
        )

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        """See :meth:`Dataset.load`."""
        path = self._captions_file(captioner)
        layout = self.layout.anew()
        labels = self._labels(attribute, layout)
        model, repeated, unused = self._model(path, layout)
        human, repeated_human = self._human(layout)
        layout.check_used()
        found, renamed = _Found(
            labels, model, human, self._objects(), self._parts(labels), self._pictures()
        ).with_short_ids()
        images = self._images(found)
        pictures, unseen = shown(found.pictures, images, self.images, strict=self.strict)
        found = replace(found, pictures=pictures)
        fit = _Fit(path, attribute.name, found.labels, images, self.strict)
        raw, objects = found.labels.raw, found.objects
        notes = [
            *layout.notes(),
            *renamed,
            *labels.notes,
            *strata_note((raw[image] for image in images), labels.map),
            *_collapsed(repeated, "captions of the captioner"),
            *_collapsed(repeated_human, "human captions"),
            *self._chosen(unused),
            *fit.check_captions(found.model, known=(raw, found.human, objects or {})),
            *(fit.check_objects(objects) if objects is not None else ()),
            *unseen,
        ]
        return Corpus.build(
            _records(images, found, attribute.name),
            dataset=self.name,
            captioner=safe_name(path.stem),
            groups={attribute.name: (labels.groups, labels.map)},
            trained_on_reference=self.trained_on_reference,
            blank_limit=self.blank_limit,
            notes=notes,
            file=str(path.resolve()),
        )

    def _labels(self, attribute: Attribute, layout: Layout) -> Labels:
        path = self.files["attributes"]
        if path is None:
            raise ResourceError(
                f"dataset {self.name!r}: there is no label file; set dataset.attributes=FILE, a "
                "table with the columns id and one for each attribute, or image_id, attribute, "
                f"value (looked for {self.root / 'attributes/images_val2014.csv'})"
            )
        check_file(path, "dataset.attributes")
        return read_labels(path, self.name, attribute, self.labels, self.annotator, layout)

    def annotators(self, attribute: Attribute) -> Sequence[str]:
        """See :meth:`Dataset.annotators`."""
        return self._labels(attribute, self.layout.anew()).annotators

    def _model(self, path: Path, layout: Layout) -> tuple[Mapping[str, str], int, int]:
        return model_captions(path, self.caption_index, layout)

    def _chosen(self, unused: int) -> tuple[str, ...]:
        if not unused:
            return ()
        return (
            f"several captions an image: number {self.caption_index} of each is scored, {unused} "
            "others are not (dataset.caption_index)",
        )

    def _human(self, layout: Layout) -> tuple[Mapping[str, tuple[str, ...]], int]:
        path = self.files["captions"]
        return human_captions(check_file(path, "dataset.captions"), layout) if path else ({}, 0)

    def _objects(self) -> Mapping[str, frozenset[str]] | None:
        path = self.files["instances"]
        return objects_by_id(check_file(path, "dataset.instances")) if path else None

    def _pictures(self) -> PictureFiles:
        return PictureFiles.read(self.images, self.regions, self.files["instances"])

    def _parts(self, labels: Labels) -> Mapping[str, str]:
        """The part that each image belongs to, where parts are asked for."""
        if not self.split:
            return {}
        if self.split_file:
            return splits_by_id(check_file(self.split_file, "dataset.split_file"))
        return labels.parts

    def _images(self, found: _Found) -> list[str]:
        """The labelled images of the parts that are scored."""
        if not self.split:
            return list(found.labels.raw)
        held = sorted(set(found.parts.values()))
        for part in self.split:
            if part not in held:
                raise UsageError(f"dataset.split={part} is unknown; {did_you_mean(part, held)}")
        return [image for image in found.labels.raw if found.parts.get(image) in self.split]


@dataclass(frozen=True)
class _Found:
    """What the files hold, by image id."""

    labels: Labels
    model: Mapping[str, str]
    human: Mapping[str, tuple[str, ...]]
    objects: Mapping[str, frozenset[str]] | None
    parts: Mapping[str, str]
    pictures: PictureFiles

    def with_short_ids(self) -> tuple[_Found, Sequence[str]]:
        """The same with file names as ids shortened in every file alike, and a note if any are."""
        others = (self.labels.raw, self.model, self.human, self.objects or {}, self.parts)
        short = short_forms(others)
        if not short:
            return self, ()
        shortened = _Found(
            replace(self.labels, raw=_renamed(self.labels.raw, short)),
            _renamed(self.model, short),
            _renamed(self.human, short),
            None if self.objects is None else _renamed(self.objects, short),
            _renamed(self.parts, short),
            self.pictures,
        )
        first = min(short, key=id_key)
        return shortened, (
            f"image ids are read without folder and ending: {first} is {short[first]}",
        )


def _renamed(values: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    return {names.get(image, image): value for image, value in values.items()}


@dataclass(frozen=True)
class _Fit:
    """Whether a captioner's file and the labels are about the same images."""

    path: Path
    attribute: str
    labels: Labels
    images: Sequence[str]
    strict: bool

    def check_captions(
        self, model: Mapping[str, str], known: Sequence[Collection[str]]
    ) -> Iterator[str]:
        """Refuse, or note, images without a caption and captions of unknown images.

        Raises:
            DataError: if no caption at all is of a labelled image, even if not ``strict``.
        """
        if not any(image in model for image in self.images):
            raise DataError(
                f"{self.path}: no caption is of a labelled image: the captions have ids such as "
                f"{_few(model)}, the labels such as {_few(self.images)}; write both alike, or name "
                "the column that does with --id-column COLUMN (dataset.id_column=COLUMN)"
            )
        lacking = [image for image in self.images if image not in model]
        scored = self._grouped(lacking)
        if scored:
            yield self._fault(
                f"{len(lacking)} of {len(self.images)} labelled images have no caption "
                f"({len(scored)} of them in a group of {self.attribute})",
                scored,
            )
        elif lacking:
            yield f"{len(lacking)} images of no group have no caption"
        foreign = [image for image in model if not any(image in ids for ids in known)]
        if foreign:
            yield self._fault(
                f"{len(foreign)} of {len(model)} captions are of images that neither the labels "
                "nor another file knows",
                foreign,
            )
        unlabelled = len(model.keys() - set(self.images)) - len(foreign)
        if unlabelled:
            yield f"{unlabelled} captions of images that are not scored here are left out"

    def check_objects(self, objects: Mapping[str, frozenset[str]]) -> Iterator[str]:
        """Refuse, or note, images whose objects are unknown."""
        lacking = [image for image in self.images if image not in objects]
        if lacking:
            yield self._fault(
                f"{len(lacking)} of {len(self.images)} labelled images are not in the file of "
                "objects (dataset.instances); they count as images without objects",
                lacking,
            )

    def _grouped(self, images: Iterable[str]) -> list[str]:
        group_of = self.labels.map.group_of
        return [image for image in images if group_of(self.labels.raw[image]) is not None]

    def _fault(self, fault: str, images: Sequence[str]) -> str:
        """The note on images that do not fit; in strict mode the refusal."""
        if not self.strict:
            return f"dataset.strict=false: {fault}"
        raise DataError(
            f"{self.path}: {fault}, such as {_few(images)}; complete the file, or score what fits "
            "with dataset.strict=false"
        )


def _few(images: Iterable[str]) -> str:
    return ", ".join(sorted(images, key=id_key)[:_EXAMPLES])


def _records(images: Sequence[str], found: _Found, attribute: str) -> Iterator[Record]:
    """Records of the labelled images in the order of the captioner's file."""
    wanted = set(images)
    raw, model, objects = found.labels.raw, found.model, found.objects
    shared = {label: {attribute: label} for label in set(raw.values())}
    described = [image for image in model if image in wanted]
    for image in [*described, *(image for image in images if image not in model)]:
        yield Record(
            id=image,
            model=model.get(image),
            human=found.human.get(image, ()),
            labels=shared[raw[image]],
            objects=None if objects is None else objects.get(image, frozenset()),
            image=found.pictures.photo(image),
            regions=found.pictures.regions_of(image),
        )


def safe_name(stem: str) -> str:
    """A file's stem as a captioner's name: letters, digits, ``_`` and ``-``, at most 60 of them.

    Example:
        >>> safe_name("../BLIP 2 (large)")
        'BLIP_2_large'
    """
    return re.sub(r"[^\w-]+", "_", stem).strip("_-")[:60] or "unnamed"


def _collapsed(repeated: int, what: str) -> tuple[str, ...]:
    return (f"{repeated} repeated {what} were collapsed",) if repeated else ()
