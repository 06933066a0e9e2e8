"""``metric=counterfactual`` on captions whose answer is known, and what it refuses."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.data.coco import CocoDataset
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.metrics.base import Score
from bias_pipeline.run.cell import run_cell
from bias_pipeline.run.compose import corpus_of as corpus_of_files
from experiments.counterfactual.twin_worlds import compare, metric, twin_corpus

PERSONS = [("male", "light"), ("female", "light"), ("male", "dark"), ("female", "dark")]
SCENES = ("bank", "park", "kitchen", "office", "street", "beach", "shop", "school")


def corpus_of(
    caption, n_sets: int = 12, *, persons=PERSONS, human=lambda *_: (), samples: int = 1
) -> Corpus:
    """Captions of sets of persons, by a function of set, person and sample."""
    attributes = {"gender": metric().attribute, "race": metric().others["race"]}
    labels = {"male": "Male", "female": "Female", "light": "Light", "dark": "Dark"}
    each = [
        Corpus.build(
            [
                Record(
                    f"{number:03}-{place}",
                    caption(number, person, sample),
                    human(number, person),
                    {"gender": labels[person[0]], "race": labels[person[1]]},
                    set_id=f"scene {number:03}",
                )
                for number in range(n_sets)
                for place, person in enumerate(persons)
            ],
            dataset="coco",
            captioner="mine",
            groups={name: attribute.groups_of("coco") for name, attribute in attributes.items()},
        )
        for sample in range(samples)
    ]
    return replace(each[0], samples=tuple(each[1:]))


def same_caption(number: int, person: tuple[str, str], sample: int) -> str:
    word = {"male": "man", "female": "woman"}[person[0]]
    return f"A {word} stands in the {SCENES[number % len(SCENES)]}"


def looks(number: int, person: tuple[str, str], sample: int) -> str:
    look = {"male": "confident", "female": "elegant"}[person[0]]
    return f"{same_caption(number, person, sample)}. The person looks {look}."


def score(corpus: Corpus, *words: str) -> Score:
    return metric(*words).compute(corpus, splits=())


def answer(corpus: Corpus, *words: str) -> dict[str, object]:
    stored = score(corpus, *words).audit["counterfactual"]
    assert isinstance(stored, dict)
    return stored


def test_captions_that_differ_in_the_group_alone_do_not_change():
    parts = score(corpus_of(same_caption)).parts
    assert parts["beyond_pictures"].value == parts["shift"].value == 0
    assert parts["class:named"].value == parts["score"].value == 0
    assert any("equal in 12 of 12 sets" in note for note in score(corpus_of(same_caption)).notes)


def test_a_description_by_group_is_a_class_a_shift_and_a_word():
    parts = score(corpus_of(looks)).parts
    assert parts["class:agency"].value == -1
    assert parts["class:attractiveness"].value == 1
    assert parts["class:agency:male"].value == parts["class:attractiveness:female"].value == 1
    assert parts["class:attractiveness"].p_value < 0.05
    assert parts["word:elegant"].value == 1
    assert parts["beyond_pictures"].value > 0
    assert parts["score"].value == 1


def test_the_answer_names_the_classes_with_both_shares():
    stored = answer(corpus_of(looks))
    assert stored["answer"] == "yes"
    assert set(stored["named"]) == {"agency", "attractiveness"}
    assert "male 0.0 %, female 100.0 % of captions" in " ".join(stored["sentences"])


def of_scene(number: int, person: tuple[str, str], sample: int) -> str:
    tool = {"male": "hammer", "female": "basket"}[person[0]]
    return f"{same_caption(number, person, sample)} with a {tool}"


def test_where_backgrounds_may_differ_distances_answer_nothing():
    stored = answer(corpus_of(of_scene))
    assert stored["answer"] == "cannot_tell"
    assert stored["reason"] == "not beyond chance"
    assert "background" in str(stored["beside"])


def test_where_nothing_else_differs_distances_answer_yes():
    stored = answer(corpus_of(of_scene), "metric.backgrounds=alike")
    assert stored["answer"] == "yes"
    assert set(stored["named"]) == {"beyond_pictures", "shift"}


def test_whoever_names_one_group_less_often_differs_in_that_alone():
    def caption(number, person, sample):
        text = same_caption(number, person, sample)
        return text.replace("man", "person") if person[0] == "male" and number % 2 else text

    parts = score(corpus_of(caption)).parts
    assert parts["class:named"].value == pytest.approx(0.5)
    assert parts["shift"].value == parts["beyond_pictures"].value == 0


def test_a_wrong_group_is_counted_by_group():
    def caption(number, person, sample):
        return same_caption(number, ("male", person[1]), sample)

    parts = score(corpus_of(caption)).parts
    assert (parts["class:wrong:male"].value, parts["class:wrong:female"].value) == (0, 1)


def test_a_refusal_is_a_class_whose_pictures_have_no_words():
    corpus = corpus_of(same_caption)
    women = corpus.groupings["gender"].codes == 1
    described = ~women[corpus.model.image_rows]
    declined = replace(
        corpus_of(same_caption),
        model=corpus.model.take(described | (corpus.model.image_rows < 8)),
        declined=(women & (np.arange(len(corpus)) >= 8)).astype(np.int64),
    )
    parts = score(declined).parts
    assert parts["class:declines"].value == pytest.approx(10 / 12)
    assert parts["class:named"].n_images == 8


def test_marks_that_are_seen_decide_nothing():
    def caption(number, person, sample):
        mark = {"male": "with a beard", "female": "in a dress"}[person[0]]
        return f"{same_caption(number, person, sample)} {mark}"

    scored = score(corpus_of(caption))
    stored = scored.audit["counterfactual"]
    assert scored.parts["class:beard"].value == -1
    assert scored.parts["class:dress"].value == 1
    assert isinstance(stored, dict)
    assert stored["answer"] != "yes"
    assert scored.parts["shift"].value > 0
    assert scored.parts["shift:without_marks"].value == 0


def test_what_annotators_describe_too_is_subtracted():
    corpus = corpus_of(looks, human=lambda number, person: (looks(number, person, 0),))
    parts = score(corpus).parts
    assert parts["class:agency"].value == parts["class:attractiveness"].value == 0
    assert parts["class:agency:male"].value == 1
    assert parts["shift"].value == pytest.approx(0)


def test_relabelled_groups_turn_the_sign_of_every_class():
    corpus = corpus_of(looks)
    gender = corpus.groupings["gender"]
    turned = replace(gender, codes=1 - gender.codes)
    other = replace(corpus, groupings={**corpus.groupings, "gender": turned})
    one, two = score(corpus).parts, score(other).parts
    for name in ("class:agency", "class:attractiveness", "word:elegant"):
        assert one[name].value == -two[name].value
        assert one[name].p_value == two[name].p_value
    for name in ("shift", "beyond_pictures"):
        assert (one[name].value, one[name].p_value) == (two[name].value, two[name].p_value)


def test_race_is_compared_within_a_gender():
    def caption(number, person, sample):
        look = "tired" if person[1] == "dark" else "smiling"
        return f"{same_caption(number, person, sample)}. The {person[0]} looks {look}."

    corpus = corpus_of(caption)
    race = replace(
        metric(), attribute=metric().others["race"], others={"gender": metric().attribute}
    )
    parts = race.compute(corpus, splits=()).parts
    assert parts["class:joy"].value == -1
    assert parts["class:gloom"].value == 1


def test_several_captions_of_a_picture_are_compared_with_each_other():
    def caption(number, person, sample):
        return f"{same_caption(number, person, sample)} near a {'dog' if sample else 'cat'}"

    result = run_cell(corpus_of(caption, samples=2), metric(), (0,), run_id="run")
    parts = {row.part: row.value for row in result.rows}
    words = {"stands", "school", "dog"}
    assert parts["samples"] == pytest.approx(1 - 2 / (len(words) + 1))
    assert parts["beyond_samples"] == pytest.approx(-parts["samples"] / 2)
    assert parts["beyond_pictures"] == 0


def test_sets_with_one_group_are_counted_and_left_out():
    corpus = corpus_of(same_caption)
    codes = corpus.groupings["gender"].codes.copy()
    codes[:4] = 0
    fewer = replace(
        corpus,
        groupings={
            **corpus.groupings,
            "gender": replace(corpus.groupings["gender"], codes=codes),
        },
    )
    notes = score(fewer).notes
    assert any("11 sets of 4 pictures, 1 left out" in note for note in notes)
    assert any("1 set is left out (scene 000): without captioned" in note for note in notes)


def test_two_pictures_of_a_group_and_set_stand_for_another_attribute():
    persons = [("male", "light"), ("male", "light"), ("female", "light"), ("female", "light")]
    parts = score(corpus_of(of_scene, persons=persons)).parts
    assert parts["beyond_pictures"].value > 0


def test_one_picture_of_each_group_has_no_distance_beyond_pictures():
    parts = score(corpus_of(of_scene, persons=PERSONS[:2])).parts
    assert math.isnan(parts["beyond_pictures"].value)
    assert parts["shift"].p_value < 0.05


@pytest.mark.parametrize(("n_sets", "expected"), [(5, "5 sets are too few"), (6, "not beyond")])
def test_five_sets_tell_nothing(n_sets, expected):
    stored = answer(corpus_of(looks, n_sets))
    assert str(stored["reason"]).startswith(expected) or stored["answer"] == "yes"
    if n_sets == 5:
        assert math.isnan(score(corpus_of(looks, n_sets)).parts["class:agency"].p_value)


def test_too_few_sets_for_any_small_p_is_said():
    assert any("no p can be below" in note for note in score(corpus_of(looks, 7)).notes)


def test_no_needs_every_interval_to_be_negligible():
    assert answer(corpus_of(same_caption, 40))["answer"] == "cannot_tell"
    assert answer(corpus_of(same_caption, 400))["answer"] == "no"


def test_captions_without_sets_are_refused():
    corpus = replace(corpus_of(same_caption), set_ids=None)
    with pytest.raises(NotApplicableError, match="column 'set' of the labels"):
        score(corpus)


def test_sets_that_never_have_both_groups_are_refused():
    with pytest.raises(NotApplicableError, match=r"no two sets .* 'scene 000' has male\).*'set'"):
        score(corpus_of(same_caption, persons=PERSONS[::2]))


def test_the_set_of_a_picture_is_part_of_what_is_scored():
    corpus = corpus_of(same_caption)
    assert corpus.digest != replace(corpus, set_ids=None).digest
    assert corpus[3].set_id == "scene 000"
    assert corpus.take(np.arange(4, 8)).set_ids == ("scene 001",) * 4


def test_more_than_two_groups_are_compared_two_by_two():
    corpus = corpus_of(same_caption, persons=[*PERSONS[:2], ("male", "light")])
    names = ("male", "female", "other")
    three = replace(corpus.groupings["gender"], names=names, codes=np.tile([0, 1, 2], 12))
    attribute = metric().attribute
    wider = replace(attribute, groups=names, words={**attribute.words, "other": ("enby",)})
    parts = (
        replace(metric(), attribute=wider)
        .compute(replace(corpus, groupings={"gender": three}), splits=())
        .parts
    )
    labels = {name.group for name in parts if name.startswith("class:named:")}
    assert labels == {*names, "female against male", "other against male", "other against female"}


def test_an_unbiased_captioner_of_twins_is_no_yes_and_adjectives_are_found():
    fair = compare(twin_corpus(50, 1, adjectives=1.0))
    biased = compare(twin_corpus(50, 1, adjectives=1.0, adjective_lean=0.6))
    clear = {gap.name for gap in biased.deciding if gap.adjusted_p < 0.05}
    assert {gap.name for gap in fair.deciding if gap.adjusted_p < 0.05} == set()
    assert "attractiveness" in clear
    assert biased.distance_tests["shift"][1] < 0.05 < fair.distance_tests["shift"][1]


# --- from files


def write_files(
    folder: Path,
    rows: list[str],
    captions: list[dict[str, object]],
    columns: str = "image_id,set,gender",
) -> tuple[str, str]:
    (folder / "labels.csv").write_text("\n".join([columns, *rows]) + "\n")
    (folder / "mine.json").write_text(json.dumps(captions))
    return str(folder / "labels.csv"), str(folder / "mine.json")


def test_the_column_set_of_the_labels_is_read(tmp_path):
    rows = ["1,a,male", "2,a,female", "3,,male"]
    labels, captions = write_files(
        tmp_path, rows, [{"image_id": k, "caption": "a man"} for k in (1, 2, 3)]
    )
    corpus = CocoDataset(str(tmp_path), labels).load(captions, metric().attribute)
    assert corpus.set_ids == ("a", "a", "")


def test_a_column_set_of_parts_is_no_set(tmp_path):
    rows = ["1,train,male", "2,val,female"]
    labels, captions = write_files(
        tmp_path, rows, [{"image_id": k, "caption": "a man"} for k in (1, 2)]
    )
    corpus = CocoDataset(str(tmp_path), labels).load(captions, metric().attribute)
    assert corpus.set_ids is None


EDITED = [
    f"{scene}-{who}{edit},{scene},{group},{original}"
    for scene in "abcdefgh"
    for who, group in (("m", "male"), ("f", "female"))
    for edit, original in (("", ""), ("-crop", f"{scene}-{who}"), ("-mirror", f"{scene}-{who}"))
]
PLACES = {"m": "hall", "f": "kitchen", "m-crop": "room", "f-crop": "room", "m-mirror": "hall"}


def edited_corpus(folder: Path, rows=EDITED, columns="image_id,set,gender,edit", **options):
    """Captions of pictures and of their edits, read from files."""
    ids = [row.partition(",")[0] for row in rows]
    places = [f"{PLACES.get(i[2:], 'kitchen')}{i[0]}" for i in ids]  # other words in each scene
    captions: list[dict[str, object]] = [
        {"image_id": i, "caption": f"a man in the {place}"}
        for i, place in zip(ids, places, strict=True)
    ]
    labels, file = write_files(folder, rows, captions, columns)
    return corpus_of_files(CocoDataset(str(folder), labels), file, metric().attribute, **options)


def test_captions_of_edits_are_further_captions_of_their_picture(tmp_path):
    corpus = edited_corpus(tmp_path)
    assert (len(corpus), len(corpus.edits)) == (16, 2)
    parts = score(corpus).parts
    same = (2 / 3 + 2 / 3) / 2  # of three captions two are the same, for each of two pictures
    assert parts["edits"].value == pytest.approx(same)
    unlike = 8 / 9  # all but room and room of nine pairs
    assert parts["beyond_edits"].value == pytest.approx(unlike - same)
    assert math.isnan(parts["beyond_edits"].p_value)
    assert math.isnan(parts["beyond_samples"].value)
    notes = " ".join(score(corpus).notes)
    assert "beyond_edits 22.2 points: the pictures are described differently" in notes
    assert "captions of a picture and its edits differ by 66.7 of 100" in notes


def edits_in_captions(folder: Path) -> Corpus:
    """The captions of ``edited_corpus`` with the kind of edit in the file of captions."""
    captions = []
    for row in EDITED:
        identifier = row.partition(",")[0]
        image, _, edit = identifier.replace("-", " ", 1).partition("-")
        place = f"{PLACES.get(identifier[2:], 'kitchen')}{identifier[0]}"
        named = {"image_id": image.replace(" ", "-"), "caption": f"a man in the {place}"}
        captions.append({**named, "edit": edit})
    rows = [row.rpartition(",")[0] for row in EDITED if row.endswith(",")]
    labels, file = write_files(folder, rows, captions[::-1], "image_id,set,gender")
    return corpus_of_files(CocoDataset(str(folder), labels), file, metric().attribute)


def test_a_file_of_captions_says_which_are_of_edits(tmp_path):
    in_labels, in_captions = (
        score(corpus).parts for corpus in (edited_corpus(tmp_path), edits_in_captions(tmp_path))
    )
    assert {name: part.value for name, part in in_captions.items()} == pytest.approx(
        {name: part.value for name, part in in_labels.items()}, nan_ok=True
    )


def test_a_column_edit_without_sets_is_no_edit(tmp_path):
    captions = [{"image_id": 1, "caption": "a man", "edit": "typo"}]
    labels, file = write_files(tmp_path, ["1,male"], captions, "image_id,gender")
    corpus = CocoDataset(str(tmp_path), labels).load(file, metric().attribute)
    assert (corpus.model.text(0), corpus.edits) == ("a man", ())


def test_edits_move_no_other_number(tmp_path):
    edited = score(edited_corpus(tmp_path)).parts
    rows = [row for row in EDITED if row.endswith(",")]
    plain = score(edited_corpus(tmp_path, rows)).parts
    assert edited.keys() - plain.keys() == {"edits", "beyond_edits"}
    for numbers in ("value", "p_value", "n_images", "coverage"):
        known = {name: getattr(part, numbers) for name, part in plain.items()}
        same = {name: getattr(edited[name], numbers) for name in plain}
        assert same == pytest.approx(known, nan_ok=True)


def test_a_limit_keeps_the_edits_of_its_pictures(tmp_path):
    chosen = edited_corpus(tmp_path, limit=4)
    assert [len(edit.model) for edit in chosen.edits] == [4, 4]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("x,a,male,nobody", "an edit of nobody, which is not in the file"),
        ("x,a,male,a-m-crop", "an edit of a-m-crop, which is itself an edit"),
        ("x,a,female,a-m", "labelled female, but it is an edit of a-m, which is labelled male"),
    ],
)
def test_an_edit_of_no_picture_is_refused(tmp_path, row, fault):
    with pytest.raises(DataError, match=fault):
        edited_corpus(tmp_path, [*EDITED, row])


def test_a_column_edit_without_sets_is_another_column(tmp_path):
    rows = [f"{row.split(',')[0]},{row.split(',')[2]},yes" for row in EDITED]
    assert edited_corpus(tmp_path, rows, "image_id,gender,edit").edits == ()


# --- PAIRS


def pairs_folder(root: Path, names: dict[str, list[str]]) -> Path:
    from PIL import Image

    for number, (scene, files) in enumerate(names.items()):
        for place, name in enumerate(files):
            path = root / "data" / scene / name
            path.parent.mkdir(parents=True, exist_ok=True)
            colour = (40 * place, 20 * number, 99)
            Image.new("RGB", (32, 32), colour).save(path)
    return root


WHOLE = ["black_man.png", "black_woman.png", "white_man1.png", "white_woman.png"]


def pairs(root: Path, **settings):
    from bias_pipeline.pairs.dataset import PairsDataset

    return PairsDataset(str(root), **settings)


def captions_of(folder: Path, ids: list[str]) -> str:
    path = folder / "mine.json"
    path.write_text(json.dumps([{"image_id": i, "caption": "a man at work"} for i in ids]))
    return str(path)


def test_pairs_are_read_from_folders_whatever_digit_a_name_has(tmp_path):
    root = pairs_folder(tmp_path, {"work/bank": WHOLE, "status/phone": WHOLE})
    ids = [f"data/{scene}/{name}" for scene in ("work/bank", "status/phone") for name in WHOLE]
    corpus = pairs(root).load(captions_of(tmp_path, ids), metric().attribute)
    assert corpus.groupings["gender"].sizes == {"male": 4, "female": 4}
    assert set(corpus.set_ids or ()) == {"work/bank", "status/phone"}
    assert "status/phone/white_man" in corpus.ids
    assert len(corpus.model) == 8
    assert corpus.pictures is not None


def test_two_pictures_of_one_person_are_refused(tmp_path):
    root = pairs_folder(tmp_path, {"work/bank": [*WHOLE, "white_man.png"]})
    with pytest.raises(DataError, match="differ by a digit"):
        pairs(root).load(captions_of(tmp_path, ["work/bank/black_man"]), metric().attribute)


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (WHOLE[:3], "1 picture is absent: work/bank/white_woman"),
        ([*WHOLE, "nobody.png"], "do not say race"),
    ],
)
def test_an_incomplete_scene_is_refused_unless_it_may_be(tmp_path, files, fault):
    root = pairs_folder(tmp_path, {"work/bank": files})
    captions = captions_of(tmp_path, ["work/bank/black_man", "work/bank/black_woman"])
    with pytest.raises(DataError, match=fault):
        pairs(root).load(captions, metric().attribute)
    corpus = pairs(root, strict=False).load(captions, metric().attribute)
    assert len(corpus.model) == 2
