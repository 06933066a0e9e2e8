"""Published captioners: BLIP, and any picture encoder with a text decoder.

Li et al., BLIP: Bootstrapping Language-Image Pre-training (ICML 2022); transformers'
VisionEncoderDecoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.errors import UsageError
from bias_pipeline.models.pretrained import Preprocessing, Pretrained, load, tokenizer
from bias_pipeline.vision.photos import read_photo
from bias_pipeline.vision.torchvision import make_importable

if TYPE_CHECKING:
    import torch

BLIP, PAIR = "blip", "vision-encoder-decoder"
KINDS = (BLIP, PAIR)


def check_prompt(model: Pretrained, prompt: str) -> None:
    """Refuse a prompt for a model that takes none.

    Raises:
        UsageError: if the model is no BLIP.
    """
    if prompt and model.kind != BLIP:
        raise UsageError(f"{model.name}: a {model.kind} takes no prompt; leave out --prompt")


class Captioner:
    """Photos as captions: the likeliest word at each step, nothing is drawn at random.

    Args:
        model: a BLIP or a VisionEncoderDecoder, with its tokenizer.
        device: where to compute.
        prompt: how every caption begins; for BLIP only.
        max_new_tokens: where a caption is cut off.
        beams: captions that are followed at once; 1 takes the likeliest word at each step.

    Raises:
        UsageError: if the model takes no prompt, or writes no captions of that length.
    """

    def __init__(
        self,
        model: Pretrained,
        device: torch.device,
        *,
        prompt: str = "",
        max_new_tokens: int = 30,
        beams: int = 1,
    ) -> None:
        import transformers

        make_importable()
        check_prompt(model, prompt)
        architecture = {
            BLIP: transformers.BlipForConditionalGeneration,
            PAIR: transformers.VisionEncoderDecoderModel,
        }[model.kind]
        self._prepare = Preprocessing(model).of_one_shape()
        self._tokens = tokenizer(model)
        self._network = load(model, architecture, device)
        self._device, self._prompt = device, prompt
        self._check_length(max_new_tokens)
        self._options = {
            "do_sample": False,
            "num_beams": beams,
            "max_new_tokens": max_new_tokens,
            "max_length": None,  # a model may bring one of its own
        }
        if model.kind == PAIR:
            self._options["pad_token_id"] = self._padding()

    def _check_length(self, max_new_tokens: int) -> None:
        """Refuse captions that are longer than the decoder has positions.

        Raises:
            UsageError: with the number that would do.
        """
        config = self._network.config
        own = config.text_config if hasattr(config, "text_config") else config.decoder
        most = own.max_position_embeddings - len(self._tokens(self._prompt)["input_ids"])
        if max_new_tokens > most:
            raise UsageError(
                f"the captioner writes no more than {most} tokens after its prompt; "
                f"--max-new-tokens {most} or less"
            )

    def _padding(self) -> int:
        """What fills captions that ended before others of their batch; it is not shown."""
        own = self._network.generation_config
        ends = own.eos_token_id[0] if isinstance(own.eos_token_id, list) else own.eos_token_id
        known = (own.pad_token_id, self._tokens.pad_token_id, ends, self._tokens.eos_token_id, 0)
        return int(next(number for number in known if number is not None))

    def read(self, path: Path) -> npt.NDArray[np.float32]:
        """(3, H, W) a photo as the network takes it.

        Raises:
            UnreadableError: with the reason.
        """
        return self._prepare(read_photo(path))

    def describe(self, photos: Sequence[npt.NDArray[np.float32]]) -> list[str]:
        """A caption for each photo, the prompt included."""
        import torch

        with torch.inference_mode():
            pixels = torch.from_numpy(np.stack(photos)).to(self._device)
            written = self._network.generate(
                pixel_values=pixels, **self._beginning(len(photos)), **self._options
            )
        texts = self._tokens.batch_decode(written, skip_special_tokens=True)
        return [" ".join(text.split()) for text in texts]

    def _beginning(self, n_photos: int) -> dict[str, Any]:
        """The same prompt for each photo, so nothing needs padding."""
        if not self._prompt:
            return {}
        tokens = self._tokens([self._prompt] * n_photos, return_tensors="pt").to(self._device)
        return {key: tokens[key] for key in ("input_ids", "attention_mask")}
