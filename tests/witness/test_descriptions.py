"""Whose hair is mentioned, by another path: annotators' rates by scene instead of regressions.

It shares nothing with the package. In each scene (sport, home, elsewhere) as many annotators are
imagined to speak, the same number for women and men, as the model's rate needs; what they would say
of each group is compared with what the model says.
"""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache

import pytest

from tests.corpora import DATA

pytestmark = [pytest.mark.real, pytest.mark.slow]

COCO = DATA / "coco"
HAIR = re.compile(
    r"\b(hair(?! ?(dryer|dresser|brush|clip))|ponytails?|pigtails|braids?|blonde?|brunette|"
    r"\w+-haired)\b"
)
SPORT = re.compile(
    r"skateboard|surfboard|snowboard|skis|baseball|sports ball|tennis|frisbee|kite|bicycle|"
    r"motorcycle|horse"
)
HOME = re.compile(
    r"couch|bed|oven|sink|refrigerator|microwave|dining table|cake|tv|laptop|bowl|cup|wine glass|"
    r"book|toilet|vase|pizza|fork|knife|spoon|chair|toothbrush|sandwich|donut"
)


@pytest.fixture(autouse=True)
def _real_data() -> None:
    if not (DATA / "vlm" / "gpt4o_comprecap.json").is_file():
        pytest.skip(f"no captions at {DATA}; set BIAS_PIPELINE_DATA to have this test run")


@cache
def labels() -> dict[int, str]:
    with (COCO / "attributes" / "images_val2014.csv").open(newline="") as file:
        return {int(row["id"]): row["bb_gender"] for row in csv.DictReader(file)}


@cache
def scenes() -> dict[int, str]:
    content = json.loads((COCO / "annotations" / "instances_val2014.json").read_text())
    names = {category["id"]: category["name"] for category in content["categories"]}
    objects = defaultdict(set)
    for line in content["annotations"]:
        objects[line["image_id"]].add(names[line["category_id"]])
    joined = {i: "|".join(sorted(names)) for i, names in objects.items()}
    return {
        i: "sport" if SPORT.search(text) else "home" if HOME.search(text) else "out"
        for i, text in joined.items()
    }


@cache
def annotators() -> dict[tuple[str, str], float]:
    """Share of annotators' captions that mention hair, by scene and group."""
    content = json.loads((COCO / "annotations" / "captions_val2014.json").read_text())
    counts = defaultdict(lambda: [0, 0])
    for line in content["annotations"]:
        group = labels().get(line["image_id"])
        if group in ("Female", "Male"):
            cell = counts[scenes().get(line["image_id"], "out"), group]
            cell[0] += bool(HAIR.search(line["caption"].lower()))
            cell[1] += 1
    return {key: hits / captions for key, (hits, captions) in counts.items()}


def annotators_to_reach(rate: float, reached: Callable[[float], float]) -> float:
    """How many annotators reach a rate together."""
    low, high = 0.01, 1e5
    for _ in range(80):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if reached(middle) < rate else (low, middle)
    return middle


@pytest.mark.parametrize(("model", "women", "men"), [("gpt4o_comprecap", 57, 15)])
def test_annotators_who_spoke_as_much_would_mention_as_much_hair(model, women, men):
    lines = json.loads((DATA / "vlm" / f"{model}.json").read_text())
    captions = {int(x["image_id"]): x["caption"].lower() for x in lines}
    captions = {i: c for i, c in captions.items() if labels().get(i) in ("Female", "Male")}
    mentioned, expected = defaultdict(list), defaultdict(list)
    for scene in ("sport", "home", "out"):
        here = {i: c for i, c in captions.items() if scenes().get(i, "out") == scene}
        rates = [annotators()[scene, labels()[i]] for i in here]
        rate = min(sum(bool(HAIR.search(c)) for c in here.values()) / len(here), 0.97)
        speakers = annotators_to_reach(
            rate, lambda n, r=rates: sum(1 - (1 - x) ** n for x in r) / len(r)
        )
        for (i, caption), one in zip(here.items(), rates, strict=True):
            mentioned[labels()[i]].append(bool(HAIR.search(caption)))
            expected[labels()[i]].append(1 - (1 - one) ** speakers)
    share = {group: 100 * sum(values) / len(values) for group, values in mentioned.items()}
    assert share["Female"] > 3 * share["Male"]
    for group, percent in (("Female", women), ("Male", men)):
        would = 100 * sum(expected[group]) / len(expected[group])
        assert would == pytest.approx(percent, abs=6)
        assert would == pytest.approx(share[group], abs=8)  # not beyond annotators
