"""BLIP for retrieval against what the library's whole model says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from bias_pipeline.errors import DataError, UsageError  # noqa: E402
from bias_pipeline.models.pretrained import find_pretrained  # noqa: E402
from bias_pipeline.retrieval.dual_encoders import KINDS  # noqa: E402
from bias_pipeline.retrieval.encoders import Clip  # noqa: E402
from bias_pipeline.retrieval.two_modes import BlipModel  # noqa: E402
from bias_pipeline.run import compose  # noqa: E402
from tests.tiny_models import tiny_clip, write_blip, write_matching_blip  # noqa: E402

CPU = torch.device("cpu")
TEXTS = ["a dog", "a woman on the beach", "a red dog"]
PHOTOS = np.random.default_rng(0).normal(size=(2, 3, 32, 32)).astype(np.float32)
PAIRS = np.array([(photo, text) for photo in range(2) for text in range(3)] * 9)
COCO = "bias_pipeline.data.coco.CocoDataset"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_matching_blip(tmp_path_factory.mktemp("blip"))


@pytest.fixture(scope="module")
def our_model(folder: Path) -> BlipModel:
    return BlipModel(find_pretrained(str(folder), KINDS), CPU)


def library_scores(folder: Path, *, first: int | None, itm: bool) -> Any:
    """What the library's model makes of both photos with each text; ``first``: its first token."""
    network = transformers.BlipForImageTextRetrieval.from_pretrained(folder).eval()
    read = transformers.AutoTokenizer.from_pretrained(folder)
    scores = []
    for text in TEXTS:
        tokens = read([text, text], return_tensors="pt")["input_ids"]
        if first is not None:
            tokens[:, 0] = first
        with torch.inference_mode():
            pixels = torch.from_numpy(PHOTOS)
            scores.append(network(tokens, pixels, use_itm_head=itm).itm_score.numpy())
    return scores


def test_similarities_are_those_of_the_library(our_model, folder):
    near = our_model.photos(list(PHOTOS), normalize=True) @ our_model.texts(TEXTS).T
    wanted = [similarity[:, 0] for similarity in library_scores(folder, first=None, itm=False)]
    np.testing.assert_allclose(near, np.stack(wanted, axis=1), atol=1e-5)


def test_pairs_are_judged_as_by_the_library_with_enc_first(our_model, folder):
    match = our_model.match(list(PHOTOS), our_model.encode_texts(TEXTS), PAIRS)
    last = our_model._net.config.text_config.vocab_size - 1
    wanted, plain = (
        np.stack([scores[:, 1] for scores in library_scores(folder, first=token, itm=True)], axis=1)
        for token in (last, None)
    )
    np.testing.assert_allclose(match, np.tile(wanted.ravel(), 9), atol=1e-5)
    assert np.abs(plain - wanted).max() > 1e-3


def test_one_that_writes_captions_is_refused(tmp_path):
    model = find_pretrained(str(write_blip(tmp_path)), KINDS)
    with pytest.raises(DataError, match=r"weights are missing.*is it a BlipForImageTextRetrieval"):
        BlipModel(model, CPU)


def test_it_judges_and_a_clip_does_not(folder):
    assert Clip(COCO, model=str(folder)).judges
    assert not Clip(COCO, model=str(tiny_clip())).judges


def test_it_retrieves_and_orders_again(folder):
    words = ("metric=retrieval_fairness", "dataset.n_images=60", "metric.k=5", "seeds=1")
    small = ("metric.concepts=[zoo,wine]", "metric.recall=[1]", "stats.resamples=20")
    cell = compose.cell([*words, *small, f"encoder.model={folder}", "encoder.cache=null",
                         "metric.rerank=10"])  # fmt: skip
    metric, corpus = cell.build("metric"), cell.corpus()
    metric.require()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, (0,)))
    assert 0 <= score.parts["score"].value <= 1
    clip = compose.cell([*words, f"encoder.model={tiny_clip()}", "metric.rerank=10"])
    with pytest.raises(UsageError, match="has no mode that judges"):
        clip.build("metric").require()
