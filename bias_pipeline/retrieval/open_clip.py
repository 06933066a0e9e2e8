"""Turns photos and texts into vectors of one space with models of open_clip.

Source: Ilharco et al., OpenCLIP (2021). The library (extra ``open-clip``) builds the network,
prepares photos and reads texts. This module reads the weights as numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bias_pipeline.array_types import Float32Array
from bias_pipeline.errors import DataError
from bias_pipeline.io.machine import OPEN_CLIP
from bias_pipeline.models.pretrained import Pretrained, checkpoint_of, first_line, numbers_of
from bias_pipeline.models.torchvision import make_importable
from bias_pipeline.models.weight_files import check_fit, read_numbers
from bias_pipeline.retrieval.open_clip_folder import (
    CONFIG,
    model_config,
    preprocessing,
    tokenizing,
)

if TYPE_CHECKING:
    from PIL.Image import Image


_TRAINED = "module."  # prefix of each name after training on several devices
_SIZES = ("input_resolution", "context_length", "vocab_size")  # stored as weights by OpenAI


class OpenClipModel:
    def __init__(self, model: Pretrained, device: torch.device, quick: bool) -> None:
        OPEN_CLIP.require()
        make_importable()
        import open_clip

        self._name, self._device = model.name, device
        network = _build(model, quick)
        path = checkpoint_of(model)
        weights = _weights(model)
        shapes = {name: value.shape for name, value in network.state_dict().items()}
        check_fit(weights, shapes, path, f"it is not what {CONFIG} describes")
        network.load_state_dict(weights)
        self._net = network.to(device).eval()
        self._process: Any = open_clip.image_transform(
            network.visual.image_size, is_train=False, **preprocessing(model.folder)._asdict()
        )
        self._tokens = _tokenizer(model)

    def prepare(self, photo: Image) -> Float32Array:
        pixels: Float32Array = self._process(photo).numpy()
        return pixels

    def photos(self, photos: Sequence[Float32Array], *, normalize: bool) -> Float32Array:
        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(photos)).to(self._device)
            vectors = self._net.encode_image(pixels, normalize=normalize)
            return numbers_of(vectors, self._name)

    def texts(self, texts: Sequence[str]) -> Float32Array:
        """(N, D) a vector of length 1 for each text; texts that are too long are cut."""
        with torch.inference_mode():
            tokens = self._tokens(list(texts)).to(self._device)
            return numbers_of(self._net.encode_text(tokens, normalize=True), self._name)


def _build(model: Pretrained, quick: bool) -> Any:
    """The network with fresh weights; nothing is fetched."""
    import open_clip

    config = deepcopy(model_config(model.folder))
    config["quick_gelu"] = quick
    config["vision_cfg"]["timm_model_pretrained"] = False
    kind: Any = open_clip.CLIP
    if config.pop("custom_text", False):
        kind = open_clip.CoCa if "multimodal_cfg" in config else open_clip.CustomTextCLIP
    try:
        return kind(**config)
    except Exception as error:  # whatever the library raises on a broken configuration
        raise DataError(
            f"{model.folder / CONFIG}: open_clip cannot build it ({first_line(error)})"
        ) from error


def _weights(model: Pretrained) -> dict[str, torch.Tensor]:
    path = checkpoint_of(model)
    read = read_numbers(path)
    if isinstance(read, Mapping) and isinstance(read.get("state_dict"), Mapping):
        read = read["state_dict"]  # a checkpoint for resuming training
    if not isinstance(read, Mapping) or not all(
        isinstance(value, torch.Tensor) for value in read.values()
    ):
        raise DataError(f"{path}: it has no weights by name; save the model's state_dict")
    weights = {str(name): value for name, value in read.items() if name not in _SIZES}
    return {name.removeprefix(_TRAINED): value for name, value in weights.items()}


def _tokenizer(model: Pretrained) -> Any:
    """The library's tokenizer, or a tokenizer of transformers that the configuration names."""
    from open_clip import tokenizer as library

    text = model_config(model.folder)["text_cfg"]
    longest, options = text.get("context_length", 77), tokenizing(model.folder)
    try:
        if not text.get("hf_tokenizer_name"):
            return library.SimpleTokenizer(context_length=longest, **options)
        return library.HFTokenizer(
            model.folder,
            context_length=longest,
            tokenizer_mode=text.get("tokenizer_mode"),
            local_files_only=True,
            trust_remote_code=False,
            **options,
        )
    except Exception as error:  # whatever the library raises on a broken or absent file
        raise DataError(
            f"{model.name}: its tokenizer cannot be loaded ({first_line(error)})"
        ) from error
