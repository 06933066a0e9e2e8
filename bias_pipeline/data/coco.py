"""``dataset=coco``: your own captions, in COCO's formats or plain tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import filterfalse, repeat
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import BLANK_LIMIT, Corpus, Side
from bias_pipeline.corpus.image_ids import reading_notes, short_forms
from bias_pipeline.corpus.records import RecordColumns
from bias_pipeline.data.base import NO_CAPTIONER, Dataset
from bias_pipeline.data.binary_tables import file_of, stem
from bias_pipeline.data.captioner_files import CaptionerFolder, ImageMatch, check_any_labelled
from bias_pipeline.data.coco_files import (
    CaptionerFile,
    captions_with_edits,
    model_captions,
    objects_by_id,
    sample_numbers,
    splits_by_id,
)
from bias_pipeline.data.columns import LabelWords, Layout, label_words
from bias_pipeline.data.file_names import Names, own_numbers
from bias_pipeline.data.image_numbers import labelled_images, with_names, words_in_common
from bias_pipeline.data.joined_captions import Separator, check_separator
from bias_pipeline.data.label_files import (
    MAJORITY,
    Labels,
    read_labels,
    repetition_note,
    strata_note,
)
from bias_pipeline.data.people_once import people_once
from bias_pipeline.data.picture_files import PictureFiles, readable_pictures
from bias_pipeline.data.tables import check_file
from bias_pipeline.declared import Range
from bias_pipeline.errors import (
    NAME_HUMAN_CAPTIONS,
    ResourceError,
    UsageError,
    did_you_mean,
    inflect,
)
from bias_pipeline.io.paths import safe_name
from bias_pipeline.text.mending import mended_columns

T = TypeVar("T")


class CocoDataset(Dataset):
    """Human captions and one captioner's captions, labels and objects, each in a file.

    The images of the label file are scored. If human captions cover only a part of them, this part
    is scored, with a note. Unless ``strict`` is off, the captioner's file must have a caption for
    every image that is labelled with a group, and no caption of an image that no other file has.
    Files that are not named are looked for in ``root`` under their usual names. The search needs
    ``attributes`` to be unnamed too, so your labels are never mixed with the files of ``root``.
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
        separator: Separator | None = None,
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
        self.folder = CaptionerFolder.find(self.name, captioners, self.root)
        self.strict = strict
        if caption_index and not multi_caption:
            raise UsageError(
                f"dataset.caption_index={caption_index} must be 0 without "
                "dataset.multi_caption=true"
            )
        if split_file and not split:
            raise UsageError(
                f"dataset.split_file={split_file} has no effect without the parts that are scored; "
                "name them, as dataset.split=test"
            )
        self.caption_index = caption_index if multi_caption else None
        self.sample = 0  # the number of the caption that is read, in a file with several
        self.split_file = Path(split_file) if split_file else None
        self.split = [split] if isinstance(split, str) else list(split or ())
        self.annotator = annotator
        self.labels = labels or {}
        self.trained_on_reference = trained_on_reference
        self.blank_limit = blank_limit
        columns = (id_column, caption_column, human_caption_column, label_column)
        self.layout = Layout(*columns, label_words(label_map or {}), separator)

    def _file(self, named: str | None, usual: str, look: bool) -> Path | None:
        if named:
            return Path(named)
        place = self.root / usual
        return place if look and place.is_file() else None

    def captioners(self) -> Sequence[str]:
        """The names of the files in the captioners' folder."""
        names = self.folder.names()
        if not names:
            raise ResourceError(
                f"dataset {self.name!r}: no captioner's file in {self.folder.path}; give a file "
                "(captioner=FILE.json) or the folder of several (dataset.captioners=FOLDER), or "
                "captioner=none where no captions of a captioner are needed, as for retrieval"
            )
        return names

    def check_captioner(self, captioner: str) -> None:
        self._file_of(captioner)

    def _file_of(self, captioner: str) -> Path | None:
        """The file of a captioner, or None for ``captioner=none``, which has only pictures."""
        return None if captioner == NO_CAPTIONER else self.folder.file(captioner)

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        path = self._file_of(captioner)
        layout = self.layout.blank_copy()
        labels = self._labels(attribute, layout)
        captioner_file = CaptionerFile({}, 0, 0, {})
        if path:
            captioner_file = self._model(path, layout, in_sets=bool(labels.sets))
        objects = self.files["instances"]
        human, repeated_human = self._human(captioner_file, path, layout)
        contents = Contents(
            labels,
            captioner_file.captions,
            human,
            objects_by_id(check_file(objects, "dataset.instances"), layout) if objects else None,
            self._parts(labels, layout),
            self._pictures(layout),
            captioner_file.edits,
        )
        contents, joined = contents.with_ids_of_labels(
            self._sources(path, inside=human is captioner_file.human), layout
        )
        layout.check_used()
        check_separator(layout)
        contents, renamed = contents.with_short_ids()
        contents, edited = contents.without_edits()
        images = self._images(contents)
        pictures, unseen = readable_pictures(
            contents.pictures, images, self.images, strict=self.strict
        )
        contents = replace(contents, pictures=pictures)
        match = ImageMatch(path, attribute.name, self.strict)
        if self.files["captions"]:
            check_any_labelled(self.files["captions"], contents.human, images)
        if path:
            check_any_labelled(path, contents.model, images)
        contents.match(images, match)
        raw = contents.labels.raw
        files: Mapping[Side, Path | None] = {"model": path, "human": self.files["captions"]}
        columns, mends = mended_columns(records(images, contents, attribute.name), files)
        notes = [
            *layout.notes(),
            *joined,
            *renamed,
            *labels.notes,
            *strata_note(map(raw.__getitem__, images), labels.map),
            *repetition_note(captioner_file.repeated, "captions of the captioner"),
            *repetition_note(repeated_human, "human captions"),
            *(COPIES if is_copied(contents.model, contents.human) else ()),
            *self._note_on_choice(captioner_file.unused),
            *match.caption_notes(),
            *match.object_notes(objects),
            *unseen,
            *mends,
        ]
        corpus = Corpus.build(
            columns,
            dataset=self.name,
            captioner=safe_name(stem(path)) if path else NO_CAPTIONER,
            groups={attribute.name: (labels.groups, labels.map)},
            trained_on_reference=self.trained_on_reference,
            blank_limit=self.blank_limit,
            notes=notes,
            file=str(path.resolve()) if path else "",
            objects_file=str(objects or "") if self.strict else "",
        )
        edits = [
            Corpus.build(
                mended_columns(records(images, contents.of_edits(each), attribute.name), {})[0],
                dataset=self.name,
                captioner=corpus.captioner,
                groups={attribute.name: (labels.groups, labels.map)},
                blank_limit=self.blank_limit,
            )
            for each in edited
        ]
        prompts = captioner_file.prompts
        return replace(corpus, prompts=prompts, file_share=match.file_share, edits=tuple(edits))

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
        return self._labels(attribute, self.layout.blank_copy()).annotators

    def samples(self, captioner: str) -> Sequence[Dataset]:
        """A data set for each sample; files of ``caption --n`` number an image's captions."""
        path = self._file_of(captioner)
        if path is None or self.caption_index is not None:
            return [self]
        numbers = sample_numbers(path, self.layout.blank_copy())
        each = [copy(self) for _ in numbers]
        for reader, number in zip(each, numbers, strict=True):
            reader.sample = number
        return each

    def _model(self, path: Path, layout: Layout, *, in_sets: bool) -> CaptionerFile:
        """The captioner's captions; for sets of pictures, also the captions of edited pictures."""
        index = self.sample or None if self.caption_index is None else self.caption_index
        return (captions_with_edits if in_sets else model_captions)(path, index, layout)

    def _note_on_choice(self, unused: int) -> tuple[str, ...]:
        if not unused or self.caption_index is None:
            return ()
        return (
            f"several captions an image: number {self.caption_index} of each is scored, "
            f"{inflect(unused, 'others are')} not (dataset.caption_index)",
        )

    def _human(
        self, captioner: CaptionerFile, path: Path | None, layout: Layout
    ) -> tuple[Mapping[str, tuple[str, ...]], int]:
        """The human captions, from their own file or else from the captioner's file."""
        named = self.files["captions"]
        if named:
            return people_once(check_file(named, "dataset.captions"), layout)
        if path and captioner.human:
            layout.add_note(file_of(path), "human captions from 'answer'")
        return captioner.human, 0

    def _parts(self, labels: Labels, layout: Layout) -> Mapping[str, str]:
        """The part of each image, if ``split`` is set."""
        if not self.split:
            return {}
        if self.split_file:
            return splits_by_id(check_file(self.split_file, "dataset.split_file"), layout)
        return labels.parts

    def _pictures(self, layout: Layout) -> PictureFiles:
        return PictureFiles.read(self.images, self.regions, self.files["instances"], layout)

    def _sources(self, captioner: Path | None, *, inside: bool) -> _Sources:
        """The files; human captions may be inside the captioner's file."""
        labels = file_of(self.files["attributes"]) if self.files["attributes"] else None
        model = file_of(captioner) if captioner else None
        return _Sources(
            labels,
            model,
            model if inside else self.files["captions"],
            self.files["instances"],
            self.split_file or labels,
            self.regions or self.files["instances"],
        )

    def _images(self, contents: Contents) -> list[str]:
        """The labelled images of the parts that are scored."""
        if not self.split:
            return list(contents.labels.raw)
        parts = sorted(set(contents.parts.values()))
        for part in self.split:
            if part not in parts:
                raise UsageError(f"dataset.split={part} is unknown; {did_you_mean(part, parts)}")
        return [image for image in contents.labels.raw if contents.parts.get(image) in self.split]


class _Sources(NamedTuple):
    """The file of each kind of contents, or None without a file."""

    labels: Path | None
    model: Path | None
    human: Path | None
    objects: Path | None
    parts: Path | None
    regions: Path | None


@dataclass(frozen=True)
class Contents:
    """The contents of the files, by image id."""

    labels: Labels
    model: Mapping[str, str]
    human: Mapping[str, tuple[str, ...]]
    objects: Mapping[str, frozenset[str]] | None
    parts: Mapping[str, str]
    pictures: PictureFiles
    edits: Sequence[Mapping[str, str]] = ()  # captions of edits, by id of the picture

    def with_ids_of_labels(
        self, sources: _Sources, layout: Layout
    ) -> tuple[Contents, Sequence[str]]:
        """A copy in which all files use the ids of the label file, and notes on the matching."""
        if not any(map(own_numbers, layout.names.values())):
            return self, ()
        photos = {path.name: "" for path in self.pictures.photos.values() if isinstance(path, Path)}
        others = self.model or photos or self.human
        raw, images = labelled_images(
            sources.labels, self.labels.raw, sources.model, others, layout
        )
        model: Mapping[str, str] = self.model
        human: Mapping[str, str] = {image: " ".join(each) for image, each in self.human.items()}

        def like_human(names: Names) -> Float64Array:
            return words_in_common(with_names(sources.model, self.model, names), human)

        def like_model(names: Names) -> Float64Array:
            return words_in_common(with_names(sources.human, human, names), model)

        def objects_in(names: Names) -> Float64Array:
            listed = {image: " ".join(each) for image, each in (self.objects or {}).items()}
            return words_in_common(with_names(sources.objects, listed, names), human)

        if images.has_numbers(sources.model) and not images.has_numbers(sources.human):
            model = images.rename(sources.model, model, like_human)
            human = images.rename(sources.human, human, like_model)
        else:
            human = images.rename(sources.human, human, like_model)
            model = images.rename(sources.model, model, like_human)
        joined = Contents(
            self.labels.with_ids(raw, partial(images.rename, sources.labels)),
            model,
            images.rename(sources.human, self.human),
            None
            if self.objects is None
            else images.rename(sources.objects, self.objects, objects_in),
            images.rename(sources.parts, self.parts),
            self.pictures.with_ids_of_labels(images, sources.regions),
            self._edits_with(
                images.rename(sources.model, {image: image for image in self.model}, like_human)
            ),
        )
        return joined, images.notes

    def _edits_with(self, ids: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
        """The captions of edits under new ids, if the old id of each new id is given."""
        return [_rename_images(each, {old: new for new, old in ids.items()}) for each in self.edits]

    def match(self, images: Sequence[str], match: ImageMatch) -> None:
        """Count the images that the files have in common."""
        known = (self.labels.raw, self.human, self.objects or {})
        match.add(images, self.labels, self.model, known, self.objects)

    def without_edits(self) -> tuple[Contents, Sequence[Mapping[str, str]]]:
        """A copy without edited pictures, and the captions of each edit of a picture."""
        edits = self.labels.edits
        raw, model = (
            {image: text for image, text in texts.items() if image not in edits}
            for texts in (self.labels.raw, self.model)
        )
        edited: dict[str, list[str]] = defaultdict(list)
        for image in sorted(edits.keys() & self.model.keys()):
            edited[edits[image]].append(self.model[image])
        each = [
            {image: texts[number] for image, texts in edited.items() if number < len(texts)}
            for number in range(max(map(len, edited.values()), default=0))
        ]
        return replace(self, labels=replace(self.labels, raw=raw), model=model), [
            *each,
            *self.edits,
        ]

    def of_edits(self, captions: Mapping[str, str]) -> Contents:
        """The contents with the captions of edits, without human captions, objects and pictures."""
        return replace(self, model=captions, human={}, objects=None, pictures=PictureFiles({}))

    def with_short_ids(self) -> tuple[Contents, Sequence[str]]:
        """A copy with short ids instead of file names in every file, and a note on changes."""
        others = (self.labels.raw, self.model, self.human, self.objects or {}, self.parts)
        short = short_forms(others)
        if not short:
            return self, ()
        shortened = Contents(
            self.labels.with_ids(
                _rename_images(self.labels.raw, short), partial(_rename_images, names=short)
            ),
            _rename_images(self.model, short),
            _rename_images(self.human, short),
            None if self.objects is None else _rename_images(self.objects, short),
            _rename_images(self.parts, short),
            self.pictures,
            [_rename_images(each, short) for each in self.edits],
        )
        return shortened, reading_notes(short)


def _rename_images(values: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    return {names.get(image, image): value for image, value in values.items()}


def records(images: Sequence[str], contents: Contents, attribute: str) -> RecordColumns:
    """Records of the labelled images, in the order of the captioner's file."""
    model, human, objects = contents.model, contents.human, contents.objects
    sets = contents.labels.sets
    ids = [*filter(set(images).__contains__, model), *filterfalse(model.__contains__, images)]
    pictures = contents.pictures
    pictured = bool(pictures.photos or pictures.regions)
    return RecordColumns(
        ids,
        [*map(model.get, ids)],
        [*map(human.get, ids, repeat(()))] if human else [()] * len(ids),
        {attribute: [*map(contents.labels.raw.__getitem__, ids)]},
        None if objects is None else [*map(objects.get, ids)],
        [pictures.photo(image) for image in ids] if pictured else None,
        [pictures.regions_of(image) for image in ids] if pictured else None,
        set_ids=[sets.get(image, "") for image in ids] if sets else None,
    )


COPIES = (
    "warning: human captions are the captioner's captions, word for word, so nothing can "
    "differ; " + NAME_HUMAN_CAPTIONS,
)


def is_copied(model: Mapping[str, str], human: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether human captions are equal to the captioner's captions."""
    return bool(model) and all(human.get(i) == (caption,) for i, caption in model.items())
