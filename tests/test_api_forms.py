"""From Python: forms of pandas and NumPy, settings of the wrong kind, and what is printed."""

import numpy as np
import pandas as pd
import pytest

import bias_pipeline as bp
from bias_pipeline import api
from bias_pipeline.errors import (
    DataError,
    NotApplicableError,
    ResourceError,
    TooFewImagesError,
    UsageError,
)
from bias_pipeline.integrations import pytest_plugin

IDS = [7, 8, 9, 10]
CAPTIONS = ["a man rides", "a woman rides", "a man sits", "a man eats"]
LABELS = ["male", "female", "female", "male"]
HUMAN = [["a man", "he rides"], ["a woman", "she"], ["a lady", "a man"], ["a man eats", "a man"]]
BY_ID = dict(zip(IDS, CAPTIONS, strict=True))
LABEL_BY_ID = dict(zip(IDS, LABELS, strict=True))
HUMAN_BY_ID = dict(zip(IDS, HUMAN, strict=True))
OBJECTS = {1: ["dog"], 2: ["cake"]}


def values(result):
    return result.frame().set_index("part").value.to_dict()


@pytest.mark.parametrize(
    "human",
    [
        {key: np.array(texts) for key, texts in HUMAN_BY_ID.items()},
        {key: (text for text in texts) for key, texts in HUMAN_BY_ID.items()},
        {key: pd.array(texts, dtype="string") for key, texts in HUMAN_BY_ID.items()},
        [{"image_id": key, "caption": text} for key in IDS for text in HUMAN_BY_ID[key]],
    ],
    ids=["arrays", "generators", "pandas' strings", "rows"],
)
def test_people_s_captions_have_one_value_in_every_form(human):
    expected = values(bp.score("gender_error", BY_ID, LABEL_BY_ID, HUMAN_BY_ID))
    assert values(bp.score("gender_error", BY_ID, LABEL_BY_ID, human)) == expected


def test_rows_of_an_array_are_images():
    expected = values(bp.score("gender_error", CAPTIONS, LABELS, HUMAN))
    assert values(bp.score("gender_error", CAPTIONS, LABELS, np.array(HUMAN))) == expected


@pytest.mark.parametrize("key", ["id", "image_id", "img_id"])
def test_rows_in_another_order_are_matched_by_their_ids(key):
    order = [2, 0, 3, 1]
    captions = [{key: number, "caption": CAPTIONS[number]} for number in order]
    labels = [{key: number, "gender": LABELS[number]} for number in reversed(order)]
    expected = values(bp.score("gender_error", CAPTIONS, LABELS))
    assert values(bp.score("gender_error", captions, labels)) == expected


@pytest.mark.parametrize("absent", [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT])
def test_whatever_pandas_calls_absent_is_no_caption_and_no_label(absent):
    captions, labels = {**BY_ID, 7: absent}, {**LABEL_BY_ID, 8: absent}
    assert bp.score("gender_error", captions, labels).frame().n_images[0] == 2


def test_a_nullable_series_may_lack_values():
    captions = pd.Series(["a man", pd.NA, "a man"], dtype="string")
    labels = {"gender": pd.Series(["male", "male", pd.NA], dtype="string")}
    assert bp.score("gender_error", captions, labels).frame().n_images[0] == 1


@pytest.mark.parametrize(
    "objects",
    [
        {1: "dog", 2: "cake"},
        {1: np.array(["dog"]), 2: {"cake"}},
        [{"image_id": 1, "category": "dog"}, {"image_id": 2, "category": "cake"}],
        pd.DataFrame({"image_id": [1, 2], "category": [["dog"], ["cake"]]}),
    ],
    ids=["one each", "arrays and sets", "rows", "a table of lists"],
)
def test_objects_have_one_meaning_in_every_form(objects):
    data = ({1: "a man, a dog", 2: "a woman, a dog"}, {1: "male", 2: "female"})
    people = {1: "a man", 2: "a woman, a cake"}
    expected = bp.score("cooccurrence", *data, people, OBJECTS).manifest["corpus"]
    assert bp.score("cooccurrence", *data, people, objects).manifest["corpus"] == expected


@pytest.mark.parametrize(
    ("captions", "message"),
    [
        (set(CAPTIONS), "captions: give a mapping of image ids, a list"),  # in no order
        ([*CAPTIONS[:3], b"a man"], "captions, image 3: b'a man' is not a text"),
    ],
    ids=["a set", "bytes"],
)
def test_what_is_no_list_of_texts_is_refused(captions, message):
    with pytest.raises(UsageError, match=message):
        bp.score("gender_error", captions, LABELS)


@pytest.mark.parametrize("path", ["nowhere.json", "a man on a horse", 5000 * "a", "a\0b"])
def test_an_absent_file_is_called_absent(path):
    with pytest.raises(ResourceError, match=r"^captions: the file .* is absent"):
        bp.score("gender_error", path, LABELS)


def test_a_long_list_of_columns_is_cut():
    labels = {"sex": dict.fromkeys(range(1000), "male")}  # no attribute of ours
    with pytest.raises(bp.api.BiasPipelineError, match="and 961 more") as error:
        bp.score("gender_error", ["a man"] * 1000, labels)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    "seeds",
    [np.int64(2), np.array([0, 12]), pd.Series([0, 12]), (0, 12)],
    ids=lambda seeds: type(seeds).__name__,
)
def test_settings_may_be_numpy_s(seeds):
    people = ["a man", "a woman"] * 30
    data = (people, ["male", "female"] * 30)
    expected = values(bp.score("leakage", *data, sides=["model"], seeds=2))
    assert values(bp.score("leakage", *data, sides=["model"], seeds=seeds)) == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": object}, r"encoder=<class 'object'> must be a text, a number"),
        ({"stats": {"resamples": {50}}}, r"stats=\{'resamples': \{50\}\} must be a text, a number"),
        ({"dataset": "scenes"}, "dataset='scenes': captions and labels are the data set here"),
        ({"paths": {"outputs": "here"}}, "name the folder of results with out=FOLDER"),
    ],
    ids=str,
)
def test_a_setting_of_another_kind_is_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        bp.score("gender_error", CAPTIONS, LABELS, **settings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": -1}, "margin=-1 must be at least 0"),
        ({"margin": float("nan")}, "margin=nan must be a number"),
        ({"margin": "0.02"}, "margin='0.02' must be a number"),
        ({"names": ("a", "b", "c")}, "two names that differ"),
        ({"names": ("m 1", "m/1")}, "two names that differ"),  # the same as names of files
        ({"least_coverage": 3}, "least_coverage=3 must be"),
    ],
    ids=str,
)
def test_options_of_a_comparison_are_those_of_the_command(options, message):
    with pytest.raises(UsageError, match=message):
        bp.compare(CAPTIONS, CAPTIONS, LABELS, metric="gender_error", **options)


def test_one_file_is_not_compared_with_itself(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("image_id,caption\n1,a man\n")
    with pytest.raises(UsageError, match=r"both captioners are .*mine.csv; name two files"):
        bp.compare(path, str(path), LABELS, metric="gender_error")


def test_the_same_captions_are_not_compared_as_two_captioners():
    with pytest.raises(DataError, match="a and b have the same captions; there is nothing"):
        bp.compare(CAPTIONS, list(CAPTIONS), LABELS, metric="gender_error")


TABLE = pd.DataFrame({"image_id": IDS, "caption": HUMAN})


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        TABLE.assign(caption=TABLE.caption.map(np.array)),
        TABLE.set_index("image_id"),
        TABLE.assign(other=[[1, 2]] * len(TABLE)),
    ],
    ids=["lists", "arrays", "the index is the id", "a second column of lists"],
)
def test_a_cell_of_a_table_may_hold_several_captions(table):
    expected = bp.score("gender_error", BY_ID, LABEL_BY_ID, HUMAN_BY_ID).manifest["corpus"]
    assert bp.score("gender_error", BY_ID, LABEL_BY_ID, table).manifest["corpus"] == expected


@pytest.mark.parametrize("setting", [{"seeds": 3}, {"metric": "lic"}], ids=str)
def test_an_audit_does_not_ignore_what_it_decides_itself(setting):
    with pytest.raises(UsageError, match="audit has no setting"):
        bp.audit(CAPTIONS, LABELS, **setting)


@pytest.mark.parametrize("minutes", [0, -1, "1"])
def test_an_audit_needs_some_time(minutes):
    with pytest.raises(UsageError, match="minutes="):
        bp.audit(CAPTIONS, LABELS, minutes=minutes)


def test_a_captioner_s_name_may_be_a_number():
    frame = bp.score("gender_error", CAPTIONS, LABELS, captioner=3).frame()
    assert set(frame.captioner) == {"3"}


def test_a_result_is_printed_as_a_sentence():
    result = bp.score("gender_error", CAPTIONS, LABELS)
    sentence = "gender_error (gender) of captions on coco: score 25.0 ["
    assert str(result).startswith(sentence)
    assert repr(result) == str(result)


def test_a_result_without_people_s_captions_says_that_it_has_no_score():
    captions, labels = (dict(enumerate(20 * values)) for values in (CAPTIONS, LABELS))
    result = bp.score("lic", captions, labels, seeds=1)
    assert str(result).endswith("no score: the reason is in .notes")


def test_results_are_printed_a_line_each(tmp_path):
    for metric in ("gender_error", "gender_ratio"):
        bp.score(metric, CAPTIONS, LABELS, out=tmp_path)
    assert len(repr(bp.load(tmp_path)).splitlines()) == 2


def test_an_undefined_number_is_called_so():
    labels = {"race": ["light", "dark"]}
    result = bp.score("group_accuracy", CAPTIONS[:2], labels, HUMAN[:2], attribute="race")
    assert "score undefined" in str(result)


def test_a_comparison_shows_its_sentences():
    comparison = bp.compare(CAPTIONS, CAPTIONS[::-1], LABELS, metric="gender_error")
    assert repr(comparison) == "\n".join(one.sentence() for one in comparison.decisions)


@pytest.mark.parametrize("metric", [["cooccurrence", "gender_error"], ["gender_error", "dpa"]])
def test_a_metric_that_does_not_apply_is_skipped_and_the_other_compared(metric):
    comparison = bp.compare(CAPTIONS, CAPTIONS[::-1], LABELS, metric=metric)
    assert [one.metric for one in comparison.decisions] == ["gender_error"]
    (cell,) = comparison.skipped
    assert cell in {"metric=cooccurrence captioner=a", "metric=dpa captioner=a"}
    assert f"skipped: {cell}: {comparison.skipped[cell]}" in repr(comparison)


def test_a_comparison_without_a_metric_that_applies_is_refused():
    with pytest.raises(NotApplicableError, match=r"\(metric=cooccurrence captioner=a: no object"):
        bp.compare(CAPTIONS, CAPTIONS[::-1], LABELS, metric="cooccurrence")


def test_an_audit_says_why_a_metric_does_not_apply():
    audit = bp.audit(CAPTIONS * 5, LABELS * 5, minutes=0.001)
    assert "no objects" in audit.skipped["attribute=gender metric=dpa"]


def test_a_setting_that_asks_for_too_many_images_is_refused(monkeypatch):
    def run(self, captioner, metric):
        raise TooFewImagesError("metric.k=1000: only 4 images are retrieved from")

    monkeypatch.setattr(api._InMemoryRunner, "run", run)
    with pytest.raises(TooFewImagesError, match=r"^k=1000"):
        bp.compare(CAPTIONS, CAPTIONS[::-1], LABELS)


def test_a_metric_that_asks_for_too_many_images_is_skipped_and_the_other_compared(monkeypatch):
    scored = api._InMemoryRunner.run

    def run(self, captioner, metric):
        if metric == "retrieval_fairness":
            raise TooFewImagesError("metric.k=1000: only 4 images are retrieved from")
        return scored(self, captioner, metric=metric)

    monkeypatch.setattr(api._InMemoryRunner, "run", run)
    metrics = ["gender_error", "retrieval_fairness"]
    comparison = bp.compare(CAPTIONS, CAPTIONS[::-1], LABELS, metric=metrics)
    assert "metric=retrieval_fairness captioner=a" in comparison.skipped


def of_each(*texts: str) -> list[str]:
    return [texts[i % 2] for i in range(60)]


GERMAN = of_each("ein Mann reitet am Strand", "eine Frau sitzt am Tisch")
CALM = of_each("ein Mann sitzt am Strand", "eine Frau sitzt am Tisch")
MANY = of_each("male", "female")
UNTESTED = (
    "cannot be tested: the word lists are English, and 0% of the captioner's captions and 0% of "
    "human captions are"
)
QUICK = {"stats": {"resamples": 50}, "seeds": 2}


def test_captions_of_another_language_are_tested_at_no_door_of_python():
    result = bp.score("leakage", GERMAN, MANY, CALM, **QUICK)
    assert any(f"gender {UNTESTED}" in note for note in result.notes)
    comparison = bp.compare(GERMAN, CALM, MANY, CALM, metric="leakage", **QUICK)
    assert comparison.outcome == "undecided"
    assert f"a {UNTESTED}" in str(comparison)
    audit = bp.audit(GERMAN, MANY, CALM, minutes=0.001)
    assert f"gender {UNTESTED}" in " ".join(str(audit).split())
    judged = {answer.answer for answer in audit.answers}
    assert judged == {"cannot_tell", "not_tested"}


@pytest.mark.parametrize("language", ["de", "en"])
def test_words_of_their_language_test_captions_in_german(language):
    german = {"language": language, "words": {"male": "mann", "female": "frau"}}
    result = bp.score("gender_error", GERMAN, MANY, attribute=german, words=None)
    assert next(row.value for row in result.rows if row.part == "score") == 0
    assert not any("cannot be tested" in note for note in result.notes)


FEW = dict(list(enumerate(MANY))[:30])
RIDING = of_each("a man rides on the beach", "a woman sits at the table")
SITTING = of_each("a man sits on the beach", "a woman sits at the table")
LABELS_OF_HALF = "30 of 60 captions are of images that are in neither the labels nor another file"
CAPTIONS_OF_HALF = "30 of 60 labelled images have no caption"
HALVES = {
    LABELS_OF_HALF: (dict(enumerate(RIDING)), dict(enumerate(SITTING)), FEW),
    CAPTIONS_OF_HALF: (
        dict(list(enumerate(RIDING))[:30]),
        dict(list(enumerate(SITTING))[:30]),
        dict(enumerate(MANY)),
    ),
}


@pytest.mark.parametrize("sentence", HALVES)
def test_files_that_fit_in_part_are_refused_or_noted_alike_at_every_door(sentence):
    one, two, labels = HALVES[sentence]
    count = {"metric": "gender_error", "stats": {"resamples": 50}}
    doors = (
        lambda **more: bp.score(captions=one, labels=labels, **count, **more).notes,
        lambda **more: bp.compare(one, two, labels, **count, **more),
        lambda **more: pytest_plugin._gate(one, two, labels, **count, **more),
    )
    for door in doors:
        with pytest.raises((DataError, pytest.fail.Exception), match=sentence):
            door()
        assert sentence in str(door(dataset={"strict": False}))
    audit = str(bp.audit(one, labels, minutes=0.001))  # which takes what fits
    assert f"\n{sentence}" in audit
