"""Files of weights in the layout of FIBER's released ones, with random numbers; a vocabulary."""

import json
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bias_pipeline.retrieval.fiber.folder import FiberSize
from bias_pipeline.retrieval.fiber.net import FiberNet

LETTERS = [chr(code) for code in range(33, 127)]
SPACED = [f"\u0120{letter}" for letter in LETTERS]  # as byte-level vocabularies write " a"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
WORDS = [*SPECIAL, *LETTERS, "\u0120", *SPACED, "an", "man", "\u0120m", "\u0120man", "<mask>"]
TINY = FiberSize(
    size=16,
    depths=(1, 2, 4, 2),
    n_heads=(1, 2, 2, 4),
    window=2,
    text_size=128,
    text_inner=32,
    text_layers=5,
    n_words=len(WORDS),
    n_places=48,
    n_pairs=4,
    joint=24,
)


def network(size: FiberSize = TINY, seed: int = 0) -> FiberNet:
    """A network of random weights, its gates open."""
    torch.manual_seed(seed)
    fiber = FiberNet(size)
    for weight in fiber.parameters():
        nn.init.normal_(weight, std=0.2)
    return fiber.eval().requires_grad_(False)


# Our names to the file's, in this order.
_RELEASED = (
    (r"^swin_norm\.", "vit_model.norm."),
    (r"^swin\.", "vit_model."),
    (r"^gates\.(\d+)_(\d+)\.", r"vit_model.layers.\1.blocks.\2.attn."),
    (r"attn\.strength$", "attn.alpha_i2t"),
    (r"attn\.norm\.", "attn.norm_i2t_i."),
    (r"attn\.attention\.query\.", "attn.qkv_i2t."),
    (r"attn\.attention\.out\.", "attn.proj_i2t."),
    (r"^text\.words", "text_transformer.embeddings.word_embeddings"),
    (r"^text\.places", "text_transformer.embeddings.position_embeddings"),
    (r"^text\.kinds", "text_transformer.embeddings.token_type_embeddings"),
    (r"^text\.norm", "text_transformer.embeddings.LayerNorm"),
    (r"^text\.layers", "text_transformer.encoder.layer"),
    (r"\.gate\.strength", ".alpha_t2i"),
    (r"\.gate\.attention\.out", ".crossattention_t2i.output.dense"),
    (r"\.gate\.attention", ".crossattention_t2i.self"),
    (r"(layer\.\d+\.attention)\.out", r"\1.output.dense"),
    (r"(layer\.\d+\.attention)\.(query|key|value)", r"\1.self.\2"),
    (r"(layer\.\d+)\.norm1", r"\1.attention.output.LayerNorm"),
    (r"(layer\.\d+)\.norm2", r"\1.output.LayerNorm"),
    (r"(layer\.\d+)\.fc1", r"\1.intermediate.dense"),
    (r"(layer\.\d+)\.fc2", r"\1.output.dense"),
    (r"^dual_(\w+)\.transform", r"cross_modal_\1_transform_itc"),
    (r"^dual_(\w+)\.pooler", r"cross_modal_\1_pooler_itc.dense"),
    (r"^fused_(\w+)\.transform", r"cross_modal_\1_transform"),
    (r"^fused_(\w+)\.pooler", r"cross_modal_\1_pooler.dense"),
    (r"^matching\.", "itm_score.fc."),
)


def released_weights(network: FiberNet) -> dict[str, Tensor]:
    """Its weights under the file's names, with all that such a file holds besides."""
    tensors: dict[str, Tensor] = {}
    for key, value in network.state_dict().items():
        name = key
        for pattern, theirs in _RELEASED:
            name = re.sub(pattern, theirs, name)
        tensors[name] = value
    return _join_matrices(tensors) | _further_entries(network.size)


def _join_matrices(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Keys and values of texts, that pictures read, are one matrix of the file's."""
    tensors = {}
    for name, value in weights.items():
        start, key, end = name.partition(".attn.attention.key.")
        if key:
            both = [value, weights[f"{start}.attn.attention.value.{end}"]]
            tensors[f"{start}.attn.qkv_text_i2t.{end}"] = torch.cat(both)
        elif ".attn.attention.value." not in name:
            tensors[name] = value
    return tensors


def _further_entries(size: FiberSize) -> dict[str, Tensor]:
    """Queues, buffers and what is saved and not used."""
    side, queue = size.side, 8
    text = "text_transformer.encoder.layer"
    tensors = {
        "temp": torch.tensor(0.07),
        "image_queue": torch.zeros(size.joint, queue),
        "text_queue": torch.zeros(size.joint, queue),
        "image_input_queue": torch.zeros(queue, 3, side, side),
        "text_input_queue": torch.zeros(queue, 40, dtype=torch.long),
        "text_input_mask_queue": torch.zeros(queue, 40, dtype=torch.long),
        "queue_ptr": torch.zeros(1, dtype=torch.long),
        "queue_total": torch.zeros(1, dtype=torch.long),
        "vit_model.layers.0.blocks.0.attn.relative_position_index": torch.zeros(4, 4),
        "vit_model.layers.2.blocks.1.attn_mask": torch.zeros(4, 4, 4),
        "text_transformer.embeddings.position_ids": torch.zeros(1, size.n_places),
        "text_transformer.pooler.dense.weight": torch.zeros(4, 4),
        "mlm_score.transform.dense.weight": torch.zeros(4, 4),
        "mlm_score.bias": torch.zeros(4),
    }
    plain = range(size.text_layers - size.n_pairs)
    tensors |= {f"{text}.{layer}.alpha_t2i": torch.zeros(1) for layer in plain}
    last = size.text_layers - 1
    tensors[f"{text}.{last}.crossattention_t2i.output.LayerNorm.weight"] = torch.zeros(4)
    return tensors


def write_checkpoint(path: Path, network: FiberNet, **changes: Any) -> Path:
    """A file as Lightning writes it."""
    training = {"epoch": 9, "global_step": 100, "optimizer_states": [{"state": {}}]}
    torch.save({"state_dict": released_weights(network), **training, **changes}, path)
    return path


def write_vocabulary(folder: Path) -> Path:
    """RoBERTa's two files."""
    numbers = {word: number for number, word in enumerate(WORDS)}
    (folder / "vocab.json").write_text(json.dumps(numbers), encoding="utf-8")
    merges = [("a", "n"), ("m", "an"), ("\u0120", "m"), ("\u0120m", "an")]
    lines = ["#version: 0.2", *(" ".join(merge) for merge in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_fiber(folder: Path, size: FiberSize = TINY, seed: int = 0) -> Path:
    """A folder as the user makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_checkpoint(folder / "fiber_pretrain.ckpt", network(size, seed))
    return write_vocabulary(folder)
