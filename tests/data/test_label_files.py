"""Labels: every form is read, no label is dropped in silence, annotators are counted."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.data.columns import Layout, label_words
from bias_pipeline.data.label_files import Labels, read_labels, strata_note
from bias_pipeline.data.label_values import TIE, majority
from bias_pipeline.errors import AbsentLabelError, DataError, UsageError

PRINCETON = LabelMap(
    "bb_gender", {"Male": "male", "Female": "female"}, ("Both", "Unsure", ""), ("Unsure",)
)
GENDER = Attribute("gender", ("male", "female"), {}, {"coco": PRINCETON})
MOOD = Attribute("mood", ("low", "high"), {}, {})
LONG = "image_id,attribute,value,annotator\n"


def read(folder: Path, text: str, attribute: Attribute = GENDER, **options: object) -> Labels:
    path = folder / str(options.pop("name", "labels.csv"))
    path.write_text(text, encoding="utf-8")
    return read_labels(path, "coco", attribute, options.pop("own", {}), **options)


def refusal_of(folder: Path, text: str, attribute: Attribute = GENDER, **options: object) -> str:
    with pytest.raises(DataError) as caught:
        read(folder, text, attribute, **options)
    return str(caught.value)


def in_groups(content: Labels) -> list[str | None]:
    return [content.map.group_of(label) for label in content.raw.values()]


def test_the_parts_of_princeton_are_read(tmp_path):
    text = "id,bb_gender,bb_skin,split\n007,Male,Light,val\n8,,Dark,train\n"
    assert read(tmp_path, text).parts == {"7": "val", "8": "train"}


JSON_LINES = (
    '{"image_id": 7, "attribute": "gender", "value": "Male"}\n'
    '{"image_id": 8, "attribute": "gender", "value": null}'
)
THREE = LONG + (
    "1,gender,Male,a\n1,gender,Male,b\n1,gender,Female,c\n"
    "2,gender,Female,a\n2,gender,Female,b\n2,gender,Female,c\n"
    "3,gender,Male,a\n3,gender,Female,b\n"
)
SURE = "image_id,attribute,value,annotator,confidence\n1,gender,Male,a,0.2\n1,gender,Female,b,1"
FORMS = {
    "Princeton": ("id,bb_gender,bb_skin\n007,Male,Light\n8,,Dark\n", {"7": "Male", "8": ""}),
    "long": (
        "image_id,attribute,value\n7,gender,Male\n7,mood,low\n8,gender,female\n",
        {"7": "Male", "8": "female"},
    ),
    "long, named by column": ("image_id,attribute,value\n7,bb_gender,Male\n", {"7": "Male"}),
    "JSON lines": (JSON_LINES, {"7": "Male", "8": ""}),
    "case and blanks": ("id,bb_gender\n7,Male\n8,male \n", {"7": "Male", "8": "male"}),
    "majority": (THREE, {"1": "Male", "2": "Female", "3": TIE}),
    "confidence weighs": (SURE, {"1": "Female"}),
}


@pytest.mark.parametrize(("text", "labels"), FORMS.values(), ids=FORMS)
def test_labels_are_read(tmp_path, text, labels):
    name = "labels.jsonl" if text is JSON_LINES else "labels.csv"
    assert read(tmp_path, text, name=name).raw == labels


KIND = Attribute("kind", ("big_dog", "cat"), {}, {})
SEX = {"gender": LabelMap("sex", {"m": "male", "f": "female"})}
SPELLINGS = LONG + "1,gender,Male,a\n1,gender,male,b\n1,gender,Female,c\n"
GROUPS = {
    "no map": ("image_id,mood\n7,low\n8,high\n9,Unsure\n", MOOD, {}, ["low", "high", None]),
    "blank for _": ("id,kind\n7,Big dog\n8,cat\n", KIND, {}, ["big_dog", "cat"]),
    "map of the data set": ("id,sex\n7,m\n8,f\n", GENDER, SEX, ["male", "female"]),
    "two spellings, one vote": (SPELLINGS, GENDER, {}, ["male"]),
    "no majority": (LONG + "3,gender,Male,a\n3,gender,Female,b\n", GENDER, {}, [None]),
}


@pytest.mark.parametrize(("text", "attribute", "maps", "groups"), GROUPS.values(), ids=GROUPS)
def test_labels_are_of_groups(tmp_path, text, attribute, maps, groups):
    assert in_groups(read(tmp_path, text, attribute, own=maps)) == groups


def test_labels_of_no_group_are_counted_by_name(tmp_path):
    content = read(tmp_path, "id,bb_gender\n1,Male\n2,Unsure\n3,\n4,Unsure\n")
    assert strata_note(content.raw.values(), content.map) == (
        "3 images belong to no group and are not scored: empty 1, "
        "Unsure 2 (except by assumed_group)",
    )


def test_equal_labels_are_collapsed_with_a_note(tmp_path):
    content = read(tmp_path, "id,bb_gender\n7,Male\n007,Male\n")
    assert content.notes == ("1 repeated label was collapsed",)


UNKNOWN = "id,bb_gender\n7,Male\n8,Femal\n9,Male\n"
RATED = "image_id,attribute,value,rater\n"
LEAST = "id,bb_gender\n7,Male\n8,"
NO_LINE = "no line is about attribute 'gender'; did you mean 'gendre'"
NEAREST = "no column 'bb_gender' for attribute 'gender'; did you mean 'bbgender'"
WEIGHT = "image_id,attribute,value,confidence\n1,gender,Male,"
WIDE = "id,bb_gender,annotator\n7,Male,a\n7,Female,b\n"
DIFFER = "line 3: image id 7 occurs twice with different labels ('Male' and 'Female')"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,bb_gender\n7,Male\n7,Female\n", DIFFER),
        (WIDE, "or name the columns image_id, attribute, value and annotator"),
        (f"{RATED}7,gender,Male,a\n7,gender,Female,a\n", "different labels by 'a' ('Male' and"),
        (f"{RATED}7,gender,Mal,a\n", "unknown labels in 'value': 'Mal' (image 7)"),
        (UNKNOWN, "unknown labels in 'bb_gender': 'Femal' (image 8); labels: 'Male' 2, 'Femal' 1"),
        (UNKNOWN, "did you mean 'Female'? Known: (empty), Both, Female, Male, Unsure"),
        (f"{LEAST}None\n", "None"),
        (f"{LEAST}nonbinary\n", "nonbinary"),
        ('[{"id": 7, "bb_gender": 0.5}]', "entry 0: label 0.5"),
        ("id,bbgender\n7,Male\n", NEAREST),
        ("name,bb_gender\n7,Male\n", "no column of ids"),
        ("id,bb_gender\n", "holds no labels"),
        ("image_id,attribute,value\n7,gendre,Male\n", NO_LINE),
        *((f"{WEIGHT}{k}\n", f"line 2: confidence '{k}'") for k in ("-1", "nan", "inf", "high")),
    ],
)
def test_labels_that_are_unclear_are_refused(tmp_path, text, message):
    name = "labels.json" if text.startswith("[") else "labels.csv"
    assert message in refusal_of(tmp_path, text, name=name)


# --- annotators


def test_agreement_is_told(tmp_path):
    (note,) = read(tmp_path, THREE).notes
    assert "3 annotators: Fleiss' kappa" in note
    assert "2 of 3 images judged differently, 1 without a majority" in note


def test_one_annotator_may_be_chosen(tmp_path):
    assert read(tmp_path, THREE, annotator="c").raw == {"1": "Female", "2": "Female", "3": ""}


def test_annotators_may_be_numbers_from_0(tmp_path):
    line = {"image_id": 1, "attribute": "gender", "value": "Male"}
    text = "\n".join(json.dumps({**line, "annotator": number}) for number in range(3))
    assert read(tmp_path, text, name="labels.jsonl").annotators == ("0", "1", "2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("male", "'male' must be LABEL=GROUP, such as M=male"),
        ("M = female", "'M' cannot be both male and female"),
    ],
)
def test_a_label_map_of_texts_says_what_each_label_means(text, message):
    with pytest.raises(UsageError, match=message):
        label_words(["M=male", text])


PLAIN = "id,bb_gender\n7,Male\n8,Female\n"
VOTED = LONG + "7,gender,Male,a\n8,gender,Female,a\n"


def test_labels_that_the_map_takes_out_are_counted(tmp_path):
    layout = Layout(label_map={"Male": ""})
    content = read(tmp_path, "id,bb_gender\n7,Male\n8,Female\n9,Male\n", layout=layout)
    assert in_groups(content) == [None, "female", None]
    assert layout.notes() == ["labels.csv: 2 labels 'Male' taken out by the map"]


MAPPED = r"no label in 'bb_gender' .* is 'Mael'; did you mean 'Male'"
MEN = {"gender": LabelMap("sex", {"m": "men", "f": "female"})}


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (THREE, {"annotator": "d"}, r"dataset\.annotator=d is unknown; Known: a, b, c"),
        (PLAIN, {"layout": Layout(label_column="bb_gendr")}, "is absent; did you mean 'bb_gender'"),
        (PLAIN, {"annotator": "a"}, "does not name annotators"),
        ("id,sex\n7,m\n", {"own": MEN}, r"dataset\.labels\.gender: .* has no group 'men'"),
        (PLAIN, {"layout": Layout(label_map={"Mael": "male"})}, MAPPED),
        (
            VOTED,
            {"layout": Layout(label_map={"Mael": "male"})},
            MAPPED.replace("bb_gender", "value"),
        ),
        (f"{PLAIN}9,\n", {"layout": Layout(label_map={"x": "male"})}, r"Known: \(empty\), Female"),
    ],
)
def test_options_that_do_not_fit_the_file_are_refused(tmp_path, text, options, message):
    with pytest.raises((UsageError, AbsentLabelError), match=message) as refused:
        read(tmp_path, text, **options)
    assert refused.value.exit_code == 2


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=9))
def test_a_majority_has_more_votes_than_any_other(labels):
    winner = majority((label, 1.0) for label in labels)
    counts = sorted((labels.count(label), label) for label in set(labels))
    if len(counts) > 1 and counts[-1][0] == counts[-2][0]:
        assert winner == TIE
    else:
        assert winner == counts[-1][1]


# --- what a user says that labels mean ------------------------------------------------------------


def test_a_map_may_say_more_than_one_file_holds_and_that_is_told(tmp_path):
    layout = Layout(label_map={"M": "male", "W": "female", "N": "male"})
    read(tmp_path, "id,bb_gender\n7,M\n8,W\n", layout=layout)
    assert layout.notes() == [
        "labels.csv: the map has 'N', but no label in 'bb_gender' is written so"
    ]


# --- labels that say that nobody could tell


@pytest.mark.parametrize(
    ("text", "attribute", "item"),
    [
        ("id,bb_gender\n7,Male\n8,Unsure\n9,Both\n", GENDER, {}),
        ("id,bb_gender\n7,Male\n8,UNSURE\n9,both\n", GENDER, {}),
        ("id,bb_gender\n7,Male\n8,unclear\n9,\n", GENDER, {"unclear": "Unsure"}),
        ("id,bb_gender\n7,Male\n8,Unsure\n9,two\n", GENDER, {"two": "Both"}),
        ("image_id,mood\n7,low\n8,unsure\n9,both\n", MOOD, {}),
        ("image_id,mood\n7,low\n8,Unsure\n9,\n", MOOD, {}),
        ("image_id,mood\n7,low\n8,UNSURE\n9,BOTH\n", MOOD, {}),
        (f"{LONG}7,gender,Male,a\n7,gender,Female,b\n8,gender,Unsure,a\n", GENDER, {}),
    ],
)
def test_that_nobody_could_tell_is_read(tmp_path, text, attribute, item):
    content = read(tmp_path, text, attribute, layout=Layout(label_map=item))
    unsure = [image for image, label in content.raw.items() if content.map.is_unsure(label)]
    assert unsure == ["8"]


def test_a_label_may_be_mapped_from_nobodys_to_a_group(tmp_path):
    layout = Layout(label_map={"Unsure": "male"})
    labels = read(tmp_path, "id,bb_gender\n8,Unsure\n", layout=layout).map
    assert (labels.group_of("Unsure"), labels.is_unsure("Unsure")) == ("male", False)


def misread_twice(text: str) -> str:
    """UTF-8 that was read as CP1252 two times."""
    for _ in range(2):
        text = text.encode().decode("cp1252")
    return text


SPOILED = {
    "mojibake": "MÃ¤nnlich",
    "mojibake of mojibake": misread_twice("Männlich"),
    "apart": "Ma\u0308nnlich",
    "hidden signs": "\u200bMänn\u00adlich\ufeff",
}


@pytest.mark.parametrize("spoiled", SPOILED.values(), ids=SPOILED)
@pytest.mark.parametrize(
    "text",
    [
        "id,gender\n1,Männlich\n2,{}\n3,{}\n4,female\n",
        LONG + "1,gender,Männlich,a\n2,gender,{},a\n3,gender,{},a\n4,gender,female,a\n",
    ],
    ids=["wide", "long"],
)
@pytest.mark.parametrize("as_in_file", [False, True])
def test_labels_that_a_program_spoiled_are_those_that_are_meant(
    tmp_path, text, spoiled, as_in_file
):
    label = spoiled if as_in_file else "Männlich"
    layout = Layout(label_map=label_words([f"{label}=male"]))
    content = read(tmp_path, text.format(spoiled, spoiled), layout=layout)
    assert in_groups(content) == ["male", "male", "male", "female"]
    counted = "labels.csv: mojibake or hidden signs mended in 2 labels: "
    (note,) = (note for note in layout.notes() if "mended" in note)
    assert note.startswith(counted), note
    assert note.endswith("is read as 'Männlich'")


def test_a_hidden_sign_beside_a_group_is_no_other_label(tmp_path):
    content = read(tmp_path, "id,gender\n1,male\u200b\n2\u200b,female\n")
    assert (in_groups(content), list(content.raw)) == (["male", "female"], ["1", "2"])
