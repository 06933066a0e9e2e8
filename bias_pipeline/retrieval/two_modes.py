"""BLIP and BridgeTower: networks that give vectors of photos and texts, and match pairs of them.

Li et al., BLIP: Bootstrapping Language-Image Pre-training (ICML 2022), as in transformers'
``BlipForImageTextRetrieval``, except one token: like the authors we begin a text that is judged
with a picture with [ENC], the last word of their vocabulary, not with [CLS] (transformers issue
25629). Unlike the authors we do not add the similarity to the matching score.

Xu et al., BridgeTower: Building Bridges Between Encoders in Vision-Language Representation
Learning (AAAI 2023), with the heads of transformers' ``BridgeTowerForContrastiveLearning`` and
``BridgeTowerForImageAndTextRetrieval``, which reads one pair at a time. Its contrastive heads use
the last layer of each tower, without bridges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.errors import DataError
from bias_pipeline.models.pretrained import (
    Preprocessing,
    Pretrained,
    load,
    numbers_of,
    tokenizer,
    weight_names,
)
from bias_pipeline.models.torchvision import make_importable

_PAIRS = 32  # pairs per batch


class TwoModeNet(ABC):
    """A network of two modes."""

    def __init__(self, name: str, device: torch.device) -> None:
        self._name, self._device = name, device

    @property
    @abstractmethod
    def matches(self) -> bool:
        """Whether it has a matching head."""

    def match(self, photos: Sequence[Float32Array], texts: Any, pairs: IntArray) -> Float32Array:
        """(P,) how well photos and texts match, on a scale of logits.

        Args:
            pairs: (P, 2) number of a photo and of a text.
        """
        scores = []
        with torch.inference_mode():
            states = self._encode_photos(self._pixels(photos))
            for start in range(0, len(pairs), _PAIRS):
                photo, text = torch.from_numpy(pairs[start : start + _PAIRS].T).to(self._device)
                scores.append(self._pair_logits(states, photo, texts, text))
            return numbers_of(torch.cat(scores), self._name)

    @abstractmethod
    def _encode_photos(self, pixels: torch.Tensor) -> Any:
        """Photos, encoded as far as possible without a text."""

    @abstractmethod
    def _pair_logits(
        self, states: Any, photo: torch.Tensor, texts: Any, text: torch.Tensor
    ) -> torch.Tensor:
        """(P,) logits of pairs, by the numbers (P,) of their photos and of their texts."""

    def _pixels(self, photos: Sequence[Float32Array]) -> torch.Tensor:
        return torch.from_numpy(np.stack(photos)).to(self._device)

    def _vectors(self, vectors: torch.Tensor, *, normalize: bool) -> Float32Array:
        vectors = torch.nn.functional.normalize(vectors, dim=-1) if normalize else vectors
        return numbers_of(vectors, self._name)


class TokenBatch(NamedTuple):
    """Tokens and mask of texts, both (N, L)."""

    numbers: torch.Tensor
    there: torch.Tensor

    def of(self, text: torch.Tensor) -> TokenBatch:
        """The tokens of some texts, by their numbers."""
        return TokenBatch(self.numbers[text], self.there[text])


class PublishedTwoModes(TwoModeNet):
    """A network of transformers with its own tokenizer and preprocessing."""

    def __init__(self, model: Pretrained, device: torch.device, longest: int) -> None:
        super().__init__(model.name, device)
        self._prepare = Preprocessing(model).of_one_shape()
        self._tokenizer, self._longest = tokenizer(model), longest

    def prepare(self, photo: Image.Image) -> Float32Array:
        """(3, H, W) a photo as the network takes it."""
        return self._prepare(photo)

    def _tokens(self, texts: Sequence[str]) -> TokenBatch:
        read = self._tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        ).to(self._device)
        return TokenBatch(read["input_ids"], read["attention_mask"])


_BLIP_LONGEST = 35  # tokens of a text, as the authors retrieve


class BlipModel(PublishedTwoModes):
    """Both modes."""

    matches = True  # without it, it is not a BLIP for retrieval and is not loaded

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        make_importable()
        import transformers

        self._net: Any = load(model, transformers.BlipForImageTextRetrieval, device)
        config = self._net.config.text_config
        super().__init__(model, device, min(_BLIP_LONGEST, config.max_position_embeddings))
        self._encode = config.vocab_size - 1  # [ENC]

    def photos(self, photos: Sequence[Float32Array], *, normalize: bool) -> Float32Array:
        """(N, D) a vector for each photo, by itself."""
        with torch.inference_mode():
            projected = self._net.vision_proj(self._encode_photos(self._pixels(photos))[:, 0])
            return self._vectors(projected, normalize=normalize)

    def texts(self, texts: Sequence[str]) -> Float32Array:
        """(N, D) a vector of length 1 for each text, by itself."""
        numbers, there = self._tokens(texts)
        with torch.inference_mode():
            read = self._net.text_encoder(input_ids=numbers, attention_mask=there)
            projected = self._net.text_proj(read.last_hidden_state[:, 0])
            return self._vectors(projected, normalize=True)

    def encode_texts(self, texts: Sequence[str]) -> TokenBatch:
        """Tokens of texts, beginning with [ENC]; they are encoded together with a picture."""
        numbers, there = self._tokens(texts)
        numbers[:, 0] = self._encode
        return TokenBatch(numbers, there)

    def _encode_photos(self, pixels: torch.Tensor) -> torch.Tensor:
        """(N, M, C) patches; the first summarises all."""
        states: torch.Tensor = self._net.vision_model(pixel_values=pixels).last_hidden_state
        return states

    def _pair_logits(
        self, states: torch.Tensor, photo: torch.Tensor, texts: TokenBatch, text: torch.Tensor
    ) -> torch.Tensor:
        numbers, there = texts.of(text)
        patches = states[photo]
        read = self._net.text_encoder(
            input_ids=numbers,
            attention_mask=there,
            encoder_hidden_states=patches,
            encoder_attention_mask=patches.new_ones(patches.shape[:2], dtype=torch.long),
        )
        logits: torch.Tensor = self._net.itm_head(read.last_hidden_state[:, 0])[:, 1]
        return logits


_BRIDGETOWER_LONGEST = 50  # tokens of a text, as the authors retrieve
_DUAL, _JUDGING = ("itc_text_head", "itc_image_head"), "itm_score"
_UNASKED = ("itc_cross_modal_head", "logit_scale")
_TEXT, _PHOTO = 0, 1  # token types


class _Fused(NamedTuple):
    """The output of one layer of bridges, (P, L, C) and (P, M, C)."""

    text: torch.Tensor
    photo: torch.Tensor


class BridgeTowerModel(PublishedTwoModes):
    """Both modes, or only the dual one."""

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        make_importable()
        heads = {name.partition(".")[0] for name in weight_names(model)}
        if not set(_DUAL) <= heads:
            raise DataError(
                f"{model.name}: its weights have no {' and '.join(_DUAL)}, which make vectors of "
                "photos and texts; name a BridgeTower with contrastive training, such as "
                "BridgeTower/bridgetower-large-itm-mlm-itc"
            )
        self._matches = _JUDGING in heads
        self._net: Any = load(model, _architecture(self._matches), device, unused=_UNASKED)
        config = self._net.config
        self._check_towers(model.name)
        most = config.text_config.max_position_embeddings - config.text_config.pad_token_id - 1
        super().__init__(model, device, min(_BRIDGETOWER_LONGEST, most))
        self._check_side(config.vision_config.image_size)

    def _check_towers(self, name: str) -> None:
        """Refuse configurations that the library builds but cannot run."""
        config = self._net.config
        short = len(self._towers.vision_model.visual.transformer.resblocks) < len(
            self._towers.text_model.encoder.layer
        )
        apart = not config.share_cross_modal_transformer_layers
        if short or apart or config.share_link_tower_layers:
            raise DataError(
                f"{name}: its towers and bridges are not connected as in any published "
                "BridgeTower; see share_cross_modal_transformer_layers, share_link_tower_layers "
                "and "
                "num_hidden_layers in config.json"
            )

    def _check_side(self, side: int) -> None:
        shown = self.prepare(Image.new("RGB", (40, 30))).shape[1:]
        if shown != (side, side):
            raise DataError(
                f"{self._name}: its preprocessing makes pictures of {shown[0]} x {shown[1]} "
                f"pixels, but it needs {side} x {side}; fetch its files again, all of one "
                "revision"
            )

    @property
    def matches(self) -> bool:
        """Whether the weights have a matching head."""
        return self._matches

    def photos(self, photos: Sequence[Float32Array], *, normalize: bool) -> Float32Array:
        """(N, D) a vector for each photo, by itself."""
        with torch.inference_mode():
            last = self._encode_photos(self._pixels(photos))[-1]
            projected = self._net.itc_image_head(self._of_photo(last)[:, 0])
            return self._vectors(projected, normalize=normalize)

    def texts(self, texts: Sequence[str]) -> Float32Array:
        """(N, D) a vector of length 1 for each text, by itself."""
        with torch.inference_mode():
            last = self._read(self._tokens(texts))[-1]
            return self._vectors(self._net.itc_text_head(last[:, 0]), normalize=True)

    def encode_texts(self, texts: Sequence[str]) -> TokenBatch:
        """Tokens of texts; texts are encoded together with their pictures."""
        return self._tokens(texts)

    @property
    def _towers(self) -> Any:
        return self._net.bridgetower

    @property
    def _before(self) -> int:
        """Layers of either tower below the first bridge."""
        return len(self._towers.text_model.encoder.layer) - self._net.config.num_hidden_layers + 1

    def _encode_photos(self, pixels: torch.Tensor) -> list[torch.Tensor]:
        """(M, N, C) patches at each bridge, from the image tower."""
        tower = self._towers.vision_model.visual
        states = tower.forward_pre(pixels)
        blocks = tower.transformer.resblocks[: len(self._towers.text_model.encoder.layer)]
        return _at_bridges(states, blocks, self._before)

    def _read(self, tokens: TokenBatch) -> list[torch.Tensor]:
        """(N, L, C) tokens at each bridge, from the text tower."""
        text_model, mask = self._towers.text_model, _mask(tokens)
        read = text_model.embeddings(input_ids=tokens.numbers)
        layers = [
            lambda x, layer=layer: _first(layer(x, mask)) for layer in text_model.encoder.layer
        ]
        return _at_bridges(read, layers, self._before)

    def _pair_logits(
        self, states: list[torch.Tensor], photo: torch.Tensor, texts: TokenBatch, text: torch.Tensor
    ) -> torch.Tensor:
        tokens, model = texts.of(text), self._towers
        mask, read = _mask(tokens), self._read(tokens)
        fused = self._bridged(None, -1, _Fused(read[0], states[0][:, photo]), mask)
        for link, towers in enumerate(zip(read[1:], states[1:], strict=True)):
            fused = self._bridged(fused, link, _Fused(towers[0], towers[1][:, photo]), mask)
        logits: torch.Tensor = self._net.itm_score(model.get_cls_features(*fused))[:, 1]
        return logits

    def _bridged(
        self, before: _Fused | None, link: int, towers: _Fused, mask: torch.Tensor
    ) -> _Fused:
        """The output of the next bridge layer, from the previous output and the towers."""
        model = self._towers
        marked = model.cross_modal_text_transform(towers.text) + self._mark(_TEXT)
        shown = self._of_photo(towers.photo)
        if before is None:
            text, photo = (
                model.cross_modal_text_layernorm(marked),
                model.cross_modal_image_layernorm(shown),
            )
        else:
            text = model.cross_modal_text_link_tower[link](marked, before.text, None)
            photo = model.cross_modal_image_link_tower[link](shown, before.photo, None)
        layer = link + 1
        return _Fused(
            model.cross_modal_text_layers[layer](text, photo, attention_mask=mask)[0],
            model.cross_modal_image_layers[layer](photo, text, encoder_attention_mask=mask)[0],
        )

    def _of_photo(self, states: torch.Tensor) -> torch.Tensor:
        """(N, M, C) of (M, N, C) patches, in the width of the bridges."""
        model = self._towers
        transformed: torch.Tensor = model.cross_modal_image_transform(
            model.vision_model.visual.forward_post(states)
        )
        return transformed + self._mark(_PHOTO)

    def _mark(self, kind: int) -> torch.Tensor:
        mark: torch.Tensor = self._towers.token_type_embeddings.weight[kind]
        return mark


def _architecture(judges: bool) -> Any:
    """The library's class of the contrastive heads, or one that also has the matching head."""
    import transformers

    if not judges:
        return transformers.BridgeTowerForContrastiveLearning
    from transformers.models.bridgetower import modeling_bridgetower

    parts: Any = modeling_bridgetower

    class BridgeTowerForRetrieval(  # type: ignore[no-untyped-call]
        transformers.BridgeTowerForContrastiveLearning
    ):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.itm_score = parts.BridgeTowerITMHead(config.hidden_size * 2)
            self.post_init()  # type: ignore[no-untyped-call]

    return BridgeTowerForRetrieval


def _at_bridges(state: torch.Tensor, layers: Sequence[Any], before: int) -> list[torch.Tensor]:
    """A tower's states after its first layers, and after each later one."""
    states = []
    for number, layer in enumerate(layers, 1):
        state = layer(state)
        if number >= before:
            states.append(state)
    return states


def _first(output: Any) -> torch.Tensor:
    """A layer's states, which one major of the library puts into a tuple."""
    state: torch.Tensor = output[0] if isinstance(output, tuple) else output
    return state


def _mask(tokens: TokenBatch) -> torch.Tensor:
    """(N, 1, 1, L) what is added to attention scores: 0, or a large negative number for padding."""
    there = tokens.there[:, None, None, :].float()
    return (1 - there) * torch.finfo(there.dtype).min


@lru_cache(maxsize=1)
def loaded(model: Pretrained, device: torch.device) -> BlipModel | BridgeTowerModel:
    """BLIP or BridgeTower; the last model is cached."""
    return (BlipModel if model.kind == "blip" else BridgeTowerModel)(model, device)
