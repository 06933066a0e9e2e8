import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Record
from bias_pipeline.text.mask import KeepWords, MaskWords
from bias_pipeline.text.tokenize import Tokenize
from tests.corpora import make_corpus

captions = st.lists(st.sampled_from(["man", "mandate", "dog", "."]), max_size=8).map(" ".join)


@given(st.lists(captions, max_size=6))
def test_no_listed_word_survives(texts):
    masked = MaskWords(["man"], "<x>").mask(Captions.from_texts(texts))
    assert not masked.mentions(["man"]).any()


@given(st.lists(captions, max_size=6))
def test_masking_keeps_the_number_of_words_and_twice_is_once(texts):
    raw, mask = Captions.from_texts(texts), MaskWords(["man"], "<x>")
    once = mask.mask(raw)
    assert once.lengths.tolist() == raw.lengths.tolist()
    assert mask.mask(once).digest == once.digest


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        ([{"male": ["man"], "female": ["woman"]}, ["pregnant"]], "a pregnant woman", "a <x> <x>"),
        (["dog", "hot dog"], "a hot dog and a dog", "a <x> and a <x>"),
        (["catcher's mitt"], "a catcher 's mitt", "a <x>"),
    ],
    ids=["words by group", "the longest phrase whole", "as it is split"],
)
def test_listed_words_are_masked(words, text, expected):
    assert MaskWords(words, "<x>").mask(Captions.from_texts([text])).text(0) == expected


def test_one_side_can_be_masked_alone_and_the_given_corpus_stays():
    corpus = make_corpus([Record("1", "a man", ("a man",))])
    masked = MaskWords(["man"], "<x>", sides=["human"])(corpus)
    assert (masked.model.text(0), masked.human.text(0)) == ("a man", "a <x>")
    assert corpus.human.text(0) == "a man"


def test_keep_words_keeps_listed_and_special_words_alone():
    keep = KeepWords(["bride"]).keep(Captions.from_texts(["<x> and a bride", "a dog"]))
    assert [keep.text(0), keep.text(1)] == ["<x> bride", ""]


CAPITALS = ["A Man and a woman", "Woman near a man", "MAN", "a Mandate"]


def test_words_that_stay_because_of_their_capitals_are_counted():
    corpus = make_corpus([Record(str(n), text, ("a man",)) for n, text in enumerate(CAPITALS)])
    cased = Tokenize(lowercase=["human"])(corpus)
    (note,) = MaskWords(["man", "woman"], "<x>")(cased).notes
    assert note == (
        "3 words with capitals are not masked in the captioner's captions, which are not "
        "lower-cased: 'MAN' 1 times, 'Man' 1 times, 'Woman' 1 times; text.lowercase=[model,human] "
        "masks them"
    )


def test_no_word_stays_once_both_sides_are_lower_cased_as_the_note_advises():
    corpus = make_corpus([Record(str(n), text) for n, text in enumerate(CAPITALS)])
    lowered = Tokenize(lowercase=["model", "human"])(corpus)
    assert not MaskWords(["man", "woman"], "<x>")(lowered).notes
