"""``assumed_group`` by a second, plain implementation, on the real captions.

It shares nothing with the package but the published word list: words are found with a regular
expression, files are read with the standard library, shares are counted in dictionaries.
"""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from statistics import fmean

import pytest
import yaml

from bias_pipeline.config import compose
from tests.corpora import DATA, REPOSITORY

pytestmark = [pytest.mark.real, pytest.mark.slow]

CAPTIONERS = ("nic", "sat", "oscar_cider")
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


def outcome(caption: str) -> str:
    """``men``, ``women``, ``both`` or ``none``."""
    named = set(re.findall(r"[a-z]+", caption.lower()))
    men, women = (bool(named & listed) for listed in words())
    return (("none", "women"), ("men", "both"))[men][women]


@cache
def images(label: str) -> set[int]:
    with LABELS.open(newline="") as file:
        return {int(row["id"]) for row in csv.DictReader(file) if row["bb_gender"] == label}


def outcomes(rows: list[dict[str, object]], chosen: set[int]) -> dict[int, list[str]]:
    by_image = defaultdict(list)
    for row in rows:
        if row["image_id"] in chosen:
            by_image[int(str(row["image_id"]))].append(outcome(str(row["caption"])))
    return by_image


def share(by_image: Mapping[int, list[str]], *named: str) -> float:
    """Every image counts once."""
    return fmean(fmean(one in named for one in each) for each in by_image.values())


@cache
def expected(captioner: str) -> dict[str, float]:
    rows = json.loads((DATA / "captioners" / f"{captioner}.json").read_text())
    model = outcomes(rows, images("Unsure"))
    people = outcomes(json.loads(PEOPLE.read_text())["annotations"], images("Unsure"))
    both = model.keys() & people.keys()
    shared = [{image: side[image] for image in both} for side in (model, people)]
    one, two = (share(side, "men", "women") for side in shared)
    labelled = outcomes(rows, images("Male") | images("Female"))
    return {
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
def computed(captioner: str) -> dict[str, float]:
    files = {"attributes": LABELS, "captions": PEOPLE, "captioners": DATA / "captioners"}
    overrides = ["metric=assumed_group", "dataset=coco", f"captioner={captioner}"]
    overrides += [f"dataset.{key}={path}" for key, path in files.items()]
    cell = compose.cell([*overrides, "stats.resamples=2"])
    parts = cell.build("metric").compute(cell.corpus(), splits=[]).parts
    return {str(name): part.estimate.value for name, part in parts.items()}


@pytest.mark.parametrize("captioner", CAPTIONERS)
def test_a_plain_count_gives_the_same(captioner):
    assert computed(captioner) == pytest.approx(expected(captioner), abs=1e-12)
