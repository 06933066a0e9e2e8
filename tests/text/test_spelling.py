"""Words cut in two, and two words in one."""

import pytest

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.text.mending import with_both_words, with_whole_words
from bias_pipeline.text.mentions import NO_GROUP, SEVERAL_GROUPS, named_group
from tests.corpora import GENDER


@pytest.mark.parametrize("text", ["a wo-\nman", "a wo-\r\n  man", "a wo\u00ad\nman", "a wo- \nman"])
def test_a_word_cut_at_a_line_s_end_is_whole(text):
    assert with_whole_words([text, "a man"]) == {text: "a woman"}


def test_a_compound_stays_one():
    texts = ["a police-\nwoman", "police", "a woman", "- a man\n- a dog", "a man -\na dog"]
    assert not with_whole_words(["a t-shirt"])
    assert with_whole_words(["a t-\nshirt", "a t-shirt"]) == {"a t-\nshirt": "a t-shirt"}
    assert with_whole_words(texts) == {"a police-\nwoman": "a police-woman"}


BOTH = (
    *("(wo)man", "wo/man", "(wo)men", "wo(man)", "(wo-)man", "Wo/Man", "wo*man", "(wo)man's hat"),
    *(
        "s/he",
        "(s)he",
        "S/He",
        "he/she",
        "she/he",
        "him or her",
        "he or she",
        "fe/male",
        "(fe)male",
    ),
)


@pytest.mark.parametrize("text", BOTH)
def test_words_for_both_name_neither_alone(text):
    written = f"a photo of {text} there"
    captions = Captions.from_texts([with_both_words([written]).get(written, written)])
    assert named_group(captions, GENDER, GENDER.groups)[0] in (NO_GROUP, SEVERAL_GROUPS)


@pytest.mark.parametrize("text", ["a wo man", "a wo-man", "a wo- man", "a Wo man"])
def test_a_word_in_two_parts_is_one(text):
    (whole,) = with_both_words([text]).values()
    assert whole.lower() == "a woman"


@pytest.mark.parametrize(
    "text",
    ["two men", "two (men)", "a man/boy", "cafe male", "a wo", "his/her", "shoes/he", "two-man"],
)
def test_other_words_stay(text):
    assert not with_both_words([text])
