"""Towers of CLIP and SigLIP against what the library's whole models say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")
import torch

from bias_pipeline.models.clip import KINDS, SIGLIP, ClipPhotos, ClipTexts
from bias_pipeline.models.pretrained import Pretrained, find_pretrained
from tests.tiny_models import write_clip, write_siglip

CPU = torch.device("cpu")
TEXTS = ["a dog", "a woman on the beach", "a red dog"]
PHOTOS = np.random.default_rng(0).normal(size=(3, 3, 32, 32)).astype(np.float32)


@pytest.fixture(params=[write_clip, write_siglip], ids=KINDS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Pretrained:
    write: Callable[[Path], Path] = request.param
    return find_pretrained(str(write(tmp_path)), KINDS)


def library_vectors(model: Pretrained, texts: list[str]) -> Any:
    """What the library's own model makes of photos and texts, prepared as its examples do."""
    import transformers

    siglip = model.kind == SIGLIP
    network = (transformers.SiglipModel if siglip else transformers.CLIPModel).from_pretrained(
        model.folder
    )
    read = transformers.AutoTokenizer.from_pretrained(model.folder)
    padding = {"padding": "max_length", "max_length": 12} if siglip else {"padding": True}
    tokens = read(texts, return_tensors="pt", **padding)
    if siglip:
        tokens = {"input_ids": tokens["input_ids"]}
    with torch.inference_mode():
        return network.eval()(pixel_values=torch.from_numpy(PHOTOS), **tokens)


def test_texts_and_photos_are_where_the_whole_model_puts_them(model):
    descriptions = ClipTexts(model, CPU, normalize=True).describe(TEXTS)
    np.testing.assert_allclose(
        descriptions, library_vectors(model, TEXTS).text_embeds.numpy(), atol=1e-6
    )
    descriptions = ClipPhotos(model, CPU, normalize=True).describe(list(PHOTOS))
    np.testing.assert_allclose(
        descriptions, library_vectors(model, TEXTS).image_embeds.numpy(), atol=1e-6
    )
    texts = ClipTexts(model, CPU, normalize=False)
    np.testing.assert_allclose(texts.describe(TEXTS)[:1], texts.describe(TEXTS[:1]), atol=1e-6)


def test_siglip_reads_lower_case(tmp_path):
    texts = ClipTexts(find_pretrained(str(write_siglip(tmp_path)), KINDS), CPU, normalize=True)
    assert np.array_equal(texts.describe(["A Dog"]), texts.describe(["a dog"]))
