import pytest

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.text.align import ConstantAlignment, TopNAlignment
from bias_pipeline.text.mask import MaskWords
from tests.corpora import make_corpus


def corpus(**options: object) -> Corpus:
    human = ("a man on a surfboard", "a man and a dog dog dog")
    return make_corpus([Record("1", "a man with a dog", human)], **options)


def test_constant_replaces_words_the_captioner_never_uses():
    aligned = ConstantAlignment()(corpus())
    assert aligned.human.text(0) == "a man <unk> a <unk>"


def test_the_model_side_is_left_alone():
    assert ConstantAlignment()(corpus()).model.digest == corpus().model.digest


def test_special_tokens_stay():
    masked = MaskWords(["man"], "<gender>", sides=["human"])(corpus())
    assert ConstantAlignment()(masked).human.text(0) == "a <gender> <unk> a <unk>"


def test_a_mask_that_the_published_vocabulary_lacks_is_kept_on_request():
    """RELIC's token of age stands in no list of LIC, and was not aligned away."""
    masked = MaskWords(["man"], "AGEWORD")(corpus(vocabulary=["a"]))
    aligned = ConstantAlignment(vocabulary="published", keep=["AGEWORD"])(masked)
    assert aligned.human.text(0) == "a AGEWORD <unk> a <unk>"


def test_masking_first_keeps_unmasked_group_words_on_both_sides():
    assert "man" in ConstantAlignment()(corpus()).human.words(0)


def test_the_published_replacement_is_three_tokens():
    aligned = ConstantAlignment(replacement=["<", "unk", ">"])(corpus())
    assert aligned.human.text(0) == "a man < unk > a < unk >"


def test_the_published_vocabulary_is_used_on_request():
    aligned = ConstantAlignment(vocabulary="published")(corpus(vocabulary=["a", "on"]))
    assert aligned.human.text(0) == "a <unk> on a <unk>"


def test_a_missing_published_vocabulary_is_refused():
    with pytest.raises(DataError, match="has no published vocabulary"):
        ConstantAlignment(vocabulary="published")(corpus())


def test_top_n_keeps_as_many_words_as_the_captioner_has():
    # The captioner knows 4 words; people's most common are a (4), dog (3), man (2), and (1).
    assert TopNAlignment()(corpus()).human.text(1) == "a man and a dog dog dog"


def test_top_n_breaks_ties_by_the_alphabet():
    assert TopNAlignment()(corpus()).human.text(0) == "a man <unk> a <unk>"


def test_an_unknown_vocabulary_is_refused():
    with pytest.raises(UsageError, match="must be one of captions, published"):
        ConstantAlignment(vocabulary="publish")


def test_an_unknown_side_is_refused():
    with pytest.raises(UsageError, match="must be one of model, human"):
        ConstantAlignment(sides=["humans"])
