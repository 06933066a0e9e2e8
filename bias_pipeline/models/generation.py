"""Captions photos with any image-text model of transformers: processor, template, ``generate``.

The module also lists the captioners that papers measured, with the papers' facts.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from bias_pipeline.data.image_masking import PhotoReader
from bias_pipeline.data.photos import image_id, read_photo
from bias_pipeline.errors import BiasPipelineError, DataError, UsageError
from bias_pipeline.io.files import read_csv
from bias_pipeline.models.model_location import hub_cache
from bias_pipeline.models.picture_text import (
    fill_template,
    place_picture,
    processor_of,
    require_image_text,
)
from bias_pipeline.models.pretrained import Pretrained, first_line, load
from bias_pipeline.models.sampling import Decoding, Noise, decode_captions
from bias_pipeline.models.torchvision import make_importable

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

BLIP, GIT, PAIR = "blip", "git", "vision-encoder-decoder"
# The kinds that are tested; any other image-text model of transformers is taken as well.
KINDS = (
    BLIP, "blip-2", "florence2", "gemma3", GIT, "idefics3", "internvl", "llava",
    "llava_onevision", "paligemma", "qwen2_vl", PAIR,
)  # fmt: skip
# What is asked without --prompt: captioners need no prompt, some kinds have their authors' prompt
# (BLIP-2's is from LAVIS), and all others are asked as lmms-eval does
# (EvolvingLMMs-Lab/lmms-eval, task coco_cap).
_USUAL = {
    **dict.fromkeys((BLIP, GIT, "pix2struct", PAIR), ""),
    "blip-2": "a photo of",
    "florence2": "<CAPTION>",
    "paligemma": "caption en",
}
_QUESTION = "Provide a one-sentence caption for the provided image."
_IDS = "input_ids"


def usual_prompt(kind: str) -> str:
    """The prompt that a model gets without ``--prompt``.

    Example:
        >>> usual_prompt("blip"), usual_prompt("florence2")
        ('', '<CAPTION>')
    """
    return _USUAL.get(kind, _QUESTION)


class PreparedPhoto(NamedTuple):
    # Name to (1, ...) tensors; the first axis may count the pieces of a photo
    inputs: dict[str, torch.Tensor]
    image: str  # the photo's id, which decides the random numbers of draws

    @property
    def form(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The shapes of the inputs; photos with equal shapes form a batch without padding."""
        return tuple(sorted((name, tuple(value.shape)) for name, value in self.inputs.items()))


class Captioner:
    """Writes captions of photos, by greedy or beam search, or by sampling."""

    def __init__(
        self,
        model: Pretrained,
        device: torch.device,
        decoding: Decoding,
        reader: PhotoReader = read_photo,
        dtype: str = "float32",
    ) -> None:
        import transformers
        from PIL import Image

        make_importable()
        require_image_text(model, KINDS)
        self._model, self._device, self._decoding = model, device, decoding
        self._reader = reader
        self._processor = processor_of(model)
        self._lock = Lock()  # processors must not be shared by threads
        self._text = self._question()
        architecture = transformers.AutoModelForImageTextToText
        self._network = network = load(model, architecture, device, dtype=dtype)
        text = network.config.get_text_config(decoder=True)
        self._writes_apart = bool(text.is_encoder_decoder) or model.kind == PAIR
        # Some processors make inputs that their network does not read.
        reads_types = "token_type_ids" in inspect.signature(network.forward).parameters
        self._unread = {"labels"} | (set() if reads_types else {"token_type_ids"})
        self._pad(network.generation_config)
        self._check_length(text, self._prepare(Image.new("RGB", (40, 30)), ""))

    def _question(self) -> str | None:
        """The text that accompanies every photo, or None without a text."""
        kind, prompt = self._model.kind, self._decoding.prompt
        if kind == PAIR or not (prompt or usual_prompt(kind)):
            return None
        text = fill_template(self._processor, prompt)
        return place_picture(kind, self._processor, prompt) if text is None else text

    def _pad(self, config: Any) -> None:
        """Set the token that fills captions up to the longest caption in their batch."""
        tokens, ends = self._processor.tokenizer, config.eos_token_id
        end = ends[0] if isinstance(ends, list) else ends
        known = (config.pad_token_id, tokens.pad_token_id, end, tokens.eos_token_id, 0)
        config.pad_token_id = int(next(number for number in known if number is not None))

    def _check_length(self, text: Any, sample: PreparedPhoto) -> None:
        """Refuse captions that are longer than the decoder has positions."""
        positions = getattr(text, "max_position_embeddings", None)
        if positions is None or hasattr(text, "relative_attention_num_buckets"):  # T5's reads all
            return
        most = positions - max(2, len(self._first_tokens(sample)))  # a sign at either end
        if self._decoding.max_new_tokens > most:
            raise UsageError(
                f"the captioner writes at most {most} tokens after its prompt; use "
                f"--max-new-tokens {most} or less"
            )

    def read(self, path: Path) -> PreparedPhoto:
        return self._prepare(self._reader(path), image_id(path.name))

    def _prepare(self, photo: Image, image: str) -> PreparedPhoto:
        options: dict[str, Any] = {"return_tensors": "pt"}
        begins = self._processor.tokenizer.bos_token
        if self._text is not None:
            options["text"] = self._text
            if self._processor.chat_template and begins and self._text.startswith(begins):
                options["add_special_tokens"] = False  # the template has written these tokens
        try:
            with self._lock:
                made = self._processor(images=photo, **options)
        except Exception as error:  # whatever the processor raises
            beside = f" with {self._text[:60]!r}" if self._text else ""
            raise DataError(
                f"{self._model.name}: its processor refuses a picture{beside} ({first_line(error)})"
            ) from error
        inputs = {name: value for name, value in made.items() if name not in self._unread}
        if self._model.kind == GIT and _IDS in inputs:  # cut the end token, after which GIT stops
            inputs |= {name: inputs[name][:, :-1] for name in (_IDS, "attention_mask")}
        return PreparedPhoto(inputs | self._decoder_prompt(), image)

    def _decoder_prompt(self) -> dict[str, torch.Tensor]:
        """The prompt of a decoder whose encoder reads only the picture."""
        prompt = self._decoding.prompt if self._model.kind == PAIR else ""
        if not prompt:
            return {}
        words = self._processor.tokenizer(
            prompt, add_special_tokens=False, return_tensors="pt"
        ).input_ids
        config = self._network.generation_config
        start = config.decoder_start_token_id
        first = config.bos_token_id if start is None else start
        return {"decoder_input_ids": words.new_tensor([[first, *words[0]]])}

    def _first_tokens(self, shown: PreparedPhoto) -> list[int]:
        """The tokens before a caption, if ``generate`` returns them with the caption."""
        name = "decoder_input_ids" if self._writes_apart else _IDS
        if name not in shown.inputs:
            return []
        tokens: list[int] = shown.inputs[name][0].tolist()
        if self._model.kind == BLIP:  # BLIP begins with a token of its own and drops the end token
            return [self._network.config.text_config.bos_token_id, *tokens[1:-1]]
        return tokens

    def describe(self, photos: Sequence[PreparedPhoto]) -> list[list[str]]:
        """The wanted number of captions for each photo, without the prompt; forms are equal."""
        images = [photo.image for photo in photos]
        return decode_captions(self._decoding, images, self._device, partial(self._write, photos))

    def _write(self, photos: Sequence[PreparedPhoto], noise: Noise | None, best: int) -> list[str]:
        """The best texts of B photos of equal form, photo by photo."""
        rows = self._tokens(photos, noise, best)
        texts = self._processor.tokenizer.batch_decode(rows, skip_special_tokens=True)
        return [" ".join(text.split()) for text in texts]

    def _tokens(
        self, photos: Sequence[PreparedPhoto], noise: Noise | None, best: int
    ) -> list[list[int]]:
        """The tokens of the best texts, without the tokens at the beginning of every text."""
        import torch

        inputs = self._inputs(photos)
        try:
            with torch.inference_mode():
                written = self._network.generate(
                    **inputs,
                    logits_processor=[] if noise is None else [noise],
                    do_sample=False,
                    num_beams=self._decoding.beams,
                    num_return_sequences=best,
                    max_new_tokens=self._decoding.max_new_tokens,
                )
        except (torch.OutOfMemoryError, BiasPipelineError):
            raise
        except Exception as error:  # whatever the library raises on files that do not fit
            raise DataError(
                f"{self._model.name}: cannot write captions ({first_line(error)}); are all its "
                "files of one revision?"
            ) from error
        rows: list[list[int]] = written.tolist()
        for place, row in enumerate(rows):
            begun = self._first_tokens(photos[place // best])
            if row[: len(begun)] == begun:
                del row[: len(begun)]
        return rows

    def _inputs(self, photos: Sequence[PreparedPhoto]) -> dict[str, torch.Tensor]:
        import torch

        batch = {
            name: torch.cat([photo.inputs[name] for photo in photos]) for name in photos[0].inputs
        }
        dtype = self._network.dtype
        return {
            name: tensor.to(self._device, dtype if tensor.is_floating_point() else None)
            for name, tensor in batch.items()
        }


@dataclass(frozen=True)
class PublishedCaptioner:
    """A captioner of a paper's table."""

    experiment: str  # the preset of the table
    name: str  # as the paper writes it
    cited: str  # the work that the paper cites for it
    trained_on_coco: str  # `yes`, `no` or `unsaid`: this and the next three are as the paper says
    weights: str  # the weights that were used
    prompt: str  # the prompt that was given
    decoding: str  # how words were chosen
    lic: str  # its name in `dataset=lic` if the captions there are of this captioner; may be empty
    kind: str  # the model type of transformers that `caption` takes for it; may be empty


@cache
def published_captioners() -> tuple[PublishedCaptioner, ...]:
    """Sources: Nair et al. (DBAC, WACV 2026), Table 9; Sabir and Padro (Gender Score), Table 3.

    Example:
        >>> [one.name for one in published_captioners() if one.trained_on_coco == "no"]
        ['BakLLaVA', 'Florence', 'LLaVA']
    """
    text = files("bias_pipeline.models").joinpath("published_captioners.csv").read_text("utf-8")
    return tuple(PublishedCaptioner(**row) for row in read_csv(text))


def fetched_models(kind: str) -> list[str]:
    """The names of the models of one kind in the hub's cache."""
    names = set()
    for path in hub_cache().glob("models--*/snapshots/*/config.json"):
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(config, dict) and config.get("model_type") == kind:
            names.add(path.parents[2].name.removeprefix("models--").replace("--", "/"))
    return sorted(names)
