"""What real captioners and paragraphs with known behaviour are found to do."""

import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from bias_pipeline.metrics.base import Score
from experiments.descriptions.pictures import Pictures, corpus_of, metric_and_attribute
from tests.corpora import DATA

pytestmark = [pytest.mark.real, pytest.mark.slow]

# Half the widths of intervals of an independent computation, in points.
PUBLISHED = {
    "oscar": 0.9, "oscar_cider": 0.9, "att2in": 0.9, "nicplus": 0.8, "sat": 0.8, "fc": 0.8,
    "transformer": 0.8, "nic": 0.8,
}  # fmt: skip
# Score and interval of it, in points.
TODAY = {
    "pooled_llava15_7b_xl": (-12.0, 1.7),
    "pooled_llava15_7b_wide": (-7.2, 8.5),
    "pooled_instructblip_7b": (-12.6, 6.9),
    "gpt4o_comprecap": (-17.1, 14.3),
    "llavanext34b_comprecap": (-10.6, 20.0),
}
PARAGRAPHS = {
    "fair": (-6.1, 5.1),
    "traits": (15.7, 27.6),
    "weak": (-3.5, 7.2),
    "context": (-6.6, 4.2),
}


@pytest.fixture(autouse=True)
def _real_data() -> None:
    if not (DATA / "coco" / "annotations" / "captions_val2014.json").is_file():
        pytest.skip(f"no captions at {DATA}; set BIAS_PIPELINE_DATA to have this test run")


@cache
def pictures() -> Pictures:
    return Pictures.read(DATA)


def score_captions(model: Mapping[int, str], human: Mapping[int, list[str]] | None = None) -> Score:
    metric, attribute = metric_and_attribute()
    labelled = {i: model[i] for i in pictures().pool if i in model}
    people = human or pictures().captions
    return metric.compute(corpus_of(labelled, people, pictures(), attribute), splits=[])


def captions_in(path: Path) -> dict[int, str]:
    if not path.is_file():
        pytest.skip(f"no captions at {path}")
    return {int(line["image_id"]): line["caption"] for line in json.loads(path.read_text())}


def answer(score: Score) -> str:
    facts = score.audit["descriptions"]
    return "not shown" if facts["reason"] == "not beyond chance" else facts["answer"]


@pytest.mark.parametrize("captioner", PUBLISHED)
def test_no_published_captioner_describes_differently(captioner):
    started = time.process_time()
    score = score_captions(captions_in(DATA / "captioners" / f"{captioner}.json"))
    assert answer(score) == "no"
    assert abs(100 * score.parts["score"].value) <= PUBLISHED[captioner]
    assert time.process_time() - started < 16  # with reading, twice what is promised


@pytest.mark.parametrize("captioner", ["oscar", "att2in", "nicplus", "oscar_cider"])
def test_published_captioners_call_women_young_less_than_annotators(captioner):
    score = score_captions(captions_in(DATA / "captioners" / f"{captioner}.json"))
    assert "closer together than annotators: young" in score.notes
    assert -0.065 < score.parts["concept:young"].value < -0.02
    assert abs(score.parts["own:young"].value) < 0.03


@pytest.mark.parametrize("model", TODAY)
def test_no_file_of_today_has_enough_images_for_a_yes(model):
    score = score_captions(captions_in(DATA / "vlm" / f"{model}.json"))
    assert answer(score) == ("not shown" if model.endswith("xl") else "cannot_tell")
    low, high = TODAY[model]
    assert low <= 100 * score.parts["score"].value <= high


def test_gpt4o_mentions_womens_hair_as_annotators_would():
    score = score_captions(captions_in(DATA / "vlm" / "gpt4o_comprecap.json"))
    assert score.parts["own:hair"].value == pytest.approx(0.40, abs=0.06)
    assert score.parts["concept:hair"].ci_low < 0


@pytest.fixture(scope="module")
def paragraphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    script = DATA.parent / "speakers" / "paragraphs.py"
    if not script.is_file():
        pytest.skip(f"no speakers at {script}")
    folder = tmp_path_factory.mktemp("paragraphs")
    command = [sys.executable, str(script), str(DATA), str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.mark.parametrize("version", PARAGRAPHS)
def test_paragraphs_are_judged_by_what_was_planted(paragraphs, version):
    people = defaultdict(list)
    for line in json.loads((paragraphs / "people.json").read_text())["annotations"]:
        people[line["image_id"]].append(line["caption"])
    lines = json.loads((paragraphs / f"{version}.json").read_text())
    model = {int(re.search(r"(\d+)\.jpg", x["image"])[1]): x["response"] for x in lines}
    score = score_captions(model, people)
    assert answer(score) == ("yes" if version == "traits" else "not shown")
    low, high = PARAGRAPHS[version]
    assert low <= 100 * score.parts["score"].value <= high
    if version == "traits":
        assert {"agency", "competence"} <= set(score.audit["descriptions"]["named"])
