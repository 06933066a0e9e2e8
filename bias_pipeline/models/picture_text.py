"""Published models that go on writing after a picture and a text, asked how likely answers are."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.errors import BiasPipelineError, DataError, ResourceError
from bias_pipeline.models.folders import require_preprocessing, require_vocabulary
from bias_pipeline.models.pretrained import Pretrained, first_line, image_processor, load
from bias_pipeline.vision.pixels import read_pixels
from bias_pipeline.vision.torchvision import make_importable

if TYPE_CHECKING:
    import torch

BLIP, QWEN = "blip", ("qwen2_vl", "qwen2_5_vl")
FLORENCE = "florence2"
KINDS = (BLIP, "blip-2", FLORENCE, "git", "llava", *QWEN)
# What stands for the picture, in texts of models that want to be told.
_PLACES = {
    "llava": "<image>\n",
    **dict.fromkeys(QWEN, "<|vision_start|><|image_pad|><|vision_end|>"),
}
_IDS, _TYPES = "input_ids", "token_type_ids"


class Question(NamedTuple):
    """One question.

    Attributes:
        pictures: among which the picture is.
        row: its number there.
        before: what is read before the answer.
        follows: K texts of which each may follow: an answer, and what stands behind it.
    """

    pictures: Pictures
    row: int
    before: str
    follows: tuple[str, ...]


class Asked(NamedTuple):
    """A question as the network takes it.

    Attributes:
        inputs: name to (1, ...) tensors, with the text before the answer.
        follows: K lists of tokens.
    """

    inputs: dict[str, torch.Tensor]
    follows: tuple[tuple[int, ...], ...]

    @property
    def form(self) -> tuple[object, ...]:
        """Questions of one form go through the network together, nothing filled up."""
        shapes = sorted((name, tuple(own.shape)) for name, own in self.inputs.items())
        return (*shapes, *map(len, self.follows))


class PictureText:
    """A model of transformers, as it is.

    Args:
        model: with its processor.
        device: where to compute.
        side: pictures are squeezed into a square of so many pixels, before the model's own
            preprocessing, as for all who see them.
        dtype: the precision it computes in.

    Attributes:
        network: the model itself, in evaluation mode.

    Raises:
        BiasPipelineError: if the model or its processor is broken or absent.
    """

    def __init__(
        self, model: Pretrained, device: torch.device, side: int, dtype: str = "float32"
    ) -> None:
        import transformers

        make_importable()
        _require_known(model)
        self._model, self._side = model, side
        self._processor = _processor(model)
        self._lock = Lock()  # of the processor, which threads must not share
        self.network = load(model, transformers.AutoModelForImageTextToText, device, dtype=dtype)
        self._recodes = bool(self.network.config.get_text_config().is_encoder_decoder)
        self._starts = _starts(self.network) if self._recodes else ()

    def read(self, question: Question) -> Asked:
        """A question as the network takes it.

        Raises:
            DataError: if its picture cannot be read, an answer cannot be written, or it is longer
                than the model reads.
        """
        from PIL import Image

        pixels = read_pixels(question.pictures, question.row, self._side)
        text = _PLACES.get(self._model.kind, "") + question.before
        with self._lock:
            try:
                made = self._processor(
                    images=Image.fromarray(np.asarray(pixels)), text=text, return_tensors="pt"
                )
            except Exception as error:  # whatever a processor makes of its own settings
                raise DataError(
                    f"{self._model.name}: its processor refuses a picture with "
                    f"{question.before[:60]!r} ({first_line(error)})"
                ) from error
            follows = tuple(self._tokens(question.before, own) for own in question.follows)
        inputs = {name: own for name, own in made.items() if name != _TYPES}
        asked = Asked(inputs if self._recodes else self._begun(inputs), follows)
        self._check_length(asked, question)
        return asked

    def _tokens(self, before: str, follow: str) -> tuple[int, ...]:
        """What a text adds to the one before it.

        Raises:
            DataError: if the model cannot write it.
        """
        tokenizer = self._processor.tokenizer
        first, whole = (
            tuple(tokenizer(own, add_special_tokens=False)[_IDS])
            for own in (before, f"{before} {follow}")
        )
        added = whole[len(first) :]
        if self._recodes or whole[: len(first)] != first:  # its last token has grown
            added = tuple(tokenizer(f" {follow}", add_special_tokens=False)[_IDS])
        if not added or tokenizer.unk_token_id in added:
            raise DataError(
                f"{self._model.name}: its vocabulary cannot write {follow!r}; give other words "
                "(encoder.prompt.answers)"
            )
        return added

    def _begun(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """A text that goes on: without the sign for its end."""
        tokenizer = self._processor.tokenizer
        ends = {tokenizer.eos_token_id, tokenizer.sep_token_id}
        tokens = inputs[_IDS][0].tolist()
        length = len(tokens)
        while length > 1 and tokens[length - 1] in ends:
            length -= 1
        begun = {
            name: own[:, :length] if own.shape == (1, len(tokens)) else own
            for name, own in inputs.items()
        }
        if self._model.kind == BLIP:  # its decoder begins with a sign of its own
            begun[_IDS] = begun[_IDS].clone()
            begun[_IDS][:, 0] = self.network.config.text_config.bos_token_id
        return begun

    def _check_length(self, asked: Asked, question: Question) -> None:
        text = self.network.config.get_text_config()
        most = getattr(text, "max_position_embeddings", None)
        if hasattr(text, "relative_attention_num_buckets"):  # T5's, which reads any length
            most = None
        answered = 0 if self._recodes else max(map(len, asked.follows))
        length = asked.inputs[_IDS].shape[1] + answered
        if most is not None and length > most:
            raise DataError(
                f"{self._model.name}: reads {most} tokens, and {question.before[:60]!r} with its "
                f"answer has {length}; shorten encoder.prompt.template"
            )

    def describe(self, asked: Sequence[Asked]) -> list[npt.NDArray[np.float32]]:
        """(K,) logarithms of how likely each text is to follow, for each question."""
        import torch

        with torch.inference_mode():
            return list(self.likely(asked).cpu().numpy())

    def likely(self, asked: Sequence[Asked]) -> torch.Tensor:
        """(B, K) float32 logarithms of how likely each text is to follow, with gradients.

        Args:
            asked: B questions, of K texts each.
        """
        import torch

        forms: dict[tuple[object, ...], list[int]] = {}
        for place, own in enumerate(asked):
            forms.setdefault(own.form, []).append(place)
        found = [self._likely([asked[place] for place in places]) for places in forms.values()]
        order = np.argsort([place for places in forms.values() for place in places])
        return torch.cat(found)[torch.from_numpy(order)]

    def _likely(self, asked: Sequence[Asked]) -> torch.Tensor:
        """(B, K) of questions of one form."""
        import torch

        device = self.network.device
        inputs = {
            name: torch.cat([own.inputs[name] for own in asked]).to(device)
            for name in asked[0].inputs
        }
        follows = [
            torch.tensor([own.follows[k] for own in asked], device=device)
            for k in range(len(asked[0].follows))
        ]
        if not self._recodes and all(own.shape[1] == 1 for own in follows):
            return self._words(inputs)[:, -1].gather(1, torch.cat(follows, dim=1))
        return torch.stack([self._followed(inputs, own) for own in follows], dim=1)

    def _words(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """(B, L, V) logarithms of how likely each word is after each place."""
        own = {
            name: tensor.to(self.network.dtype) if tensor.is_floating_point() else tensor
            for name, tensor in inputs.items()
        }
        likely: torch.Tensor = self.network(**own).logits.float().log_softmax(dim=-1)
        return likely

    def _followed(self, inputs: dict[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
        """(B,) how likely several tokens (B, M) are, one after the other."""
        import torch

        n_tokens = tokens.shape[1]
        if self._recodes:
            first = tokens.new_tensor(self._starts).expand(len(tokens), -1)
            words = self._words({**inputs, "decoder_input_ids": torch.cat([first, tokens], 1)})
        else:
            words = self._words(self._extended(inputs, tokens))
        own = words[:, -n_tokens - 1 : -1].gather(2, tokens[..., None])
        return own.squeeze(2).sum(dim=1)

    @staticmethod
    def _extended(inputs: dict[str, torch.Tensor], tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        """Inputs with more tokens at the end; whatever else a token has is as of a word."""
        import torch

        added = {_IDS: tokens, "attention_mask": torch.ones_like(tokens)}
        shape = inputs[_IDS].shape
        return {
            name: torch.cat([own, added.get(name, torch.zeros_like(tokens))], 1)
            if own.shape == shape
            else own
            for name, own in inputs.items()
        }


def _starts(network: Any) -> tuple[int, ...]:
    """What an answer begins with, where a model reads the text and writes the answer apart.

    Some are made to write one sign first (BART and those built on it), which is no word.
    """
    told = (network.config.get_text_config(), network.generation_config)
    first, forced = (
        next((own for place in told if (own := getattr(place, key, None)) is not None), None)
        for key in ("decoder_start_token_id", "forced_bos_token_id")
    )
    return tuple(int(own) for own in (first, forced) if own is not None)


def _require_known(model: Pretrained) -> None:
    """Know that this transformers has such models; its own errors speak of the processor.

    Raises:
        ResourceError: if it has none.
    """
    import transformers

    if model.kind not in transformers.CONFIG_MAPPING:
        raise ResourceError(
            f"{model.name}: transformers {transformers.__version__} has no {model.kind} models; "
            f"install a later one ({FLORENCE} needs version 5)"
        )


def _processor(model: Pretrained) -> Any:
    """A model's own processor of pictures and texts.

    Raises:
        DataError: if it is broken.
        ResourceError: if a part of it is absent.
    """
    import transformers

    require_preprocessing(model.folder, model.files)
    require_vocabulary(model.folder, model.files)
    try:
        found = transformers.AutoProcessor.from_pretrained(  # type: ignore[no-untyped-call]
            model.folder, local_files_only=True, trust_remote_code=False
        )
        found.image_processor = image_processor(model)
    except BiasPipelineError:
        raise
    except Exception as error:  # whatever a broken or absent file makes of the library
        raise DataError(
            f"{model.name}: its processor cannot be loaded ({first_line(error)})"
        ) from error
    return found
