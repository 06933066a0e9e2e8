"""Captions in their prompts: what is read, in which order, and what is refused."""

import numpy as np
import pytest

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.errors import UsageError
from bias_pipeline.pictures.captioners.prompt import PAD, START, UNKNOWN, Prompt, Prompted
from bias_pipeline.run.compose import cell

ENCODERS = ("sat", "grit", "hf", "hf_lora")


def put_in_prompt(prompt: Prompt, *texts: str, train: int = 1) -> Prompted:
    captions = Captions.from_texts(list(texts))
    labels = np.arange(len(texts)) % 2
    data = LabelledCaptions("model", captions, labels, 2, ("male", "female"))
    return Prompted(prompt, data, np.arange(train))


def words(captioner: Prompted, numbers: np.ndarray) -> list[str]:
    names = {UNKNOWN: "?", PAD: ".", START: "<start>"}
    names |= {number: word for word, number in captioner.vocabulary.items()}
    return [names[number] for number in numbers.tolist()]


@pytest.mark.parametrize(
    ("prompt", "texts", "row", "expected"),
    [
        (Prompt("gender"), ["a dog"], 0, "<start> a dog therefore the gender is"),
        # words that are not learnt from are unknown
        (Prompt("gender"), ["a dog", "a cat"], 1, "<start> a ? therefore the gender is"),
        (
            Prompt("age", "what is the {attribute} of {caption} ? {answer}"),
            ["a dog"],
            0,
            "<start> what is the age of a dog ?",
        ),
    ],
)
def test_what_is_read_before_the_answer(prompt, texts, row, expected):
    captioner = put_in_prompt(prompt, *texts)
    assert words(captioner, captioner.batch(np.array([row]))["tokens"][0]) == expected.split()


def test_shorter_captions_are_filled_up():
    captioner = put_in_prompt(Prompt("race"), "a dog", "dog")
    batch = captioner.batch(np.array([0, 1]))
    assert words(captioner, batch["tokens"][1])[-1] == "."
    assert batch["lengths"].tolist() == captioner.lengths.tolist() == [7, 6]


def test_answers_of_several_words_have_a_number_each():
    captioner = put_in_prompt(Prompt("race", answers={"male": "Light skin"}), "a dog")
    assert [len(numbers) for numbers in captioner.answers] == [2, 1]


def test_a_caption_after_the_answer_is_scored_too():
    captioner = put_in_prompt(Prompt("gender", "the {answer} : {caption}"), "a dog", "dog")
    batch = captioner.batch(np.array([0, 1]))
    assert words(captioner, batch["tokens"][0]) == ["<start>", "the"]
    assert words(captioner, batch["tail"][0]) == [":", "a", "dog"]
    assert batch["tail_lengths"].tolist() == [3, 2]


@pytest.mark.parametrize(
    "template", ["{caption} is", "is {answer}", "{caption} {caption} {answer}"]
)
def test_a_template_without_one_of_its_slots_is_refused(template):
    with pytest.raises(UsageError, match="must occur exactly once"):
        Prompt("gender", template)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"femal": "woman"}, "'femal' is not a group here; did you mean 'female'"),
        ({"male": "female"}, "same answer"),
    ],
)
def test_answers_that_name_no_group_are_refused(answers, message):
    with pytest.raises(UsageError, match=message):
        Prompt("gender", answers=answers).answers_of(("male", "female"))


@pytest.mark.parametrize(
    ("encoder", "choice", "before", "after"),
    [
        ("sat", "suffix", "{caption} therefore the gender is", ""),
        ("sat", "question", "{caption} what is the gender it is", ""),
        ("sat", "bare", "{caption}", ""),
        *((encoder, "cloze", "the gender is", "{caption}") for encoder in ENCODERS),
    ],
)
def test_prompts_have_names_that_every_encoder_knows(encoder, choice, before, after):
    words = ("metric=imagecaptioner2", f"encoder={encoder}", f"prompt={choice}")
    prompt = cell(words).build("encoder").prompt
    assert (" ".join(prompt.words_before), " ".join(prompt.words_after)) == (before, after)
