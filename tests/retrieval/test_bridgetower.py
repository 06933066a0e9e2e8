"""BridgeTower against the library's models, which read one picture with one text."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from PIL import Image  # noqa: E402

from bias_pipeline.commands.main import main  # noqa: E402
from bias_pipeline.errors import DataError, UsageError  # noqa: E402
from bias_pipeline.models.pretrained import find_pretrained  # noqa: E402
from bias_pipeline.retrieval.dual_encoders import (  # noqa: E402
    KINDS,
    PublishedTowers,
)
from bias_pipeline.retrieval.encoders import Clip  # noqa: E402
from bias_pipeline.retrieval.two_modes import BridgeTowerModel  # noqa: E402
from bias_pipeline.run import compose  # noqa: E402
from tests.tiny_models import write_blip, write_bridgetower, write_preprocessing  # noqa: E402

CPU = torch.device("cpu")
TEXTS = ["a dog", "a woman on the beach", "a red dog"]
PHOTOS = np.random.default_rng(0).normal(size=(2, 3, 32, 32)).astype(np.float32)
PAIRS = np.array([(photo, text) for photo in range(2) for text in range(3)] * 9)
COCO = "bias_pipeline.data.coco.CocoDataset"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bridgetower(tmp_path_factory.mktemp("bridgetower"))


@pytest.fixture(scope="module")
def our_model(folder: Path) -> BridgeTowerModel:
    return BridgeTowerModel(find_pretrained(str(folder), KINDS), CPU)


def pairs(folder: Path, architecture: Any) -> list[list[Any]]:
    """What the library makes of each photo with each text, a pair at a time, unpadded."""
    network = architecture.from_pretrained(folder).eval()
    read = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = [read([text], return_tensors="pt")["input_ids"] for text in TEXTS]
    with torch.inference_mode():
        return [
            [
                network(input_ids=token, pixel_values=torch.from_numpy(photo[None]))
                for token in tokens
            ]
            for photo in PHOTOS
        ]


def test_vectors_are_the_library_s_whatever_stands_beside_them(our_model, folder):
    result = pairs(folder, transformers.BridgeTowerForContrastiveLearning)
    photos, texts = our_model.photos(list(PHOTOS), normalize=True), our_model.texts(TEXTS)
    for k, row in enumerate(result):
        for n, pair in enumerate(row):
            np.testing.assert_allclose(photos[k], pair.image_embeds[0].numpy(), atol=1e-5)
            np.testing.assert_allclose(texts[n], pair.text_embeds[0].numpy(), atol=1e-5)
    assert np.abs(photos[0] - photos[1]).max() > 1e-2
    assert np.abs(texts[0] - texts[2]).max() > 1e-2
    raw = our_model.photos(list(PHOTOS), normalize=False)
    np.testing.assert_allclose(raw / np.linalg.norm(raw, axis=1, keepdims=True), photos, atol=1e-5)


def test_pairs_are_judged_as_by_the_library(our_model, folder):
    match = our_model.match(list(PHOTOS), our_model.encode_texts(TEXTS), PAIRS)
    printed_pairs = pairs(folder, transformers.BridgeTowerForImageAndTextRetrieval)
    wanted = np.array([[pair.logits[0, 1].item() for pair in row] for row in printed_pairs])
    np.testing.assert_allclose(match, np.tile(wanted.ravel(), 9), atol=1e-5)
    assert np.ptp(wanted) > 1e-2


def test_one_without_contrastive_heads_is_refused(tmp_path):
    model = find_pretrained(str(write_bridgetower(tmp_path, heads="judging")), KINDS)
    with pytest.raises(DataError, match="no itc_text_head and itc_image_head"):
        BridgeTowerModel(model, CPU)


def test_one_without_a_judging_head_retrieves_and_does_not_judge(tmp_path):
    model = find_pretrained(str(write_bridgetower(tmp_path, heads="contrast")), KINDS)
    towers = PublishedTowers(model, "cpu")
    assert towers.texts().describe(TEXTS).shape == (3, 16)
    with pytest.raises(UsageError, match=r"no matching head.*bridgetower-large-itm-mlm-itc"):
        assert towers.cross_encoder


def test_preprocessing_of_another_size_is_refused(tmp_path):
    folder = write_bridgetower(tmp_path)
    write_preprocessing(folder, "BridgeTowerImageProcessor", size=64)
    with pytest.raises(DataError, match="makes pictures of 64 x 64 pixels, but it needs 32"):
        BridgeTowerModel(find_pretrained(str(folder), KINDS), CPU)


def test_weights_that_are_cut_short_are_refused(tmp_path):
    path = write_bridgetower(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="not a file of weights, or cut short"):
        BridgeTowerModel(find_pretrained(str(tmp_path), KINDS), CPU)


def test_another_network_under_its_name_is_refused(tmp_path):
    folder, other = write_bridgetower(tmp_path / "own"), write_blip(tmp_path / "other")
    shutil.copy(other / "model.safetensors", folder)
    with pytest.raises(DataError, match="no itc_text_head"):
        BridgeTowerModel(find_pretrained(str(folder), KINDS), CPU)


@pytest.mark.parametrize("size", [(50, 40), (40, 50), (32, 32), (20, 90)])
def test_photos_are_cut_to_squares(our_model, size):
    assert our_model.prepare(Image.new("RGB", size)).shape == (3, 32, 32)


def test_it_judges(folder):
    assert Clip(COCO, model=str(folder)).judges


def test_it_retrieves_and_orders_again(folder):
    words = ("metric=retrieval_fairness", "dataset.n_images=60", "metric.k=5", "seeds=1")
    small = ("metric.concepts=[zoo,wine]", "metric.recall=[1]", "stats.resamples=20")
    cell = compose.cell([*words, *small, f"encoder.model={folder}", "encoder.cache=null",
                         "metric.rerank=10"])  # fmt: skip
    metric, corpus = cell.build("metric"), cell.corpus()
    metric.require()
    score = metric.compute(corpus, splits=metric.draw_splits(corpus, (0,)))
    assert 0 <= score.parts["score"].value <= 1


def test_models_show_tells_what_takes_it(folder, capsys):
    assert main(["models", "show", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "bridgetower" in out
    assert "encoder.model" in out
