"""An annotator at the captioner's length: as a witness makes it, and what must not matter."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.text.alike import alike_annotators, cut_captions, word_counts
from bias_pipeline.text.matched import CHANGES, MatchedAlignment
from tests.corpora import make_corpus
from tests.witness import alike as witness

WORDS = ("dog", "cat", "bus", "tree", "car", "hat", "cup", "road")
N_IMAGES = 40


def records_of(seed: int, model_words: tuple[int, int], n_people: int = 4) -> list[Record]:
    """Images with captions of random words.

    Args:
        seed: of the captions.
        model_words: the fewest and the most words of the captioner; people write three to six.
        n_people: human captions of an image; every third image has one less, if three or more.
    """
    random = np.random.default_rng(seed)

    def caption(fewest: int, most: int) -> str:
        return " ".join(random.choice(WORDS, random.integers(fewest, most + 1)).tolist())

    return [
        Record(
            f"id{i}",
            caption(*model_words),
            tuple(caption(3, 6) for _ in range(n_people - (n_people > 2 and i % 3 == 0))),
            {"gender": "mf"[i % 2]},
        )
        for i in range(N_IMAGES)
    ]


@given(
    st.integers(0, 10_000),
    st.sampled_from([(1, 3), (3, 6), (5, 9), (9, 12)]),
    st.integers(0, 3),
)
@settings(deadline=None, max_examples=40)
def test_it_is_the_annotator_that_a_witness_makes(seed, model_words, turn):
    records = records_of(seed, model_words)
    made = witness.alike_annotators(records, seed=3, turn=turn)
    corpus = alike_annotators(make_corpus(records), seed=3).turn(turn)
    assert captions_of(corpus) == {one.id: one.says for one in made}
    for one in made:
        assert corpus.human.of_image(corpus.ids.index(one.id)) == one.others


def captions_of(corpus: Corpus) -> dict[str, str]:
    """Image to the caption of the model."""
    return {corpus.ids[row]: corpus.model.text(k) for k, row in enumerate(corpus.model.image_rows)}


@pytest.mark.parametrize(
    ("model_words", "n_joined"), [((1, 3), 1), ((3, 5), 1), ((6, 8), 2), ((9, 12), 3)]
)
def test_as_few_annotators_are_joined_as_reach_the_length(model_words, n_joined):
    records = [
        replace(r, human=(*r.human, "a dog runs by")[:4]) for r in records_of(0, model_words)
    ]
    alike = alike_annotators(make_corpus(records), seed=0)
    wanted = sum(len(record.model.split()) for record in records)
    assert alike.n_joined == n_joined
    assert 0.95 * wanted <= word_counts(alike.turn(0).model).sum() <= wanted


def test_in_each_turn_another_annotator_speaks_and_another_is_compared_with():
    records = [replace(r, human=tuple(f"{k} a b" for k in range(4))) for r in records_of(0, (3, 3))]
    alike = alike_annotators(make_corpus(records), seed=0)
    turns = [alike.turn(number) for number in range(4)]
    for row in range(len(records)):
        spoken = {turn.model.words(row)[0] for turn in turns}
        compared = {turn.human.of_image(row)[0] for turn in turns}
        assert len(spoken) == len(compared) == 4
        assert all(turn.model.text(row) != turn.human.of_image(row)[0] for turn in turns)


def test_neither_the_order_of_the_file_nor_labels_matter():
    records = records_of(0, (5, 9))
    other = [replace(r, labels={"gender": "mmf"[k % 3]}) for k, r in enumerate(records)]
    one, two = (
        captions_of(alike_annotators(make_corpus(some), seed=0).turn(1))
        for some in (records, other[::-1])
    )
    assert one == two


def test_which_image_the_captioner_says_more_about_does_not_matter():
    """A captioner that says more of one group lends its lengths, not its images."""
    records = records_of(0, (3, 9))
    by_length = sorted((record.model for record in records), key=len)
    partial = [replace(r, model=text) for r, text in zip(records, by_length, strict=True)]
    one, two = (alike_annotators(make_corpus(some), seed=0) for some in (records, partial))
    assert captions_of(one.turn(0)) == captions_of(two.turn(0))


def test_another_seed_draws_other_annotators():
    corpus = make_corpus(records_of(0, (3, 6)))
    one, two = (captions_of(alike_annotators(corpus, seed=seed).turn(0)) for seed in (0, 1))
    assert one != two


@pytest.mark.parametrize(
    ("n_people", "model_words", "message"),
    [
        (1, (3, 6), "annotators wrote one caption an image"),
        (2, (9, 12), "human captions are too short or too few: all but one"),
        (3, (13, 18), "human captions are too short or too few: all but one"),
    ],
)
def test_too_few_annotators_are_refused_with_the_reason(n_people, model_words, message):
    with pytest.raises(NotApplicableError, match=message):
        alike_annotators(make_corpus(records_of(0, model_words, n_people)), seed=0)


@pytest.mark.parametrize(("n_people", "model_words"), [(2, (2, 5)), (3, (6, 9))])
def test_two_annotators_serve_a_captioner_of_their_length_and_three_a_longer_one(
    n_people, model_words
):
    records = [
        replace(record, human=(*record.human, "a dog runs by")[:n_people])
        for record in records_of(0, model_words, n_people)
    ]
    assert alike_annotators(make_corpus(records), seed=0).n_joined == n_people - 1


def test_few_images_with_many_captions_do_not_make_the_annotator_longer():
    """Of which most images would be lost."""
    records = records_of(0, (9, 12), n_people=2)
    records[0] = replace(records[0], human=records[0].human * 4)
    with pytest.raises(NotApplicableError, match="too few"):
        alike_annotators(make_corpus(records), seed=0)


def test_people_are_given_the_words_of_those_it_is_made_of():
    """As the captioner's annotators are given the words of all others."""
    matched = MatchedAlignment()(alike_annotators(make_corpus(records_of(0, (6, 8))), 0).turn(0))
    (reach, *_) = (line["reach"] for line in matched.tables[CHANGES])
    assert reach == 1.0


def test_marks_are_no_words():
    captions = Captions.from_texts(["a dog , runs . fast !", ", .", ""])
    assert word_counts(captions).tolist() == [4, 0, 0]
    cut = cut_captions(captions, np.array([2, 1, 0]))
    assert [cut.text(row) for row in range(3)] == ["a dog", ", .", ""]
