"""Words that a captioner says of persons more often than annotators, by group."""

import random
from dataclasses import replace

import pytest

from bias_pipeline.corpus.corpus import Record
from bias_pipeline.report.added_words import FEWEST, added_words
from bias_pipeline.report.word_attribution import print_added
from bias_pipeline.run.presets import preset
from tests.corpora import GENDER, make_corpus
from tests.metrics.counting.test_descriptions import annotator, records, sometimes

TABLE = preset({"metric": "descriptions"}).build("metric").concepts
GRACE = sometimes("The person looks graceful.", 0.3, 0.02)


def added_by_captioner(made: list[Record]) -> list[tuple[str, str]]:
    return [(word.group, word.word) for word in added_words(make_corpus(made), GENDER, TABLE)]


def test_a_word_that_the_captioner_adds_for_one_group_comes_first_with_both_shares():
    words = added_words(make_corpus(records(1000, GRACE)), GENDER, TABLE)
    first = words[0]
    assert (first.group, first.word) == ("female", "graceful")
    assert first.model == pytest.approx(0.3, abs=0.05)
    assert first.human == 0
    assert first.excess == pytest.approx(first.model)
    assert 0 < first.half < 0.06


def test_words_that_annotators_say_as_often_are_not_listed():
    assert {word for _, word in added_by_captioner(records(1000, GRACE))} == {"graceful"}


def test_words_that_describe_no_person_are_not_added():
    graceful = sometimes("There is a graceful tree.", 0.3, 0.3)
    assert added_by_captioner(records(400, graceful)) == []


def test_what_the_captioner_leaves_out_is_not_listed():
    made = [replace(r, model="a person outside") for r in records(400, GRACE)]
    assert added_by_captioner(made) == []


def test_images_without_annotators_or_group_do_not_count():
    made = records(400, GRACE)
    bare = [replace(r, human=()) for r in made[: len(made) // 2]]
    whole = added_words(make_corpus(made[len(made) // 2 :]), GENDER, TABLE)
    mixed = added_words(make_corpus([*bare, *made[len(made) // 2 :]]), GENDER, TABLE)
    assert mixed == whole


def test_a_rare_word_is_not_listed():
    generator = random.Random(0)
    made = [
        Record(
            str(i),
            "a graceful woman" if i < FEWEST - 1 else "a woman",
            (annotator("f", [], generator),),
            {"gender": "f"},
            frozenset(),
        )
        for i in range(200)
    ]
    assert added_by_captioner(made) == []


def test_the_words_are_printed_by_group(capsys):
    words = added_words(make_corpus(records(1000, GRACE)), GENDER, TABLE)
    print_added(words, "mine")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Said of female by mine more often than by annotators, per cent"
    assert lines[1].split() == ["word", "concept", "mine", "annotators", "more"]
    assert lines[3].split()[:2] == ["graceful", "graceful"]
