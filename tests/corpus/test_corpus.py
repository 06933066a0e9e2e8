import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.corpus.attribute import LabelMap
from bias_pipeline.corpus.captions import Captions, is_blank, may_be_blank
from bias_pipeline.corpus.corpus import SIDES, Record
from bias_pipeline.corpus.image_ids import canonical_id
from bias_pipeline.errors import DataError, UsageError
from tests.corpora import make_corpus


def records(n: int = 30) -> list[Record]:
    return [
        Record(str(i * 7), f"caption {i}", (f"human {i}", "other"), {"gender": "mf"[i % 2]})
        for i in range(n)
    ]


UNSURE = Record("x", "a", (), {"gender": "unsure"})


@pytest.mark.parametrize("later", ["10", "9" * 5000], ids=["two digits", "thousands of digits"])
def test_ids_are_sorted_by_value(later):
    assert make_corpus([Record(later, "b"), Record("9", "a")]).ids == ("9", later)


def test_input_order_never_matters():
    shuffled = records()
    random.Random(1).shuffle(shuffled)
    assert make_corpus(shuffled).digest == make_corpus(records()).digest


@pytest.mark.parametrize("change", [{"model": "another"}, {"labels": {"gender": "m"}}])
def test_a_changed_caption_or_label_changes_the_digest(change):
    changed = records()
    changed[3] = replace(changed[3], **change)
    assert make_corpus(changed).digest != make_corpus(records()).digest


def test_indexing_gives_back_the_record():
    record = make_corpus(records())[2]
    assert (record.model, record.human) == ("caption 2", ("human 2", "other"))


def test_equal_duplicates_collapse_with_a_note():
    corpus = make_corpus([*records(), records()[0]])
    assert "1 repeated" in corpus.notes[0]


SPOILED = [Record(str(i), "NaN" if i < 16 else "a dog", ("a cat",)) for i in range(30)]


@pytest.mark.parametrize(
    ("record_list", "message"),
    [
        ([Record("0", "a"), Record("0", "another")], "image id 0 occurs twice"),
        (
            [Record("0", labels={"gender": g}) for g in "mf"],
            r"image id 0 .*\(labels {'gender': 'm'} and {'gender': 'f'}\)",
        ),
        ([Record("1", "a", (), {"gender": "fe"})], r"label 'fe'.*'f', 'm', 'unsure'"),
        ([], "no images"),
        (SPOILED, r"16 of 30 model captions \(53.3%\) are blank"),
    ],
    ids=["two captions", "two labels", "an unknown label", "no images", "mostly blank"],
)
def test_a_corpus_that_does_not_fit_is_refused(record_list, message):
    with pytest.raises(DataError, match=message):
        make_corpus(record_list)


@pytest.mark.parametrize(
    ("raw", "expected"), [("000042", "42"), (42, "42"), ("a042", "a042"), ("000", "0")]
)
def test_leading_zeros_do_not_make_another_image(raw, expected):
    assert canonical_id(raw) == expected


def test_an_accent_that_is_written_as_a_sign_of_its_own_makes_no_other_image():
    assert canonical_id("cafe\u0301") == canonical_id("caf\u00e9")


def test_an_id_without_mojibake_is_the_same():
    assert canonical_id("caf\u00c3\u00a9.jpg") == canonical_id("caf\u00e9.jpg")


@pytest.mark.parametrize("raw", ["", None, 1.5, True])
def test_odd_ids_are_refused(raw):
    with pytest.raises(DataError, match="image id"):
        canonical_id(raw)


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
def test_a_long_caption_is_cut_after_a_whole_word(text, retained):
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


WORDS = ["a", "7", "犬", "man", "none of them", "<unk> dog", "nan bread"]


@pytest.mark.parametrize(
    ("text", "blank"), [*((text, True) for text in BLANKS), *((text, False) for text in WORDS)]
)
def test_what_says_nothing_is_blank(text, blank):
    assert is_blank(text) == blank


@given(st.lists(st.text("na<>u ._ﬁß犬\0", max_size=14), min_size=1, max_size=9))
def test_every_blank_text_is_among_those_that_may_be_blank(texts):
    perhaps = may_be_blank(Captions.from_texts([*texts, *BLANKS]))
    assert all(perhaps[[is_blank(text) for text in (*texts, *BLANKS)]])


def test_blank_and_long_captions_of_unsorted_images_are_found():
    rows = [Record("9", ". ", ("a dog", "nan", "x " * 6_000)), Record("10", "a cat"), Record("8")]
    corpus = make_corpus(rows, blank_limit=1.0)
    assert [corpus.blank_counts[side].tolist() for side in SIDES] == [[0, 1, 0], [0, 1, 0]]
    assert (corpus.human.image_rows.tolist(), corpus[2].model) == ([1, 1], "a cat")
    assert [len(corpus.human.words(row)) for row in range(2)] == [2, 5_000]


def with_blank_captions(n: int) -> list[Record]:
    """Thirty images, the first n with a blank model caption."""
    return [replace(r, model="NaN") if i < n else r for i, r in enumerate(records())]


def test_a_blank_caption_is_an_absent_one():
    corpus = make_corpus(with_blank_captions(3))
    assert (len(corpus.model), corpus.blanks["model"], corpus[0].model) == (27, 3, None)


def test_a_blank_human_caption_is_absent_too():
    corpus = make_corpus([Record("1", "a dog", ("null", "other"))])
    assert (corpus[0].human, corpus.blanks["human"]) == (("other",), 1)


@pytest.mark.parametrize(("n", "message"), [(1, "1 of 30"), (2, "warning: 2 of 30")])
def test_blanks_are_told_and_above_a_share_warned_of(n, message):
    assert make_corpus(with_blank_captions(n)).notes[0].startswith(message)


def test_blanks_are_told_by_group():
    texts = {"m": ("a man", "a man"), "f": ("", "a woman"), "unsure": ("", "a dog")}
    rows = [
        Record(f"{label}{k}", text, ("a cat",), {"gender": label})
        for label, captions in texts.items()
        for k, text in enumerate(captions)
    ]
    assert "by images 0 of 2 (male), 1 of 2 (female):" in make_corpus(rows).notes[0]


def test_the_share_of_blanks_is_a_parameter():
    assert make_corpus(SPOILED, blank_limit=0.6).blanks["model"] == 16


def test_a_blank_is_not_taken_for_an_image_without_a_caption():
    absent = [replace(r, model=None) if i < 3 else r for i, r in enumerate(records())]
    assert make_corpus(with_blank_captions(3)).digest != make_corpus(absent).digest


def test_whose_group_nobody_could_tell_is_known_apart_from_no_label():
    corpus = make_corpus([*records(), UNSURE, Record("y", "a")])
    grouping = corpus.groupings["gender"]
    assert grouping.strata == {"unsure": 1}
    assert [corpus.ids[row] for row in grouping.unsure.nonzero()[0]] == ["x"]
    assert grouping.labelled.sum() == len(records())


def test_who_could_not_be_told_stays_so_in_a_part_of_the_corpus():
    corpus = make_corpus([*records(), UNSURE])
    part = corpus.take(np.array([0, len(corpus) - 1]))
    assert part.groupings["gender"].unsure.tolist() == [False, True]


def test_a_label_that_nobody_could_tell_changes_the_digest():
    absent = replace(UNSURE, labels={})
    assert make_corpus([*records(), UNSURE]).digest != make_corpus([*records(), absent]).digest


def test_a_label_that_nobody_could_tell_is_one_of_no_group():
    with pytest.raises(UsageError, match="unsure has 'dunno', which is not in strata"):
        LabelMap("sex", {"m": "male"}, ("unsure",), ("dunno",))


def test_no_objects_and_unknown_ones_are_different_corpora():
    first, *others = (replace(record, objects=frozenset({"dog"})) for record in records())
    known, unknown = (
        make_corpus([replace(first, objects=objects), *others]) for objects in (frozenset(), None)
    )
    assert known.digest != unknown.digest
