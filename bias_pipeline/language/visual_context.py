"""Finds the objects in pictures: from the data set, files of detections, or networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.attack.language_models import Frozen
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.corpus.pictures import Drawing
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.image_numbers import LabelledImages, is_named
from bias_pipeline.data.picture_files import detections_by_id
from bias_pipeline.data.regions import Labels
from bias_pipeline.data.tables import SUFFIXES, check_file
from bias_pipeline.errors import DataError, NotApplicableError, UsageError, inflect
from bias_pipeline.io.digests import digest_of
from bias_pipeline.language.caption_scoring import Contexts, annotated_objects, unit_vectors
from bias_pipeline.models.blocks import store_in
from bias_pipeline.models.picture_vectors import labels_in
from bias_pipeline.models.pretrained import device_of
from bias_pipeline.models.recognition import PROMPT, find_network, is_weights
from bias_pipeline.models.runner import Model, first_reasons
from bias_pipeline.models.timm_networks import is_timm

OBJECTS = "objects"  # the objects of the data set's annotations
VERSION = 1  # raise it whenever any stored confidence changes
_SHOWN = 3  # how many image ids a sentence has

LabelsByRow = Mapping[int, Labels]  # for rows of images, what they show


@dataclass(frozen=True)
class VisualContext:
    """The objects that sources propose for pictures, and the rule that says which of them count."""

    # `objects`, or files of detections, names or folders of networks, and files of weights of
    # torchvision's detectors
    sources: tuple[str, ...]
    names: tuple[str, ...] = ()  # classes for CLIP
    exclude_tasks: tuple[str, ...] = ()  # objects of the data set that do not count
    exclude_labels: frozenset[str] = frozenset()  # labels that do not count
    top_k: int = 3  # labels that each source proposes for a picture
    min_confidence: float = 0.2  # the least confidence of a label
    # With several sources, a label counts if another source has a label whose cosine to it is at
    # least this
    agreement: float = 0.5
    device: str = "auto"  # where networks compute
    cache: str | None = None  # folder where networks' results are stored; None: not stored

    def __post_init__(self) -> None:
        if not self.sources or len(set(self.sources)) < len(self.sources):
            raise UsageError(
                f"metric.context={list(self.sources)}: give objects, or files of detections and "
                "networks, each once"
            )
        if OBJECTS in self.sources and len(self.sources) > 1:
            raise UsageError(
                "metric.context: a data set's objects have no confidence and cannot vote; give "
                "only objects, or only other sources"
            )

    def require(self) -> None:
        for source in self.sources:
            if is_file(source):
                check_file(Path(source), "metric.context")
            elif source != OBJECTS:
                find_network(source)

    def find_contexts(self, corpus: Corpus, wanted: IntArray, encoder: Frozen) -> Contexts:
        if self.sources == (OBJECTS,):
            return annotated_objects(corpus, self.exclude_tasks)
        notes: list[str] = []
        proposed = [
            self._propose(_read_detections(Path(source), corpus, notes))
            if is_file(source)
            else self._propose(self._recognise(source, corpus, wanted, notes))
            for source in self.sources
        ]
        voted = self._vote(proposed, encoder)
        bare = int((~np.isin(wanted, list(voted))).sum())
        if bare == len(wanted):
            raise NotApplicableError(
                f"metric.context={','.join(self.sources)}: no object is left in any of these "
                "images; lower metric.min_confidence or metric.agreement"
            )
        if bare:
            notes.append(
                f"visual context: {inflect(bare, f'of {len(wanted)} images have')} no object left"
            )
        return Contexts.of_images(voted, tuple(notes))

    def _propose(self, by_row: LabelsByRow) -> LabelsByRow:
        """For each image, the most confident of the labels that may count."""
        return {
            row: tuple(
                (label, confidence)
                for label, confidence in labels
                if confidence >= self.min_confidence and label not in self.exclude_labels
            )[: self.top_k]
            for row, labels in by_row.items()
        }

    def _vote(self, sources: Sequence[LabelsByRow], encoder: Frozen) -> dict[int, dict[str, float]]:
        """The labels that count in each image, with their highest confidence."""
        near = self._agreeing_labels(sources, encoder) if len(sources) > 1 else None
        voted: dict[int, dict[str, float]] = {}
        for row in sorted(set(chain.from_iterable(sources))):
            each = [dict(source.get(row, ())) for source in sources]
            for number, labels in enumerate(each):
                others = set(chain.from_iterable(each[:number] + each[number + 1 :]))
                for label, confidence in labels.items():
                    if near is None or near[label] & others:
                        counted = voted.setdefault(row, {})
                        counted[label] = max(confidence, counted.get(label, 0.0))
        return voted

    def _agreeing_labels(
        self, sources: Sequence[LabelsByRow], encoder: Frozen
    ) -> dict[str, set[str]]:
        """For each label, all labels that agree with it, including the label itself."""
        labels = sorted(
            {
                label
                for source in sources
                for labels_of_image in source.values()
                for label, _ in labels_of_image
            }
        )
        if not labels:
            return {}
        units = unit_vectors(encoder, labels)
        near = (units @ units.T >= self.agreement) | np.eye(len(labels), dtype=bool)
        return {
            label: {labels[k] for k in np.flatnonzero(row)}
            for label, row in zip(labels, near, strict=True)
        }

    def _recognise(
        self, source: str, corpus: Corpus, wanted: IntArray, notes: list[str]
    ) -> LabelsByRow:
        """The labels that a network gives to the pictures of a corpus."""
        if corpus.pictures is None or not any(corpus.pictures.contents):
            raise NotApplicableError(
                f"dataset {corpus.dataset!r} has no pictures, which {source} needs; set "
                "dataset.images, or metric.context to a file of detections"
            )
        contents, files = corpus.pictures.contents, corpus.pictures.files
        if any(isinstance(file, Drawing) for file in files):
            raise NotApplicableError(
                f"dataset {corpus.dataset!r} draws its pictures, and {source} needs photos; set "
                "metric.context=objects, or to a file of detections"
            )
        digests = {row: digest for row in wanted.tolist() if (digest := contents[row]) is not None}
        paths = {
            digest: path for row, digest in digests.items() if isinstance(path := files[row], Path)
        }
        network = find_network(source)

        def load() -> Model:
            return network.load(self.names, device_of(self.device))

        question = {"prompt": PROMPT, "names": list(self.names)} if network.prompted else {}
        spec = {"job": "recognize", "version": VERSION, "files": dict(network.files), **question}
        with store_in(self.cache, spec, network.name) as store:
            recognised, unreadable = labels_in(paths, store, load)
        broken = {
            corpus.ids[row]: unreadable[digest]
            for row, digest in digests.items()
            if digest not in recognised
        }
        if broken:
            notes.append(
                f"{source}: {inflect(len(broken), 'pictures cannot')} be read: "
                f"{first_reasons(broken)}"
            )
        return {row: recognised[digest] for row, digest in digests.items() if digest in recognised}


def is_file(source: str) -> bool:
    """Whether a source is a file of detections.

    Example:
        >>> is_file("seen.csv"), is_file("microsoft/resnet-152")
        (True, False)
    """
    return Path(source).suffix.lower() in SUFFIXES


def networks(context: object) -> list[str]:
    """The networks, on the hub or in folders, that a configuration's context contains.

    Example:
        >>> networks(["microsoft/resnet-152", "seen.csv"]), networks("objects")
        (['microsoft/resnet-152'], [])
    """
    sources = context if isinstance(context, list) else [context]
    return [
        source
        for source in sources
        if isinstance(source, str)
        and source != OBJECTS
        and not is_file(source)
        and not is_weights(source)
        and not is_timm(source)
    ]


def content_of(source: str) -> object:
    if source == OBJECTS:
        return source
    return digest_of(Path(source)) if is_file(source) else dict(find_network(source).files)


def _read_detections(path: Path, corpus: Corpus, notes: list[str]) -> LabelsByRow:
    layout = Layout()
    by_id = detections_by_id(path, layout)
    rows = {image: row for row, image in enumerate(corpus.ids)}
    joined = LabelledImages(corpus.ids, layout, by_name=is_named(corpus.ids))
    detections = {
        image if image in rows else short_id(image): labels
        for image, labels in joined.rename(path, by_id).items()
    }
    notes += joined.notes
    foreign = [image for image in detections if image not in rows]
    message = (
        f"{path}: {inflect(len(foreign), f'of {len(detections)} images are')} not in dataset "
        f"{corpus.dataset!r}"
    )
    message += f", such as {', '.join(foreign[:_SHOWN])}"
    if len(foreign) == len(detections):
        raise DataError(
            f"{message}; the data set has ids such as {', '.join(corpus.ids[:_SHOWN])}: "
            "use the same ids in both"
        )
    if foreign:
        notes.append(message)
    return {rows[image]: labels for image, labels in detections.items() if image in rows}
