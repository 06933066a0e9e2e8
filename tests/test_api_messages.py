"""What a call from Python prints about wrong data: arguments, no options and files of commands."""

import re
from collections.abc import Callable

import pytest

import bias_pipeline as bp
from bias_pipeline.errors import BiasPipelineError
from bias_pipeline.integrations.epochs import CaptionBias
from bias_pipeline.run.presets import in_python

THINGS = (
    "dog",
    "cat",
    "bus",
    "car",
    "tree",
    "bench",
    "ball",
    "cup",
    "fork",
    "bed",
    "sink",
    "oven",
    "kite",
)
IDS = [str(number) for number in range(20)]
PEOPLE = [f"a {('man', 'woman')[k % 2]} with a {THINGS[k % 13]}" for k in range(20)]
GROUPS = ["male", "female"] * 10
CAPTIONS, LABELS = dict(zip(IDS, PEOPLE, strict=True)), dict(zip(IDS, GROUPS, strict=True))
OTHERS = {f"x{key}": caption for key, caption in CAPTIONS.items()}
FEW = dict(list(CAPTIONS.items())[:15])
OBJECTS = {key: ["dog"] for key in FEW}

CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "captions of other images": (
        lambda: bp.score("lic", OTHERS, LABELS),
        "captions: no caption is of a labelled image",
    ),
    "ids of another column": (
        lambda: bp.score("lic", OTHERS, LABELS),
        "or name the column that has such ids with dataset={'id_column': COLUMN}",
    ),
    "human captions of other images": (
        lambda: bp.score("lic", CAPTIONS, LABELS, OTHERS),
        "human: no caption is of a labelled image",
    ),
    "too few captions": (
        lambda: bp.score("lic", FEW, LABELS),
        "complete it, or score what fits with dataset={'strict': False}",
    ),
    "too few captions of the second": (
        lambda: bp.compare(CAPTIONS, FEW, LABELS, metric="gender_error"),
        "b: 5 of 20 labelled images have no caption",
    ),
    "too few objects": (
        lambda: bp.score("dpa", CAPTIONS, LABELS, CAPTIONS, OBJECTS),
        "objects: 5 of 20 labelled images are absent, so their objects are unknown",
    ),
    "no objects": (
        lambda: bp.score("dpa", CAPTIONS, LABELS, CAPTIONS),
        "the data have no objects for these images; give them with objects=...",
    ),
    "unknown labels": (
        lambda: bp.audit(CAPTIONS, dict.fromkeys(IDS, "x")),
        "labels: unknown labels in 'gender': 'x' (image 0)",
    ),
    "labels to map": (
        lambda: bp.audit(CAPTIONS, dict.fromkeys(IDS, "x y")),
        "or map them: dataset={'label_map': {'x y': GROUP}}, GROUP one of",
    ),
    "no such label": (
        lambda: bp.score("lic", CAPTIONS, LABELS, dataset={"label_map": {"M": "male"}}),
        "dataset={'label_map': ...}, M=male: no label in 'gender' of labels is 'M'",
    ),
    "a caption twice": (
        lambda: bp.score(
            "lic", [{"id": 1, "caption": "a"}, {"id": 1, "caption": "b"}], {1: "male"}
        ),
        "captions: image id 1 occurs twice",
    ),
    "one group": (
        lambda: bp.score("lic", CAPTIONS, dict.fromkeys(IDS, "male")),
        "attribute 'gender': attackers need two groups or more",
    ),
    "blank captions": (
        lambda: bp.score("lic", dict.fromkeys(IDS, ""), LABELS),
        "complete the captions, or raise dataset={'blank_limit': ...}",
    ),
    "no human captions": (
        lambda: bp.score("quality", CAPTIONS, LABELS),
        "name a file of human captions (human=...)",
    ),
    "no score to compare": (
        lambda: bp.compare(CAPTIONS, PEOPLE[::-1], LABELS, dataset={"strict": False}, seeds=1),
        "name a file of human captions (human=...) where the score needs them",
    ),
    "no pictures": (
        lambda: bp.score("imagecaptioner2", CAPTIONS, LABELS, CAPTIONS, encoder="sat"),
        "encoder='sat', **{'encoder.backbone': 'annotations'} uses its objects instead",
    ),
    "no objects of pictures": (
        lambda: bp.score(
            "imagecaptioner2",
            CAPTIONS,
            LABELS,
            CAPTIONS,
            encoder="sat",
            **{"encoder.backbone": "annotations"},
        ),
        "objects of the pictures, and encoder={'backbone': 'annotations'} needs objects",
    ),
    "a key that no group has": (
        lambda: bp.score("lic", CAPTIONS, LABELS, **{"encoders.order": 1}),
        "setting 'encoders.order' is unknown; did you mean 'encoder'",
    ),
    "an argument misspelt": (
        lambda: bp.compare(CAPTIONS, CAPTIONS, LABELS, humans=CAPTIONS),
        "setting 'humans' is unknown; did you mean 'human'",
    ),
    "a folder that is a file": (
        lambda: bp.score("gender_error", CAPTIONS, LABELS, out=__file__),
        "choose another folder with out=...",
    ),
    "time below zero": (
        lambda: bp.audit(CAPTIONS, LABELS, minutes=-1),
        "minutes=-1 must be above 0 or None",
    ),
    "a side": (
        lambda: bp.score("lic", CAPTIONS, LABELS, sides=["people"]),
        "sides.0='people' must be one of model, human",
    ),
    "labels of no image": (
        lambda: bp.score("gender_error", CAPTIONS, {}),
        "labels: there is nothing in it; give data of the images",
    ),
    "human captions of no image": (
        lambda: bp.score("gender_error", CAPTIONS, LABELS, {}),
        "human: there is nothing in it; give data of the images, or None if there are none",
    ),
    "lists of two lengths": (
        lambda: bp.score("gender_error", PEOPLE, GROUPS[:15]),
        "the lists differ in length (captions 20, labels 15)",
    ),
}


@pytest.mark.parametrize(("call", "message"), CALLS.values(), ids=CALLS)
def test_a_message_names_arguments(call, message):
    with pytest.raises(BiasPipelineError) as error:
        call()
    text = str(error.value).replace(__file__, "FILE")  # which may lie below /tmp
    options = re.findall(r"--[a-z]|dataset\.[a-z]|dataset '|jsonl|/tmp|audit ", text)
    assert (message in text, options) == (True, []), text


def test_a_skipped_metric_names_arguments():
    audit = bp.audit(CAPTIONS, LABELS, minutes=0.001)
    assert "give them with objects=..." in audit.skipped["attribute=gender metric=dpa"]


def test_a_training_loop_names_arguments():
    bias = CaptionBias(LABELS, metrics="dpa", human=CAPTIONS)
    bias.update(IDS, PEOPLE)
    with pytest.raises(BiasPipelineError, match="give them with objects="):
        bias.compute()


@pytest.mark.parametrize("text", ["dataset.csv: line 3", "in a/text.unit=x/b", "in split.json, 3"])
def test_files_are_no_settings(text):
    assert in_python(text) == text
