"""Computes probabilities of answers after a picture and a text, by published models.

In the library, a model's processor combines its preprocessing of pictures and its tokenizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bias_pipeline.array_types import Float32Array
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.data.photos import read_pixels
from bias_pipeline.errors import BiasPipelineError, DataError, ResourceError, listed_names
from bias_pipeline.models.model_location import require_preprocessing, require_vocabulary
from bias_pipeline.models.pretrained import Pretrained, first_line, image_processor, load, tokenizer
from bias_pipeline.models.torchvision import make_importable

if TYPE_CHECKING:
    import torch

# The picture's placeholder in texts, for kinds whose placeholder is more than the processor's sign.
_PLACES = {
    "llava": "<image>\n",
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), "<|vision_start|><|image_pad|><|vision_end|>"),
}
# Processors that put the placeholder there themselves.
_PLACED = ("blip", "blip-2", "florence2", "git", "instructblip", "kosmos-2", "paligemma")
# Kinds that the oldest supported release lacks, each with the release that added it.
_SINCE = {"florence2": "4.56", "internvl": "4.52"}


def require_known(model: Pretrained) -> None:
    """Refuse a kind of model that the installed transformers lacks; its own error misleads."""
    import transformers

    if model.kind not in transformers.CONFIG_MAPPING:
        later = _SINCE.get(model.kind)
        raise ResourceError(
            f"{model.name}: transformers {version('transformers')} has no {model.kind} models; "
            + (f"install {later} or later" if later else "a later version may have them")
        )


def require_image_text(model: Pretrained, others: tuple[str, ...]) -> None:
    """Refuse a model of transformers that does not write texts about pictures."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as KINDS,
    )

    require_known(model)
    if model.kind not in KINDS:
        raise DataError(
            f"{model.name}: a {model.kind!r} writes no texts about pictures; "
            f"{listed_names(others)} Any other image-text model of transformers "
            f"{version('transformers')} is taken too"
        )


def processor_of(model: Pretrained) -> Any:
    """A model's own processor of pictures and texts, which always reads pictures with Pillow."""
    import transformers

    require_preprocessing(model.folder, model.files)
    require_vocabulary(model.folder, model.files)
    try:
        processor = transformers.AutoProcessor.from_pretrained(  # type: ignore[no-untyped-call]
            model.folder, local_files_only=True, trust_remote_code=False
        )
        if not hasattr(processor, "image_processor"):  # a kind without a processor for both
            return _Pair(image_processor(model), tokenizer(model))
        processor.image_processor = image_processor(model)
    except BiasPipelineError:
        raise
    except ImportError as error:  # names the package
        reason = first_line(error).partition(". ")[0]
        raise ResourceError(f"{model.name}: its processor lacks a package ({reason})") from error
    except Exception as error:  # whatever the library raises on a broken or absent file
        raise DataError(
            f"{model.name}: its processor cannot be loaded ({first_line(error)})"
        ) from error
    return processor


class _Pair:
    """A preprocessing of pictures and a tokenizer, for models without a processor for both."""

    chat_template = None

    def __init__(self, pictures: Any, words: Any) -> None:
        self.image_processor, self.tokenizer = pictures, words

    def __call__(self, *, images: Any, return_tensors: str) -> Any:
        return self.image_processor(images=images, return_tensors=return_tensors)


def place_picture(kind: str, processor: Any, prompt: str) -> str:
    """A prompt after the picture's placeholder, for models without a template."""
    sign = "" if kind in _PLACED else str(getattr(processor, "image_token", "") or "")
    return _PLACES.get(kind, f"{sign}\n" if sign else "") + prompt


def fill_template(processor: Any, prompt: str) -> str | None:
    """The chat template of a model with a question on one picture, or None without a template."""
    if processor.chat_template is None:
        return None
    content = [{"type": "image"}, {"type": "text", "text": prompt}]
    try:
        text: str = processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
        )
    except Exception as error:  # whatever a template makes of it
        raise DataError(f"its chat template cannot be used ({first_line(error)})") from error
    return text


BLIP, QWEN = "blip", ("qwen2_vl", "qwen2_5_vl")
FLORENCE = "florence2"
KINDS = (BLIP, "blip-2", FLORENCE, "git", "llava", *QWEN)
_IDS, _TYPES = "input_ids", "token_type_ids"


class Question(NamedTuple):
    pictures: Pictures  # the corpus's pictures
    row: int  # the picture's row
    before: str  # the text before the answer
    follows: tuple[str, ...]  # K possible continuations: an answer and the rest of the text


class Request(NamedTuple):
    inputs: dict[str, torch.Tensor]  # name to (1, ...) tensors, with the text before the answer
    follows: tuple[tuple[int, ...], ...]  # K lists of tokens

    @property
    def form(self) -> tuple[object, ...]:
        """The shapes of the inputs; questions with equal shapes form a batch without padding."""
        shapes = sorted((name, tuple(tensor.shape)) for name, tensor in self.inputs.items())
        return (*shapes, *map(len, self.follows))


class PictureText:
    """A model of transformers, without further training.

    Pictures become squares of ``side`` pixels before the model's own preprocessing, as with all
    encoders of pictures. ``network`` is the model itself, in evaluation mode.
    """

    def __init__(
        self, model: Pretrained, device: torch.device, side: int, dtype: str = "float32"
    ) -> None:
        import transformers

        make_importable()
        require_known(model)
        self._model, self._side = model, side
        self._processor = processor_of(model)
        self._lock = Lock()  # processors must not be shared by threads
        self.network = load(model, transformers.AutoModelForImageTextToText, device, dtype=dtype)
        self._recodes = bool(self.network.config.get_text_config().is_encoder_decoder)
        self._starts = _starts(self.network) if self._recodes else ()

    def read(self, question: Question) -> Request:
        from PIL import Image

        pixels = read_pixels(question.pictures, question.row, self._side)
        text = place_picture(self._model.kind, self._processor, question.before)
        with self._lock:
            try:
                made = self._processor(
                    images=Image.fromarray(np.asarray(pixels)), text=text, return_tensors="pt"
                )
            except Exception as error:  # whatever the processor raises
                raise DataError(
                    f"{self._model.name}: its processor refuses a picture with "
                    f"{question.before[:60]!r} ({first_line(error)})"
                ) from error
            follows = tuple(self._tokens(question.before, follow) for follow in question.follows)
        inputs = {name: tensor for name, tensor in made.items() if name != _TYPES}
        request = Request(inputs if self._recodes else self._without_end(inputs), follows)
        self._check_length(request, question)
        return request

    def _tokens(self, before: str, follow: str) -> tuple[int, ...]:
        tokenizer = self._processor.tokenizer
        first, whole = (
            tuple(tokenizer(text, add_special_tokens=False)[_IDS])
            for text in (before, f"{before} {follow}")
        )
        added = whole[len(first) :]
        if self._recodes or whole[: len(first)] != first:  # its last token has changed
            added = tuple(tokenizer(f" {follow}", add_special_tokens=False)[_IDS])
        if not added or tokenizer.unk_token_id in added:
            raise DataError(
                f"{self._model.name}: its vocabulary cannot write {follow!r}; give other words "
                "(encoder.prompt.answers)"
            )
        return added

    def _without_end(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Inputs without the end token, so that the text can continue."""
        tokenizer = self._processor.tokenizer
        ends = {tokenizer.eos_token_id, tokenizer.sep_token_id}
        tokens = inputs[_IDS][0].tolist()
        length = len(tokens)
        while length > 1 and tokens[length - 1] in ends:
            length -= 1
        begun = {
            name: tensor[:, :length] if tensor.shape == (1, len(tokens)) else tensor
            for name, tensor in inputs.items()
        }
        if self._model.kind == BLIP:  # its decoder begins with its own token
            begun[_IDS] = begun[_IDS].clone()
            begun[_IDS][:, 0] = self.network.config.text_config.bos_token_id
        return begun

    def _check_length(self, request: Request, question: Question) -> None:
        text = self.network.config.get_text_config()
        most = getattr(text, "max_position_embeddings", None)
        if hasattr(text, "relative_attention_num_buckets"):  # a T5, which reads any length
            most = None
        answered = 0 if self._recodes else max(map(len, request.follows))
        length = request.inputs[_IDS].shape[1] + answered
        if most is not None and length > most:
            raise DataError(
                f"{self._model.name}: reads {most} tokens, and {question.before[:60]!r} with its "
                f"answer has {length}; shorten encoder.prompt.template"
            )

    def describe(self, requests: Sequence[Request]) -> list[Float32Array]:
        """(K,) log-probabilities of the continuations, for each question."""
        import torch

        with torch.inference_mode():
            return list(self.answer_log_probs(requests).cpu().numpy())

    def answer_log_probs(self, requests: Sequence[Request]) -> torch.Tensor:
        """(B, K) float32 log-probabilities of each continuation, with gradients."""
        import torch

        forms: dict[tuple[object, ...], list[int]] = {}
        for place, request in enumerate(requests):
            forms.setdefault(request.form, []).append(place)
        parts = [
            self._answer_log_probs([requests[place] for place in places])
            for places in forms.values()
        ]
        order = np.argsort([place for places in forms.values() for place in places])
        return torch.cat(parts)[torch.from_numpy(order)]

    def _answer_log_probs(self, requests: Sequence[Request]) -> torch.Tensor:
        import torch

        device = self.network.device
        inputs = {
            name: torch.cat([request.inputs[name] for request in requests]).to(device)
            for name in requests[0].inputs
        }
        follows = [
            torch.tensor([request.follows[k] for request in requests], device=device)
            for k in range(len(requests[0].follows))
        ]
        if not self._recodes and all(follow.shape[1] == 1 for follow in follows):
            return self._words(inputs)[:, -1].gather(1, torch.cat(follows, dim=1))
        return torch.stack([self._answer_log_prob(inputs, follow) for follow in follows], dim=1)

    def _words(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """(B, L, V) log-probabilities of each word after each position."""
        arguments = {
            name: tensor.to(self.network.dtype) if tensor.is_floating_point() else tensor
            for name, tensor in inputs.items()
        }
        log_probs: torch.Tensor = self.network(**arguments).logits.float().log_softmax(dim=-1)
        return log_probs

    def _answer_log_prob(
        self, inputs: dict[str, torch.Tensor], tokens: torch.Tensor
    ) -> torch.Tensor:
        """(B,) the log-probability that the tokens of an answer (B, M) follow each other."""
        import torch

        n_tokens = tokens.shape[1]
        if self._recodes:
            first = tokens.new_tensor(self._starts).expand(len(tokens), -1)
            words = self._words({**inputs, "decoder_input_ids": torch.cat([first, tokens], 1)})
        else:
            added = {_IDS: tokens, "attention_mask": torch.ones_like(tokens)}
            others, shape = torch.zeros_like(tokens), inputs[_IDS].shape
            longer = {
                name: torch.cat([tensor, added.get(name, others)], 1)
                for name, tensor in inputs.items()
                if tensor.shape == shape
            }
            words = self._words({**inputs, **longer})
        scores = words[:, -n_tokens - 1 : -1].gather(2, tokens[..., None])
        return scores.squeeze(2).sum(dim=1)


def _starts(network: Any) -> tuple[int, ...]:
    """The tokens before an answer; some models have a separate decoder that needs them.

    BART and its descendants, for example, must write a special token first.
    """
    configs = (network.config.get_text_config(), network.generation_config)
    first, forced = (
        next((token for place in configs if (token := getattr(place, key, None)) is not None), None)
        for key in ("decoder_start_token_id", "forced_bos_token_id")
    )
    return tuple(int(token) for token in (first, forced) if token is not None)
