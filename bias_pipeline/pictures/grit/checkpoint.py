"""Reads the weights of GRIT that its authors released, without running code, and renames them.

A captioner's file has ``state_dict``, and a detector's file has ``model``. Everything else
(optimisers, scores, settings) is ignored. Names and shapes are those that the authors' modules
write (davidnvq/grit at 4664d69, and at 7ed68f8 to bde75f9, whose grid network has a memory).
Prefixes do not matter. Every weight must be present with the right size, and every name in the file
must be known. We wrote this module without access to a released file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.models import weight_files
from bias_pipeline.models.weight_files import read_numbers

DETECTOR, CAPTIONS = "detector.", ("grid_net.", "cap_generator.")
_IDLE_GATE = ".fc_alpha2."  # the released network saves this gate but never uses it
_IN = r"(?:det_module\.|transformer\.|decoder\.)*"
_ATTENTION = r"(?:attention\.)?(fc_[qkvo]\.\w+|layer_norm\.\w+)"
_BLOCK = (
    r"(?:(?:norm[12]|mlp\.fc[12]|attn\.qkv|attn\.proj)\.\w+|attn\.relative_position_bias_table)"
)
_FEED = r"pwff\.(?:fc[12]|layer_norm)\.\w+"
# The names of weights in the file, each with our name.
_NAMES: tuple[tuple[str, str], ...] = (
    (r"detector\.(backbone\.patch_embed\..+)", r"detector.\1"),
    (rf"detector\.(backbone\.layers\.\d+\.blocks\.\d+\.{_BLOCK})", r"detector.\1"),
    (r"detector\.(backbone\.layers\.\d+\.downsample\.(?:reduction|norm)\..+)", r"detector.\1"),
    (rf"detector\.{_IN}(input_proj\.\d+\.[01]\.\w+)", r"detector.regions.\1"),
    (rf"detector\.{_IN}((?:query_embed|reference_points)\.\w+)", r"detector.regions.\1"),
    (rf"detector\.{_IN}(bbox_embed\.\d+\.layers\.\d\.\w+)", r"detector.regions.\1"),
    (
        rf"detector\.{_IN}(?:decoder_)?(layers\.\d+\.(?:self_attn|cross_attn|norm[123]|linear[12])\..+)",
        r"detector.regions.\1",
    ),
    (r"(grid_net\.(?:fc|layer_norm)\.\w+)", r"\1"),
    (rf"(grid_net\.layers\.\d+\.mhatt\.){_ATTENTION}", r"\1\2"),
    (r"(grid_net\.layers\.\d+\.mhatt\.)(?:attention\.)?m_k", r"\1memory_keys"),
    (r"(grid_net\.layers\.\d+\.mhatt\.)(?:attention\.)?m_v", r"\1memory_values"),
    (rf"(grid_net\.layers\.\d+\.{_FEED})", r"\1"),
    (r"cap_generator\.pos_emb\.weight", "cap_generator.positions"),
    (r"(cap_generator\.(?:word_emb|fc)\.weight)", r"\1"),
    (rf"(cap_generator\.layers\.\d+\.(?:self_att|vis_att[12])\.){_ATTENTION}", r"\1\2"),
    (r"(cap_generator\.layers\.\d+\.fc_alpha[12]\.\w+)", r"\1"),
    (rf"(cap_generator\.layers\.\d+\.{_FEED})", r"\1"),
)
WORDS = ("cap_generator.word_emb.weight", "cap_generator.fc.weight")
_POSITIONS, _MEMORY = "cap_generator.positions", "grid_net.layers.0.mhatt.memory_keys"
# Not used for captions: buffers, classes of objects, and parts that the released network saves but
# never uses.
_UNUSED = (
    r".*\.(relative_position_index|attn_mask)",
    r"detector\.backbone\.norm\d*\.\w+",
    r"detector\.backbone\.layers\.\d+\.downsample\.(expansion|norm2)\..+",
    rf"detector\.{_IN}(class_embed\.\d+\.\w+|level_embed)",
    r".*\brunning_(mask_x|seq|keys|values)",
    r"detector\.attr_head\.(od_cls_embed|attr_linear[12])\.\w+",
)


@dataclass(frozen=True, eq=False)
class GritCheckpoint:
    path: Path  # of the file
    detector: Mapping[str, Tensor]  # of `GritDetector`, without its prefix
    # Of the grid feature network and the caption decoder; empty in a detector's file
    captions: Mapping[str, Tensor]

    @property
    def n_words(self) -> int:
        table = self.captions.get(WORDS[0])
        return 0 if table is None else len(table)

    @property
    def n_positions(self) -> int:
        table = self.captions.get(_POSITIONS)
        return 0 if table is None else len(table)

    @property
    def n_memories(self) -> int:
        slots = self.captions.get(_MEMORY)
        return 0 if slots is None or slots.dim() != 3 else slots.shape[1]


def read_checkpoint(path: Path) -> GritCheckpoint:
    weights = rename_grit_weights(_weights(path), path)
    detector = {k.removeprefix(DETECTOR): v for k, v in weights.items() if k.startswith(DETECTOR)}
    if not detector:
        raise DataError(f"{path}: it has no detector; name the file of a captioner or a detector")
    captions = {k: v for k, v in weights.items() if k.startswith(CAPTIONS)}
    if captions and _POSITIONS not in captions:
        raise DataError(
            f"{path}: 'cap_generator.pos_emb.weight' is absent, without which captions cannot be "
            "read; the file is of another network, or is cut off"
        )
    return GritCheckpoint(path, detector, captions)


def rename_grit_weights(weights: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
    return weight_files.rename_weights(weights, _NAMES, _UNUSED, path, "GRIT")


def check_grit_fit(
    weights: Mapping[str, Tensor], shapes: Mapping[str, torch.Size], path: Path, what: str
) -> None:
    why = f"with {what} the file is of another size"
    weight_files.check_fit(weights, shapes, path, why)


def load_detector(net: nn.Module, checkpoint: GritCheckpoint, what: str) -> None:
    state = net.state_dict()
    shapes = {name: value.shape for name, value in state.items()}
    check_grit_fit(checkpoint.detector, shapes, checkpoint.path, what)
    net.load_state_dict(dict(checkpoint.detector))


def load_captions(
    net: nn.Module, checkpoint: GritCheckpoint, rows: Mapping[int, int], what: str
) -> None:
    """Load the weights of grid network and decoder; words absent from the file get new vectors."""
    state = {name: v for name, v in net.state_dict().items() if name.startswith(CAPTIONS)}
    weights = {
        name: v
        for name, v in checkpoint.captions.items()
        if name in state or _IDLE_GATE not in name
    }
    # The numbers of words may differ.
    shapes = {
        name: torch.Size((weights[name].shape[0], value.shape[1]))
        if name in WORDS and name in weights
        else value.shape
        for name, value in state.items()
    }
    check_grit_fit(weights, shapes, checkpoint.path, what)
    ours, theirs = list(rows), list(rows.values())
    for name in WORDS:
        table = state[name].clone()
        table[ours] = weights[name][theirs].to(table)
        weights[name] = table
    net.load_state_dict(weights, strict=False)


def _weights(path: Path) -> dict[str, Tensor]:
    """The weights of a file; the names of the detector's weights keep their prefix."""
    if not path.is_file():
        raise ResourceError(f"encoder.weights={path}: no such file; fetch GRIT's weights by hand")
    contents = read_numbers(path)
    for key, prefix in (("state_dict", ""), ("model", DETECTOR)):
        state = contents.get(key) if isinstance(contents, dict) else None
        if isinstance(state, dict) and state and all(isinstance(v, Tensor) for v in state.values()):
            return {prefix + str(name): value for name, value in state.items()}
    raise DataError(
        f"{path}: it has neither state_dict (a captioner) nor model (a detector); name the file "
        "of weights"
    )
