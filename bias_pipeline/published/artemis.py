"""``dataset=artemis``: what people feel in front of paintings, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import BLANK_LIMIT, Corpus, Record
from bias_pipeline.corpus.image_ids import ENDINGS, few
from bias_pipeline.data.base import NO_CAPTIONER, Dataset, check_folder
from bias_pipeline.data.binary_tables import file_of, stem
from bias_pipeline.data.captioner_files import CaptionerFolder
from bias_pipeline.data.coco_files import model_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.file_names import own_numbers
from bias_pipeline.data.image_numbers import with_names
from bias_pipeline.data.label_files import strata_note
from bias_pipeline.data.label_values import TIE, majority
from bias_pipeline.errors import DataError, ResourceError, UsageError, counted, did_you_mean
from bias_pipeline.io.paths import safe_name
from bias_pipeline.published.artemis_files import (
    FILES,
    PARTS,
    Annotation,
    Cleaning,
    Names,
    by_painting,
    read_release,
)
from bias_pipeline.text.mending import mended_records

_NO_CLEANING = Cleaning(longest_percentile=100, fewest_tokens=0, word_frequency=0)


class ArtemisDataset(Dataset):
    """Paintings with several utterances each, in which annotators say what they feel and why.

    The release's CSV file is read as it is published: mojibake in names and utterances is mended
    and counted, rows without an utterance are counted and left out, and a file of the other version
    is refused. An image's id is ``style/name`` of its painting.

    ImageCaptioner2 does not say how utterances of several emotions become the label of a painting.
    With ``labels=majority`` it has the emotion that most annotators chose, whether or not their
    utterances are left out; ties belong to no group (ours). With ``caption`` each utterance is a
    record with its own emotion; those of a painting stay in one part of a split and are resampled
    together.
    """

    name = "artemis"

    def __init__(
        self,
        root: str,
        version: Literal[1, 2] = 1,
        file: str | None = None,
        labels: Literal["majority", "caption"] = "majority",
        split: str | Sequence[str] | None = None,
        cleaning: Cleaning | None = None,
        images: str | None = None,
        captioners: str | None = None,
        strict: bool = True,
        trained_on_reference: bool | None = None,
        blank_limit: float = BLANK_LIMIT,
    ) -> None:
        self.root, self.version, self.labels = Path(root), version, labels
        self.path = self.root / (file or FILES[version])
        self.split = [split] if isinstance(split, str) else list(split or PARTS)
        for part in self.split:
            if part not in PARTS:
                raise UsageError(f"dataset.split={part} is unknown; {did_you_mean(part, PARTS)}")
        self.cleaning = cleaning or _NO_CLEANING
        self.images = Path(images) if images else None
        self.folder = CaptionerFolder.of(self.name, captioners, self.root)
        self.strict = strict
        self.trained_on_reference = trained_on_reference
        self.blank_limit = blank_limit

    def captioners(self) -> Sequence[str]:
        """The captioners that have a file, and ``none``, for human captions alone."""
        return (*self.folder.names(), NO_CAPTIONER)

    def all_captioners(self, attribute: Attribute) -> Sequence[str]:
        del attribute
        return self.folder.names() or (NO_CAPTIONER,)

    def check_captioner(self, captioner: str) -> None:
        if captioner != NO_CAPTIONER:
            self.folder.file(captioner)

    def load(self, captioner: str, attribute: Attribute) -> Corpus:
        self.check_captioner(captioner)
        names, labels = attribute.groups_of(self.name)
        if labels.field != "emotion":
            raise UsageError(
                f"attribute {attribute.name!r}, labels.artemis.field: dataset 'artemis' labels "
                f"'emotion' alone, not {labels.field!r}"
            )
        labels = labels.with_labels({}, {TIE: TIE})
        check_folder(self.root, self.name)
        release = read_release(self.path, self.version)
        cleaned, parts = self.cleaning.apply(release)
        rows = [row for row in cleaned.annotations if parts[row.painting] in self.split]
        if not rows:
            raise DataError(f"{self.path}: no utterance is of dataset.split={self.split}")
        paintings = by_painting(rows)
        known = Names(parts)
        path = None if captioner == NO_CAPTIONER else self.folder.file(captioner)
        model, spoken = ({}, []) if path is None else self._captions(path, known, paintings)
        pictures, unseen = self._pictures(paintings)
        votes = by_painting(release.annotations)
        records = [
            record
            for painting, annotations in paintings.items()
            for record in self._records(
                Record(painting, model.get(painting), image=pictures.get(painting)),
                annotations,
                attribute.name,
                majority((row.emotion, 1.0) for row in votes[painting]),
            )
        ]
        raw = (record.labels[attribute.name] for record in records)
        records, mends = mended_records(records, {"model": path, "human": self.path})
        return Corpus.build(
            records,
            dataset=f"{self.name} {self.version}",
            captioner=NO_CAPTIONER if path is None else safe_name(stem(path)),
            groups={attribute.name: (names, labels)},
            trained_on_reference=self.trained_on_reference,
            blank_limit=self.blank_limit,
            notes=[*cleaned.notes, *strata_note(raw, labels), *spoken, *unseen, *mends],
            file="" if path is None else str(path.resolve()),
        )

    def _captions(
        self, path: Path, known: Names, paintings: Mapping[str, Sequence[Annotation]]
    ) -> tuple[dict[str, str], list[str]]:
        """Painting to the captioner's caption, and notes on what does not fit."""
        captions: dict[str, str] = {}
        foreign = []
        layout = Layout()
        read = model_captions(path, None, layout).captions
        names = own_numbers(layout.names.get(file_of(path), {}))  # paintings have no numbers
        for identifier, caption in with_names(path, read, names).items():
            painting = known.find(identifier)
            if painting is None:
                foreign.append(identifier)
            elif captions.setdefault(painting, caption) != caption:
                raise DataError(
                    f"{path}: two different captions are of {painting}, one of them that of "
                    f"{identifier}; keep one"
                )
        if not captions.keys() & paintings.keys():
            raise DataError(
                f"{path}: no caption is of a painting of dataset.split={','.join(self.split)}: the "
                f"captions have ids such as {few(foreign or captions)}, the paintings such as "
                f"{few(paintings)}"
            )
        lacking = [painting for painting in paintings if painting not in captions]
        fault = self._lack(f"{path}: ", lacking, len(paintings), "have no caption")
        strange = [
            f"{counted(len(foreign), 'captions are')} of no painting, such as {few(foreign)}"
        ]
        return captions, [*fault, *(strange if foreign else [])]

    def _pictures(self, paintings: Mapping[str, object]) -> tuple[dict[str, Path], list[str]]:
        """Painting to its picture, and a note on those that are absent."""
        if self.images is None:
            return {}, []
        if not self.images.is_dir():
            raise ResourceError(
                f"dataset 'artemis': {self.images} is not a folder; set dataset.images=... to the "
                "folder of WikiArt's styles"
            )
        places = ((painting, self.images / f"{painting}.jpg") for painting in paintings)
        pictures = {painting: path for painting, path in places if path.is_file()}
        if len(pictures) < len(paintings):
            known = Names([painting for painting in paintings if painting not in pictures])
            for path in sorted(self.images.glob("*/*")):
                if path.suffix.lower() in ENDINGS and (painting := known.find(path.as_posix())):
                    pictures.setdefault(painting, path)
        lacking = [painting for painting in paintings if painting not in pictures]
        return pictures, self._lack(
            f"{self.images}: ", lacking, len(paintings), "have no picture STYLE/NAME.jpg"
        )

    def _records(
        self, base: Record, annotations: Sequence[Annotation], attribute: str, label: str
    ) -> Iterator[Record]:
        """The records of one painting: one, or one of each utterance."""
        if self.labels == "majority":
            texts = tuple(row.text for row in annotations)
            yield replace(base, human=texts, labels={attribute: label})
            return
        for number, row in enumerate(annotations):
            yield replace(
                base,
                id=f"{base.id}#{number}",
                human=(row.text,),
                labels={attribute: row.emotion},
                picture_id=base.id,
            )

    def _lack(self, where: str, lacking: Sequence[str], total: int, what: str) -> list[str]:
        """A note on paintings that lack something; in strict mode an error."""
        if not lacking:
            return []
        fault = f"{counted(len(lacking), f'of {total} paintings {what}')}, such as {few(lacking)}"
        if self.strict:
            raise ResourceError(f"{where}{fault}; complete them, or set dataset.strict=false")
        return [fault]
