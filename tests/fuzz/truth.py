"""A small truth about images, its plain files, and the numbers of metrics on files."""

import csv
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data.coco import CocoDataset
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.metrics.base import Metric
from bias_pipeline.run import compose

METRICS = ("gender_error", "cooccurrence", "ba_mals", "quality")
LABELS, MINE, PEOPLE, OBJECTS = "attributes", "captioner", "captions", "instances"
# Names of COCO's categories with what Pascal, darknet and others call them.
OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "couch": ("sofa", "Sofas", "couches"),
    "motorcycle": ("motorbike", "motor-bike"),
    "airplane": ("aeroplane", "Aeroplanes"),
    "dining table": ("diningtable", "Dining_Table"),
    "potted plant": ("pottedplant", "Potted-Plants"),
    "tv": ("tvmonitor", "TV/monitor", "television"),
    "hot dog": ("hotdog", "HOT DOG"),
    "knife": ("knives", " knife "),
}
_PLACES = ("market", "harbour", "kitchen", "garden", "café", "garage", "museum", "station", "park")
_COLOURS = ("red", "green", "blue", "old", "tiny", "striped", "yellow", "wet", "dusty", "shiny")
_VERBS = ("sits by", "looks at", "waits near", "holds", "carries", "repairs", "points at")
_HOW = ("quietly", "happily", "slowly", "again", "alone", "today", "early", "calmly", "at noon")


@dataclass(frozen=True)
class Truth:
    """What a trial's files say."""

    groups: Mapping[str, str]  # image id to the label
    objects: Mapping[str, Sequence[str]]
    mine: Mapping[str, str]  # image id to the captioner's caption
    people: Mapping[str, Sequence[str]]  # image id to human captions

    @classmethod
    def draw(cls, generator: random.Random, each: int = 3, quoting: float = 0.0) -> "Truth":
        """A truth with wrong groups, and objects that lean towards one.

        Args:
            generator: decides.
            each: human captions of an image.
            quoting: share of captions that begin with a quotation mark that nothing closes.
        """
        ids = [str(i) for i in generator.sample(range(1, 600_000), generator.randint(60, 80))]
        groups = {i: ("Male", "Female")[k % 2] for k, i in enumerate(ids)}
        names = list(OTHER_NAMES)
        objects = {}
        for i in ids:
            leaning = names[:4] if groups[i] == "Male" else names[4:]
            objects[i] = [generator.choice(leaning if generator.random() < 0.7 else names)]

        def caption(image: str, errors: float) -> str:
            wrong = generator.random() < errors
            who = ("man", "woman")[(groups[image] == "Female") != wrong]
            who += "’s friend" if generator.random() < 0.2 else ""
            mark = '"' if generator.random() < quoting else ""
            what = f"{generator.choice(_VERBS)} a {generator.choice(_COLOURS)} {objects[image][0]}"
            where = f"in a {generator.choice(_COLOURS)} {generator.choice(_PLACES)}"
            return f"{mark}a {who} {generator.choice(_HOW)} {what} {where} {generator.choice(_HOW)}"

        return cls(
            groups,
            objects,
            {i: caption(i, 0.2) for i in ids},
            {i: [caption(i, 0.05) for _ in range(each)] for i in ids},
        )


@dataclass(frozen=True)
class Files:
    """A truth's files in a folder, by the setting that names each."""

    folder: Path
    truth: Truth
    paths: dict[str, Path] = field(default_factory=dict)

    def write(self, setting: str, name: str, content: str) -> None:
        """Write the file of a setting."""
        self.paths[setting] = self.folder / name
        self.paths[setting].write_text(content, encoding="utf-8", newline="")

    def table(self, setting: str, name: str, rows: Iterable[Sequence[object]]) -> None:
        """Write a CSV file."""
        self.paths[setting] = self.folder / name
        with self.paths[setting].open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)

    def people(self, captions: Mapping[str, Sequence[str]], **marks: Any) -> None:
        """Write human captions in COCO's form.

        Args:
            captions: by image id.
            marks: key to which captions have it.
        """
        pairs = [(image, text) for image, texts in captions.items() for text in texts]
        annotations = [
            {
                "id": number,
                "image_id": int(image),
                "caption": text,
                **{key: text in marked for key, marked in marks.items()},
            }
            for number, (image, text) in enumerate(pairs)
        ]
        self.write(PEOPLE, "people.json", json.dumps({"annotations": annotations}))


def plain_files(folder: Path, truth: Truth) -> Files:
    """The truth in files that nothing is odd about."""
    files = Files(folder, truth)
    files.table(LABELS, "labels.csv", [("image_id", "gender"), *truth.groups.items()])
    results = [{"image_id": int(i), "caption": text} for i, text in truth.mine.items()]
    files.write(MINE, "mine.json", json.dumps(results))
    files.people(truth.people)
    pairs = [(i, name) for i, names in truth.objects.items() for name in names]
    files.table(OBJECTS, "objects.csv", [("image_id", "category"), *pairs])
    return files


Numbers = Mapping[str, str]


@cache
def _cell(metric: str) -> compose.Cell:
    return compose.cell([f"metric={metric}", "dataset=coco", "stats.resamples=2"])


@cache
def _metric(name: str) -> Metric:
    built: Metric = _cell(name).build("metric")
    return built


def corpus(files: Files) -> Corpus:
    """What is scored of a trial's files."""
    cell = _cell(METRICS[0])
    settings = {key: str(path) for key, path in files.paths.items()}
    captioner = settings.pop(MINE)
    return compose.corpus_of(
        CocoDataset(str(files.folder), **settings),  # type: ignore[arg-type]
        captioner,
        cell.build("attribute"),
        scored=cell.build("text").scored,
    )


def numbers(files: Files) -> Numbers:
    """Every value of the metrics; the reason's kind where one does not apply."""
    scored, values = corpus(files), dict[str, str]()
    for name in METRICS:
        metric = _metric(name)
        try:
            parts = metric.compute(scored, splits=()).parts
        except NotApplicableError as error:
            values[name] = type(error).__name__
        else:
            values |= {f"{name} {part}": f"{p.value:.9g}" for part, p in parts.items()}
    return values
