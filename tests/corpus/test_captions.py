import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.corpus.captions import Captions, dense_ranks

texts = st.lists(st.text(max_size=30), max_size=8)
words = st.lists(st.sampled_from(["a", "b", "c"]), max_size=10).map(" ".join)


@given(texts)
def test_text_is_the_input_up_to_white_space(given_texts):
    captions = Captions.from_texts(given_texts)
    expected = [" ".join(t.replace("\0", " ").split()) for t in given_texts]
    assert [captions.text(i) for i in range(len(captions))] == expected


def test_no_captions_at_all():
    assert len(Captions.from_texts([])) == 0


@given(texts)
def test_rewrite_equals_rewriting_word_by_word(given_texts):
    def rule(word: str) -> list[str]:
        return [word] * (len(word) % 3)

    captions = Captions.from_texts(given_texts)
    rewritten = captions.rewrite(rule)
    expected = [[w for word in captions.words(i) for w in rule(word)] for i in range(len(captions))]
    assert [rewritten.words(i) for i in range(len(captions))] == expected


@given(st.lists(words, max_size=6))
def test_join_equals_replacing_in_the_text(given_texts):
    joined = Captions.from_texts(given_texts).join(["a b", "a b c"])
    for i, text in enumerate(given_texts):
        spaced = f" {text} ".replace(" ", "  ")
        expected = spaced.replace(" a  b  c ", " abc ").replace(" a  b ", " ab ").split()
        assert [w.replace(" ", "") for w in joined.words(i)] == expected


def test_a_phrase_never_crosses_two_captions():
    joined = Captions.from_texts(["a hot", "dog runs"]).join(["hot dog"])
    assert joined.words(1) == ["dog", "runs"]


def test_position_takes_the_kth_caption_of_each_image_that_has_one():
    second = Captions.from_texts(["a", "b", "c"], images=[0, 0, 2]).position(1)
    assert (second.text(0), second.image_rows.tolist()) == ("b", [0])


@given(texts)
def test_taking_all_rows_keeps_the_digest(given_texts):
    captions = Captions.from_texts(given_texts)
    assert captions.take(np.arange(len(captions))).digest == captions.digest


def test_the_digest_tells_where_captions_end():
    assert Captions.from_texts(["a b", ""]).digest != Captions.from_texts(["a", "b"]).digest


def test_equal_captions_have_equal_identities():
    assert Captions.from_texts(["a b", "b a", "a b"]).identities.tolist() == [0, 1, 0]


def test_mentions_looks_at_whole_words():
    captions = Captions.from_texts(["a man", "a mandate", ""])
    assert captions.mentions(["man"]).tolist() == [True, False, False]


def test_a_caption_of_a_million_letters_is_one_word():
    assert Captions.from_texts(["x" * 1_000_000]).lengths.tolist() == [1]


def test_runs_of_words_have_the_same_numbers_with_and_without_a_table():
    codes = np.random.default_rng(0).integers(0, 300, 100)
    expected = np.unique(codes, return_inverse=True)[1]
    assert np.array_equal(dense_ranks(codes), expected)
    assert np.array_equal(dense_ranks(codes * 10), expected)
