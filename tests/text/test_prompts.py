"""Prompts in captions: instead of a description, or around one."""

import json

import numpy as np
import pytest

from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.text.mending import mended_records
from bias_pipeline.text.prompts import captions_without_prompts, echoes, prompts_in
from bias_pipeline.text.scored_text import ScoredText, declined_images
from tests.corpora import make_corpus

REQUEST = "Please describe this image in detail."
WAVE = "a man riding a wave on top of a surfboard"


def corpus_of(*texts: str, prompts: tuple[str, ...] = ()) -> Corpus:
    records = [Record(str(i), text, (), {"gender": "mf"[i % 2]}) for i, text in enumerate(texts)]
    records, _ = mended_records(records, {})
    corpus = make_corpus(records)
    object.__setattr__(corpus, "prompts", prompts)
    return corpus


REQUESTED = [
    *(
        REQUEST,
        f"</Img> {REQUEST}",
        f"{REQUEST} {REQUEST}",
        "Please provide more details.",
        f"/<Img> {REQUEST}",
    ),
    *("Describe the image.", "Write a detailed description of the photo.", "What is in the image?"),
    *(
        "Can you describe this picture?",
        "Could you please provide more context?",
        "Please describe it.",
    ),
    *("What do you see?", "Who is in this picture?", "Please explain what this image is."),
]


@pytest.mark.parametrize("text", REQUESTED)
def test_a_request_is_no_caption(text):
    scored = ScoredText().apply(corpus_of(text, *[WAVE] * 9))
    assert declined_images(scored).tolist() == [True] + [False] * 9
    assert len(scored.model) == 9


CAPTIONS = [
    *(WAVE, "is a tennis player on a court", "A woman looks at the image of a dog.", "a what"),
    *(
        "What looks like a horse",
        "Is this picture of a girl hand tinted?",
        "how a man rides a horse",
    ),
    "Please provide the following about this image: * Type: A person holding a baby in a room.",
    *("List of people in the image", "a man asks: what is in the image?", "Look at the picture"),
    "The image shows a man. What is he doing?",
]


@pytest.mark.parametrize("text", CAPTIONS)
def test_a_caption_is_no_request(text):
    assert not echoes(corpus_of(text, WAVE, WAVE)).any()


def test_a_caption_that_is_often_the_same_is_one():
    assert not echoes(corpus_of(*[WAVE] * 500, "a dog")).any()


@pytest.mark.parametrize(
    "prompt", ["What is happening?", "Describe it in one sentence.", "Is it a man?"]
)
def test_a_prompt_is_known_by_its_repetition(prompt):
    assert echoes(corpus_of(*[prompt] * 3, *[WAVE] * 9)).sum() == 3
    assert not echoes(corpus_of(prompt, *[WAVE] * 9)).any()


def test_a_prompt_is_known_by_its_key():
    german = "Beschreibe das Bild."
    assert echoes(corpus_of(german, WAVE, prompts=(german,))).tolist() == [True, False]


def test_a_caption_that_is_what_a_picture_was_drawn_by_is_one():
    assert not echoes(corpus_of(WAVE, "a dog", prompts=(WAVE, "a dog"))).any()


def test_prompts_around_a_caption_are_cut_and_it_is_said():
    texts = [
        f"{REQUEST} {WAVE}.",
        f"{WAVE}.\n\n{REQUEST}",
        REQUEST,
        *[f"a dog {n}." for n in range(20)],
    ]
    corpus = corpus_of(*texts)
    assert prompts_in(corpus) == {REQUEST.lower().rstrip(".")}
    described, n = captions_without_prompts(corpus)
    assert ([described.model.text(row) for row in (0, 1, 2)], n) == (
        [f"{WAVE}."] * 2 + [REQUEST],
        2,
    )
    notes = " ".join(ScoredText().apply(corpus).notes)
    assert "2 of 23 captions hold a prompt beside the description" in notes
    assert "1 of 23 captions holds only a prompt or a request" in notes


def test_requests_stay_if_declined_captions_do():
    scored = ScoredText(declined="keep").apply(corpus_of(REQUEST, WAVE))
    assert len(scored.model) == 2
    assert declined_images(scored).tolist() == [True, False]


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "asking", "empty"),
    [("vlm/minigpt4_antrp_vcd512", 26, 3), ("vlm/llava15_greedy", 0, 0), ("captioners/nic", 0, 0)],
)
def test_real_captions_that_only_ask(data_root, name, asking, empty):
    """26 of the 210 labelled images of one file have a request, and 3 only a tag."""
    lines = (data_root / "coco/attributes/images_val2014.csv").read_text().splitlines()[1:]
    labelled = {line.split(",")[0] for line in lines}
    rows = json.loads((data_root / f"{name}.json").read_text())
    texts = [row["caption"] for row in rows if str(row["image_id"]) in labelled]
    corpus = corpus_of(*texts)
    flags = echoes(captions_without_prompts(corpus)[0])
    tags = [corpus.model.text(row) == "no caption" for row in range(len(corpus.model))]
    assert (int(flags.sum()), int(np.sum(tags))) == (asking, empty)
