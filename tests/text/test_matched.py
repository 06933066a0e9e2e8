"""People at equal style: what is changed, what never is, and what does not matter."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.text.matched import CHANGES, EXAMPLES, MatchedAlignment, comparable
from tests.corpora import make_corpus

WORDS = ("dog", "cat", "bus", "tree", "car", "hat", "man", "woman")
N_IMAGES = 60


def corpus_with(human: list[tuple[str, ...]], model: str = "a dog", labels: str = "mf") -> Corpus:
    """A corpus of one caption by the model and several by people for each image."""
    n_labels = len(labels)
    return make_corpus(
        [
            Record(str(i), model, texts, {"gender": labels[i % n_labels]})
            for i, texts in enumerate(human)
        ]
    )


def records_of(seed: int, n_people: int = 3) -> list[Record]:
    draws = np.random.default_rng(seed)

    def caption(n_words: int) -> str:
        return " ".join(draws.choice(WORDS, n_words, replace=False).tolist())

    records = []
    for i in range(N_IMAGES):
        model = caption(3)
        people = tuple(caption(int(draws.integers(1, 5))) for _ in range(n_people))
        records.append(Record(str(i), model, people, {"gender": "mf"[i % 2]}))
    return records


def random_corpus(seed: int, n_people: int = 3) -> Corpus:
    return make_corpus(records_of(seed, n_people))


def shares(captions: Captions, position: int = 0) -> dict[str, int]:
    one = captions.position(position)
    word_sets = [set(one.words(row)) for row in range(len(one))]
    return {word: sum(word in words for words in word_sets) for word in WORDS}


def reach(corpus: Corpus) -> list[float]:
    return [float(str(line["reach"])) for line in corpus.tables[CHANGES]]


seeds = st.integers(0, 10_000)


@given(seeds)
@settings(deadline=None, max_examples=30)
def test_people_come_to_say_each_word_as_often_as_the_captioner(seed):
    corpus = random_corpus(seed)
    matched = MatchedAlignment()(corpus)
    wanted = shares(corpus.model)
    for position in range(3):
        written_shares = shares(matched.human, position)
        assert all(written_shares[word] <= wanted[word] for word in WORDS)


@given(seeds)
@settings(deadline=None, max_examples=30)
def test_whoever_speaks_as_people_do_changes_nothing(seed):
    corpus = random_corpus(seed, n_people=1)
    alike = corpus.rewrite({"model": corpus.human.position(0)})
    assert MatchedAlignment()(alike).human.digest == alike.human.digest


@given(seeds)
@settings(deadline=None, max_examples=30)
def test_reach_is_a_share(seed):
    assert all(0 <= share <= 1 for share in reach(MatchedAlignment()(random_corpus(seed))))


@given(seeds)
@settings(deadline=None, max_examples=30)
def test_the_reach_is_known_before_people_are_changed(seed):
    alignment, corpus = MatchedAlignment(excluded=["man"]), random_corpus(seed)
    assert alignment.reach(corpus) == pytest.approx(np.mean(reach(alignment(corpus))))


BOTH = MatchedAlignment(sides=("human", "model"))


@given(seeds)
@settings(deadline=None, max_examples=30)
def test_on_both_sides_each_word_is_used_equally_often(seed):
    matched = BOTH(random_corpus(seed))
    positions = [shares(matched.human, position) for position in range(3)]
    assert positions == [shares(matched.model)] * 3


@given(seeds)
@settings(deadline=None, max_examples=30)
def test_the_captioner_loses_only_what_people_cannot_reach(seed):
    corpus = random_corpus(seed)
    before, after = shares(corpus.model), shares(BOTH(corpus).model)
    union = make_corpus(
        [Record(str(i), " ".join(corpus[i].human), ("a",), {}) for i in range(N_IMAGES)]
    )
    used = shares(union.model)
    assert after == {word: min(before[word], used[word]) for word in WORDS}
    retained = {float(str(line["retained"])) for line in BOTH(corpus).tables[CHANGES]}
    assert retained == {BOTH.reach(corpus)}


def test_people_are_always_changed():
    with pytest.raises(ValueError, match=r"alignment\.sides"):
        MatchedAlignment(sides=("model",))


@given(seeds)
@settings(deadline=None, max_examples=30)
def test_the_first_captions_alone_change_as_among_all(seed):
    corpus, align = random_corpus(seed), MatchedAlignment()
    first, every = align.of_first_captions()(corpus), align(corpus)
    assert first.human.position(0).digest == every.human.position(0).digest
    assert first.human.position(1).digest == corpus.human.position(1).digest
    assert reach(first) == reach(every)[:1]


@given(seeds)
@settings(deadline=None, max_examples=30)
def test_excluded_words_never_take_part(seed):
    corpus = random_corpus(seed)
    matched = MatchedAlignment(excluded=["man", "woman"])(corpus)
    for position in range(3):
        before, after = (shares(item.human, position) for item in (corpus, matched))
        assert all(before[word] == after[word] for word in ("man", "woman"))


def test_special_tokens_never_take_part():
    matched = MatchedAlignment()(corpus_with([("<gender> dog", "a <gender>")] * 20)).human
    assert all("<gender>" in matched.words(row) for row in range(len(matched)))


def test_with_all_words_excludes_none():
    assert MatchedAlignment(excluded=["man"]).with_all_words().excluded == frozenset()


@given(seeds, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=20)
def test_the_order_of_files_does_not_matter(seed, random):
    shuffled = records_of(seed)
    random.shuffle(shuffled)
    one, two = (MatchedAlignment()(make_corpus(item)) for item in (records_of(seed), shuffled))
    assert one.digest == two.digest


@given(seeds)
@settings(deadline=None, max_examples=20)
def test_labels_play_no_part(seed):
    records = records_of(seed)
    swapped = [
        replace(record, labels={"gender": "fm"[i // 7 % 2]}) for i, record in enumerate(records)
    ]
    assert digest_of_matched(records) == digest_of_matched(swapped)


def test_words_come_only_from_what_another_person_said_of_the_image():
    corpus = random_corpus(3)
    matched = MatchedAlignment()(corpus)
    for row in range(len(matched.human)):
        image = matched.human.image_rows[row]
        names = {word for text in corpus[int(image)].human for word in text.split()}
        assert set(matched.human.words(row)) <= names


def test_a_vocabulary_that_nobody_shares_is_refused():
    with pytest.raises(NotApplicableError, match=r"annotators use none of the captioner's words"):
        MatchedAlignment()(corpus_with([("a dog", "one cat")] * 20, "zebra quagga"))


def test_a_vocabulary_that_nobody_shares_is_refused_on_both_sides():
    with pytest.raises(NotApplicableError, match=r"use none of the captioner's words"):
        BOTH(corpus_with([("eine Katze", "ein Hund")] * 20))


def test_words_that_nobody_shares_lower_the_reach():
    assert reach(MatchedAlignment()(corpus_with([("a dog", "dog")] * 20, "zebra dog"))) == [
        0.5,
        0.5,
    ]


def test_a_captioner_without_words_has_no_reach():
    corpus = random_corpus(0)
    masked = Captions.from_texts(["<gender>"] * N_IMAGES)
    assert all(map(math.isnan, reach(MatchedAlignment()(corpus.rewrite({"model": masked})))))


def test_a_constant_caption_leaves_people_nothing_else_to_say():
    matched = MatchedAlignment()(corpus_with([("a dog runs", "the dog and a cat")] * 20)).human
    assert {matched.text(row) for row in range(len(matched))} == {"a dog", "dog a"}


def mixed_corpus(several: int, single: int) -> Corpus:
    return corpus_with([("a cat", "dog")] * several + [("a cat",)] * single)


def test_the_only_caption_of_an_image_is_left_out_and_that_is_noted():
    matched = MatchedAlignment()(mixed_corpus(30, 5))
    note = "alignment=matched: 5 images with one human caption are left out"
    assert (len(np.unique(matched.human.image_rows)), note in matched.notes) == (30, True)


def test_where_people_wrote_one_caption_an_image_none_is_left_out():
    assert len(MatchedAlignment()(mixed_corpus(0, 30)).human) == 30


def test_captions_of_images_without_a_group_stay_as_they_are():
    corpus = corpus_with([("a cat", "the dog")] * 30, labels=["m"] * 15 + ["unsure"] * 15)
    matched = MatchedAlignment()(corpus)
    assert comparable(corpus).sum() == 15
    assert all(matched[row].human == corpus[row].human for row in range(15, 30))


def test_what_was_changed_is_told_with_examples():
    matched = MatchedAlignment()(random_corpus(0))
    first = matched.tables[CHANGES][0]
    assert (first["images"], len(matched.tables[EXAMPLES])) == (N_IMAGES, 10)
    assert int(str(first["removed"])) > 0


def digest_of_matched(records: Sequence[Record]) -> str:
    return MatchedAlignment()(make_corpus(list(records))).human.digest


def test_captioners_that_say_words_equally_often_have_the_same_people():
    records = records_of(5)
    rotated = [replace(record, model=records[i - 1].model) for i, record in enumerate(records)]
    assert digest_of_matched(records) == digest_of_matched(rotated)


@pytest.mark.parametrize("n_images", [2, 3])
def test_two_images_are_enough(n_images):
    assert MatchedAlignment()(mixed_corpus(n_images, 0)).tables[CHANGES]
