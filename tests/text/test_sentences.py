"""Captions as sentences, and which of them are scored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bias_pipeline.corpus.attribute import Context
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import UsageError
from bias_pipeline.run import compose
from bias_pipeline.text.scored_text import ScoredText
from bias_pipeline.text.sentences import first_sentence, sentences_of, sentences_with
from tests.corpora import make_corpus

PERSON = frozenset(["man", "woman"])

SENTENCES = {
    "A man rides. He wears a hat.": ["A man rides.", "He wears a hat."],
    "a man . a dog": ["a man .", "a dog"],
    "Mr. Smith rides, e.g. a horse.": ["Mr. Smith rides, e.g. a horse."],
    "It costs 3.50 dollars! Really?": ["It costs 3.50 dollars!", "Really?"],
    'He says "go." Then he goes.': ['He says "go."', "Then he goes."],
    "Two people... One sits.": ["Two people...", "One sits."],
    "a man in the u.s. capitol": ["a man in the u.s. capitol"],
    "one sentence": ["one sentence"],
    "A man. .": ["A man. ."],
    "...": [],
    "": [],
}


@pytest.mark.parametrize("text", SENTENCES)
def test_a_caption_is_split(text):
    assert sentences_of(text) == SENTENCES[text]


@given(st.text(alphabet="aB .!?\"'", max_size=40))
def test_no_word_is_lost(text):
    assert "".join("".join(sentences_of(text)).split()) in ("".join(text.split()), "")


def test_a_text_without_a_sentence_stays():
    assert first_sentence("...") == "..."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A hall. A man sits. It is dark. The man's hat.", "A man sits. The man's hat."),
        ("A mandate. It is dark.", "A mandate."),
        ("A Woman sits", "A Woman sits"),
    ],
)
def test_sentences_on_persons(text, expected):
    assert sentences_with(text, PERSON) == expected


LONG = "A hall. A man sits. It is dark."


def long_corpus() -> Corpus:
    return make_corpus([Record(str(i), LONG, (LONG, "a dog"), {"gender": "m"}) for i in range(3)])


@pytest.mark.parametrize(
    ("unit", "expected"), [("caption", LONG), ("sentence", "A hall."), ("subject", "A man sits.")]
)
def test_both_sides_are_scored_by_the_same_unit(unit, expected):
    scored = ScoredText(unit=unit, subjects=Context("man")).apply(long_corpus())
    assert (scored.model.text(0), scored.human.text(0)) == (expected, expected)
    assert scored.human.text(1) == "a dog"


def test_what_is_left_of_the_length_is_noted():
    note = (
        "text.unit=sentence: words a caption that are scored: 2.0 of 8.0 (model), "
        "2.0 of 5.0 (annotators)"
    )
    assert note in ScoredText(unit="sentence").apply(long_corpus()).notes


def test_a_preamble_is_cut_before_the_first_sentence():
    text = "Sure! Here is a caption: A man sits. It is dark."
    corpus = make_corpus([Record("1", text, labels={"gender": "m"})])
    assert ScoredText(preambles="cut", unit="sentence").apply(corpus).model.text(0) == "A man sits."


def test_subjects_need_words():
    with pytest.raises(UsageError, match=r"needs words for persons in text\.subjects"):
        ScoredText(unit="subject")


def test_a_run_has_the_words_of_the_context():
    cell = compose.cell(["text.unit=subject", "captioner=verbose", "dataset.n_images=50"])
    corpus = cell.corpus()
    whole = compose.cell(["captioner=verbose", "dataset.n_images=50"]).corpus()
    assert 0 < len(corpus.model.tokens) < len(whole.model.tokens)


def test_a_caption_of_one_sentence_is_the_same_run():
    cells = [
        compose.cell(["metric=lic", "captioner=faithful", "dataset.n_images=50", *more])
        for more in ((), ("text.unit=sentence",))
    ]
    assert len({cell.run_id(cell.corpus()) for cell in cells}) == 1
