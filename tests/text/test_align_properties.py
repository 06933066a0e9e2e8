"""Alignment, for any captions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.text.align import ConstantAlignment, TopNAlignment
from bias_pipeline.text.mask import MaskWords
from bias_pipeline.text.transform import is_special
from tests.corpora import make_corpus

ALIGNMENTS = [ConstantAlignment(), TopNAlignment()]
captions = st.lists(
    st.sampled_from(["a", "man", "dog", "cat", "<unk>", "<gender>", ".", "x", "y", "z"]), max_size=8
).map(" ".join)
images = st.lists(st.tuples(captions, st.lists(captions, max_size=3)), min_size=1, max_size=6)


def corpus(described: list[tuple[str, list[str]]]) -> Corpus:
    return make_corpus(
        [Record(str(i), model, tuple(human)) for i, (model, human) in enumerate(described)],
        blank_limit=1.0,  # what is left to align may be nothing
    )


@pytest.mark.parametrize("align", ALIGNMENTS)
@given(described=images)
def test_aligning_twice_is_aligning_once(align, described):
    once = align(corpus(described))
    assert align(once).human.digest == once.human.digest


def words_of(captions: Captions) -> set[str]:
    return {word for row in range(len(captions)) for word in captions.words(row)}


@given(described=images)
def test_no_word_that_the_captioner_never_uses_survives(described):
    source = corpus(described)
    left = words_of(ConstantAlignment()(source).human)
    assert all(word in words_of(source.model) or is_special(word) for word in left)


@given(described=images)
def test_no_more_human_words_than_the_captioner_has_survive(described):
    source = corpus(described)
    sides = words_of(TopNAlignment()(source).human), words_of(source.model)
    left, known = (sum(not is_special(word) for word in words) for words in sides)
    assert left <= known


@pytest.mark.parametrize("align", ALIGNMENTS)
@given(described=images)
def test_aligning_keeps_the_number_of_words(align, described):
    source = corpus(described)
    assert align(source).human.lengths.tolist() == source.human.lengths.tolist()


@pytest.mark.parametrize("align", ALIGNMENTS)
@given(described=images)
def test_the_model_side_and_the_given_corpus_are_left_as_they_are(align, described):
    source = corpus(described)
    before = source.human.digest
    assert align(source).model.digest == source.model.digest
    assert source.human.digest == before


@pytest.mark.parametrize("align", ALIGNMENTS)
@given(described=images)
def test_a_masked_word_stays_masked_where_it_was(align, described):
    masked = MaskWords(["man"], "<gender>")(corpus(described))
    aligned = align(masked)
    for i in range(len(masked.human)):
        before, after = masked.human.words(i), aligned.human.words(i)
        assert [w == "<gender>" for w in after] == [w == "<gender>" for w in before]
