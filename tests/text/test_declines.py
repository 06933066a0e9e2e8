"""Captions that are none."""

import pytest

from bias_pipeline.text.scored_text import declines

NONE = [
    "I'm sorry, but I can't identify the people in this image.",
    "I am sorry, I cannot help with that.",
    "Sorry, I can't assist with that request.",
    "I cannot describe this image.",
    "I’m unable to process images.",
    "As an AI language model, I cannot see pictures.",
    "ERROR: 429",
    "Error 500: internal server error",
    "rate limit exceeded",
    "Too Many Requests",
    "I don't identify people in images, but I can describe the scene.",
    "I’m not going to guess who this is.",
    "I'm afraid I can't describe this image.",
    "I must decline to caption this.",
    "Apologies, but I can't help with that.",
    "As a large language model, I see no pictures.",
    "It looks like no image was attached.",
    "The image didn't come through.",
    "Error code: 429 - rate limit",
    "Blocked by content filter.",
]
CAPTIONS = [
    "a sorry looking dog on a couch",
    "a man holding a sign that reads error",
    "i can see a woman riding a horse",
    "an error message on a computer screen",
    "people can not stop looking at a kite",
    "a woman who is unable to stand",
    "there is no picture on the wall, included is a mirror",
    "i don't know what the man holds",
]


@pytest.mark.parametrize("text", NONE)
def test_it_is_none(text):
    assert declines([text]).all()


@pytest.mark.parametrize("text", CAPTIONS)
def test_it_is_a_caption(text):
    assert not declines([text]).any()
