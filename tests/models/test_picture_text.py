"""Image-text models of five kinds say how likely answers are; the same under both transformers."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers", reason="extra models is not installed")
torch = pytest.importorskip("torch")

from bias_pipeline.corpus.pictures import Pictures  # noqa: E402
from bias_pipeline.data.image_masking import Blank  # noqa: E402
from bias_pipeline.data.photos import read_pixels  # noqa: E402
from bias_pipeline.errors import BiasPipelineError, DataError, ResourceError  # noqa: E402
from bias_pipeline.models.picture_text import KINDS, PictureText, Question  # noqa: E402
from bias_pipeline.models.pretrained import find_pretrained  # noqa: E402
from tests.photo_folder import write_photos  # noqa: E402
from tests.tiny_models import write_gpt2  # noqa: E402
from tests.tiny_picture_text import APART, WRITERS, write  # noqa: E402

SIDE = 48
BEFORE = "a person rides a horse therefore the gender is"
GROUPS = ("male", "female")
GOING_ON = [kind for kind in WRITERS if kind not in APART]  # one sequence, prompt and answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Pictures:
    photos = write_photos(tmp_path_factory.mktemp("photos"), 3)
    return Pictures(tuple(sorted(photos.iterdir())))


@cache
def model(folder: Path, kind: str) -> PictureText:
    place = folder / kind
    pretrained = find_pretrained(str(place if place.is_dir() else write(place, kind)), KINDS)
    return PictureText(pretrained, torch.device("cpu"), SIDE)


def answer_log_probs(model: PictureText, *questions: Question) -> np.ndarray[Any, Any]:
    return np.array(model.describe([model.read(one) for one in questions]))


@pytest.mark.parametrize("kind", WRITERS)
def test_answers_are_as_likely_alone_as_among_others(kind, folder, pictures):
    built_model = model(folder, kind)
    texts = (BEFORE, "the gender is", "a small red dog on the beach therefore the gender is")
    questions = [Question(pictures, row, text, GROUPS) for row in range(3) for text in texts]
    alone = np.concatenate([answer_log_probs(built_model, one) for one in questions])
    assert answer_log_probs(built_model, *questions) == pytest.approx(alone, abs=1e-4)


@pytest.mark.parametrize("kind", GOING_ON)
def test_two_words_are_as_likely_as_one_after_the_other(kind, folder, pictures):
    built_model = model(folder, kind)
    both = answer_log_probs(
        built_model, Question(pictures, 0, BEFORE, ("young male", "old female"))
    )
    first = answer_log_probs(built_model, Question(pictures, 0, BEFORE, ("young", "old")))
    then = [
        answer_log_probs(built_model, Question(pictures, 0, f"{BEFORE} {word}", (next_word,)))[0, 0]
        for word, next_word in (("young", "male"), ("old", "female"))
    ]
    assert both[0] == pytest.approx(first[0] + then, abs=1e-4)


@pytest.mark.parametrize("kind", WRITERS)
def test_an_answer_is_as_likely_as_the_model_is_to_write_it(kind, folder, pictures):
    """By the library's own generation, which prepares texts in its own way."""
    built_model = model(folder, kind)
    network, tokenizer = built_model.network, built_model._processor.tokenizer
    inputs = built_model.read(Question(pictures, 0, BEFORE, GROUPS)).inputs
    if kind == "blip":  # generation puts the sign for the beginning, and takes the end away
        ids = torch.cat([inputs["input_ids"], torch.tensor([[tokenizer.sep_token_id]])], 1)
        inputs = {**inputs, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
    # Signs that a model of an answer apart is made to write come before.
    forced = kind in APART and network.generation_config.forced_bos_token_id is not None
    written = network.generate(
        **inputs,
        max_new_tokens=1 + forced,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
    )
    words = written.logits[-1][0].float().log_softmax(0)
    expected = [float(words[tokenizer.convert_tokens_to_ids(group)]) for group in GROUPS]
    result = answer_log_probs(built_model, Question(pictures, 0, BEFORE, GROUPS))[0]
    assert result == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", WRITERS)
def test_the_picture_is_looked_at(kind, folder, pictures):
    blank = pictures.with_edit(Blank())
    recorded, unseen = (
        answer_log_probs(model(folder, kind), Question(item, 0, BEFORE, GROUPS))
        for item in (pictures, blank)
    )
    assert np.abs(recorded - unseen).max() > 1e-4


def test_a_picture_is_shown_as_to_all_others(folder, pictures):
    built_model = model(folder, "blip")
    content = built_model.read(Question(pictures, 0, BEFORE, GROUPS))
    by_hand = built_model._processor.image_processor(
        images=read_pixels(pictures, 0, SIDE), return_tensors="pt"
    )
    assert torch.equal(content.inputs["pixel_values"], by_hand["pixel_values"])


@pytest.mark.parametrize(
    ("before", "follows", "message"),
    [
        (BEFORE, ("male", "zebra"), "its vocabulary cannot write 'zebra'; give other words"),
        ("dog " * 80, GROUPS, r"reads 64 tokens, and 'dog .* has 8\d; shorten encoder.prompt"),
    ],
)
def test_what_cannot_be_asked_is_refused(before, follows, message, folder, pictures):
    with pytest.raises(DataError, match=message):
        model(folder, "git").read(Question(pictures, 0, before, follows))


def test_a_text_longer_than_florence_2_reads_is_refused(folder, pictures):
    if not (folder / "florence2").is_dir():
        pytest.skip("this major of transformers has no Florence-2")
    with pytest.raises(DataError, match=r"reads 64 tokens, and 'dog .*; shorten encoder.prompt"):
        model(folder, "florence2").read(Question(pictures, 0, "dog " * 80, GROUPS))


def test_a_model_without_pictures_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"model type 'gpt2' is not supported here.*blip-2"):
        find_pretrained(str(write_gpt2(tmp_path)), KINDS)


@pytest.mark.parametrize(
    ("absent", "error", "message"),
    [
        (("preprocessor_config.json", "processor_config.json"), ResourceError, "is absent; fetch"),
        (("tokenizer.json", "vocab.txt"), ResourceError, "the tokenizer's vocabulary is absent"),
        (("model.safetensors",), BiasPipelineError, "model.safetensors is absent"),
    ],
)
def test_what_is_missing_is_named(absent, error, message, tmp_path):
    place = write(tmp_path / "model", "blip")
    for name in absent:
        (place / name).unlink(missing_ok=True)
    with pytest.raises(error, match=message):
        PictureText(find_pretrained(str(place), KINDS), torch.device("cpu"), SIDE)


def test_a_broken_processor_is_told(folder, tmp_path):
    model(folder, "blip")
    place = tmp_path / "model"
    shutil.copytree(folder / "blip", place)
    (place / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "Nobodys"}))
    (place / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match=r"its processor cannot be loaded \("):
        PictureText(find_pretrained(str(place), KINDS), torch.device("cpu"), SIDE)


def test_it_computes_in_the_precision_that_is_asked_for(folder, pictures):
    model(folder, "llava")
    pretrained = find_pretrained(str(folder / "llava"), KINDS)
    half = PictureText(pretrained, torch.device("cpu"), SIDE, "bfloat16")
    assert half.network.dtype == torch.bfloat16
    assert np.isfinite(answer_log_probs(half, Question(pictures, 0, BEFORE, GROUPS))).all()


def test_a_question_has_a_form(folder, pictures):
    """Questions of other lengths are not filled up, so nobody is read beside signs for nothing."""
    built_model = model(folder, "git")
    one = built_model.read(Question(pictures, 0, BEFORE, GROUPS))
    other = built_model.read(Question(pictures, 1, BEFORE, GROUPS))
    longer = built_model.read(Question(pictures, 0, f"red {BEFORE}", GROUPS))
    assert one.form == other.form != longer.form
