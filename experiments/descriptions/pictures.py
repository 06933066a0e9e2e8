"""COCO's pictures of one labelled person: five annotators' captions, objects and labels."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.io.hashing import hash_ids
from bias_pipeline.metrics.counting.described_images import DescribedImages
from bias_pipeline.metrics.counting.descriptions import GroupDescriptions
from bias_pipeline.metrics.functional.comparable import Comparison
from bias_pipeline.metrics.functional.descriptions import Annotators, HazardRatio, hazard_ratios
from bias_pipeline.run import compose
from bias_pipeline.text.descriptions import ConceptTable

ANNOTATORS = 5  # of each picture
GENDER = LabelMap("bb_gender", {"Male": "male", "Female": "female"})


@dataclass(frozen=True)
class Pictures:
    """Pictures by id, as ``coco`` of the folder of data has them."""

    captions: Mapping[int, Sequence[str]]  # the first five of each picture
    objects: Mapping[int, frozenset[str]]
    labels: Mapping[int, Mapping[str, str]]  # of those with five captions
    label_map: LabelMap = GENDER  # whose groups are compared

    @classmethod
    def read(cls, data: Path, label_map: LabelMap = GENDER) -> Pictures:
        """The pictures of the folder of data."""
        folder = data / "coco"
        captions = defaultdict(list)
        people = json.loads((folder / "annotations" / "captions_val2014.json").read_text())
        for line in people["annotations"]:
            captions[line["image_id"]].append(line["caption"].strip())
        instances = json.loads((folder / "annotations" / "instances_val2014.json").read_text())
        names = {category["id"]: category["name"] for category in instances["categories"]}
        objects = defaultdict(set)
        for line in instances["annotations"]:
            objects[line["image_id"]].add(names[line["category_id"]])
        with (folder / "attributes" / "images_val2014.csv").open(newline="") as file:
            rows = {int(row["id"]): row for row in csv.DictReader(file)}
        labels = {i: row for i, row in rows.items() if len(captions[i]) >= ANNOTATORS}
        five = {i: tuple(captions[i][:ANNOTATORS]) for i in labels}
        return cls(five, {i: frozenset(objects[i]) for i in labels}, labels, label_map)

    @cached_property
    def pool(self) -> list[int]:
        """The pictures of one person of a group, in the order of their ids."""
        return sorted(i for i in self.labels if self.group(i) in self.label_map.groups)

    def group(self, picture: int) -> str:
        """The group as the file writes it, such as Male."""
        return self.labels[picture][self.label_map.field]


def metric_and_attribute(*overrides: str) -> tuple[GroupDescriptions, Attribute]:
    """The metric as it is configured, and the attribute: gender if no override names another."""
    cell = compose.cell(["metric=descriptions", "dataset=scenes", *overrides])
    return cell.build("metric"), cell.build("attribute")


def corpus_of(
    model: Mapping[int, str],
    human: Mapping[int, Sequence[str]],
    pictures: Pictures,
    attribute: Attribute,
    *,
    objects: bool = True,
) -> Corpus:
    """Captions of pictures as a corpus."""
    records = [
        Record(
            id=str(i),
            model=caption,
            human=tuple(human.get(i, ())),
            labels={attribute.name: pictures.group(i)},
            objects=pictures.objects[i] if objects else None,
        )
        for i, caption in model.items()
    ]
    groups = {attribute.name: (attribute.groups, attribute.labels["lic"])}
    return Corpus.build(records, dataset="coco", captioner="speaker", groups=groups)


class Habits:
    """What annotators of all pictures say, for log ratios of any part of them."""

    def __init__(self, pictures: Pictures, table: ConceptTable, attribute: Attribute) -> None:
        corpus = corpus_of(
            {i: " ".join(pictures.captions[i]) for i in pictures.pool},
            pictures.captions,
            pictures,
            attribute,
        )
        self.images = DescribedImages(corpus, attribute, table)
        self.place = {int(name): row for row, name in enumerate(corpus.ids)}
        codes = corpus.groupings[attribute.name].codes
        self.groups = (codes == 1).astype(np.float64)
        self.objects = DescribedImages(
            corpus.rewrite({"human": Captions.from_texts([])}), attribute, table
        ).features

    def ratios(self, pictures: Sequence[int]) -> tuple[dict[str, HazardRatio], dict[str, int]]:
        """Concept to the log hazard ratio and to the mentions in some of the pictures."""
        rows = np.array([self.place[i] for i in pictures])
        comparison = Comparison.fit(
            self.groups[rows], self.objects[rows], self.images.folds[rows], hash_ids(map(str, rows))
        )
        counts = self.images.counts[rows]
        annotators = Annotators(counts, self.images.numbers[rows])
        ratios = hazard_ratios(comparison, annotators)
        mentions = counts.sum(axis=0).astype(int).tolist()
        names = self.images.names
        return dict(zip(names, ratios, strict=True)), dict(zip(names, mentions, strict=True))
