"""Model folders of others: what is missing is named, what is absurd is refused, at once."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.errors import BiasPipelineError, DataError, ResourceError
from bias_pipeline.models.model_location import (
    check_config,
    check_preprocessing,
    require_vocabulary,
)
from bias_pipeline.models.pretrained import Preprocessing, find_pretrained, load
from tests.tiny_models import write_clip

KINDS = ("clip",)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture
def folder(clip: Path, tmp_path: Path) -> Path:
    path: Path = shutil.copytree(clip, tmp_path / "model")
    return path


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("files", [["config.json"], ["vocab.json"], []])
def test_a_folder_without_a_vocabulary_names_what_to_fetch(tmp_path, files):
    with pytest.raises(
        ResourceError, match=rf"{tmp_path}: .*vocabulary is absent; fetch tokenizer"
    ):
        require_vocabulary(tmp_path, files)


@pytest.mark.parametrize(
    "files", [["tokenizer.json"], ["vocab.txt"], ["vocab.json", "merges.txt"], ["spiece.model"]]
)
def test_every_kind_of_vocabulary_will_do(tmp_path, files):
    require_vocabulary(tmp_path, files)


@pytest.mark.parametrize(
    "name", ["fits/sta", "./fits/sta", "fits/sta/", "fitz/./sat", "./fitz/sat"]
)
def test_a_misspelt_folder_is_told_with_the_one_that_was_meant(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fits" / "sat").mkdir(parents=True)
    with pytest.raises(ResourceError) as refused:
        find_pretrained(name, None)
    assert str(refused.value) == f"model {name}: there is no such folder; did you mean 'fits/sat'?"


def test_a_name_that_may_be_a_misspelt_folder_is_told_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_model").mkdir()
    message = r"neither a folder at .* did you mean 'my_model'.* models prefetch my_modl"
    with pytest.raises(ResourceError, match=message):
        find_pretrained("my_modl", None)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "preprocessor_config.json"])
def test_a_file_that_is_absent_is_named_with_its_folder(folder, name):
    (folder / name).unlink()
    with pytest.raises(ResourceError, match=rf"{folder}.*{name}"):
        Preprocessing(find_pretrained(str(folder), KINDS))


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("text_config", "num_hidden_layers", 10**9),
        ("vision_config", "num_hidden_layers", 10**9),
        ("vision_config", "image_size", 10**9),
        ("text_config", "vocab_size", 10**12),
        ("text_config", "hidden_size", -(10**9)),
        ("vision_config", "_attn_implementation", "somebody/kernel"),
        ("vision_config", "attn_implementation", "somebody/kernel:forward"),
    ],
)
def test_an_absurd_configuration_is_refused_with_its_key(folder, part, key, value):
    path = folder / "config.json"
    load = json.loads(path.read_text())[part]
    change(path, **{part: {**load, key: value}})
    with pytest.raises(DataError, match=rf"config\.json: {key} is "):
        find_pretrained(str(folder), KINDS)


MILLION = {"max_position_embeddings": 1_010_000}  # positions, as of Qwen 2.5 for long texts


@pytest.mark.parametrize(
    "config",
    [
        {"text_config": {"rope_theta": 10_000_000}},  # of Qwen 3 of 2507
        {"text_config": {"vocab_size_per_layer_input": 262_144}},  # of Gemma 3n
        {**MILLION, "rope_theta": 10_000_000.0},
        *({"attn_implementation": one} for one in ("eager", "sdpa", None, {"a": "eager"})),
        *({"cache_implementation": one} for one in ("hybrid", "static", None)),
    ],
)
def test_settings_of_published_models_are_accepted(config):
    check_config(Path("config.json"), config)


KERNEL = {"a": "somebody/kernel"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        *(
            ({"text_config": {key: KERNEL}}, "code of a hub is not loaded")
            for key in ("kernel_config", "use_kernels", "quantization_config")
        ),
        (
            {"cache_implementation": "somebody/cache"},
            "cache_implementation is 'somebody/cache'",
        ),
        (MILLION, "max_position_embeddings"),  # a table of so many learnt positions
    ],
)
def test_code_of_a_hub_and_huge_tables_are_refused(config, message):
    with pytest.raises(DataError, match=message):
        check_config(Path("config.json"), config)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rotary_positions_stay_exact_in_any_precision(dtype, tmp_path):
    import torch
    from transformers import AutoModelForCausalLM, GemmaConfig, GemmaForCausalLM

    sizes = {"hidden_size": 72, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 16}
    config = GemmaConfig(vocab_size=9, num_attention_heads=2, num_key_value_heads=1, **sizes)
    GemmaForCausalLM(config).to(torch.bfloat16).save_pretrained(tmp_path)
    model = find_pretrained(str(tmp_path), ["gemma"])
    network = load(model, AutoModelForCausalLM, torch.device("cpu"), dtype=dtype)
    assert (str(network.dtype), str(network.model.rotary_emb.inv_freq.dtype)) == (
        f"torch.{dtype}",
        "torch.float32",
    )


def test_sizes_that_the_weights_have_not_are_refused(folder):
    import torch
    from transformers import CLIPModel

    path = folder / "config.json"
    text_config = json.loads(path.read_text())["text_config"]
    change(path, text_config={**text_config, "hidden_size": 10**6, "intermediate_size": 10**6})
    with pytest.raises(BiasPipelineError, match="cannot be loaded"):
        load(find_pretrained(str(folder), KINDS), CLIPModel, torch.device("cpu"))


@pytest.mark.parametrize("side", [0, -1, 10**6, "224", 3.5, True])
@pytest.mark.parametrize("key", ["size", "crop_size"])
def test_pictures_of_no_size_or_a_huge_one_are_refused(folder, key, side):
    change(folder / "preprocessor_config.json", **{key: {"height": side, "width": 32}})
    with pytest.raises(DataError, match=rf"preprocessor_config\.json: {key} is"):
        Preprocessing(find_pretrained(str(folder), KINDS))


IN_ALL = {"merge_size": 2, "size": {"shortest_edge": 65_536, "longest_edge": 16_777_216}}
VIDEOS = {"merge_size": 2, "size": {"shortest_edge": 4096, "longest_edge": 25_165_824}}


@pytest.mark.parametrize(
    "config",
    [
        *(
            {"size": size, "image_mean": [0.5]}
            for size in (224, [224, 224], {"shortest_edge": 224, "longest_edge": None})
        ),
        # A number of pixels in all, as transformers writes for Qwen-VL and GLM-V
        IN_ALL,
        {"image_processor": IN_ALL, "video_processor": VIDEOS},
    ],
)
def test_sizes_as_they_are_written_are_accepted(config):
    check_preprocessing(Path("processor_config.json"), config)


def test_a_huge_number_of_pixels_in_all_is_refused():
    config = {"merge_size": 2, "size": {"shortest_edge": 1, "longest_edge": 10**9}}
    with pytest.raises(DataError, match="pictures have 1 to 16777216 pixels in all"):
        check_preprocessing(Path("p.json"), {"image_processor": config})


def test_preprocessing_that_fails_is_a_sentence(folder):
    change(folder / "preprocessor_config.json", image_mean=[0.5])
    with pytest.raises(DataError, match="preprocessing cannot be loaded"):
        Preprocessing(find_pretrained(str(folder), KINDS))
