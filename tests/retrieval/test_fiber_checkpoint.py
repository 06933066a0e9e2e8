"""Files of FIBER's weights: what is read, what is passed over, and what is refused."""

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import torch

from bias_pipeline.errors import DataError
from bias_pipeline.models.weight_files import read_numbers
from bias_pipeline.retrieval.fiber.model import read_fiber
from bias_pipeline.retrieval.fiber.net import FiberNet
from tests.fiber_files import TINY, network, released_weights, write_checkpoint

STAGE = "vit_model.layers.2.blocks"
LAYER = "text_transformer.encoder.layer"


@cache
def net() -> FiberNet:
    return network()


@pytest.mark.parametrize("matches", [True, False])
def test_every_name_is_one_of_ours_or_unused(tmp_path, matches):
    built_network = network(replace(TINY, matches=matches))
    fiber = read_fiber(write_checkpoint(tmp_path / "f.ckpt", built_network))
    assert fiber.size == built_network.size
    state = fiber.state_dict()
    assert set(state) == set(built_network.state_dict())
    assert all(
        torch.equal(state[name], value) for name, value in built_network.state_dict().items()
    )


def test_the_names_of_the_published_file_are_those_that_its_code_gives(tmp_path):
    """Some of each part, written out; the map of the tests' files cannot be wrong unseen."""
    names = set(released_weights(net()))
    block, layer = f"{STAGE}.2.attn", f"{LAYER}.3"
    assert names >= {
        *(f"{block}.{item}.weight" for item in ("qkv", "proj", "qkv_i2t", "qkv_text_i2t")),
        *(f"{block}.{item}.bias" for item in ("norm_i2t_i", "proj_i2t")),
        f"{block}.alpha_i2t",
        "vit_model.layers.0.downsample.reduction.weight",
        "vit_model.norm.weight",
        "text_transformer.embeddings.LayerNorm.weight",
        f"{layer}.alpha_t2i",
        f"{layer}.attention.self.query.weight",
        f"{layer}.attention.output.LayerNorm.weight",
        f"{layer}.crossattention_t2i.self.key.weight",
        f"{layer}.crossattention_t2i.output.dense.weight",
        f"{layer}.intermediate.dense.weight",
        f"{layer}.output.LayerNorm.bias",
        f"{LAYER}.0.alpha_t2i",
        "cross_modal_image_transform_itc.weight",
        "cross_modal_text_pooler_itc.dense.weight",
        "cross_modal_image_pooler.dense.bias",
        "itm_score.fc.weight",
    }


@pytest.mark.parametrize("part", ["weight", "bias"])
def test_a_file_tuned_for_retrieval_ranks_by_what_it_learnt_or_by_the_trained_head(tmp_path, part):
    state = released_weights(net())
    tuned = {"rank_output.weight": torch.ones(1, 2 * TINY.joint), "rank_output.bias": torch.ones(1)}
    path = write_checkpoint(tmp_path / "f.ckpt", net(), state_dict=state | tuned)
    ranked = read_fiber(path).state_dict()[f"matching.{part}"]
    judged = read_fiber(path, head="itm_score").state_dict()[f"matching.{part}"]
    assert torch.equal(ranked[1:], tuned[f"rank_output.{part}"])
    assert torch.equal(ranked[:1], state[f"itm_score.fc.{part}"][:1])
    assert torch.equal(judged, state[f"itm_score.fc.{part}"])


def test_queues_are_not_read_into_memory(tmp_path):
    queue = torch.zeros(256, 3, 256, 256)  # 0.2 GB, where the published one has 7.2
    state = released_weights(net()) | {"image_input_queue": queue}
    size = queue.numel() * queue.element_size()
    path = write_checkpoint(tmp_path / "f.ckpt", net(), state_dict=state)
    del queue, state
    before = resident()
    numbers, fiber = read_numbers(path), read_fiber(path)
    assert numbers["state_dict"]["image_input_queue"].numel() * 4 == size
    assert fiber.size == TINY
    assert resident() - before < size / 2  # the network, and what PyTorch needs to read


def resident() -> int:
    """Bytes of this process that are in memory."""
    statm = Path("/proc/self/statm")
    if not statm.is_file():
        pytest.skip("this system does not say how much memory a process has")
    return int(statm.read_text().split()[1]) * 4096


def test_classes_of_callbacks_stand_for_nothing(tmp_path, monkeypatch):
    """Lightning before 1.5 keys what callbacks keep by their classes."""
    module = ModuleType("pytorch_lightning.callbacks.made_up")
    saved_type = type("Made", (), {"__module__": module.__name__})
    module.Made = saved_type
    monkeypatch.setitem(sys.modules, module.__name__, module)
    path = write_checkpoint(tmp_path / "f.ckpt", net(), callbacks={saved_type: {"best": 0.5}})
    monkeypatch.delitem(sys.modules, module.__name__)
    assert read_fiber(path).size == TINY
    assert saved_type not in torch.serialization.get_safe_globals()


NOBODY, SMALLER = (
    {"vqa_classifier.0.weight": torch.zeros(1)},
    {"vit_model.norm.weight": torch.zeros(3)},
)


@pytest.mark.parametrize(
    ("without", "added", "message"),
    [
        (f"{STAGE}.2.attn.alpha_i2t", {}, "'gates.2_2.strength' is absent"),
        (f"{STAGE}.3.attn.qkv_text_i2t.bias", {}, "'gates.2_3.attention.key.bias' is absent"),
        (f"{LAYER}.4.alpha_t2i", {}, "'text.layers.4.gate.strength' is absent"),
        (f"{LAYER}.4.crossattention_t2i.self.key.bias", {}, "attention.key.bias' is absent"),
        ("vit_model.norm.weight", {}, "'swin_norm.weight' is absent"),
        ("vit_model.patch_embed.proj.weight", {}, "'swin.patch_embed.proj.weight' is absent"),
        ("itm_score.fc.bias", {}, "'matching.bias' is absent"),
        ("cross_modal_image_pooler_itc.dense.bias", {}, "'dual_image.pooler.bias' is absent"),
        ("i2t", {}, "of 9 blocks 0 read texts"),  # a Swin alone
        ("nothing", NOBODY, "'vqa_classifier.0.weight' is not a weight of FIBER"),
        ("nothing", SMALLER, "is of 3 numbers and not of 128"),
    ],
)
def test_other_weights_than_fiber_s_are_refused(tmp_path, without, added, message):
    state = {name: item for name, item in released_weights(net()).items() if without not in name}
    path = write_checkpoint(tmp_path / "f.ckpt", net(), state_dict=state | added)
    with pytest.raises(DataError) as refused:
        read_fiber(path)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_optimiser_alone_is_refused(tmp_path):
    torch.save({"optimizer_states": []}, tmp_path / "f.ckpt")
    with pytest.raises(DataError, match="has no state_dict"):
        read_fiber(tmp_path / "f.ckpt")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_file_that_is_cut_short_is_refused(tmp_path, share):
    path = write_checkpoint(tmp_path / "f.ckpt", net())
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(DataError, match="cut short"):
        read_fiber(path)
