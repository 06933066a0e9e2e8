from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Record
from bias_pipeline.text.mask import KeepWords, MaskWords
from tests.corpora import make_corpus

captions = st.lists(st.sampled_from(["man", "mandate", "dog", "."]), max_size=8).map(" ".join)


@given(st.lists(captions, max_size=6))
def test_no_listed_word_survives(texts):
    masked = MaskWords(["man"], "<x>").mask(Captions.from_texts(texts))
    assert not masked.mentions(["man"]).any()


@given(st.lists(captions, max_size=6))
def test_masking_twice_is_masking_once(texts):
    mask = MaskWords(["man"], "<x>")
    once = mask.mask(Captions.from_texts(texts))
    assert mask.mask(once).digest == once.digest


@given(st.lists(captions, max_size=6))
def test_masking_keeps_the_number_of_words(texts):
    raw = Captions.from_texts(texts)
    assert MaskWords(["man"], "<x>").mask(raw).lengths.tolist() == raw.lengths.tolist()


def test_words_may_come_by_group():
    mask = MaskWords([{"male": ["man"], "female": ["woman"]}, ["pregnant"]], "<x>")
    assert mask.mask(Captions.from_texts(["a pregnant woman"])).text(0) == "a <x> <x>"


def test_the_longest_phrase_is_masked_whole():
    mask = MaskWords(["dog", "hot dog"], "<x>")
    assert mask.mask(Captions.from_texts(["a hot dog and a dog"])).text(0) == "a <x> and a <x>"


def test_the_given_corpus_is_left_as_it_is():
    corpus = make_corpus([Record("1", "a man", ("a man",))])
    MaskWords(["man"], "<x>")(corpus)
    assert corpus.model.text(0) == "a man"


def test_one_side_can_be_masked_alone():
    corpus = make_corpus([Record("1", "a man", ("a man",))])
    masked = MaskWords(["man"], "<x>", sides=["human"])(corpus)
    assert (masked.model.text(0), masked.human.text(0)) == ("a man", "a <x>")


def test_keep_words_keeps_listed_and_special_words_alone():
    keep = KeepWords(["bride"]).keep(Captions.from_texts(["<x> and a bride", "a dog"]))
    assert [keep.text(0), keep.text(1)] == ["<x> bride", ""]
