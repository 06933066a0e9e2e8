from collections.abc import Sequence

import numpy as np
import pytest

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.text.transform import Entries, _first_of, edit_words

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
    ("captions", "removed", "expected"),
    [
        (["a dog runs", "the big dog"], [], "a big dog runs"),  # before what follows it there
        (["a dog runs", "dog big"], [], "a dog big runs"),  # after what precedes it there
        (["a dog runs", "the big cat"], [], "a dog runs big"),  # at the end
        (["", "the big cat"], [], "big"),
        # a neighbour of the next caption is no neighbour
        (["x dog", "big", "dog"], [], "x dog big"),
        (["a dog runs", "big dog"], [(0, "dog")], "a big runs"),  # a removed word marks the place
    ],
)
def test_an_added_word_goes_where_another_caption_has_it(captions, removed, expected):
    written = texts(captions, [0] * len(captions), removed=removed, added=[(0, "big")])
    assert written == [expected, *captions[1:]]


def test_a_word_is_found_in_captions_of_the_same_image_alone():
    written = ["x y", "y big", "x big y"]
    assert texts(written, [0, 0, 1], added=[(0, "big")]) == ["x y big", "y big", "x big y"]


def test_without_edits_captions_are_as_they_were():
    captions = Captions.from_texts(["a dog", "", "the dog"], [0, 1, 1])
    nothing = Entries(np.empty(0, np.int64), np.empty(0, np.int64))
    assert edit_words(captions, nothing, nothing).digest == captions.digest


def test_places_of_added_words_are_those_of_first_occurrences():
    rng = np.random.default_rng(0)
    for _ in range(100):
        keys, sought = rng.integers(0, 50, rng.integers(1, 200)), rng.integers(0, 60, 40)
        first = [*map({key: i for i, key in reversed([*enumerate(keys)])}.get, sought)]
        assert _first_of(keys, sought).tolist() == [-1 if i is None else i for i in first]
    assert _first_of(keys, sought[:0]).tolist() == []
