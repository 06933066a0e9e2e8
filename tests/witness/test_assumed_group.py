"""``assumed_group`` by a second, plain implementation, on the real captions.

It shares nothing with the package but the published word lists: words are found with a regular
expression, files are read with the standard library, shares are counted in dictionaries, and the
captions of several annotators are joined in every possible way.
"""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import fmean

import pytest
import yaml

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.metrics.base import Score
from bias_pipeline.run import compose
from tests.corpora import DATA, REPOSITORY

pytestmark = [pytest.mark.real, pytest.mark.slow]

CAPTIONERS = ("nic", "sat", "oscar_cider")
# Annotators as the captioner: so many of an image's five, read as one, against the others.
JOINED = (1, 2, 3)
LABELS = DATA / "coco" / "attributes" / "images_val2014.csv"
PEOPLE = DATA / "coco" / "annotations" / "captions_val2014.json"
N_MEN = 26  # of the published list, the rest is women's


@pytest.fixture(autouse=True)
def _real_data() -> None:
    if not LABELS.is_file():
        pytest.skip(f"no labels at {LABELS}; set BIAS_PIPELINE_DATA to have this test run")


@cache
def words() -> tuple[set[str], set[str]]:
    text = (REPOSITORY / "conf" / "attribute" / "gender.yaml").read_text()
    listed = yaml.safe_load(text)["presets"]["hendricks"]["words"].replace("\n", " ").split(",")
    stripped = [word.strip() for word in listed]
    return set(stripped[:N_MEN]), set(stripped[N_MEN:])


def outcome(text: str) -> str:
    """``men``, ``women``, ``both`` or ``none``, anywhere in a text."""
    named = set(re.findall(r"[a-z]+", text.lower()))
    men, women = (bool(named & listed) for listed in words())
    return (("none", "women"), ("men", "both"))[men][women]


@cache
def persons() -> set[str]:
    text = (REPOSITORY / "conf" / "context" / "person.yaml").read_text()
    listed = yaml.safe_load(text)["words"].replace("\n", " ").split(",")
    return {word.strip() for word in listed}.union(*words())


def about_persons(caption: str) -> list[str]:
    """The sentences that mention a person."""
    sentences = re.split(r"(?<=[.!?])[\"')]*\s+", caption)
    return [s for s in sentences if persons() & set(re.findall(r"[a-z]+", s.lower()))]


def first_outcome(caption: str) -> str:
    """What the first sentence that mentions a person names."""
    return outcome(next(iter(about_persons(caption)), ""))


@cache
def images(label: str) -> set[int]:
    with LABELS.open(newline="") as file:
        return {int(row["id"]) for row in csv.DictReader(file) if row["bb_gender"] == label}


def outcomes(rows: list[dict[str, object]], chosen: set[int]) -> dict[int, list[str]]:
    by_image = defaultdict(list)
    for row in rows:
        if row["image_id"] in chosen:
            by_image[int(str(row["image_id"]))].append(first_outcome(str(row["caption"])))
    return by_image


def share(by_image: Mapping[int, list[str]], *named: str) -> float:
    """Every image counts once."""
    return fmean(fmean(one in named for one in each) for each in by_image.values())


@cache
def captions_of(file: Path) -> dict[int, list[str]]:
    content = json.loads(file.read_text())
    by_image = defaultdict(list)
    for row in content if isinstance(content, list) else content["annotations"]:
        by_image[int(row["image_id"])].append(str(row["caption"]))
    return dict(by_image)


def whole_captions(model: Mapping[int, str], human: Mapping[int, list[str]]) -> dict[str, float]:
    """Whole captions against every choice of as many annotators."""
    named, chance = [], []
    for image, caption in model.items():
        about, texts = about_persons(caption), human[image]
        named.append(outcome(" ".join(about[: len(texts)])) in ("men", "women"))
        drawn = combinations(texts, min(max(len(about), 1), len(texts)))
        chance.append(fmean(outcome(" ".join(some)) in ("men", "women") for some in drawn))
    sides = {"whole:model": fmean(named), "whole:human": fmean(chance)}
    return {**sides, "whole": sides["whole:model"] - sides["whole:human"]}


@cache
def expected_numbers(captioner: str) -> dict[str, float]:
    file = DATA / "captioners" / f"{captioner}.json"
    rows = json.loads(file.read_text())
    model = outcomes(rows, images("Unsure"))
    people = outcomes(json.loads(PEOPLE.read_text())["annotations"], images("Unsure"))
    both = model.keys() & people.keys()
    shared = [{image: side[image] for image in both} for side in (model, people)]
    one, two = (share(side, "men", "women") for side in shared)
    labelled = outcomes(rows, images("Male") | images("Female"))
    human = {image: texts for image, texts in captions_of(PEOPLE).items() if image in both}
    return {
        **whole_captions({image: captions_of(file)[image][0] for image in both}, human),
        "score": one - two,
        "model": share(model, "men", "women"),
        "human": share(people, "men", "women"),
        "model:paired": one,
        "human:paired": two,
        "group:male": share(model, "men"),
        "group:female": share(model, "women"),
        "both": share(model, "both"),
        "both:human": share(people, "both"),
        "ratio": share(model, "men") / share(model, "women"),
        "ratio:human": share(people, "men") / share(people, "women"),
        "ratio:labelled": share(labelled, "men") / share(labelled, "women"),
    }


@cache
def computed_numbers(captioner: str) -> dict[str, float]:
    files = {"attributes": LABELS, "captions": PEOPLE, "captioners": DATA / "captioners"}
    overrides = ["metric=assumed_group", "dataset=coco", f"captioner={captioner}"]
    overrides += [f"dataset.{key}={path}" for key, path in files.items()]
    cell = compose.cell([*overrides, "stats.resamples=2"])
    parts = cell.build("metric").compute(cell.corpus(), splits=[]).parts
    return {str(name): part.value for name, part in parts.items()}


@pytest.mark.parametrize("captioner", CAPTIONERS)
def test_a_plain_count_gives_the_same(captioner):
    assert computed_numbers(captioner) == pytest.approx(expected_numbers(captioner), abs=1e-12)


@cache
def annotators(n_joined: int) -> tuple[dict[int, str], dict[int, list[str]]]:
    """The captions of some annotators, joined, and those of the others, of images with five."""
    draws = Random(0)  # an image's first annotator names a gender more often than its last
    five = {
        image: draws.sample(texts, 5)
        for image, texts in captions_of(PEOPLE).items()
        if len(texts) >= 5 and image in images("Unsure")
    }
    joined = {i: " ".join(c.rstrip(" .") + "." for c in t[:n_joined]) for i, t in five.items()}
    return joined, {i: texts[n_joined:] for i, texts in five.items()}


@cache
def of_annotators(n_joined: int) -> Score:
    model, human = annotators(n_joined)
    gender = compose.cell(["metric=assumed_group"]).build("metric").attribute
    records = [Record(str(i), model[i], tuple(human[i]), {"gender": "Unsure"}) for i in model]
    groups = {"gender": (gender.groups, gender.labels["coco"])}
    corpus = Corpus.build(records, dataset="coco", captioner="joined", groups=groups)
    return compose.cell(["metric=assumed_group"]).build("metric").compute(corpus, splits=[])


@pytest.mark.parametrize("n_joined", JOINED)
def test_a_plain_count_of_joined_annotators_gives_the_same(n_joined):
    model, human = annotators(n_joined)
    parts = of_annotators(n_joined).parts
    plain = whole_captions(model, human)
    plain["model"] = fmean(first_outcome(caption) in ("men", "women") for caption in model.values())
    assert {name: parts[name].value for name in plain} == pytest.approx(plain, abs=1e-12)


@pytest.mark.parametrize("part", ["score", "whole"])
@pytest.mark.parametrize("n_joined", JOINED)
def test_joined_annotators_assume_no_more_than_others(n_joined, part):
    estimate = of_annotators(n_joined).parts[part]
    assert estimate.ci_low < 0 < estimate.ci_high
