"""Labels: every form is read, no label is dropped in silence, annotators are counted."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.corpus.attribute import Attribute, LabelMap
from bias_pipeline.datasets.columns import Layout
from bias_pipeline.datasets.label_files import Labels, read_labels, strata_note
from bias_pipeline.datasets.label_values import TIE, agreement, majority
from bias_pipeline.errors import DataError, UsageError

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


def refused(folder: Path, text: str, attribute: Attribute = GENDER, **options: object) -> str:
    with pytest.raises(DataError) as caught:
        read(folder, text, attribute, **options)
    return str(caught.value)


def test_the_columns_of_princeton_are_read(tmp_path):
    content = read(tmp_path, "id,bb_gender,bb_skin,split\n007,Male,Light,val\n8,,Dark,train\n")
    assert content.raw == {"7": "Male", "8": ""}
    assert content.parts == {"7": "val", "8": "train"}


def test_the_long_form_is_read(tmp_path):
    text = "image_id,attribute,value\n7,gender,Male\n7,mood,low\n8,gender,female\n"
    assert read(tmp_path, text).raw == {"7": "Male", "8": "female"}


def test_the_long_form_may_name_the_column_of_the_label_map(tmp_path):
    assert read(tmp_path, "image_id,attribute,value\n7,bb_gender,Male\n").raw == {"7": "Male"}


def test_labels_may_be_json_lines(tmp_path):
    lines = [{"image_id": 7, "attribute": "gender", "value": "Male"}, {"image_id": 8}]
    lines[1] |= {"attribute": "gender", "value": None}
    text = "\n".join(map(json.dumps, lines))
    assert read(tmp_path, text, name="labels.jsonl").raw == {"7": "Male", "8": ""}


def test_an_attribute_without_a_map_is_read_plainly(tmp_path):
    content = read(tmp_path, "image_id,mood\n7,low\n8,high\n9,Unsure\n", MOOD)
    assert [content.map.group_of(label) for label in content.raw.values()] == ["low", "high", None]


def test_blanks_stand_for_underscores_in_names_of_groups(tmp_path):
    kind = Attribute("kind", ("big_dog", "cat"), {}, {})
    content = read(tmp_path, "id,kind\n7,Big dog\n8,cat\n", kind)
    assert content.map.group_of(content.raw["7"]) == "big_dog"


def test_the_data_set_may_say_how_its_labels_are_written(tmp_path):
    maps = {"gender": LabelMap("sex", {"m": "male", "f": "female"})}
    content = read(tmp_path, "id,sex\n7,m\n8,f\n", own=maps)
    assert [content.map.group_of(label) for label in content.raw.values()] == ["male", "female"]


def test_a_map_to_an_unknown_group_is_refused(tmp_path):
    maps = {"gender": LabelMap("sex", {"m": "men", "f": "female"})}
    with pytest.raises(UsageError, match=r"dataset\.labels\.gender: .* has no group 'men'"):
        read(tmp_path, "id,sex\n7,m\n8,f\n", own=maps)


def test_labels_of_no_group_are_counted_by_name(tmp_path):
    content = read(tmp_path, "id,bb_gender\n1,Male\n2,Unsure\n3,\n4,Unsure\n")
    assert strata_note(content.raw.values(), content.map) == (
        "3 images belong to no group and are not scored: empty 1, "
        "Unsure 2 (except by assumed_group)",
    )


# --- E3, E4


def test_e3_equal_labels_are_collapsed_with_a_note(tmp_path):
    content = read(tmp_path, "id,bb_gender\n7,Male\n007,Male\n")
    assert content.notes == ("1 repeated labels were collapsed",)


def test_e3_different_labels_are_refused(tmp_path):
    message = refused(tmp_path, "id,bb_gender\n7,Male\n7,Female\n")
    assert "line 3: image id 7 occurs twice with different labels ('Male' and 'Female')" in message


def test_e4_an_unknown_label_is_refused_with_what_is_seen_and_allowed(tmp_path):
    message = refused(tmp_path, "id,bb_gender\n7,Male\n8,Femal\n9,Male\n")
    assert (
        "unknown labels in 'bb_gender': 'Femal' (image 8); labels: 'Male' 2, 'Femal' 1" in message
    )
    assert "did you mean 'Female'? Known: (empty), Both, Female, Male, Unsure" in message


@pytest.mark.parametrize("label", ["None", "nonbinary", "male "])
def test_e4_no_label_is_dropped_in_silence(tmp_path, label):
    text = f"id,bb_gender\n7,Male\n8,{label}\n"
    if label.strip() == "male":
        assert read(tmp_path, text).raw["8"] == "male"
    else:
        assert label in refused(tmp_path, text)


def test_e4_a_number_with_a_fraction_is_no_label(tmp_path):
    text = json.dumps([{"id": 7, "bb_gender": 0.5}])
    assert "entry 0: label 0.5" in refused(tmp_path, text, name="labels.json")


def test_an_absent_column_is_refused_with_the_nearest(tmp_path):
    message = refused(tmp_path, "id,bbgender\n7,Male\n")
    assert "no column 'bb_gender' for attribute 'gender'; did you mean 'bbgender'" in message


def test_an_absent_id_column_is_refused(tmp_path):
    assert "no column of ids" in refused(tmp_path, "name,bb_gender\n7,Male\n")


def test_no_labels_are_refused(tmp_path):
    assert "holds no labels" in refused(tmp_path, "id,bb_gender\n")


def test_labels_of_other_attributes_alone_are_refused(tmp_path):
    message = refused(tmp_path, "image_id,attribute,value\n7,gendre,Male\n")
    assert "no line is about attribute 'gender'; did you mean 'gendre'" in message


# --- annotators


THREE = LONG + (
    "1,gender,Male,a\n1,gender,Male,b\n1,gender,Female,c\n"
    "2,gender,Female,a\n2,gender,Female,b\n2,gender,Female,c\n"
    "3,gender,Male,a\n3,gender,Female,b\n"
)


def test_the_majority_of_annotators_is_used(tmp_path):
    content = read(tmp_path, THREE)
    assert content.raw == {"1": "Male", "2": "Female", "3": TIE}
    assert content.map.group_of(TIE) is None


def test_labels_of_a_group_in_two_spellings_are_one_vote(tmp_path):
    text = LONG + "1,gender,Male,a\n1,gender,male,b\n1,gender,Female,c\n"
    content = read(tmp_path, text)
    assert content.map.group_of(content.raw["1"]) == "male"


def test_agreement_is_told(tmp_path):
    (note,) = read(tmp_path, THREE).notes
    assert "3 annotators: Fleiss' kappa" in note
    assert "2 of 3 images judged differently, 1 without a majority" in note


def test_one_annotator_may_be_chosen(tmp_path):
    assert read(tmp_path, THREE, annotator="c").raw == {"1": "Female", "2": "Female", "3": ""}


def test_an_unknown_annotator_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"dataset\.annotator=d is unknown; Known: a, b, c"):
        read(tmp_path, THREE, annotator="d")


def test_an_annotator_of_a_file_without_annotators_is_refused(tmp_path):
    with pytest.raises(UsageError, match="does not name annotators"):
        read(tmp_path, "id,bb_gender\n7,Male\n", annotator="a")


def test_confidence_weighs_votes(tmp_path):
    text = "image_id,attribute,value,annotator,confidence\n1,gender,Male,a,0.2\n1,gender,Female,b,1"
    assert read(tmp_path, text).raw == {"1": "Female"}


@pytest.mark.parametrize("weight", ["-1", "nan", "inf", "high"])
def test_a_confidence_that_is_no_weight_is_refused(tmp_path, weight):
    text = f"image_id,attribute,value,confidence\n1,gender,Male,{weight}\n"
    assert f"line 2: confidence '{weight}'" in refused(tmp_path, text)


def test_fleiss_own_example():
    """Ten patients, fourteen raters, five diagnoses: the worked table of the method, 0.210."""
    counts = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    ballots = [[str(k) for k, n in enumerate(row) for _ in range(n)] for row in counts]
    assert agreement(ballots) == pytest.approx(0.210, abs=5e-4)


def test_agreement_of_one_label_is_undefined():
    assert np.isnan(agreement([["a", "a"]]))


def test_agreement_without_pairs_is_undefined():
    assert np.isnan(agreement([["a"], ["b"]]))


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), min_size=1, max_size=20))
def test_agreement_is_at_most_one(ballots):
    kappa = agreement(ballots)
    assert np.isnan(kappa) or kappa <= 1


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=9))
def test_a_majority_has_more_votes_than_any_other(labels):
    winner = majority((label, 1.0) for label in labels)
    counts = sorted((labels.count(label), label) for label in set(labels))
    if len(counts) > 1 and counts[-1][0] == counts[-2][0]:
        assert winner == TIE
    else:
        assert winner == counts[-1][1]


# --- what a user says that labels mean ------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["id,bb_gender\n7,Male\n8,Female\n", LONG + "7,gender,Male,a\n8,gender,Female,a\n"]
)
def test_a_mapped_label_that_no_row_has_is_refused_with_those_there_are(tmp_path, text):
    with pytest.raises(
        UsageError, match=r"no label in 'bb_gender' .* is 'Mael'; did you mean 'Male'"
    ):
        read(tmp_path, text, layout=Layout(label_map={"Mael": "male"}))


def test_a_map_may_say_more_than_one_file_holds_and_that_is_told(tmp_path):
    layout = Layout(label_map={"M": "male", "W": "female", "N": "male"})
    read(tmp_path, "id,bb_gender\n7,M\n8,W\n", layout=layout)
    assert layout.notes() == ["labels.csv: no label in 'bb_gender' is 'N', though mapped"]


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
    ],
)
def test_that_nobody_could_tell_is_read(tmp_path, text, attribute, item):
    content = read(tmp_path, text, attribute, layout=Layout(label_map=item))
    unsure = [image for image, label in content.raw.items() if content.map.is_unsure(label)]
    assert unsure == ["8"]


def test_no_majority_is_not_that_nobody_could_tell(tmp_path):
    rows = "7,gender,Male,a\n7,gender,Female,b\n8,gender,Unsure,a\n8,gender,Unsure,b\n"
    content = read(tmp_path, LONG + rows)
    assert {image: content.map.is_unsure(label) for image, label in content.raw.items()} == {
        "7": False,
        "8": True,
    }


def test_a_label_may_be_mapped_from_nobodys_to_a_group(tmp_path):
    content = read(
        tmp_path, "id,bb_gender\n8,Unsure\n", layout=Layout(label_map={"Unsure": "male"})
    )
    assert (content.map.group_of("Unsure"), content.map.is_unsure("Unsure")) == ("male", False)
