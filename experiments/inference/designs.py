"""Captioners of a trial: one annotator against the others, scenes without bias, real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from bias_pipeline.corpus.attribute import LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.run import compose
from bias_pipeline.scenes.captioners import world_captions
from bias_pipeline.scenes.slots import BiasSettings
from bias_pipeline.scenes.world import generate

PEOPLE, SCENES, SAMPLES = "people", "scenes", "samples"
CAPTIONERS = ("nic", "sat", "fc", "att2in", "transformer", "oscar", "nic_plus")
LABELS = {"male": "Male", "female": "Female"}


@dataclass(frozen=True)
class Source:
    """Images of a captioner, from which trials are drawn."""

    records: Sequence[Record]
    groups: Mapping[str, tuple[Sequence[str], LabelMap]]
    dataset: str = "lic"

    def corpus(self, records: Sequence[Record], captioner: str) -> Corpus:
        """A corpus of some records."""
        return Corpus.build(
            records,
            dataset=self.dataset,
            captioner=captioner,
            groups=self.groups,
            trained_on_reference=True,
        )


def words(data: Path, metric: str, captioner: str = "nic") -> list[str]:
    """The overrides of a metric on LIC's labelled images."""
    root = f"dataset.root={data / 'lic' / 'bias_data'}"
    return ["dataset=lic", root, f"captioner={captioner}", f"metric={metric}"]


@cache
def source(data: Path, captioner: str) -> Source:
    """All labelled images with five human captions."""
    built = compose.cell(words(data, "gender_error", captioner))
    attribute = built.build("attribute")
    records = [
        replace(record, labels={"gender": LABELS[record.labels["gender"]]})
        for record in built.corpus()
        if len(record.human) >= 5 and record.labels.get("gender") in LABELS
    ]
    return Source(records, {"gender": (attribute.groups, attribute.labels["lic"])})


@lru_cache(maxsize=1)  # all metrics of a trial score it
def two_people(data: Path, n_images: int, trial: int) -> list[Corpus]:
    """Two captioners that are people, of the same images, against the same references."""
    people = source(data, "nic")
    random = np.random.default_rng([trial, n_images])
    chosen = random.choice(len(people.records), min(n_images, len(people.records)), replace=False)
    return _two_of_all(people, [people.records[number] for number in chosen], random)


@lru_cache(maxsize=1)  # all metrics of a trial score it
def two_faithful(data: Path, n_images: int, trial: int) -> list[Corpus]:
    """Two captioners of new scenes that write as annotators do.

    The captioner without a planted bias is one of the people: two built-in captioners of equal
    bias would write the very same captions.
    """
    del data
    attribute = compose.cell(["metric=gender_error"]).build("attribute")
    world = generate(n_images, seed=1 + trial)
    captions = world_captions(world, BiasSettings())
    records = [
        Record(
            id=str(image.id),
            human=(captions[image.id], *world.human[image.id]),
            labels={"gender": image.labels["gender"]},
            objects=image.objects,
        )
        for image in world.images
    ]
    scenes = Source(records, {"gender": (attribute.groups, attribute.labels[SCENES])}, SCENES)
    return _two_of_all(scenes, records, np.random.default_rng([trial, n_images]))


def _two_of_all(
    people: Source, records: Sequence[Record], random: np.random.Generator
) -> list[Corpus]:
    """Two captions of each image play two captioners; the others are the references of both."""
    drawn = [
        (record, [record.human[place] for place in random.permutation(len(record.human))])
        for record in records
    ]
    return [
        people.corpus(
            [
                replace(record, model=captions[k], human=tuple(captions[2:]))
                for record, captions in drawn
            ],
            name,
        )
        for k, name in enumerate("AB")
    ]


@lru_cache(maxsize=1)
def sample(data: Path, captioner: str, n_images: int, trial: int) -> Corpus:
    """Images of a captioner, drawn with replacement; all its images give the true value."""
    people = source(data, captioner)
    drawn = np.random.default_rng([trial, n_images]).integers(0, len(people.records), n_images)
    return people.corpus(
        [replace(people.records[k], id=str(n)) for n, k in enumerate(drawn)], captioner
    )


@cache
def everything(data: Path, captioner: str) -> Corpus:
    """All images of a captioner."""
    people = source(data, captioner)
    return people.corpus(people.records, captioner)
