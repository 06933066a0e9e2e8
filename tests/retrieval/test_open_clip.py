"""Models of open_clip against what the library makes of the same folder."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("open_clip", reason="extra open-clip is not installed")

from PIL import Image  # noqa: E402

from bias_pipeline.errors import AbsentModelError, DataError, UsageError  # noqa: E402
from bias_pipeline.retrieval.open_clip import OpenClipModel  # noqa: E402
from bias_pipeline.retrieval.open_clip_folder import CONFIG, find_open_clip  # noqa: E402
from tests.open_clip_files import (  # noqa: E402
    TEXT,
    VISION,
    WEIGHTS,
    copy_changed,
    write_of_words,
    write_open_clip,
)

CPU = torch.device("cpu")
TEXTS = ["a dog", "A Woman on the beach", "a red dog " * 12]
NOISE = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
PICTURES = [
    Image.fromarray(pixels) for pixels in (NOISE, NOISE.transpose(1, 0, 2), NOISE[:32, :32])
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_open_clip(tmp_path_factory.mktemp("open_clip"))


@cache
def our_model(folder: Path, *, quick: bool = False, weights: str | None = None) -> OpenClipModel:
    return OpenClipModel(find_open_clip(str(folder), weights), CPU, quick)


@cache
def photos_of(folder: Path, *, quick: bool = False) -> Any:
    model = our_model(folder, quick=quick)
    return model.photos([model.prepare(one) for one in PICTURES], normalize=True)


@cache
def library(folder: Path, *, quick: bool = False) -> tuple[Any, Any]:
    """The library's own vectors of pictures and texts, one at a time."""
    import open_clip

    name = f"local-dir:{folder}"
    network, process = open_clip.create_model_from_pretrained(name, force_quick_gelu=quick)
    read = open_clip.get_tokenizer(name)
    with torch.inference_mode():
        network.eval()
        images = [network.encode_image(process(one)[None], normalize=True) for one in PICTURES]
        texts = [network.encode_text(read([one]), normalize=True) for one in TEXTS]
    return torch.cat(images).numpy(), torch.cat(texts).numpy()


@pytest.mark.parametrize("kind", ["gelu", "quick", "tokenizer of transformers"])
def test_vectors_are_the_library_s(folder, tmp_path, kind):
    if kind.startswith("tokenizer"):
        folder = write_of_words(tmp_path / "words", init_logit_bias=-10)
    photos, texts = library(folder, quick=kind == "quick")
    np.testing.assert_allclose(photos_of(folder, quick=kind == "quick"), photos, atol=1e-5)
    ours = our_model(folder, quick=kind == "quick").texts(TEXTS)
    np.testing.assert_allclose(ours, texts, atol=1e-5)


def test_quick_gelu_gives_other_vectors(folder):
    photos = [photos_of(folder, quick=quick) for quick in (False, True)]
    texts = [our_model(folder, quick=quick).texts(TEXTS) for quick in (False, True)]
    for gelu, approximate in (photos, texts):
        assert np.abs(gelu - approximate).max() > 1e-3


@pytest.mark.parametrize(
    "shown",
    [
        {"resize_mode": "squash"},
        {"resize_mode": "longest", "fill_color": 90},
        {"interpolation": "bilinear"},
        {"mean": [0.5, 0.5, 0.5], "std": 0.5},
    ],
)
def test_preprocessing_travels_with_the_weights(folder, tmp_path, shown):
    mine = copy_changed(folder, tmp_path / "mine", preprocess_cfg=shown)
    np.testing.assert_allclose(photos_of(mine), library(mine)[0], atol=1e-5)
    assert np.abs(photos_of(mine) - photos_of(folder)).max() > 1e-5


def test_lengths_are_the_model_s_own_where_it_is_asked(folder):
    model = our_model(folder)
    shown = [model.prepare(one) for one in PICTURES]
    raw = model.photos(shown, normalize=False)
    length = np.linalg.norm(raw, axis=1, keepdims=True)
    assert np.abs(length - 1).max() > 1e-3
    np.testing.assert_allclose(raw / length, model.photos(shown, normalize=True), atol=1e-6)


def test_files_of_pytorch_are_read_as_numbers(folder, tmp_path):
    mine = copy_changed(folder, tmp_path / "mine")
    from safetensors.torch import load_file

    weights = load_file(mine / WEIGHTS)
    (mine / WEIGHTS).unlink()
    for file in mine.glob("*.bin"):
        file.unlink()
    named = {f"module.{name}": value for name, value in weights.items()}
    torch.save({"state_dict": named, "epoch": 3}, mine / "epoch_3.pt")
    with pytest.raises(AbsentModelError, match=r"open_clip_model\.safetensors is absent"):
        find_open_clip(str(mine))
    texts = our_model(mine, weights="epoch_3.pt").texts(TEXTS)
    np.testing.assert_array_equal(texts, our_model(folder).texts(TEXTS))


@pytest.mark.parametrize(
    ("part", "changes", "expected"),
    [
        ("model_cfg", {"embed_dim": 8}, r"it is not what open_clip_config\.json describes"),
        ("model_cfg", {"embed_dim": "x"}, "open_clip cannot build it"),
        ("model_cfg", {"quick_gelu": "yes"}, r"model_cfg\.quick_gelu"),
        ("model_cfg", {"vision_cfg": {**VISION, "image_size": 10**5}}, "1 to 4096 pixels"),
        (
            "model_cfg",
            {"vision_cfg": {"timm_model_name": "hf-hub:a/b"}},
            "is not one of timm's own names",
        ),
        ("model_cfg", {"text_cfg": {"hf_model_name": "roberta-base"}}, "hf_model_name"),
        ("model_cfg", {"text_cfg": {**TEXT, "tokenizer_kwargs": {"bpe_path": "x"}}}, "bpe_path"),
        ("preprocess_cfg", {"std": [0.1, 0.2, 0]}, "three numbers, each above 0"),
        ("preprocess_cfg", {"mean": [0.1]}, "preprocess_cfg.mean must be three numbers"),
        ("preprocess_cfg", {"resize_mode": "bend"}, "name one of shortest, longest, squash"),
    ],
)
def test_a_configuration_that_is_not_built_is_refused(folder, tmp_path, part, changes, expected):
    mine = copy_changed(folder, tmp_path / "mine", **{part: changes})
    with pytest.raises(DataError, match=expected):
        our_model(mine)


def test_absent_files_are_named(folder, tmp_path):
    mine = copy_changed(folder, tmp_path / "mine")
    with pytest.raises(AbsentModelError, match=r"nope\.pt is absent"):
        find_open_clip(str(mine), "nope.pt")
    with pytest.raises(UsageError, match="give a file's name"):
        find_open_clip(str(mine), "../evil.pt")
    (mine / CONFIG).unlink()
    with pytest.raises(AbsentModelError, match=r"open_clip_config\.json is absent"):
        find_open_clip(str(mine))
    with pytest.raises(AbsentModelError, match=r"encoder\.model=null"):
        find_open_clip(None)


def test_the_vocabulary_must_be_there_where_it_is_named(folder, tmp_path):
    mine = copy_changed(folder, tmp_path / "mine")
    config = json.loads((mine / CONFIG).read_text())
    config["model_cfg"]["text_cfg"]["hf_tokenizer_name"] = "nobody/words"
    (mine / CONFIG).write_text(json.dumps(config))
    with pytest.raises(AbsentModelError, match="tokenizer's vocabulary is absent"):
        find_open_clip(str(mine))
