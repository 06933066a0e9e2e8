"""Preambles, shared openings and hedges in captions."""

import csv
import re
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bias_pipeline.corpus.attribute import Attribute, Context
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.text.mentions import find_hedged
from bias_pipeline.text.phrases import plain_text, plain_texts
from bias_pipeline.text.scored_text import (
    after_thoughts,
    declines,
    preamble_of,
    shared_opening,
    without_preamble,
)
from tests.corpora import GENDER

CUT = {
    "The image depicts a man riding a horse.": "a man riding a horse.",
    'Sure! Here is a caption for the image: "A man rides."': "A man rides.",
    "**Caption:** A man on a **red** bike.": "A man on a red bike.",
    "- A man\n- A dog": "A man - A dog",
    "# Scene\nA man stands": "Scene A man stands",
    "In this image, there are two men": "two men",
    "A picture of a man": "a man",
    "This is a photo of a woman": "a woman",
    "1. A man runs": "A man runs",
    "Here's a detailed description of the image: A woman": "A woman",
    "Certainly! The photo shows a woman": "a woman",
    "Caption: a dog": "a dog",
}
WHOLE = [
    "a man", "a black and white photo of a man", "a man takes a picture of a dog",
    "The image shows.", "a man looking at the image of a dog: it shows him",
    "sure footed goats on a hill", "<unk> is here", "2 men on a bench", "",
]  # fmt: skip
BEHOLD = "Behold a scene where a man walks"


@pytest.mark.parametrize("text", CUT)
def test_a_preamble_is_reported_and_cut(text):
    assert preamble_of(text)
    assert without_preamble(text).lower() == CUT[text].lower()


@pytest.mark.parametrize("text", WHOLE)
def test_a_caption_without_one_stays(text):
    assert without_preamble(text) == text


@given(st.text(max_size=60))
@settings(max_examples=300)
def test_any_text_keeps_a_word_if_it_has_one(text):
    assert any(map(str.isalnum, without_preamble(text))) == any(map(str.isalnum, text))


def test_every_phrase_is_a_pattern_with_a_source():
    text = (files("bias_pipeline.text") / "phrases.csv").read_text("utf-8")
    for line in csv.DictReader(text.splitlines()):
        re.compile(line["pattern"])
        assert line["source"], line
        assert line["kind"] in (
            *("decline", "preamble", "hedge", "thought", "answer", "sign"),
            *("request", "repeated request"),
        )


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>\nIs it a man?\n</think>\n\nA dog.", "A dog."),
        ("Is it a man? Perhaps.</think>A dog.", "A dog."),  # the template wrote the beginning
        ("<THINKING>a man</THINKING> A dog.", "A dog."),
        ("◁think▷a man◁/think▷A dog.", "A dog."),
        ("[THINK]a man[/THINK]A dog.", "A dog."),
        ("<think>a man</think><answer><|begin_of_box|>A dog.<|end_of_box|></answer>", "A dog."),
        ("<think>a</think> no, <think>a man</think> A dog.", "A dog."),
        ("<think>a man, perhaps a", ""),  # cut
        ("<think>a man</think>", ""),
        ("a dog < a man [sic] ", "a dog < a man [sic] "),
    ],
)
def test_thoughts_are_no_caption(text, answer):
    assert after_thoughts(text) == answer


def test_a_refusal_with_a_description_behind_it_declines():
    assert declines(["I'm sorry, but I can't identify the people. A man rides."]).all()


@pytest.mark.parametrize(
    ("texts", "opening", "count"),
    [
        ([BEHOLD] * 40 + ["a dog"] * 80, "behold a scene where a man walks", 40),
        ([BEHOLD] * 39 + ["a dog"] * 81, "", 0),
        (
            [f"Behold, a scene where {word}" for word in ("a", "the", "no", "one") * 30],
            "behold a scene where",
            120,
        ),
        ([f"a man {i}" for i in range(200)], "", 0),
    ],
    ids=["of a third", "of less than a third", "the longest shared", "two words are no phrase"],
)
def test_a_shared_opening_of_a_third_of_the_captions_is_reported(texts, opening, count):
    assert shared_opening(Captions.from_texts(texts)) == (opening, count)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what appears to be a tall young man", True),
        ("likely a woman on a bench", True),
        ("a woman, or possibly a man", True),
        ("a man with what looks like a hat", False),
        ("a man who is likely tired", False),
        ("it appears to be a very big old red bus behind a man", False),
        ("a woman", False),
    ],
)
def test_a_hedge_is_before_the_group(text, expected):
    assert find_hedged(Captions.from_texts([text]), GENDER).tolist() == [expected]


def test_a_phrase_before_a_hedge_does_not_move_it():
    words = {"light": ["white"], "dark": ["black", "dark-skinned man"]}
    person = Context("man")
    senses = "black and white"
    race = Attribute("race", tuple(words), words, applies_to=person, other_senses=senses)
    text = "a black and white photo of what appears to be a black man"
    assert find_hedged(Captions.from_texts([text]), race).tolist() == [True]


@pytest.mark.parametrize("text", ["A  dog’s", "a\tdog", " a Dog ", "İ dog", "ΟΔΟΣ", "", "a\nb"])
def test_many_texts_are_made_plain_as_each_is(text):
    assert plain_texts([text, "a Man"]) == [plain_text(text), "a man"]
    assert plain_texts(["a Man", "é"]) == ["a man", "é"]
