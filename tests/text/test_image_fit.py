"""Labels and captions of other images are recognised."""

import ast
import csv
import json
import random
from functools import cache

import pytest

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.text.image_fit import misfit, objects_misfit
from tests.corpora import DATA, GENDER, make_corpus

NAMED = {"m": "man", "f": "woman"}
THINGS = [f"{kind}{number}" for kind in ("dog", "boat", "tree", "bus") for number in range(10)]


def move(values: list[str], by: int = 1, start: int = 0) -> list[str]:
    """The values with those from a place on moved by some places, the last ones to that place."""
    return values[:start] + values[start + by :] + values[start : start + by]


def reason(
    n: int = 400,
    *,
    labels: list[str] | None = None,
    captions: list[str] | None = None,
    people: bool = True,
) -> str:
    """The misfit of n images, half of men, each with a thing that all captions name."""
    human = [caption.replace("a ", "the ", 1) for caption in true_captions(n)]
    captions, labels = captions or human, labels or true_labels(n)
    records = [
        Record(f"{i:04}", captions[i], (human[i],) if people else (), {"gender": labels[i]})
        for i in range(n)
    ]
    return misfit(make_corpus(records), GENDER)


def true_labels(n: int = 400) -> list[str]:
    return random.Random(0).choices("mf", k=n)


def true_captions(n: int = 400) -> list[str]:
    return [f"a {NAMED[true]} and {THINGS[7 * i % 40]}" for i, true in enumerate(true_labels(n))]


@pytest.mark.parametrize("people", [True, False])
def test_right_labels_and_captions_fit(people):
    assert reason(captions=true_captions(), people=people) == ""


@pytest.mark.parametrize(("people", "whose"), [(True, "human captions"), (False, "its captions")])
def test_exchanged_codes_are_recognised(people, whose):
    swapped = [{"m": "f", "f": "m"}[label] for label in true_labels()]
    assert reason(labels=swapped, people=people) == f"labels contradict {whose} in 100% of images"


def test_labels_of_the_next_image_are_recognised():
    assert reason(labels=move(true_labels())).startswith("labels contradict human captions in ")


def test_labels_that_moved_from_a_row_on_are_recognised_with_their_rows():
    sentence = reason(labels=move(true_labels(), start=200))
    assert sentence.startswith("labels contradict human captions in ")
    assert sentence.endswith("% of images from 0200 to 0399")


def test_captions_of_the_next_image_are_recognised():
    assert reason(captions=move(true_captions())) == "its captions seem to be of other images"


def test_captions_that_moved_from_a_row_on_are_recognised_with_their_rows():
    sentence = reason(captions=move(true_captions(), start=200))
    assert sentence == "its captions from 0200 to 0399 seem to be of other images"


def test_a_model_that_writes_one_caption_is_judged_as_it_is():
    assert reason(captions=["a man with a dog"] * 400) == ""


def test_wrong_labels_of_a_tenth_of_the_images_are_left_to_the_user():
    labels = true_labels()
    for i in range(0, 400, 10):
        labels[i] = {"m": "f", "f": "m"}[labels[i]]
    assert reason(labels=labels, captions=true_captions()) == ""


@pytest.mark.parametrize("every", [400, 10, 5])
def test_a_model_that_calls_most_women_men_is_judged_as_it_is(every):
    captions = [
        caption if i % every == 0 else caption.replace("woman", "man")
        for i, caption in enumerate(true_captions())
    ]
    assert reason(captions=captions, people=False) == ""


def test_nothing_is_said_of_few_images():
    assert reason(18, captions=move(true_captions(18))) == ""


@pytest.mark.parametrize(("by", "sentence"), [(0, ""), (1, "objects seem to be of other images")])
def test_objects_of_the_next_image_are_recognised(by, sentence):
    objects = move([THINGS[7 * i % 40] for i in range(400)], by)
    records = [
        Record(f"{i:04}", caption, (), {"gender": "m"}, objects=frozenset({objects[i]}))
        for i, caption in enumerate(true_captions())
    ]
    assert objects_misfit(make_corpus(records)) == sentence


@cache
def real_people() -> dict[str, tuple[str, ...]]:
    path = DATA / "coco" / "annotations" / "captions_val2014.json"
    people: dict[str, tuple[str, ...]] = {}
    for entry in json.loads(path.read_text())["annotations"]:
        image = str(entry["image_id"])
        people[image] = (*people.get(image, ()), entry["caption"])
    return people


@cache
def real_labels() -> dict[str, str]:
    with (DATA / "coco" / "attributes" / "images_val2014.csv").open(newline="") as file:
        codes = {"Male": "m", "Female": "f"}
        return {
            row["id"]: codes[row["bb_gender"]]
            for row in csv.DictReader(file)
            if row["bb_gender"] in codes
        }


REAL = sorted([*DATA.glob("captioners/*.json"), *DATA.glob("vlm/*_*.json")])


@pytest.mark.slow
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_captions_of_real_models_fit_until_they_are_moved(path, real_gender):
    labels, people = real_labels(), real_people()
    captions = {str(row["image_id"]): row["caption"] for row in json.loads(path.read_text())}
    chosen = [image for image in captions if image in people and image in labels][:2000]
    texts = [captions[image] for image in chosen]
    misfits = [
        misfit(
            make_corpus(
                [
                    Record(image, text, people[image], {"gender": labels[image]})
                    for image, text in zip(chosen, each, strict=True)
                ]
            ),
            real_gender,
        )
        for each in (texts, move(texts))
    ]
    assert misfits == ["", "its captions seem to be of other images"]


@pytest.fixture(scope="module")
def real_gender() -> Attribute:
    return real_attribute("gender")


def real_attribute(name: str) -> Attribute:
    from bias_pipeline.run.compose import cell

    if not REAL:
        pytest.skip(f"no real captions at {DATA}; set BIAS_PIPELINE_DATA to have this test run")
    return cell([f"attribute={name}"]).build("attribute")


@pytest.mark.parametrize("people", [True, False])
@pytest.mark.parametrize("model", ["oscar", "sat", "nicplus"])
def test_real_labels_of_age_fit_captions_that_name_few_adults(model, people):
    assert misfit_of_ages(model, people=people) == ""


def test_real_labels_of_age_that_moved_by_one_row_are_recognised():
    assert misfit_of_ages("sat", by=1).startswith("labels contradict human captions in 61% of ")


def misfit_of_ages(model: str, *, people: bool = True, by: int = 0) -> str:
    age = real_attribute("age")
    with (DATA / "relic" / "age_dataset.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    labels = move([row["bb_age"] for row in rows], by)
    records = [
        Record(
            row["img_id"],
            row[f"pred_{model}"],
            tuple(ast.literal_eval(row["caption_list"])) if people else (),
            {"age": label},
        )
        for row, label in zip(rows, labels, strict=True)
    ]
    groups = {"age": (("old", "young"), age.labels["relic"])}
    return misfit(Corpus.build(records, dataset="relic", captioner=model, groups=groups), age)
