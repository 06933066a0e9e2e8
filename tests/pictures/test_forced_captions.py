"""Captions read again, word by word, by the model that wrote them."""

import warnings
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from bias_pipeline.errors import NotApplicableError
from bias_pipeline.models.generation import usual_prompt
from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.pictures.forced_captions import FittedForced, PublishedForced
from tests.pictures.captioners.test_fitted import write as write_fitted
from tests.tiny_chat_models import tiny_captioner
from tests.tiny_models import write_pair
from tests.tiny_picture_text import WRITERS, write

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
KINDS = [
    kind
    for kind in ("sat", "grit", "blip", "git", "blip-2", "blip-2-t5", "florence2", "paligemma",
                 "vision-encoder-decoder")
    if kind in (*WRITERS, "sat", "grit", "paligemma", "vision-encoder-decoder")
]  # fmt: skip


@lru_cache
def captioner(kind: str) -> Any:
    """A captioner of random weights."""
    folder = Path(mkdtemp()) / "mine"
    if kind in ("sat", "grit"):
        write_fitted(folder, kind)
    elif kind == "vision-encoder-decoder":
        write_pair(folder)
    elif kind in WRITERS:
        write(folder, kind)
    else:
        folder = tiny_captioner(kind)
    model = find_pretrained(str(folder), None)
    if kind in ("sat", "grit"):
        return FittedForced(model, torch.device("cpu"))
    decoding = Decoding(prompt=usual_prompt(model.kind), max_new_tokens=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PublishedForced(model, torch.device("cpu"), decoding)


def photos(n: int = 2) -> list[Image.Image]:
    generator = np.random.default_rng(3)
    return [Image.fromarray(generator.integers(0, 256, (40, 48, 3), np.uint8)) for _ in range(n)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_likeliest_words_read_again_are_those_it_wrote(kind):
    model = captioner(kind)
    pictures = [model.prepare(photo) for photo in photos()]
    captions = model.write(pictures)
    with torch.no_grad():
        logits = model.logits(pictures, captions)
    for of_caption, caption in zip(logits, captions, strict=True):
        written = list(caption.tokens)
        assert written
        if kind == "florence2":  # is made to write one sign first and one last
            of_caption, written = of_caption[1:], written[1:5]
        if kind == "vision-encoder-decoder":  # never writes signs (suppress_tokens)
            of_caption[:, [0, 1, 2, 4]] = -torch.inf
        if kind in ("sat", "grit"):  # write no specials
            of_caption[:, :3] = -torch.inf
        assert of_caption[: len(written)].argmax(dim=1).tolist() == written


@pytest.mark.parametrize("kind", KINDS)
def test_logits_do_not_depend_on_the_batch(kind):
    model = captioner(kind)
    pictures = [model.prepare(photo) for photo in photos()]
    captions = model.write(pictures)
    with torch.no_grad():
        together = model.logits(pictures, captions)
        alone = model.logits(pictures[1:], captions[1:])
    torch.testing.assert_close(together[1:, : alone.shape[1]], alone, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["sat", "blip", "git"])
def test_spans_cut_the_caption_into_its_words(kind):
    model = captioner(kind)
    (caption,) = model.write([model.prepare(photos(1)[0])])
    words = [caption.text[start:end].strip() for start, end in caption.spans]
    assert [word for word in words if word] == caption.text.split()


@pytest.mark.parametrize("kind", ["blip", "paligemma"])
def test_a_word_within_a_caption_has_its_own_token(kind):
    tokens = captioner(kind)._processor.tokenizer
    assert captioner(kind).first_token("dog") == tokens.convert_tokens_to_ids("dog")
    assert captioner(kind).first_token("no such word") is None


def test_a_captioner_that_cuts_pictures_is_refused():
    model = captioner("llava_onevision")
    with pytest.raises(NotApplicableError, match="cuts pictures into pieces"):
        model.pixels(model.prepare(photos(1)[0]))
