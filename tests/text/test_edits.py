from collections.abc import Sequence

import numpy as np
import pytest

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.text.transform import Entries, edit_words

Pairs = Sequence[tuple[int, str]]


def entries(captions: Captions, pairs: Pairs) -> Entries:
    rows = np.array([row for row, _ in pairs], np.int64)
    return Entries(rows, np.array([captions.types.index(word) for _, word in pairs], np.int64))


def texts(
    written: Sequence[str], images: Sequence[int], removed: Pairs = (), added: Pairs = ()
) -> list[str]:
    captions = Captions.from_texts(written, images)
    new = edit_words(captions, entries(captions, removed), entries(captions, added))
    return [new.text(row) for row in range(len(new))]


def test_all_occurrences_of_a_removed_word_go():
    assert texts(["a dog and a cat", "a"], [0, 1], removed=[(0, "a")]) == ["dog and cat", "a"]


@pytest.mark.parametrize(
    ("caption", "donor", "expected"),
    [
        ("a dog runs", "the big dog", "a big dog runs"),  # before what follows it there
        ("a dog runs", "dog big", "a dog big runs"),  # after what precedes it there
        ("a dog runs", "the big cat", "a dog runs big"),  # at the end
        ("", "the big cat", "big"),
    ],
)
def test_an_added_word_goes_where_another_caption_has_it(caption, donor, expected):
    assert texts([caption, donor], [0, 0], added=[(0, "big")]) == [expected, donor]


def test_a_neighbour_of_the_next_caption_is_no_neighbour():
    assert texts(["x dog", "big", "dog"], [0, 0, 0], added=[(0, "big")])[0] == "x dog big"


def test_a_word_is_found_in_captions_of_the_same_image_alone():
    written = ["x y", "y big", "x big y"]
    assert texts(written, [0, 0, 1], added=[(0, "big")]) == ["x y big", "y big", "x big y"]


def test_a_removed_word_still_marks_the_place_of_an_added_one():
    written = ["a dog runs", "big dog"]
    assert texts(written, [0, 0], removed=[(0, "dog")], added=[(0, "big")])[0] == "a big runs"


def test_without_edits_captions_are_as_they_were():
    captions = Captions.from_texts(["a dog", "", "the dog"], [0, 1, 1])
    nothing = Entries(np.empty(0, np.int64), np.empty(0, np.int64))
    assert edit_words(captions, nothing, nothing).digest == captions.digest
