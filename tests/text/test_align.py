import pytest

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.text.align import ConstantAlignment, TopNAlignment
from bias_pipeline.text.mask import MaskWords
from tests.corpora import make_corpus


def corpus(**options: object) -> Corpus:
    human = ("a man on a surfboard", "a man and a dog dog dog")
    return make_corpus([Record("1", "a man with a dog", human)], **options)


@pytest.mark.parametrize(
    ("align", "row", "expected"),
    [
        # words that the captioner never uses are replaced, those of groups are not
        (ConstantAlignment(), 0, "a man <unk> a <unk>"),
        (ConstantAlignment(replacement=["<", "unk", ">"]), 0, "a man < unk > a < unk >"),
        (ConstantAlignment(vocabulary="published"), 0, "a <unk> on a <unk>"),
        # The captioner knows 4 words; people's most common are a (4), dog (3), man (2), and (1).
        (TopNAlignment(), 1, "a man and a dog dog dog"),
        (TopNAlignment(), 0, "a man <unk> a <unk>"),  # ties are broken by the alphabet
    ],
    ids=["constant", "published replacement", "published vocabulary", "top n", "ties"],
)
def test_words_are_replaced(align, row, expected):
    assert align(corpus(vocabulary=["a", "on"])).human.text(row) == expected


def test_special_tokens_stay():
    masked = MaskWords(["man"], "<gender>", sides=["human"])(corpus())
    assert ConstantAlignment()(masked).human.text(0) == "a <gender> <unk> a <unk>"


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"vocabulary": "published"}, DataError, "has no published vocabulary"),
        ({"vocabulary": "publish"}, UsageError, "must be one of captions, published"),
        ({"sides": ["humans"]}, UsageError, "must be one of model, human"),
    ],
)
def test_what_cannot_be_aligned_is_refused(settings, error, message):
    with pytest.raises(error, match=message):
        ConstantAlignment(**settings)(corpus())


def test_a_mask_that_the_published_vocabulary_lacks_is_kept_on_request():
    """RELIC's token of age stands in no list of LIC, and was not aligned away."""
    masked = MaskWords(["man"], "AGEWORD")(corpus(vocabulary=["a"]))
    aligned = ConstantAlignment(vocabulary="published", keep=["AGEWORD"])(masked)
    assert aligned.human.text(0) == "a AGEWORD <unk> a <unk>"
