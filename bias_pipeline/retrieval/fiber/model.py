"""Loads a FIBER from its folder, and gives vectors of photos and texts and scores of pairs.

The file of weights is a checkpoint of Lightning: ``state_dict`` beside what training needed. The
file is read without running code. Four fifths of the file are queues of negative examples, which
are never read.

The names of weights are those of Microsoft's Swin transformer and of RoBERTa; FIBER adds its own
attention between the two. Every weight must be present with the right size, and every name in the
file must be known. We wrote this module without access to a released file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isqrt
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from bias_pipeline.array_types import Float32Array
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.models.pretrained import Pretrained, checkpoint_of
from bias_pipeline.models.weight_files import check_fit, read_numbers, rename_weights
from bias_pipeline.retrieval.fiber.folder import (
    PADDING,
    TEXT_HEAD,
    FiberSize,
    Head,
    read_tokenizer,
)
from bias_pipeline.retrieval.fiber.net import EncodedTexts, FiberNet
from bias_pipeline.retrieval.two_modes import TwoModeNet

TABLE = "attn.relative_position_bias_table"
_SWIN = r"vit_model\.layers\.(\d+)\.blocks\.(\d+)\."
_LAYER = r"text_transformer\.encoder\.layer\.(\d+)\."
_END = r"(weight|bias)"
# The names of weights in the file, each with our name.
_NAMES: tuple[tuple[str, str], ...] = (
    (rf"vit_model\.(patch_embed\.(?:proj|norm)\.{_END})", r"swin.\1"),
    (
        rf"{_SWIN}((?:norm[12]|mlp\.fc[12]|attn\.qkv|attn\.proj)\.{_END})",
        r"swin.layers.\1.blocks.\2.\3",
    ),
    (rf"{_SWIN}({re.escape(TABLE)})", r"swin.layers.\1.blocks.\2.\3"),
    (r"vit_model\.(layers\.\d+\.downsample\.(?:reduction|norm)\..+)", r"swin.\1"),
    (rf"vit_model\.norm\.{_END}", r"swin_norm.\1"),
    (rf"{_SWIN}attn\.alpha_i2t", r"gates.\1_\2.strength"),
    (rf"{_SWIN}attn\.norm_i2t_i\.{_END}", r"gates.\1_\2.norm.\3"),
    (rf"{_SWIN}attn\.qkv_i2t\.{_END}", r"gates.\1_\2.attention.query.\3"),
    (rf"{_SWIN}attn\.qkv_text_i2t\.{_END}", r"gates.\1_\2.attention.key_value.\3"),
    (rf"{_SWIN}attn\.proj_i2t\.{_END}", r"gates.\1_\2.attention.out.\3"),
    (r"text_transformer\.embeddings\.word_embeddings\.weight", "text.words.weight"),
    (r"text_transformer\.embeddings\.position_embeddings\.weight", "text.places.weight"),
    (r"text_transformer\.embeddings\.token_type_embeddings\.weight", "text.kinds.weight"),
    (rf"text_transformer\.embeddings\.LayerNorm\.{_END}", r"text.norm.\1"),
    (
        rf"{_LAYER}attention\.self\.(query|key|value)\.{_END}",
        r"text.layers.\1.attention.\2.\3",
    ),
    (rf"{_LAYER}attention\.output\.dense\.{_END}", r"text.layers.\1.attention.out.\2"),
    (rf"{_LAYER}attention\.output\.LayerNorm\.{_END}", r"text.layers.\1.norm1.\2"),
    (rf"{_LAYER}intermediate\.dense\.{_END}", r"text.layers.\1.fc1.\2"),
    (rf"{_LAYER}output\.dense\.{_END}", r"text.layers.\1.fc2.\2"),
    (rf"{_LAYER}output\.LayerNorm\.{_END}", r"text.layers.\1.norm2.\2"),
    (rf"{_LAYER}alpha_t2i", r"text.layers.\1.gate.strength"),
    (
        rf"{_LAYER}crossattention_t2i\.self\.(query|key|value)\.{_END}",
        r"text.layers.\1.gate.attention.\2.\3",
    ),
    (
        rf"{_LAYER}crossattention_t2i\.output\.dense\.{_END}",
        r"text.layers.\1.gate.attention.out.\2",
    ),
    (rf"cross_modal_(image|text)_transform_itc\.{_END}", r"dual_\1.transform.\2"),
    (rf"cross_modal_(image|text)_pooler_itc\.dense\.{_END}", r"dual_\1.pooler.\2"),
    (rf"cross_modal_(image|text)_transform\.{_END}", r"fused_\1.transform.\2"),
    (rf"cross_modal_(image|text)_pooler\.dense\.{_END}", r"fused_\1.pooler.\2"),
    (rf"itm_score\.fc\.{_END}", r"matching.\1"),
)
_UNUSED = (
    # Queues of negative examples for training.
    r"(image|text|image_input|text_input|text_input_mask)_queue",
    r"queue_(ptr|total)",
    # Buffers that are computed.
    rf"{_SWIN}attn\.relative_position_index",
    rf"{_SWIN}attn_mask",
    r"text_transformer\.embeddings\.position_ids",
    # The temperature does not change a ranking; rank_output is handled separately.
    r"temp",
    rf"rank_output\.{_END}",
    # Weights that are saved but never used, and the head for masked words.
    rf"{_LAYER}crossattention_t2i\.output\.LayerNorm\.{_END}",
    rf"text_transformer\.pooler\.dense\.{_END}",
    r"mlm_score\..+",
)

_MATCHING = {"matching.weight", "matching.bias"}


def read_fiber(path: Path, head: Head = "rank_output") -> FiberNet:
    """The network in a file, ready for use.

    The logit of ``head`` says whether a picture and a text match. ``rank_output`` starts as a copy
    of ``itm_score``, and the authors rank by it if a file has it. Their released code trains only
    ``itm_score``, since on a GPU the two are separate.
    """
    weights = _weights_of(_state(path), path, head)
    size = fiber_size(weights, path)
    with torch.device("meta"):
        net = FiberNet(size)
    shapes = {name: weight.shape for name, weight in net.state_dict().items()}
    check_fit(weights, shapes, path, "its other weights are of a network of another size")
    copied = {name: weight.to(torch.float32, copy=True) for name, weight in weights.items()}
    net.load_state_dict(copied, assign=True)
    return net.eval().requires_grad_(False)


def _state(path: Path) -> Mapping[str, Tensor]:
    contents = read_numbers(path)
    state = contents.get("state_dict") if isinstance(contents, dict) else None
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise DataError(f"{path}: it has no state_dict; name a file of weights such as "
                        "fiber_pretrain.ckpt")  # fmt: skip
    return {str(name): value for name, value in state.items()}


def _weights_of(state: Mapping[str, Tensor], path: Path, head: Head) -> dict[str, Tensor]:
    """The weights under our names, with separate keys and values, and without unused gates."""
    weights: dict[str, Tensor] = {}
    for name, weight in rename_weights(state, _NAMES, _UNUSED, path, "FIBER").items():
        if ".key_value." in name:
            halves = weight.chunk(2)
            weights |= {
                name.replace("key_value", half): rows
                for half, rows in zip(("key", "value"), halves, strict=True)
            }
        else:
            weights[name] = weight
    retained = {name: weight for name, weight in weights.items() if not _is_unused(name, weights)}
    if head == "itm_score":
        return retained
    return {
        **retained,
        **{name: _ranking(name, retained[name], state) for name in _MATCHING & set(retained)},
    }


def _ranking(name: str, weight: Tensor, state: Mapping[str, Tensor]) -> Tensor:
    """The matching head's weights; ``rank_output``, if there, gives its second output."""
    tuned = state.get(name.replace("matching", "rank_output"))
    return weight if tuned is None else torch.cat([weight[:1], tuned])


def _is_unused(name: str, weights: Mapping[str, Tensor]) -> bool:
    """Whether a weight is the unused gate of a layer that does not read pictures."""
    start, gate, _ = name.partition(".gate.strength")
    return bool(gate) and f"{start}.gate.attention.out.weight" not in weights


def fiber_size(weights: Mapping[str, Tensor], path: Path) -> FiberSize:
    """The sizes of the network in a file."""

    def shape(name: str) -> torch.Size:
        if name not in weights:
            raise DataError(
                f"{path}: {name!r} is absent; the file is of another network, or is cut off"
            )
        return weights[name].shape

    def count(pattern: str) -> int:
        return len({match[1] for name in weights if (match := re.match(pattern, name))})

    n_stages = count(r"swin\.layers\.(\d+)\.blocks\.")
    depths = tuple(count(rf"swin\.layers\.{stage}\.blocks\.(\d+)\.") for stage in range(n_stages))
    tables = [shape(f"swin.layers.{stage}.blocks.0.{TABLE}") for stage in range(n_stages)]
    n_words, text_size = shape("text.words.weight")
    size = FiberSize(
        size=shape("swin.patch_embed.proj.weight")[0],
        depths=depths,
        n_heads=tuple(table[1] for table in tables),
        window=(isqrt(tables[0][0]) + 1) // 2 if tables else 0,
        text_size=text_size,
        text_inner=shape("text.layers.0.fc1.weight")[0],
        text_layers=count(r"text\.layers\.(\d+)\."),
        n_words=n_words,
        n_places=shape("text.places.weight")[0],
        n_pairs=count(r"gates\.(\w+)\."),
        joint=shape("dual_text.pooler.weight")[0],
        matches="matching.weight" in weights,
    )
    if not 0 < size.n_pairs <= min(size.text_layers, sum(depths)) or text_size % TEXT_HEAD:
        raise DataError(
            f"{path}: of {sum(depths)} blocks {size.n_pairs} read texts, and texts have "
            f"{size.text_layers} layers with vectors of {text_size} numbers; the file is of "
            "another network, or is cut off"
        )
    return size


_MEAN, _SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet
_PHOTOS = 8  # per batch
_WORDLESS = 2  # tokens that stand around every text


class FiberModel(TwoModeNet):
    def __init__(
        self,
        model: Pretrained,
        device: torch.device,
        longest: int,
        head: Head = "rank_output",
    ) -> None:
        super().__init__(model.name, device)
        self._tokenizer = read_tokenizer(model)
        self._net = read_fiber(checkpoint_of(model), head).to(device)
        size = self._net.size
        most = size.n_places - PADDING - 1
        if not _WORDLESS < longest <= most:
            raise UsageError(f"encoder.longest={longest}: {model.name} reads 3 to {most} tokens")
        if self._tokenizer.get_vocab_size() > size.n_words:
            raise DataError(
                f"{model.name}: vocab.json has {self._tokenizer.get_vocab_size()} words, but the "
                f"weights have {size.n_words}; fetch roberta-base's"
            )
        self._tokenizer.enable_truncation(longest)

    @property
    def matches(self) -> bool:
        return self._net.size.matches

    def prepare(self, photo: Image.Image) -> Float32Array:
        """(3, S, S) a photo, squeezed into a square."""
        side = self._net.size.side
        pixels = np.asarray(photo.resize((side, side), Image.Resampling.BICUBIC), np.float32)
        normalised = (pixels / 255 - np.array(_MEAN, np.float32)) / np.array(_SPREAD, np.float32)
        return np.ascontiguousarray(normalised.transpose(2, 0, 1))

    def photos(self, photos: Sequence[Float32Array], *, normalize: bool) -> Float32Array:
        starts = range(0, len(photos), _PHOTOS)
        with torch.inference_mode():
            parts = [self._net.pictures(self._pixels(photos[s : s + _PHOTOS])) for s in starts]
            return self._vectors(torch.cat(parts), normalize=normalize)

    def texts(self, texts: Sequence[str]) -> Float32Array:
        with torch.inference_mode():
            return self._vectors(self._net.texts(self._tokens(texts)), normalize=True)

    def encode_texts(self, texts: Sequence[str]) -> EncodedTexts:
        with torch.inference_mode():
            return self._net.encode_texts(self._tokens(texts))

    def _encode_photos(self, pixels: torch.Tensor) -> torch.Tensor:
        return self._net.encode_pictures(pixels)

    def _pair_logits(
        self, states: torch.Tensor, photo: torch.Tensor, texts: EncodedTexts, text: torch.Tensor
    ) -> torch.Tensor:
        return self._net.match(states[photo], EncodedTexts(texts.vectors[text], texts.there[text]))

    def _tokens(self, texts: Sequence[str]) -> torch.Tensor:
        """(N, L) the token numbers of texts, padded to the longest text."""
        rows = [encoded.ids for encoded in self._tokenizer.encode_batch(list(texts))]
        filled = np.full((len(rows), max(map(len, rows))), PADDING, np.int64)
        for row, ids in zip(filled, rows, strict=True):
            row[: len(ids)] = ids
        return torch.from_numpy(filled).to(self._device)
