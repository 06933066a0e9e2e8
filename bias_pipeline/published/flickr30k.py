"""``dataset=flickr30k`` reads the captions of Flickr30k, with your own labels and captioners."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TypeVar

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.corpus import BLANK_LIMIT
from bias_pipeline.corpus.image_ids import canonical_id
from bias_pipeline.data.coco import CocoDataset
from bias_pipeline.data.coco_files import CaptionerFile
from bias_pipeline.data.columns import LabelWords, Layout
from bias_pipeline.data.csv_tables import MAX_BYTES
from bias_pipeline.data.label_files import MAJORITY, Labels
from bias_pipeline.data.tables import check_file
from bias_pipeline.declared import Range
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.json_files import expect, load_json, open_input

T = TypeVar("T")

KARPATHY = "dataset_flickr30k.json"
TOKENS, BARS = "results_20130124.token", "results.csv"
_KARPATHY = "Karpathy's {images: [{filename, split, sentences: [{raw}, ...]}, ...]}"
_TOKENS = "lines of <image>.jpg#<number>, a tab and the caption, or of the three between bars"
_LINE = re.compile(r"(.+?)(?:#(\d+)\t|\| *(\d+)(?: *\| *|  +))(.*)", re.ASCII)
_HEADER = "image_name| comment_number| comment"


class Flickr30kDataset(CocoDataset):
    """Human captions of 31,783 photos; labels and captioners are as in ``dataset=coco``.

    The id of an image is the name of its file. Labels and captioners may write it with or without
    ``.jpg``. Nobody has published labels of people for all of Flickr30k, so you need your own
    labels.

    The dataset reads the first of these files that ``root`` has: ``dataset_flickr30k.json``
    (Karpathy), which also has the splits, ``results_20130124.token`` (the original), or
    ``results.csv`` (Kaggle).
    """

    name = "flickr30k"

    def __init__(
        self,
        root: str,
        attributes: str | None = None,
        captioners: str | None = None,
        strict: bool = True,
        multi_caption: bool = False,
        caption_index: Annotated[int, Range(low=0)] = 0,
        split: str | Sequence[str] | None = None,
        annotator: str = MAJORITY,
        labels: Mapping[str, LabelMap] | None = None,
        trained_on_reference: bool | None = None,
        blank_limit: float = BLANK_LIMIT,
        id_column: str | None = None,
        caption_column: str | None = None,
        label_column: str | None = None,
        label_map: LabelWords | None = None,
        images: str | None = None,
        regions: str | None = None,
    ) -> None:
        super().__init__(
            root,
            images=images,
            regions=regions,
            attributes=attributes or str(Path(root) / "attributes.csv"),
            captioners=captioners,
            strict=strict,
            multi_caption=multi_caption,
            caption_index=caption_index,
            split=split,
            annotator=annotator,
            labels=labels,
            trained_on_reference=trained_on_reference,
            blank_limit=blank_limit,
            id_column=id_column,
            caption_column=caption_column,
            label_column=label_column,
            label_map=label_map,
        )

    def _labels(self, attribute: Attribute, layout: Layout) -> Labels:
        labels = super()._labels(attribute, layout)
        place = self.files["attributes"]
        raw, parts = (_without_ending(table, place) for table in (labels.raw, labels.parts))
        karpathy = self.root / KARPATHY
        if karpathy.is_file():
            parts = {image: part for image, (_, part) in read_karpathy(karpathy).items()}
        return replace(labels, raw=raw, parts=parts)

    def _model(self, path: Path, layout: Layout, *, in_sets: bool) -> CaptionerFile:
        file = super()._model(path, layout, in_sets=in_sets)
        return file._replace(captions=_without_ending(file.captions, path))

    def _human(
        self, captioner: CaptionerFile, path: Path | None, layout: Layout
    ) -> tuple[Mapping[str, tuple[str, ...]], int]:
        del captioner, path, layout  # these published files have a single form
        karpathy = self.root / KARPATHY
        if karpathy.is_file():
            return {image: texts for image, (texts, _) in read_karpathy(karpathy).items()}, 0
        for tokens in (self.root / TOKENS, self.root / BARS):
            if tokens.is_file():
                return read_tokens(tokens), 0
        raise ResourceError(
            f"dataset 'flickr30k': neither {KARPATHY} nor {TOKENS} nor {BARS} is in {self.root}; "
            "'python -m bias_pipeline data fetch flickr30k' says where to get them"
        )


def read_karpathy(path: Path) -> dict[str, tuple[tuple[str, ...], str]]:
    """The captions and the part of each image, from Karpathy's file."""
    data = expect(load_json(check_file(path, "dataset.root"), what=_KARPATHY), dict, path, "")
    by_name: dict[str, tuple[tuple[str, ...], str]] = {}
    for number, entry in enumerate(expect(data.get("images"), list, path, "images")):
        place = f"images[{number}]"
        image = expect(entry, dict, path, place)
        name = _stem(expect(image.get("filename"), str, path, f"{place}.filename"))
        part = expect(image.get("split"), str, path, f"{place}.split")
        if name in by_name:
            raise DataError(f"{path}: {place}: image {name} occurs twice; keep one of the two")
        captions = []
        for k, sentence in enumerate(
            expect(image.get("sentences"), list, path, f"{place}.sentences")
        ):
            here = f"{place}.sentences[{k}]"
            raw = expect(sentence, dict, path, here).get("raw")
            captions.append(expect(raw, str, path, f"{here}.raw"))
        by_name[name] = (tuple(captions), part)
    return by_name


def read_tokens(path: Path) -> dict[str, tuple[str, ...]]:
    """Each image's captions in the order of their numbers, from the original or Kaggle's file.

    Line 19,999 of Kaggle's file lacks its second bar.
    """
    captions: dict[str, dict[int, str]] = {}
    with open_input(path, what=_TOKENS, max_bytes=MAX_BYTES) as handle:
        for number, data in enumerate(handle, start=1):
            line = data.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r\n")
            if line == _HEADER:
                continue
            match = _LINE.fullmatch(line)
            if match is None:
                raise DataError(
                    f"{path}, line {number}: expected {_TOKENS}, found {line[:80]!r}; the file "
                    "may be cut off: fetch it again"
                )
            name, place, caption = match[1], int((match[2] or match[3])[:9]), match[4].strip()
            numbered = captions.setdefault(_stem(name), {})
            if numbered.setdefault(place, caption) != caption:
                raise DataError(
                    f"{path}, line {number}: {name}#{place} occurs twice; keep one of the two"
                )
    return {image: tuple(text for _, text in sorted(of.items())) for image, of in captions.items()}


def _stem(name: str) -> str:
    return canonical_id(name.removesuffix(".jpg"))


def _without_ending(by_image: Mapping[str, T], path: Path | None) -> dict[str, T]:
    """The mapping in which ids lose the ending ``.jpg``."""
    short: dict[str, T] = {}
    for image, value in by_image.items():
        if short.setdefault(_stem(image), value) != value:
            raise DataError(f"{path}: {image} occurs twice, with and without .jpg; keep one")
    return short
