"""Files of weights in the layout of GRIT's released ones, with random numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import torch
from torch import Tensor, nn

from bias_pipeline.captioners.grit_net import GritNet
from bias_pipeline.models.grit.detector import Detector
from bias_pipeline.models.grit.sizes import SIZES, GritSize

SMALL = SIZES["small"]
WORDS = ["<unk>", "<pad>", "<bos>", "<eos>", "man", "a", "is", "the", "female"]

# Our names to the file's, in this order.
_RELEASED = (
    (r"^detector\.regions\.layers", "detector.det_module.decoder.layers"),
    (r"^detector\.regions\.", "detector.det_module."),
    (r"\.(mhatt|self_att|vis_att[12])\.fc_", r".\1.attention.fc_"),
)


def network(size: GritSize = SMALL, n_words: int = len(WORDS), seed: int = 0) -> GritNet:
    """A whole network, with weights for the second gate too."""
    torch.manual_seed(seed)
    own = GritNet(Detector(size), n_words, ((4,), (8,)), size, "paper")
    for weight in own.parameters():
        nn.init.normal_(weight, std=0.1)
    return own.eval()


def released(own: GritNet) -> dict[str, Tensor]:
    """Its weights under the file's names, with all that such a file holds besides."""
    found = {}
    for key, value in own.state_dict().items():
        name = key
        for pattern, theirs in _RELEASED:
            name = re.sub(pattern, theirs, name)
        found[name] = value
    last = "detector.backbone.layers.1.downsample"
    return found | {
        "detector.backbone.layers.0.blocks.0.attn.relative_position_index": torch.zeros(1),
        "detector.backbone.norm1.weight": torch.zeros(1),
        f"{last}.expansion.weight": torch.zeros(1),
        f"{last}.norm2.weight": torch.zeros(1),
        "detector.det_module.class_embed.0.weight": torch.zeros(1),
        "cap_generator.running_seq": torch.zeros(1),
        "cap_generator.layers.0.running_mask_x": torch.zeros(1),
        "cap_generator.layers.0.self_att.running_keys": torch.zeros(1),
        "cap_generator.layers.0.self_att.running_values": torch.zeros(1),
        "cap_generator.pos_emb.weight": torch.zeros(1),
    }


def write_captioner(path: Path, own: GritNet) -> Path:
    """A captioner's file, with the state of an optimiser."""
    optimizer = {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 1e-4}]}
    torch.save({"state_dict": released(own), "optim_model": optimizer, "epoch": 9}, path)
    return path


def write_detector(path: Path, own: GritNet) -> Path:
    """A detector's file."""
    weights = {k: v for k, v in released(own).items() if k.startswith("detector.")}
    torch.save({"model": {k.removeprefix("detector."): v for k, v in weights.items()}}, path)
    return path


def write_vocabulary(path: Path, words: list[str] = WORDS) -> Path:
    """The file of the words."""
    path.write_text(json.dumps({"itos": words, "stoi": {}, "freqs": {}}))
    return path
