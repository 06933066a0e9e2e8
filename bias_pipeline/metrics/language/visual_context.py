"""Where the objects beside a caption come from: the data set, detections in files, networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.pictures import Drawing
from bias_pipeline.datasets.detections import detections_by_id
from bias_pipeline.datasets.tables import SUFFIXES, check_file
from bias_pipeline.encoders.frozen import Frozen
from bias_pipeline.errors import DataError, NotApplicableError, UsageError
from bias_pipeline.inference.blocks import store_in
from bias_pipeline.inference.labels import seen_in
from bias_pipeline.inference.runner import Model, named
from bias_pipeline.io.digests import digest_of
from bias_pipeline.metrics.language.contexts import Contexts, annotated
from bias_pipeline.metrics.language.judging import unit_vectors
from bias_pipeline.models.pretrained import device_of
from bias_pipeline.models.recognition import PROMPT, Network, find_network, is_weights
from bias_pipeline.vision.labels import Labels

OBJECTS = "objects"  # those that the data set knows
VERSION = 1  # raise it whenever any confidence that is kept changes
_SHOWN = 3  # image ids in a sentence

IntArray = npt.NDArray[np.int64]
LabelsByRow = Mapping[int, Labels]  # row of an image to what it shows


@dataclass(frozen=True)
class VisualContext:
    """What sources see in pictures, and which of it counts.

    Attributes:
        sources: ``objects``, or files of detections, names or folders of networks, and files of
            weights of torchvision's detectors.
        names: what CLIP is asked for.
        exclude_tasks: objects of the data set that do not count.
        exclude_labels: labels that do not count.
        top_k: labels that each source gives of a picture.
        min_confidence: how sure of them it must be.
        agreement: where there are several sources, a label counts if another source has one whose
            cosine to it is no less.
        device: where networks compute.
        cache: folder of what they saw, None to keep nothing.

    Raises:
        UsageError: if there is no source, one stands twice, or annotations are to vote.
    """

    sources: tuple[str, ...]
    names: tuple[str, ...] = ()
    exclude_tasks: tuple[str, ...] = ()
    exclude_labels: frozenset[str] = frozenset()
    top_k: int = 3
    min_confidence: float = 0.2
    agreement: float = 0.5
    device: str = "auto"
    cache: str | None = None

    def __post_init__(self) -> None:
        """Check the sources."""
        if not self.sources or len(set(self.sources)) < len(self.sources):
            raise UsageError(
                f"metric.context={list(self.sources)}: give objects, or files of detections and "
                "networks, each once"
            )
        if OBJECTS in self.sources and len(self.sources) > 1:
            raise UsageError(
                "metric.context: the objects that a data set knows come without a confidence and "
                "cannot vote; give objects alone, or leave it out"
            )

    def require(self) -> None:
        """Know that every source is there.

        Raises:
            BiasPipelineError: naming the one that is not.
        """
        for source in self.sources:
            if is_file(source):
                check_file(Path(source), "metric.context")
            elif source != OBJECTS:
                find_network(source)

    def of(self, corpus: Corpus, wanted: IntArray, encoder: Frozen) -> Contexts:
        """The objects of a corpus.

        Args:
            corpus: with objects, image ids or pictures, as the sources ask for.
            wanted: rows of the images that matter; networks look at no others.
            encoder: whose cosines vote.

        Raises:
            BiasPipelineError: if a source is broken, or there is no object at all.
        """
        if self.sources == (OBJECTS,):
            return annotated(corpus, self.exclude_tasks)
        notes: list[str] = []
        seen = [
            self._proposed(_detected(Path(source), corpus, notes))
            if is_file(source)
            else self._proposed(self._recognised(source, corpus, wanted, notes))
            for source in self.sources
        ]
        voted = self._voted(seen, encoder)
        bare = int((~np.isin(wanted, list(voted))).sum())
        if bare == len(wanted):
            raise NotApplicableError(
                f"metric.context={','.join(self.sources)}: no object is left in any of these "
                "images; lower metric.min_confidence or metric.agreement"
            )
        if bare:
            notes.append(f"visual context: {bare} of {len(wanted)} images have no object left")
        return Contexts.of_images(voted, tuple(notes))

    def _proposed(self, by_row: LabelsByRow) -> LabelsByRow:
        """The surest labels of each image that may count."""
        return {
            row: tuple(
                (label, confidence)
                for label, confidence in seen
                if confidence >= self.min_confidence and label not in self.exclude_labels
            )[: self.top_k]
            for row, seen in by_row.items()
        }

    def _voted(
        self, sources: Sequence[LabelsByRow], encoder: Frozen
    ) -> dict[int, dict[str, float]]:
        """Labels that count, of each image that has any; the surest source's confidence."""
        near = self._near(sources, encoder) if len(sources) > 1 else None
        found: dict[int, dict[str, float]] = {}
        for row in sorted(set(chain.from_iterable(sources))):
            each = [dict(own.get(row, ())) for own in sources]
            for number, own in enumerate(each):
                others = set(chain.from_iterable(each[:number] + each[number + 1 :]))
                for label, confidence in own.items():
                    if near is None or near[label] & others:
                        kept = found.setdefault(row, {})
                        kept[label] = max(confidence, kept.get(label, 0.0))
        return found

    def _near(self, sources: Sequence[LabelsByRow], encoder: Frozen) -> dict[str, set[str]]:
        """Each label with those that are near enough to agree with it, itself among them."""
        labels = sorted({label for own in sources for seen in own.values() for label, _ in seen})
        if not labels:
            return {}
        units = unit_vectors(encoder, labels)
        near = (units @ units.T >= self.agreement) | np.eye(len(labels), dtype=bool)
        return {
            label: {labels[k] for k in np.flatnonzero(row)}
            for label, row in zip(labels, near, strict=True)
        }

    def _recognised(
        self, source: str, corpus: Corpus, wanted: IntArray, notes: list[str]
    ) -> LabelsByRow:
        """What a network sees in the pictures of a corpus."""
        if corpus.pictures is None or not any(corpus.pictures.contents):
            raise NotApplicableError(
                f"dataset {corpus.dataset!r} has no pictures that {source} could look at; set "
                "dataset.images, or metric.context to a file of detections"
            )
        contents, files = corpus.pictures.contents, corpus.pictures.files
        if any(isinstance(own, Drawing) for own in files):
            raise NotApplicableError(
                f"dataset {corpus.dataset!r} draws its pictures itself, and {source} looks at "
                "photos; set metric.context=objects, or to a file of detections"
            )
        digests = {row: own for row in wanted.tolist() if (own := contents[row]) is not None}
        paths = {own: path for row, own in digests.items() if isinstance(path := files[row], Path)}
        network = find_network(source)

        def load() -> Model:
            return network.load(self.names, device_of(self.device))

        with store_in(self.cache, self._settings(network), network.name) as store:
            seen, unreadable = seen_in(paths, store, load)
        broken = {
            corpus.ids[row]: unreadable[own] for row, own in digests.items() if own not in seen
        }
        if broken:
            notes.append(f"{source}: {len(broken)} pictures cannot be read: {named(broken)}")
        return {row: seen[own] for row, own in digests.items() if own in seen}

    def _settings(self, network: Network) -> Mapping[str, object]:
        asked = {"prompt": PROMPT, "names": list(self.names)} if network.asked else {}
        return {"job": "recognize", "version": VERSION, "files": dict(network.files), **asked}


def is_file(source: str) -> bool:
    """Whether a source is a file of detections.

    Example:
        >>> is_file("seen.csv"), is_file("microsoft/resnet-152")
        (True, False)
    """
    return Path(source).suffix.lower() in SUFFIXES


def networks(context: object) -> list[str]:
    """The networks on the hub or in folders that a configuration's context names.

    Example:
        >>> networks(["microsoft/resnet-152", "seen.csv"]), networks("objects")
        (['microsoft/resnet-152'], [])
    """
    sources = context if isinstance(context, list) else [context]
    return [
        own
        for own in sources
        if isinstance(own, str) and own != OBJECTS and not is_file(own) and not is_weights(own)
    ]


def content_of(source: str) -> object:
    """What is in a source's files, for a run's identity."""
    if source == OBJECTS:
        return source
    return digest_of(Path(source)) if is_file(source) else dict(find_network(source).files)


def _detected(path: Path, corpus: Corpus, notes: list[str]) -> LabelsByRow:
    """What a file says of the images of a corpus.

    Raises:
        DataError: if it is of other images.
    """
    found = detections_by_id(path)
    rows = {image: row for row, image in enumerate(corpus.ids)}
    foreign = [image for image in found if image not in rows]
    told = f"{path}: {len(foreign)} of {len(found)} images are not in dataset {corpus.dataset!r}"
    told += f", such as {', '.join(foreign[:_SHOWN])}"
    if len(foreign) == len(found):
        raise DataError(
            f"{told}; its own have ids such as {', '.join(corpus.ids[:_SHOWN])}: write both alike"
        )
    if foreign:
        notes.append(told)
    return {rows[image]: seen for image, seen in found.items() if image in rows}
