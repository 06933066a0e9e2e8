from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.corpus.split import Split, every_image_tested, seeds_in
from bias_pipeline.corpus.split_rules import CrossFit
from bias_pipeline.errors import NotApplicableError, UsageError
from tests.corpora import make_corpus

SEEDS = (0, 12)


def corpus(men: int = 60, women: int = 30) -> Corpus:
    labels = "m" * men + "f" * women
    return make_corpus(
        [
            Record(str(i), f"a caption {i}", (f"words {i}", f"other {i}"), {"gender": label})
            for i, label in enumerate(labels)
        ]
    )


def images_tested(splits: Sequence[Split], seed: int) -> list[int]:
    return sorted(row for split in splits if split.seed == seed for row in split.test.tolist())


@given(folds=st.integers(2, 7), men=st.integers(20, 80), women=st.integers(20, 80))
@settings(deadline=None, max_examples=25)
def test_every_image_is_tested_once_in_each_repetition(folds, men, women):
    source = corpus(men, women)
    splits = CrossFit(folds=folds).draw(source, "gender", SEEDS)
    assert [images_tested(splits, seed) for seed in SEEDS] == [list(range(len(source)))] * 2


def test_nothing_is_tested_by_an_attacker_that_has_seen_it():
    splits = CrossFit().draw(corpus(), "gender", SEEDS)
    assert not any(set(split.train.tolist()) & set(split.test.tolist()) for split in splits)


def test_training_is_balanced_and_what_is_tested_is_not_cut():
    source = corpus()
    labels = source.groupings["gender"].codes
    splits = CrossFit(folds=3).draw(source, "gender", [0])
    parts = [split.select(source.model.image_rows, labels) for split in splits]
    assert all(len(set(np.bincount(labels[train]).tolist())) == 1 for train, _ in parts)
    assert sum(len(test) for _, test in parts) == len(source)


def test_the_natural_balance_may_stay():
    source = corpus()
    labels = source.groupings["gender"].codes
    splits = CrossFit(folds=3, balanced=False).draw(source, "gender", [0])
    sizes = [len(split.select(source.model.image_rows, labels)[0]) for split in splits]
    assert sum(sizes) == 2 * len(source)


def test_folds_leave_different_images_out_of_the_larger_group():
    source = corpus(men=80, women=20)
    labels = source.groupings["gender"].codes
    splits = CrossFit(folds=4).draw(source, "gender", [0])
    trained = [set(split.select(source.model.image_rows, labels)[0].tolist()) for split in splits]
    assert len(set.union(*trained)) > 1.5 * max(map(len, trained))


def test_an_image_has_its_fold_whatever_others_there_are():
    whole = corpus()
    part = whole.take(np.arange(5, 85))
    fold_of = {
        whole.ids[row]: fold
        for fold, split in enumerate(CrossFit().draw(whole, "gender", [0]))
        for row in split.test.tolist()
    }
    for fold, split in enumerate(CrossFit().draw(part, "gender", [0])):
        assert {fold_of[part.ids[row]] for row in split.test.tolist()} == {fold}


@pytest.mark.parametrize(
    ("options", "n_splits", "every_image"), [({"tested": 1}, 2, False), ({"folds": 4}, 8, True)]
)
def test_folds_of_a_seed_are_one_repetition(options, n_splits, every_image):
    splits = CrossFit(**options).draw(corpus(), "gender", SEEDS)
    drawn = (len(splits), seeds_in(splits), every_image_tested(splits))
    assert drawn == (n_splits, SEEDS, every_image)


@pytest.mark.parametrize("options", [{"folds": 1}, {"folds": 3, "tested": 4}, {"tested": 0}])
def test_impossible_numbers_of_folds_are_refused(options):
    with pytest.raises(UsageError, match=f"{[*options][-1]}=.* must be at"):
        CrossFit(**options)


def test_a_group_of_too_few_images_is_refused():
    with pytest.raises(NotApplicableError, match="female 3"):
        CrossFit().draw(corpus(women=3), "gender", [0])


def test_copies_of_an_image_are_in_one_fold():
    twins = [
        Record(str(i), "x", (f"one {i // 2}", f"two {i // 2}"), {"gender": "mf"[i % 2]})
        for i in range(80)
    ]
    splits = CrossFit().draw(make_corpus(twins), "gender", [0])
    assert all({row ^ 1 for row in s.test.tolist()} <= set(s.test) for s in splits)
