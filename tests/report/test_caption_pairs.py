"""Pairs of captions for raters: one scene, both groups, balanced order. Answers are made up."""

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bias_pipeline.corpus.corpus import Record
from bias_pipeline.errors import DataError, NotApplicableError, UsageError
from bias_pipeline.report.caption_pairs import (
    CaptionPair,
    caption_pairs,
    pair_answers,
    read_pairs,
    write_pairs,
)
from bias_pipeline.run.presets import preset
from tests.corpora import GENDER, make_corpus
from tests.metrics.counting.test_descriptions import records, sometimes

TABLE = preset({"metric": "descriptions"}).build("metric").concepts
SPEECH = sometimes("The person looks focused.", 0.1, 0.3)


def drawn_pairs(
    made: list[Record], most: int = 200, groups: tuple[str, ...] = ()
) -> list[CaptionPair]:
    return caption_pairs(make_corpus(made), GENDER, TABLE, groups, most)


@pytest.fixture(scope="module")
def pairs() -> list[CaptionPair]:
    return drawn_pairs(records(1500, SPEECH))


def test_both_pictures_have_the_same_objects_and_one_is_of_each_group(pairs):
    objects = {record.id: record.objects for record in records(1500, SPEECH)}
    assert len(pairs) == 200
    for pair in pairs:
        assert objects[pair.image_a] == objects[pair.image_b]
        assert {pair.group_a, pair.group_b} == {"male", "female"}
        assert pair.alike >= 0.3


def test_no_picture_is_in_two_pairs(pairs):
    images = [image for pair in pairs for image in (pair.image_a, pair.image_b)]
    assert len(set(images)) == len(images)


def test_each_group_stands_first_in_half_of_the_pairs(pairs):
    assert Counter(pair.group_a for pair in pairs) == {"male": 100, "female": 100}


def test_captions_are_as_the_captioner_wrote_them(pairs):
    captions = {record.id: record.model.split() for record in records(1500, SPEECH)}
    for pair in pairs:
        assert pair.caption_a.split() == captions[pair.image_a]
        assert ("man" in pair.caption_a.lower().split()) == (pair.group_a == "male")


def test_which_pairs_are_drawn_does_not_depend_on_the_order_of_images(pairs):
    mixed = records(1500, SPEECH)
    random.Random(3).shuffle(mixed)
    assert drawn_pairs(mixed) == pairs


def test_without_objects_pictures_are_matched_by_annotators_words():
    made = [replace(record, objects=None) for record in records(300, SPEECH)]
    pairs = drawn_pairs(made, 50)
    human = {record.id: " ".join(record.human) for record in made}
    for pair in pairs:
        shared = [word for word in ("wave", "kitchen", "leash", "outside")
                  if word in human[pair.image_a] and word in human[pair.image_b]]  # fmt: skip
        assert shared


def test_nothing_is_matched_by_the_captioner_s_own_words():
    made = [replace(record, objects=None, human=()) for record in records(300, SPEECH)]
    with pytest.raises(NotApplicableError, match="annotators' captions or objects"):
        drawn_pairs(made)


def test_other_groups_than_two_are_refused_with_a_choice():
    with pytest.raises(UsageError, match="choose two, such as --groups male,female"):
        drawn_pairs(records(300, SPEECH), groups=("male", "male"))
    with pytest.raises(UsageError, match="--groups"):
        drawn_pairs(records(300, SPEECH), groups=("male", "feemale"))


def test_a_file_of_pairs_is_read_as_it_was_written(pairs, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_bytes(write_pairs(pairs))
    assert read_pairs(path) == pairs


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda a, b: [a, replace(b, pair=a.pair)], "is there twice"),
        (lambda a, b: [a, replace(b, captioner="other")], "one file for each captioner"),
        (lambda a, b: [replace(a, group_a=a.group_b), b], "both pictures are of"),
        (lambda a, b: [replace(a, caption_a=" "), b], "'caption_a' is empty"),
    ],
)
def test_a_file_that_is_no_study_is_refused_with_its_row(change, fault, pairs, tmp_path):
    path: Path = tmp_path / "pairs.csv"
    path.write_bytes(write_pairs(change(*pairs[:2])))
    with pytest.raises(DataError, match=fault) as refused:
        read_pairs(path)
    assert f"{path}, row " in str(refused.value) or f"{path}, line " in str(refused.value)


def made_up(pairs: list[CaptionPair], women: float, men: float, raters: int = 3) -> dict:
    """Answers of raters who choose the woman's caption so often, the man's so often."""
    generator = random.Random(0)
    ballots = {}
    for pair in pairs:
        answers = []
        for _ in range(raters):
            chance = generator.random()
            group = "female" if chance < women else "male" if chance < women + men else ""
            answers.append("alike" if not group else "A" if pair.group_a == group else "B")
        ballots[pair.pair] = answers
    return ballots


def test_answers_are_counted_for_the_group_whatever_stands_first(pairs):
    answers = pair_answers(pairs, made_up(pairs, 0.4, 0.1))
    assert answers.groups == ("female", "male")
    assert answers.treated_differently.value == pytest.approx(0.5, abs=0.06)
    assert answers.of_group(0).value == pytest.approx(0.4, abs=0.06)
    assert answers.of_group(1).value == pytest.approx(0.1, abs=0.05)
    assert answers.leaning.high < 0
    assert answers.by_place.low < 0 < answers.by_place.high


def test_a_rater_who_always_chooses_the_first_shows_in_the_place_alone(pairs):
    answers = pair_answers(pairs, {pair.pair: ["A"] for pair in pairs})
    assert answers.by_place.value == 1
    assert answers.leaning.value == 0


def test_cannot_tell_is_no_answer(pairs):
    ballots = {pairs[0].pair: ["A", "Unsure", "alike"], pairs[1].pair: ["Unsure"]}
    answers = pair_answers(pairs, ballots)
    assert answers.pairs == [pairs[0]]
    assert answers.treated_differently.value == 0.5
    assert pair_answers(pairs, {}) is None


def test_raters_who_see_the_concepts_correlate_with_them(pairs):
    ballots = {pair.pair: ["A" if pair.concepts else "alike"] for pair in pairs}
    correlation = pair_answers(pairs, ballots).with_concepts
    assert correlation.ci_low > 0.5
    blind = pair_answers(pairs, made_up(pairs, 0.3, 0.3)).with_concepts
    assert blind.ci_low < 0 < blind.ci_high
