"""``limit``: a first look at the same images whoever describes them, never taken for the whole."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.split_rules import limit_images
from bias_pipeline.errors import UsageError
from tests.corpora import make_corpus


def corpus(ids: Sequence[int], caption: str = "a man") -> Corpus:
    """Every third image is of no group; every fifth caption is blank."""
    return make_corpus(
        [
            Record(str(i), "" if i % 5 == 0 else f"{caption} {i}", ("he", ""), {"gender": label})
            for i in ids
            for label in (("m", "f", "unsure")[i % 3],)
        ]
    )


WHOLE = corpus(range(300))


@given(st.integers(1, 199), st.integers(1, 199))
def test_a_lower_limit_takes_from_a_higher_one(one, other):
    few, many = (set(limit_images(WHOLE, n).ids) for n in sorted((one, other)))
    assert few <= many


@given(st.permutations(range(60)))
@settings(max_examples=25)
def test_the_order_of_the_file_does_not_matter(order):
    assert limit_images(corpus(order), 20).digest == limit_images(corpus(range(60)), 20).digest


def test_all_captioners_are_seen_on_the_same_images():
    assert limit_images(WHOLE, 50).ids == limit_images(corpus(range(300), "a dog"), 50).ids


def test_images_of_no_group_are_left_out():
    chosen = limit_images(WHOLE, 50)
    assert (len(chosen), bool((chosen.groupings["gender"].codes >= 0).all())) == (50, True)
    assert chosen.groupings["gender"].strata == {}


def test_what_is_chosen_is_as_it_was_blank_captions_too():
    chosen = limit_images(WHOLE, 50)
    by_id = {record.id: record for record in WHOLE}
    blank = sum(int(name) % 5 == 0 for name in chosen.ids)
    assert list(chosen) == [by_id[record.id] for record in chosen]
    assert chosen.blanks == {"model": blank, "human": 50}


def test_a_limit_is_another_data_set():
    chosen = limit_images(WHOLE, 50)
    assert chosen.dataset == "toy (limit 50)"
    assert "50 of the 200 labelled images" in chosen.notes[-1]


@pytest.mark.parametrize("limit", [None, 200, 1000])
def test_no_limit_is_the_whole(limit):
    assert limit_images(WHOLE, limit) is WHOLE


def test_the_choice_does_not_follow_the_split():
    """As many of the chosen would be tested as of the others."""
    from bias_pipeline.io.hashing import hash_ids, random_words

    keys = hash_ids(map(str, range(20_000)))
    chosen = np.argsort(random_words("limit", 0, keys))[:10_000]
    tested = np.argsort(random_words("split", 0, keys))[:2_000]
    assert len(np.intersect1d(chosen, tested)) == pytest.approx(1_000, abs=5 * np.sqrt(450))


def test_images_without_a_caption_are_not_drawn():
    texts = {i: f"a man {i}" if i % 10 == 0 else None for i in range(300)}
    sparse = make_corpus(
        [
            Record(str(i), text, ("he",), {"gender": ("m", "f", "unsure")[i % 3]})
            for i, text in texts.items()
        ]
    )
    chosen = limit_images(sparse, 15)
    assert (len(chosen), len(chosen.model)) == (15, 15)
    assert "15 of the 20 labelled images with a caption, chosen" in chosen.notes[-1]
    assert limit_images(sparse, 20) is sparse
    assert len(limit_images(replace(sparse, model=sparse.model.take(np.array([], int))), 15)) == 15


IN_SETS = make_corpus(
    [
        Record(f"{i}", "a man", labels={"gender": "mf"[i % 2]}, set_id=f"set {i // 4}")
        for i in range(120)
    ]
    + [Record(f"alone {i}", "a man", labels={"gender": "m"}) for i in range(30)]
)


@given(st.integers(8, 140), st.integers(8, 140))
def test_sets_are_drawn_whole_and_a_lower_limit_takes_from_a_higher_one(one, other):
    few, many = (limit_images(IN_SETS, n) for n in sorted((one, other)))
    assert set(few.ids) <= set(many.ids)
    for chosen, limit in ((few, min(one, other)), (many, max(one, other))):
        sizes = Counter(name for name in chosen.set_ids or () if name)
        assert set(sizes.values()) <= {4}
        assert limit - 4 < len(chosen) <= limit


def test_a_limit_below_the_size_of_the_first_set_is_refused():
    in_two = replace(IN_SETS, set_ids=("one", "two") * 75)
    with pytest.raises(UsageError, match="has 75 pictures; set limit=75 or more"):
        limit_images(in_two, 74)
