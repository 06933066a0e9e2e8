"""Files of weights in the layout of GRIT's released ones, with random numbers."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from omegaconf import OmegaConf
from torch import Tensor, nn

from bias_pipeline.pictures.captioners.grit_net import GritNet
from bias_pipeline.pictures.grit.detector import GritDetector
from bias_pipeline.pictures.grit.sizes import SIZES, GritSize
from tests import grit_layout
from tests.grit_layout import Saved

SMALL = SIZES["small"]
WORDS = ["<unk>", "<pad>", "<bos>", "<eos>", "man", "a", "is", "the", "female"]
N_POSITIONS = 16
_MEMORY = "grid_net.layers.0.mhatt.memory_keys"

# Our names to the file's, in this order.
_RELEASED = (
    (r"^detector\.regions\.input_proj", "detector.input_proj"),
    (r"^detector\.regions\.layers", "detector.det_module.decoder_layers"),
    (r"^detector\.regions\.", "detector.det_module."),
    (r"\.(mhatt|self_att|vis_att[12])\.fc_", r".\1.attention.fc_"),
    (r"\.memory_(k|v)\w+$", r".attention.m_\1"),
    (r"^cap_generator\.positions$", "cap_generator.pos_emb.weight"),
)


def network(
    size: GritSize = SMALL, n_words: int = len(WORDS), seed: int = 0, n_memories: int = 0
) -> GritNet:
    """A whole network, with weights for the second gate too."""
    torch.manual_seed(seed)
    net = GritNet(
        GritDetector(size),
        n_words,
        ((4,), (8,)),
        size,
        "paper",
        n_memories=n_memories,
        n_positions=N_POSITIONS,
    )
    for name, weight in net.state_dict().items():
        nn.init.normal_(weight, std=1.0 if "memory" in name else 0.1)
    return net.eval()


def released_weights(
    net: GritNet, size: GritSize = SMALL, n_attributes: int = 0
) -> dict[str, Tensor]:
    """Its weights under the file's names, with all that such a file holds besides."""
    n_words = net.cap_generator.word_emb.num_embeddings
    n_memories = net.state_dict().get(_MEMORY, torch.zeros(1, 0)).shape[1]
    saved = Saved(n_words, N_POSITIONS, n_memories, n_classes=7, n_attributes=n_attributes)
    weights = {_file_name(name): value for name, value in net.state_dict().items()}
    layout = grit_layout.captioner(size, saved)
    assert {name: layout[name] for name in weights} == {k: v.shape for k, v in weights.items()}
    return {name: weights.get(name, torch.zeros(shape)) for name, shape in layout.items()}


def _file_name(name: str) -> str:
    for pattern, theirs in _RELEASED:
        name = re.sub(pattern, theirs, name)
    return name


def write_captioner(path: Path, net: GritNet, **how: Any) -> Path:
    """A captioner's file, with the state of an optimiser and the scores of an epoch."""
    optimizer = {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 1e-4}]}
    scores = [{"BLEU": [np.float64(0.4), np.float64(0.3)], "CIDEr": np.float32(1.25)}]
    training = {"optim_model": optimizer, "scores": scores, "best_ciders": (np.float64(1.25), 0.0)}
    torch.save({"state_dict": released_weights(net), "epoch": 9, **training}, path, **how)
    return path


def write_detector(path: Path, net: GritNet, n_attributes: int = 0, **how: Any) -> Path:
    """A detector's file, with its configuration."""
    weights = released_weights(net, n_attributes=n_attributes)
    model = {k.removeprefix("detector."): v for k, v in weights.items() if k.startswith("detector")}
    args = OmegaConf.create({"exp": {"name": "vg", "ngpus": 8}, "lrs": [1e-4, None, "${exp.name}"]})
    torch.save({"model": model, "args": args, "epoch": np.int64(9)}, path, **how)
    return path


def write_vocabulary(path: Path, words: list[str] = WORDS) -> Path:
    """The file of the words."""
    path.write_text(json.dumps({"itos": words, "stoi": {}, "freqs": {}}))
    return path
