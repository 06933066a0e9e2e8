import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.corpus.corpus import Record
from bias_pipeline.errors import UsageError
from bias_pipeline.text.tokenize import Tokenize, tokenize_word
from bias_pipeline.text.transform import is_special
from tests.corpora import make_corpus


def tokens(text: str, **options: bool) -> list[str]:
    settings = {"keep_punctuation": True, "keep_unknown": True, **options}
    return [t for word in text.split() for t in tokenize_word(word, **settings)]


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("a man's dog.", {}, ["a", "man", "'s", "dog", "."]),
        ("isn't can't", {}, ["is", "n't", "ca", "n't"]),
        ("police-woman", {}, ["police", "-", "woman"]),
        ("(red, blue)", {}, ["(", "red", ",", "blue", ")"]),
        ("<unk>.", {}, ["<unk>", "."]),
        ("<unk>" * 2000, {}, ["<unk>"] * 2000),
        ("the dogs' 2nd", {}, ["the", "dogs", "'", "2nd"]),
        ("日本語", {}, ["日", "本", "語"]),
        ("رجل يمشي", {}, ["رجل", "يمشي"]),
        ("e\u0301te\u0301", {}, ["\u00e9t\u00e9"]),
        ("\U0001f469\u200d\U0001f467!", {}, ["\U0001f469\u200d\U0001f467", "!"]),
        ("\u202eabc", {}, ["abc"]),
        ("a \ud800", {}, ["a", "\ud800"]),
        ("a dog, running.", {"keep_punctuation": False}, ["a", "dog", "running"]),
        ("<unk>", {"keep_unknown": False}, ["<", "unk", ">"]),  # the published protocol
    ],
)
def test_a_text_is_split(text, options, expected):
    assert tokens(text, **options) == expected


@given(st.text())
def test_no_text_makes_a_special_token(text):
    result = tokens(text, keep_unknown=False)
    assert not any(is_special(token) for token in result)


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_ascii_loses_nothing_but_white_space(text):
    assert "".join(tokens(text)) == "".join(text.split())


def test_each_side_can_keep_its_case():
    corpus = make_corpus([Record("1", "A Dog", ("A Cat",))])
    cased = Tokenize(lowercase=["human"])(corpus)
    assert (cased.model.text(0), cased.human.text(0)) == ("A Dog", "a cat")


def test_a_side_that_is_none_is_refused():
    with pytest.raises(UsageError, match=r"lowercase=.* must be one of model, human"):
        Tokenize(lowercase=["both"])


def test_another_version_is_refused():
    with pytest.raises(ValueError, match="version"):
        Tokenize(version=99)
