"""Captioners of a trial: people against people, scenes written as people do, real captioners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from bias_pipeline.config import compose
from bias_pipeline.corpus.corpus import Corpus, Record

PEOPLE, SCENES, SAMPLES = "people", "scenes", "samples"
CAPTIONERS = ("nic", "sat", "fc", "att2in", "transformer", "oscar", "nic_plus")
LABELS = {"male": "Male", "female": "Female"}
# A second captioner that writes as people do, of the same images in other words.
TWIN = "+dataset.captioners.twin={}"


@dataclass(frozen=True)
class Source:
    """Images of a captioner, from which trials are drawn."""

    records: Sequence[Record]
    groups: Mapping[str, tuple[Sequence[str], object]]

    def corpus(self, records: Sequence[Record], captioner: str) -> Corpus:
        """A corpus of some records."""
        return Corpus.build(
            records,
            dataset="lic",
            captioner=captioner,
            groups=self.groups,  # type: ignore[arg-type]
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
    speakers: list[list[Record]] = [[], []]
    for number in chosen.tolist():
        record = people.records[number]
        captions = [record.human[place] for place in random.permutation(5)]
        for speaker, records in enumerate(speakers):
            records.append(replace(record, model=captions[speaker], human=tuple(captions[2:])))
    return [
        people.corpus(speaker_records, name)
        for speaker_records, name in zip(speakers, "AB", strict=True)
    ]


@lru_cache(maxsize=1)  # all metrics of a trial score it
def two_faithful(data: Path, n_images: int, trial: int) -> list[Corpus]:
    """Two captioners of new scenes that write as people do."""
    del data
    images = (f"dataset.n_images={n_images}", f"dataset.seed={1 + trial}")
    return [
        compose.cell(["metric=gender_error", TWIN, f"captioner={name}", *images]).corpus()
        for name in ("faithful", "twin")
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
