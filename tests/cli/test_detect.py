"""``data detect``: what is detected, and models that cannot."""

import json
from pathlib import Path

import pytest

from bias_pipeline.data.picture_files import regions_by_id
from tests.photo_folder import write_photos
from tests.tiny_detectors import write_detector

N_PHOTOS = 20


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), N_PHOTOS)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return write_detector(tmp_path_factory.mktemp("model"), "mask2former")


@pytest.fixture
def words(photos, model) -> tuple[str, ...]:
    options = ("--model", str(model), "--out", "out", "--threads", "1")
    return ("data", "detect", str(photos), *options)


def test_image_masking_reads_it(ok, words):
    ok(*words)
    assert "dataset.regions=out/detections.json" in ok("data", "detect", "--gather", "out")
    rows = json.loads(Path("out", "detections.json").read_text())
    result = regions_by_id(Path("out", "detections.json"))
    assert sum(map(len, result.values())) == len(rows)
    regions = [item for recorded in result.values() for item in recorded]
    assert {item.category for item in regions} <= {"person", "dog", "kite", "dining table"}
    assert all(item.has_outline for item in regions)


def test_nothing_certain_enough_is_told(ok, ends, words):
    ok(*words, "--min-score", "0.999")
    printed = ends(3, "data", "detect", "--gather", "out")
    assert f"found nothing in {N_PHOTOS} images; lower --min-score" in printed


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("facebook/no-detr", 5, "models prefetch facebook/no-detr"),
        ("nowhere.pth", 5, "fetch torchvision's weights"),
        ("nobody", 3, "is 'person', so it cannot find people"),
        ("efficientnet_lite0", 2, "metric.context takes classifiers"),
    ],
)
def test_a_model_that_cannot_is_a_sentence(name, code, message, ends, words, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(Path.cwd()))
    write_detector(Path("nobody"), "detr", ("table", "kite"))
    assert message in ends(code, *words, "--model", name)


def test_models_show_tells_what_takes_it(ok, model):
    assert "data detect --model" in ok("models", "show", str(model))
