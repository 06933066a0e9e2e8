"""One small truth, written plainly and in an odd form that other programs have: the same numbers.

Each form is a function that writes some of the files anew; what it writes says the same.
"""

import csv
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bias_pipeline.config import compose
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.datasets.coco import CocoDataset
from bias_pipeline.errors import BiasPipelineError, NotApplicableError
from bias_pipeline.metrics.base import Metric

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
    people: Mapping[str, Sequence[str]]  # image id to people's captions

    @classmethod
    def drawn(cls, generator: random.Random, each: int = 3) -> "Truth":
        """A truth with wrong groups, and objects that lean towards one.

        Args:
            generator: decides.
            each: people's captions of an image.
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
            what = f"{generator.choice(_VERBS)} a {generator.choice(_COLOURS)} {objects[image][0]}"
            where = f"in a {generator.choice(_COLOURS)} {generator.choice(_PLACES)}"
            return f"a {who} {generator.choice(_HOW)} {what} {where} {generator.choice(_HOW)}"

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
        """Write people's captions in COCO's form.

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


def plain(folder: Path, truth: Truth) -> Files:
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
def _cell(metric: str) -> compose.CellConfig:
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
            values |= {f"{name} {part}": f"{p.estimate.value:.9g}" for part, p in parts.items()}
    return values


class OtherNumberError(Exception):
    """An odd form gave other numbers than the plain one, in silence."""


# Forms of issue C: names of objects.


def objects_by_other_names(files: Files, generator: random.Random) -> None:
    """Objects as Pascal, darknet and detectors name them, in a table or in COCO's form."""
    named = [
        (image, generator.choice([name, name.upper(), *OTHER_NAMES[name]]))
        for image, names in files.truth.objects.items()
        for name in names
    ]
    if generator.random() < 0.5:
        files.table(OBJECTS, "odd.csv", [("image_id", "category"), *named])
        return
    names = sorted({name for _, name in named}, key=lambda name: generator.random())
    content = {
        "images": [{"id": int(image)} for image in files.truth.objects],
        "categories": [{"id": number, "name": name} for number, name in enumerate(names)],
        "annotations": [
            {"image_id": int(image), "category_id": names.index(name)} for image, name in named
        ],
    }
    files.write(OBJECTS, "odd.json", json.dumps(content))


def unknown_objects(files: Files, generator: random.Random) -> None:
    """A name that no list has for more than a tenth of the objects."""
    chosen = generator.choice(["canapé", "Objekt", "12", "couch, tv", "['couch', 'tv']"])
    named = [
        (image, chosen if number % 5 == 0 else name)
        for number, (image, names) in enumerate(files.truth.objects.items())
        for name in names
    ]
    files.table(OBJECTS, "odd.csv", [("image_id", "category"), *named])


# Forms of issue F: captions of people that describe nothing.


def stock_sentences(files: Files, generator: random.Random) -> None:
    """A sentence for many images, marked or not, as a further caption of them."""
    people = {image: [*texts] for image, texts in files.truth.people.items()}
    stock = generator.choice(["Quality issues are too severe.", "No caption", "N.A. - blurry?"])
    for image in generator.sample(list(people), generator.randint(12, len(people) // 2)):
        people[image].insert(generator.randrange(4), stock)
    if generator.random() < 0.5:
        files.people(people)
    else:
        files.people(people, is_precanned={stock}, is_rejected=set())


def rejected_captions(files: Files, generator: random.Random) -> None:
    """Texts of their own, which VizWiz's form marks as rejected."""
    people = {image: [*texts] for image, texts in files.truth.people.items()}
    rejected = {image: f"a woman and men {image}" for image in generator.sample(list(people), 20)}
    for image, text in rejected.items():
        people[image].insert(generator.randrange(4), text)
    files.people(people, is_rejected=set(rejected.values()))


def copies(files: Files, generator: random.Random) -> None:
    """Three captions an image that a program filled to five."""
    people = files.truth.people
    files.people({i: [*texts, *generator.choices(texts, k=2)] for i, texts in people.items()})


def one_caption_five_times(files: Files, generator: random.Random) -> None:
    """An image's only caption as often as a program wants captions."""
    times = generator.randint(2, 5)
    files.people({image: [*texts] * times for image, texts in files.truth.people.items()})


Form = Callable[[Files, random.Random], None]
FORMS: dict[str, Sequence[Form]] = {
    "objects": (objects_by_other_names, unknown_objects),
    "stock": (stock_sentences, rejected_captions, copies),
    "copies": (one_caption_five_times,),
}
ONE_CAPTION = ("copies",)  # kinds whose truth has one caption by people an image


def compare(kind: str, folder: Path, generator: random.Random) -> str:
    """Write a truth plainly and oddly, and compare the numbers.

    Args:
        kind: of the odd form.
        folder: for the files.
        generator: decides everything.

    Returns:
        How the odd form ended: ``equal``, or the sentence that refused it.

    Raises:
        OtherNumberError: if the numbers differ.
    """
    truth = Truth.drawn(generator, each=1 if kind in ONE_CAPTION else 3)
    files = plain(folder, truth)
    expected = numbers(files)
    form = generator.choice(FORMS[kind])
    form(files, generator)
    try:
        values = numbers(files)
    except BiasPipelineError as error:
        if not str(error).strip():
            raise OtherNumberError(f"{form.__name__}: refused without a word") from error
        return f"{form.__name__}: {error}"
    differing = {
        name: (expected.get(name), values.get(name))
        for name in expected.keys() | values.keys()
        if expected.get(name) != values.get(name)
    }
    if differing:
        name = min(differing)
        before, after = differing[name]
        raise OtherNumberError(
            f"{form.__name__}: {len(differing)} numbers differ, such as {name}: {after}, "
            f"not {before}"
        )
    return "equal"
