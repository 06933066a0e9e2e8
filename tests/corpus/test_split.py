import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.split import seeds_of
from bias_pipeline.corpus.split_rules import HoldOut
from bias_pipeline.errors import DataError, UsageError
from tests.corpora import make_corpus


def corpus(men: int = 120, women: int = 60, skip: frozenset[int] = frozenset()) -> Corpus:
    labels = [(str(i), "m" if i < men else "f") for i in range(men + women) if i not in skip]
    return make_corpus([Record(i, f"c {i}", (), {"gender": label}) for i, label in labels])


def ids(source: Corpus, rows: np.ndarray) -> set[str]:
    return {source.ids[row] for row in rows}


@pytest.mark.parametrize("order", ["hashed", "file"])
def test_balanced_sizes_are_those_of_the_published_protocol(order):
    source = corpus()
    (split,) = HoldOut(order=order).draw(source, "gender", [0])
    labels = source.groupings["gender"].codes
    train, test = split.select(source.model.image_rows, labels)
    sizes = (np.bincount(labels[train]).tolist(), np.bincount(labels[test]).tolist())
    assert sizes == ([54, 54], [6, 6])


def test_natural_balance_tests_the_same_share_of_each_group():
    source = corpus()
    (split,) = HoldOut(test_share=0.2, balanced=False).draw(source, "gender", [0])
    assert np.bincount(source.groupings["gender"].codes[split.test]).tolist() == [24, 12]


@pytest.mark.parametrize("share", [0.0001, 0.9999])
def test_a_share_that_rounds_to_no_image_is_refused(share):
    with pytest.raises(UsageError, match=r"images of group (male|female)"):
        HoldOut(test_share=share).draw(corpus(), "gender", [0])


def test_validation_images_are_kept_apart():
    rule = HoldOut(test_share=0.2, validation_share=0.1)
    (split,) = rule.draw(corpus(), "gender", [0])
    assert len(split.validation) == 18


def test_seeds_draw_different_images():
    first, second = HoldOut().draw(corpus(), "gender", [0, 12])
    assert set(first.test) != set(second.test)


def test_input_order_never_matters():
    labelled = [replace(r, labels={"gender": r.labels["gender"][0]}) for r in corpus()]
    random.Random(3).shuffle(labelled)
    one, two = (HoldOut().draw(c, "gender", [5])[0] for c in (corpus(), make_corpus(labelled)))
    assert one.digest == two.digest


@given(st.frozensets(st.integers(0, 179), max_size=20), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_a_captioner_that_lacks_images_shares_the_split(skip, seed):
    whole, part = corpus(), corpus(skip=skip)
    (one,) = HoldOut().draw(whole, "gender", [seed])
    (two,) = HoldOut().draw(part, "gender", [seed])
    moved = (ids(whole, one.test) ^ ids(part, two.test)) - {str(i) for i in skip}
    assert len(moved) <= len(skip) + 2


def test_balance_is_restored_in_a_smaller_table():
    source = corpus()
    (split,) = HoldOut().draw(source, "gender", [0])
    images = np.arange(0, 150)
    labels = source.groupings["gender"].codes[images]
    train, _ = split.select(images, labels)
    assert len(set(np.bincount(labels[train]))) == 1


def test_file_order_follows_the_file():
    records = [Record(str(i), f"c {i}", (), {"gender": "mf"[i % 2]}) for i in range(60)]
    (one,) = HoldOut(order="file").draw(make_corpus(records), "gender", [0])
    (two,) = HoldOut(order="file").draw(make_corpus(records[::-1]), "gender", [0])
    assert set(one.test) != set(two.test)


@pytest.mark.parametrize("women", [3, 0])
def test_a_tiny_group_is_refused_with_its_size(women):
    with pytest.raises(DataError, match=f"female {women}"):
        HoldOut().draw(corpus(women=women), "gender", [0])


def test_of_several_groups_those_that_are_too_small_are_named():
    source = corpus()
    codes = np.where(np.arange(len(source)) < 4, 2, source.groupings["gender"].codes)
    grouping = replace(source.groupings["gender"], names=("male", "female", "other"), codes=codes)
    with pytest.raises(DataError, match=r"leave out other .* found male 116, female 60, other 4"):
        HoldOut().draw(replace(source, groupings={"gender": grouping}), "gender", [0])


def test_the_published_seeds_come_first():
    assert seeds_of(12) == (0, 12, 456, 789, 100, 200, 300, 400, 500, 1234, 1235, 1236)


@pytest.mark.parametrize("seeds", [0, -1, [], [1, 1], [-1]])
def test_odd_seeds_are_refused(seeds):
    with pytest.raises(UsageError, match="seeds"):
        seeds_of(seeds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_share": 0}, "test_share"),
        ({"test_share": 0.9, "validation_share": 0.1}, "test_share"),
        ({"order": "file", "validation_share": 0.1}, "order=file draws no such part"),
        ({"order": "hash"}, "order='hash' must be one of hashed, file"),
    ],
)
def test_settings_that_leave_nothing_or_are_unknown_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        HoldOut(**options)


def test_all_images_may_be_tested_where_nothing_is_learnt():
    source = corpus()
    (split,) = HoldOut(test_share=1.0, balanced=False).draw(source, "gender", [0])
    assert (len(split.test), len(split.train)) == (len(source), 0)


def test_a_rule_that_tests_all_images_says_that_nothing_can_be_learnt():
    HoldOut(test_share=0.9).check_trains()
    with pytest.raises(UsageError, match="leaves no images to train on"):
        HoldOut(test_share=1.0).check_trains()
