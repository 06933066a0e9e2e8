"""Prompts of a generator of pictures, debiased: by CLIP's outputs, or by the states it reads."""

import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.errors import UsageError
from bias_pipeline.models.clip import ClipTexts
from bias_pipeline.models.torchvision import make_importable
from bias_pipeline.retrieval.debias.base import Debias, Debiased, Examples, edit_encoder
from bias_pipeline.retrieval.debias.export import READINGS, Reading, prompt_numbers, write_debias
from bias_pipeline.retrieval.debias.load_debias import debias_prompts
from bias_pipeline.retrieval.debias.methods import (
    ClipClip,
    Erasure,
    MeanDifference,
    MeanNeuron,
    Subspace,
    Untouched,
    ZeroNeuron,
)
from bias_pipeline.retrieval.dual_encoders import DualEncoder
from bias_pipeline.retrieval.encoders import Clip
from bias_pipeline.run import compose
from tests.tiny_models import tiny_clip, write_clip

NAMES = ("male", "female")
TEXTS = ["a doctor", "a man", "she cooks", ""]
ZERO = ZeroNeuron(k=3, side="text")
METHODS: list[Debias] = [
    ZERO,
    MeanNeuron(k=3, side="text"),
    MeanNeuron(k=3, side="text", renormalise=False),
    Subspace(k=3, side="text"),
    MeanDifference(side="text"),
    Erasure(side="text"),
]


@dataclass(frozen=True)
class Fitted:
    """A debiasing of texts, and what it was fitted to."""

    folder: Path  # with load_debias.py
    texts: Debiased  # CLIP's
    plain: ClipTexts  # its text half as it is


@cache
def attribute() -> Attribute:
    gender: Attribute = compose.cell([]).build("attribute")
    return gender


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What debiasings of prompts are written to."""
    return tmp_path_factory.mktemp("debiasings")


@cache
def fit_prompts(debias: Debias, reading: Reading, folders: Path) -> Fitted:
    folder = folders / f"{reading} {debias}"
    encoder = Clip("coco", model=str(tiny_clip()), device="cpu")
    dual, prompts = encoder.dual("none"), encoder.prompts()
    examples = Examples.of_texts(dual.texts.embed, attribute(), NAMES, 0)
    dual = edit_encoder(dual, {"text": debias.fit(examples)}, renormalise=debias.renormalise)
    numbers = prompt_numbers(reading, prompts, debias, attribute(), NAMES, 0)
    write_debias(dual, folder, {}, numbers)
    assert isinstance(dual.texts, Debiased)
    return Fitted(folder, dual.texts, prompts)


def text_model(folder: Path | None = None) -> Any:
    """The text half of a tiny CLIP as a generator has it."""
    make_importable()
    from transformers import CLIPTextModel

    return CLIPTextModel.from_pretrained(folder or tiny_clip()).eval()


def read(model: Any, dtype: Any = torch.float32) -> tuple[np.ndarray, np.ndarray]:
    """(N, L, H) states of all tokens and (N, H) of the last, of texts filled up to one length."""
    from transformers import CLIPTokenizer

    tokens = CLIPTokenizer.from_pretrained(tiny_clip())(
        TEXTS, padding="max_length", max_length=24, return_tensors="pt"
    )
    with torch.inference_mode():
        output = model(input_ids=tokens["input_ids"])
    assert output.last_hidden_state.dtype == dtype
    return output.last_hidden_state.float().numpy(), output.pooler_output.float().numpy()


@pytest.mark.parametrize("debias", METHODS, ids=repr)
def test_by_outputs_clips_vector_of_a_prompt_is_the_debiased_one(debias, folders):
    debiased, model = fit_prompts(debias, "outputs", folders), text_model()
    debias_prompts(model, debiased.folder)
    vectors = read(model)[1] @ debiased.plain.projection.T
    wanted = debiased.texts.embed(TEXTS)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, wanted, atol=1e-4)


def test_by_outputs_a_state_changes_where_its_projection_does_alone(folders):
    debiased, model = fit_prompts(ZERO, "outputs", folders), text_model()
    before = read(model)[0]
    debias_prompts(model, debiased.folder)
    apart = (read(model)[0] - before).reshape(-1, before.shape[-1])
    _, _, rows = np.linalg.svd(debiased.plain.projection)
    nowhere = rows[debiased.plain.projection.shape[0] :]  # what the projection does not see
    assert np.abs(apart).max() > 1e-2
    np.testing.assert_allclose(apart @ nowhere.T, 0, atol=1e-5)


@pytest.mark.parametrize("debias", METHODS, ids=repr)
def test_by_states_every_token_is_edited_as_it_was_fitted(debias, folders):
    debiased, model = fit_prompts(debias, "states", folders), text_model()
    before = read(model)[0]
    debias_prompts(model, debiased.folder)
    edit = debias.fit(Examples.of_texts(debiased.plain.states, attribute(), NAMES, 0))
    wanted = edit(before.reshape(-1, before.shape[-1]).astype(np.float64))
    np.testing.assert_allclose(read(model)[0], wanted.reshape(before.shape), atol=1e-4)


@pytest.mark.parametrize("reading", READINGS)
def test_it_ends_when_it_is_told_to(reading, folders):
    debiased, model = fit_prompts(ZERO, reading, folders), text_model()
    before = read(model)[0]
    handle = debias_prompts(model, debiased.folder)
    assert not np.allclose(read(model)[0], before)
    handle.remove()
    np.testing.assert_array_equal(read(model)[0], before)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_generator_of_lower_precision_takes_it(reading, dtype, folders):
    debiased = fit_prompts(ZERO, reading, folders)
    exact, rough = text_model(), text_model().to(dtype)
    for model in (exact, rough):
        debias_prompts(model, debiased.folder)
    np.testing.assert_allclose(read(rough, dtype)[0], read(exact)[0], atol=0.1)


def test_another_text_model_is_refused(folders, tmp_path):
    other = text_model(write_clip(tmp_path, seed=1))
    with pytest.raises(ValueError, match="another text model"):
        debias_prompts(other, fit_prompts(ZERO, "outputs", folders).folder)


def test_two_text_encoders_are_refused(folders):
    larger = SimpleNamespace(text_encoder=text_model(), text_encoder_2=text_model())
    with pytest.raises(ValueError, match="two text encoders"):
        debias_prompts(larger, fit_prompts(ZERO, "outputs", folders).folder)


def test_a_folder_without_prompts_says_how_to_get_them(folders, tmp_path):
    texts = fit_prompts(ZERO, "outputs", folders).texts
    write_debias(DualEncoder(texts.inner, texts), tmp_path / "plain", {})
    with pytest.raises(ValueError, match="fit debias --prompts"):
        debias_prompts(text_model(), tmp_path / "plain")


@pytest.mark.parametrize(
    ("debias", "reading", "message"),
    [
        (Untouched(), "outputs", "edits nothing"),
        (ZeroNeuron(k=3, side="image"), "outputs", "debias.side=text"),
        (ClipClip(k=3), "states", "--prompts=outputs"),
    ],
)
def test_what_edits_no_prompts_is_refused(debias, reading, message):
    texts = Clip("coco", model=str(tiny_clip()), device="cpu").prompts()
    with pytest.raises(UsageError, match=message):
        prompt_numbers(reading, texts, debias, attribute(), NAMES, 0)


# Without any module of ours.
OUTSIDE = """
import sys
sys.path = [path for path in sys.path if path not in ("", "REPOSITORY")]
sys.path.insert(0, "FOLDER")
import torch
from torch import nn
from load_debias import debias_prompts
from safetensors.torch import load_file
mark = load_file("FOLDER/debias.safetensors")["prompt.mark"]
class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.position_embedding = nn.Embedding.from_pretrained(mark[None])
class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings, self.final_layer_norm = Tables(), nn.LayerNorm(len(mark))
model = Text()
states = torch.randn(2, 3, len(mark))
before = model.final_layer_norm(states)
debias_prompts(model, "FOLDER")
assert not torch.allclose(model.final_layer_norm(states), before)
assert not any(name.startswith("bias_pipeline") for name in sys.modules)
"""


def test_it_needs_nothing_of_ours(folders, tmp_path):
    debiased = [fit_prompts(ZERO, reading, folders) for reading in READINGS]
    script = "\n".join(OUTSIDE.replace("FOLDER", str(item.folder)) for item in debiased)
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)


@pytest.mark.parametrize("reading", READINGS)
def test_a_pipeline_of_diffusers_reads_debiased_prompts(reading, folders):
    make_importable()
    pytest.importorskip("diffusers", reason="diffusers is not installed")
    debiased, pipeline = fit_prompts(ZERO, reading, folders), tiny_pipeline()
    weights = {name: item.clone() for name, item in pipeline.text_encoder.state_dict().items()}
    before = draw(pipeline)
    handle = debias_prompts(pipeline, debiased.folder)
    after = draw(pipeline)
    prompts, nothing = pipeline.encode_prompt(TEXTS[0], "cpu", 1, True)
    handle.remove()
    np.testing.assert_array_equal(draw(pipeline), before)
    assert np.abs(after - before).max() > 1e-4
    assert prompts.shape == nothing.shape == (1, 24, 32)
    if reading == "outputs":  # of every token the neurons of CLIP's outputs are 0
        spec: Any = debiased.texts.edit.spec
        vectors = prompts[0].detach().numpy() @ debiased.plain.projection.T
        np.testing.assert_allclose(vectors[:, spec["neurons"]], 0, atol=1e-4)
    for name, weight in pipeline.text_encoder.state_dict().items():
        assert torch.equal(weight, weights[name])


def tiny_pipeline() -> Any:
    """A StableDiffusionPipeline of random weights around the tiny CLIP's text half."""
    from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline
    from diffusers import UNet2DConditionModel as UNet
    from transformers import CLIPTokenizer

    torch.manual_seed(0)
    sizes: dict[str, Any] = {"block_out_channels": (8, 16), "norm_num_groups": 4}
    down = ("DownBlock2D", "CrossAttnDownBlock2D")
    unet = UNet(
        **sizes, sample_size=8, layers_per_block=1, cross_attention_dim=32, down_block_types=down,
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), attention_head_dim=2,
    )  # fmt: skip
    coder = AutoencoderKL(
        **sizes, down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4,
    )  # fmt: skip
    scheduler = DDIMScheduler(steps_offset=1, clip_sample=False)
    pipeline = StableDiffusionPipeline(
        vae=coder.eval(), text_encoder=text_model(), unet=unet.eval(), scheduler=scheduler,
        tokenizer=CLIPTokenizer.from_pretrained(tiny_clip(), model_max_length=24),
        safety_checker=None, feature_extractor=None, requires_safety_checker=False,
    )  # fmt: skip
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def draw(pipeline: Any) -> np.ndarray:
    seed = torch.Generator().manual_seed(0)
    pictures: np.ndarray = pipeline(
        TEXTS[0], num_inference_steps=2, generator=seed, output_type="np"
    ).images
    return pictures
