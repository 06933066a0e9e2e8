"""``embed`` of every model of pictures and texts gives the vectors that retrieval compares."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.data.photos import find_photos
from bias_pipeline.models.merge_shards import read_embeddings
from bias_pipeline.run import compose
from tests.cli.commands import Run
from tests.fiber_files import write_fiber
from tests.open_clip_files import write_open_clip
from tests.photo_folder import write_photos
from tests.tiny_models import write_clip, write_matching_blip, write_siglip

Model = tuple[Path, Any]
CAPTIONS = ["a man rides a horse", "a woman"]
NO_OPEN_CLIP = pytest.mark.skipif(not find_spec("open_clip"), reason="open_clip is not installed")
MODELS = [
    pytest.param(("clip", write_clip), id="clip"),
    pytest.param(("clip", write_siglip), id="siglip"),
    pytest.param(("clip", write_matching_blip), id="blip"),
    pytest.param(("fiber", write_fiber), id="fiber"),
    pytest.param(("open_clip", write_open_clip), id="open_clip", marks=NO_OPEN_CLIP),
]


def gather(run: Run, *words: str) -> np.ndarray:
    for more in ((*words, "--out", "out"), ("--gather", "out")):
        code, output = run("embed", *more)
        assert code == 0, output
    return read_embeddings(Path("out", "embeddings.parquet"))[1]


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A model's folder, and what retrieval compares with it."""
    encoder, write = request.param
    folder = write(tmp_path_factory.mktemp("model") / "model")
    words = ["metric=retrieval_fairness", f"encoder={encoder}", f"encoder.model={folder}"]
    return folder, compose.cell([*words, "encoder.cache=null"]).build("encoder").dual("none")


def test_photos_are_what_retrieval_compares(run, tmp_path, model):
    folder, dual = model
    photos = write_photos(tmp_path / "photos", 3)
    expected = dual.images.embed(Pictures(tuple(find_photos(photos).values())))
    by_image = gather(run, str(photos), "--model", str(folder))
    assert np.allclose(by_image, expected, atol=1e-5)


def test_texts_are_what_retrieval_compares(run, tmp_path, model):
    folder, dual = model
    lines = [{"image_id": number, "caption": caption} for number, caption in enumerate(CAPTIONS)]
    (tmp_path / "mine.json").write_text(json.dumps(lines))
    by_image = gather(run, "--texts", str(tmp_path / "mine.json"), "--model", str(folder))
    assert np.allclose(by_image, dual.texts.embed(CAPTIONS), atol=1e-5)


def test_texts_that_are_of_length_one_cannot_be_left_longer(ends, tmp_path):
    model = write_fiber(tmp_path / "model")
    (tmp_path / "mine.json").write_text(json.dumps([{"image_id": 1, "caption": "a man"}]))
    words = ("--texts", str(tmp_path / "mine.json"), "--model", str(model), "--out", "out")
    assert "gives texts of length 1" in ends(2, "embed", *words, "--no-normalize")


def test_a_model_of_no_such_kind_is_refused(ends, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps({"model_type": "resnet"}))
    photos = write_photos(tmp_path / "photos", 3)
    assert "siglip" in ends(
        3, "embed", str(photos), "--model", str(tmp_path / "model"), "--out", "out"
    )
