import random
from dataclasses import replace

import numpy as np
import pytest

from bias_pipeline.corpus.attribute import LabelMap
from bias_pipeline.corpus.captions import is_blank
from bias_pipeline.corpus.corpus import Record
from bias_pipeline.corpus.image_ids import canonical_id
from bias_pipeline.errors import DataError, UsageError
from tests.corpora import make_corpus


def records(n: int = 30) -> list[Record]:
    return [
        Record(str(i * 7), f"caption {i}", (f"human {i}", "other"), {"gender": "mf"[i % 2]})
        for i in range(n)
    ]


def test_input_order_never_matters():
    shuffled = records()
    random.Random(1).shuffle(shuffled)
    assert make_corpus(shuffled).digest == make_corpus(records()).digest


def test_ids_are_sorted_by_value():
    corpus = make_corpus([Record("10", "b"), Record("9", "a")])
    assert corpus.ids == ("9", "10")


def test_a_changed_caption_changes_the_digest():
    changed = records()
    changed[3] = Record(changed[3].id, "another", changed[3].human, changed[3].labels)
    assert make_corpus(changed).digest != make_corpus(records()).digest


def test_a_changed_label_changes_the_digest():
    changed = records()
    changed[3] = Record(changed[3].id, changed[3].model, changed[3].human, {"gender": "m"})
    assert make_corpus(changed).digest != make_corpus(records()).digest


def test_indexing_gives_back_the_record():
    record = make_corpus(records())[2]
    assert (record.model, record.human) == ("caption 2", ("human 2", "other"))


def test_strata_are_counted_not_dropped():
    corpus = make_corpus([*records(), Record("x", "a", (), {"gender": "unsure"})])
    assert corpus.groupings["gender"].strata == {"unsure": 1}


def test_e3_equal_duplicates_collapse_with_a_note():
    corpus = make_corpus([*records(), records()[0]])
    assert "1 repeated" in corpus.notes[0]


def test_e3_different_duplicates_are_refused():
    with pytest.raises(DataError, match="image id 0 occurs twice"):
        make_corpus([*records(), Record("0", "another")])


def test_e3_leading_zeros_do_not_make_another_image():
    assert canonical_id("000042") == canonical_id(42)


def test_e3_text_ids_keep_their_zeros():
    assert canonical_id("a042") == "a042"


@pytest.mark.parametrize("raw", ["", None, 1.5, True])
def test_e3_odd_ids_are_refused(raw):
    with pytest.raises(DataError, match="image id"):
        canonical_id(raw)


def test_e4_unknown_label_is_refused_with_what_is_allowed():
    with pytest.raises(DataError, match=r"label 'fe'.*'f', 'm', 'unsure'"):
        make_corpus([Record("1", "a", (), {"gender": "fe"})])


def test_no_images_is_refused():
    with pytest.raises(DataError, match="no images"):
        make_corpus([])


def test_e8_an_id_of_thousands_of_digits_is_sorted_by_value():
    long = "9" * 5000
    assert make_corpus([Record(long, "b"), Record("10", "a")]).ids == ("10", long)


def test_e3_zero_stays_zero():
    assert canonical_id("000") == "0"


@pytest.mark.parametrize(
    ("text", "retained"),
    [
        ("ab " * 4000, 3333),
        ("x" * 20_000, 1),
        ("x" * 9_999 + " yy", 1),
        ("x" * 9_998 + " y", 2),
        ("a" * 10_000, 1),
        ("x" * 9_998 + " y z", 2),
        ("x" * 9_999 + " z", 1),
        (" " + "x" * 20_000, 1),
    ],
)
def test_e8_a_long_caption_is_cut_after_a_whole_word(text, retained):
    corpus = make_corpus([Record("1", text, (text, "a dog")), Record("2", "a cat")])
    assert [len(corpus.model.words(0)), len(corpus.human.words(0))] == [retained, retained]
    assert len(corpus.model.text(0)) <= 10_000
    lines = [note for note in corpus.notes if "were cut" in note]
    assert lines == (
        ["2 captions of more than 10,000 characters were cut"] if len(text) > 10_000 else []
    )


BLANKS = [
    "",
    "  ",
    "\t\n",
    ".",
    " ?! ",
    "<unk>",
    "nan",
    "NaN",
    "None",
    "None.",
    "null",
    "N/A",
    "🙂",
]


@pytest.mark.parametrize("text", BLANKS)
def test_e6_what_says_nothing_is_blank(text):
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", "7", "犬", "man", "none of them", "<unk> dog", "nan bread"])
def test_e6_a_word_is_a_caption(text):
    assert not is_blank(text)


def spoiled(n: int, text: str = "NaN") -> list[Record]:
    """Thirty images, the first n with a blank model caption."""
    sound = records()
    return [replace(r, model=text) if i < n else r for i, r in enumerate(sound)]


def test_e6_a_blank_caption_is_an_absent_one():
    corpus = make_corpus(spoiled(3))
    assert (len(corpus.model), corpus.blanks["model"], corpus[0].model) == (27, 3, None)


def test_e6_a_blank_human_caption_is_absent_too():
    record_list = records()
    record_list[4] = replace(record_list[4], human=("null", "other"))
    corpus = make_corpus(record_list)
    assert (corpus[4].human, corpus.blanks["human"]) == (("other",), 1)


@pytest.mark.parametrize(("n", "message"), [(1, "1 of 30"), (2, "warning: 2 of 30")])
def test_e6_blanks_are_told_and_above_a_share_warned_of(n, message):
    assert make_corpus(spoiled(n)).notes[0].startswith(message)


def test_e6_mostly_blank_captions_are_refused():
    with pytest.raises(DataError, match=r"16 of 30 model captions \(53.3%\) are blank"):
        make_corpus(spoiled(16))


def test_e6_the_share_of_blanks_is_a_parameter():
    assert make_corpus(spoiled(16), blank_limit=0.6).blanks["model"] == 16


def test_e6_a_blank_is_not_taken_for_an_image_without_a_caption():
    absent = [replace(r, model=None) if i < 3 else r for i, r in enumerate(records())]
    assert make_corpus(spoiled(3)).digest != make_corpus(absent).digest


def test_whose_group_nobody_could_tell_is_known_apart_from_no_label():
    corpus = make_corpus([*records(), Record("x", "a", (), {"gender": "unsure"}), Record("y", "a")])
    grouping = corpus.groupings["gender"]
    assert [corpus.ids[row] for row in grouping.unsure.nonzero()[0]] == ["x"]
    assert grouping.labelled.sum() == len(records())


def test_a_label_that_nobody_could_tell_changes_the_digest():
    unsure, absent = (
        make_corpus([*records(), Record("x", "a", (), labels)])
        for labels in ({"gender": "unsure"}, {})
    )
    assert unsure.digest != absent.digest


def test_who_could_not_be_told_stays_so_in_a_part_of_the_corpus():
    corpus = make_corpus([*records(), Record("x", "a", (), {"gender": "unsure"})])
    assert corpus.take(np.array([0, len(corpus) - 1])).groupings["gender"].unsure.tolist() == [
        False,
        True,
    ]


def test_a_label_that_nobody_could_tell_is_one_of_no_group():
    with pytest.raises(UsageError, match="unsure has 'dunno', which is not in strata"):
        LabelMap("sex", {"m": "male"}, ("unsure",), ("dunno",))
