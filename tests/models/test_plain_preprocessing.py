"""Photos prepared in fewer steps: equal in every bit, or left to transformers."""

import json
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.models.plain_preprocessing import PlainPreprocessing
from bias_pipeline.models.pretrained import find_pretrained, image_processor
from bias_pipeline.models.torchvision import make_importable
from tests.tiny_models import write_preprocessing

SIZES = ((640, 480), (33, 47), (20, 300), (31, 8), (224, 224), (5, 5))
PLAIN = (
    "CLIPImageProcessor",
    "SiglipImageProcessor",
    "BlipImageProcessor",
    "ViTImageProcessor",
    "DeiTImageProcessor",
)
OWN_STEPS = (
    "ConvNextImageProcessor",
    "DetrImageProcessor",
    "YolosImageProcessor",
    "ViltImageProcessor",
    "EfficientNetImageProcessor",
    "LevitImageProcessor",
)


@pytest.fixture
def processor(tmp_path):
    """The processor of a name, with other settings if given."""
    make_importable()

    def read(name: str, **settings: Any) -> Any:
        write_preprocessing(tmp_path, name)
        path = tmp_path / "preprocessor_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | settings))
        (tmp_path / "config.json").write_text('{"model_type": "clip"}')
        (tmp_path / "model.safetensors").touch()
        return image_processor(find_pretrained(str(tmp_path), None))

    return read


def noise(size: tuple[int, int]) -> Image.Image:
    width, height = size
    numbers = np.random.default_rng(width).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(numbers)


def is_quick(processor: Any) -> bool:
    return isinstance(processor.preprocess, PlainPreprocessing)


def assert_equal(processor: Any, photo: Any) -> None:
    """The quick way and the library's give the same bits."""
    quick, usual = (
        way(photo, return_tensors="pt")["pixel_values"].numpy()
        for way in (processor.preprocess, type(processor).preprocess.__get__(processor))
    )
    assert quick.dtype == usual.dtype
    np.testing.assert_array_equal(quick, usual)


@pytest.mark.parametrize("name", PLAIN)
def test_a_photo_of_any_size_gives_the_librarys_numbers(name, processor):
    made = processor(name)
    assert is_quick(made)
    for size in SIZES:
        assert_equal(made, noise(size))


@pytest.mark.parametrize(
    "settings",
    [
        {"crop_size": {"height": 45, "width": 20}},  # larger than the photo, and filled up
        {"size": {"shortest_edge": 41}, "do_center_crop": False},
        {"do_normalize": False},
        {"do_rescale": False},
        {"rescale_factor": 1 / 127.5},
        {"resample": 2},
        {"image_mean": 0.4, "image_std": 0.3},
    ],
)
def test_settings_give_the_librarys_numbers(settings, processor):
    made = processor("CLIPImageProcessor", **settings)
    assert is_quick(made)
    for size in SIZES:
        assert_equal(made, noise(size))


@pytest.mark.parametrize("name", OWN_STEPS)
def test_a_processor_with_steps_of_its_own_stays_as_it_is(name, processor):
    assert not is_quick(processor(name))


@pytest.mark.parametrize(
    "settings",
    [
        {"do_resize": False},
        {"size": {"shortest_edge": 20, "longest_edge": 30}, "do_center_crop": False},
        {"do_pad": True, "pad_size": {"height": 64, "width": 64}},
    ],
)
def test_settings_that_are_not_known_leave_it_as_it_is(settings, processor):
    assert not is_quick(processor("CLIPImageProcessor", **settings))


def test_one_that_rounds_otherwise_stays_as_it_is(processor, monkeypatch):
    """As a future version might."""
    usual = PlainPreprocessing._numbers
    monkeypatch.setattr(PlainPreprocessing, "_numbers", lambda *a: usual(*a) + np.float32(1e-6))
    assert not is_quick(processor("CLIPImageProcessor"))


@pytest.mark.parametrize(
    "photo",
    [noise((30, 40)).convert("L"), noise((30, 40)).convert("RGBA"), [noise((30, 40))] * 2],
    ids=["grey", "transparent", "two"],
)
def test_what_is_no_single_rgb_photo_is_the_librarys(photo, processor):
    assert_equal(processor("CLIPImageProcessor"), photo)
