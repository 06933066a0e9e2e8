from __future__ import annotations

import random

import pytest

from bias_pipeline.corpus import Record, canonical_id
from bias_pipeline.errors import DataError
from tests.corpora import make_corpus


def records(n: int = 30) -> list[Record]:
    return [
        Record(str(i * 7), f"caption {i}", (f"human {i}", "other"), {"gender": "mf"[i % 2]})
        for i in range(n)
    ]


def test_input_order_never_matters() -> None:
    shuffled = records()
    random.Random(1).shuffle(shuffled)
    assert make_corpus(shuffled).digest == make_corpus(records()).digest


def test_ids_are_sorted_by_value() -> None:
    corpus = make_corpus([Record("10", "b"), Record("9", "a")])
    assert corpus.ids == ("9", "10")


def test_a_changed_caption_changes_the_digest() -> None:
    changed = records()
    changed[3] = Record(changed[3].id, "another", changed[3].human, changed[3].labels)
    assert make_corpus(changed).digest != make_corpus(records()).digest


def test_a_changed_label_changes_the_digest() -> None:
    changed = records()
    changed[3] = Record(changed[3].id, changed[3].model, changed[3].human, {"gender": "m"})
    assert make_corpus(changed).digest != make_corpus(records()).digest


def test_indexing_gives_back_the_record() -> None:
    record = make_corpus(records())[2]
    assert (record.model, record.human) == ("caption 2", ("human 2", "other"))


def test_strata_are_counted_not_dropped() -> None:
    corpus = make_corpus([*records(), Record("x", "a", (), {"gender": "unsure"})])
    assert corpus.groupings["gender"].strata == {"unsure": 1}


def test_e3_equal_duplicates_collapse_with_a_note() -> None:
    corpus = make_corpus([*records(), records()[0]])
    assert "1 repeated" in corpus.notes[0]


def test_e3_different_duplicates_are_refused() -> None:
    with pytest.raises(DataError, match="image id 0 stands twice"):
        make_corpus([*records(), Record("0", "another")])


def test_e3_leading_zeros_do_not_make_another_image() -> None:
    assert canonical_id("000042") == canonical_id(42)


def test_e3_text_ids_keep_their_zeros() -> None:
    assert canonical_id("a042") == "a042"


@pytest.mark.parametrize("raw", ["", None, 1.5, True])
def test_e3_odd_ids_are_refused(raw: object) -> None:
    with pytest.raises(DataError, match="image id"):
        canonical_id(raw)


def test_e4_unknown_label_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(DataError, match=r"label 'fe'.*'f', 'm', 'unsure'"):
        make_corpus([Record("1", "a", (), {"gender": "fe"})])


def test_no_images_is_refused() -> None:
    with pytest.raises(DataError, match="no images"):
        make_corpus([])


def test_e8_an_id_of_thousands_of_digits_is_sorted_by_value() -> None:
    long = "9" * 5000
    assert make_corpus([Record(long, "b"), Record("10", "a")]).ids == ("10", long)


def test_e3_zero_stays_zero() -> None:
    assert canonical_id("000") == "0"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("ab " * 4000, 3333),
        ("x" * 20_000, 1),
        ("x" * 9_999 + " yy", 1),
        ("x" * 9_998 + " y", 2),
        ("a" * 10_000, 1),
        (" " * 20_000, 0),
        ("x" * 9_998 + " y z", 2),
        ("x" * 9_999 + " z", 1),
        (" " + "x" * 20_000, 1),
    ],
)
def test_e8_a_long_caption_is_cut_after_a_whole_word(text: str, kept: int) -> None:
    corpus = make_corpus([Record("1", text, (text, "a dog")), Record("2", "a cat")])
    assert [len(corpus.model.words(0)), len(corpus.human.words(0))] == [kept, kept]
    assert len(corpus.model.text(0)) <= 10_000
    told = [note for note in corpus.notes if "were cut" in note]
    assert told == (
        ["2 captions of more than 10,000 characters were cut"] if len(text) > 10_000 else []
    )
