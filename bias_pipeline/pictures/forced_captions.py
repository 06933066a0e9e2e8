"""Captioners that read their own captions again, word by word (teacher forcing)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bias_pipeline.corpus.pictures import Pixels
from bias_pipeline.errors import BiasPipelineError, DataError, NotApplicableError
from bias_pipeline.models.generation import Captioner, PreparedPhoto
from bias_pipeline.models.pretrained import first_line
from bias_pipeline.pictures.captioners.fitted import SPECIALS, FittedNet
from bias_pipeline.pictures.captioners.prompt import PAD, START

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

    from bias_pipeline.models.pretrained import Pretrained

PALIGEMMA = "paligemma"
_PIXELS, _MASK, _TYPES = "pixel_values", "attention_mask", "token_type_ids"


@dataclass(frozen=True)
class WrittenCaption:
    """A caption in the form in which its captioner wrote it."""

    text: str  # as it was written
    # Numbers of the tokens before the caption: the prompt, or a token that begins captions
    before: Sequence[int]
    tokens: Sequence[int]  # the numbers of the caption's L tokens, without the end token
    spans: Sequence[tuple[int, int]]  # (start, end) of each token within the text, in characters


PictureT = TypeVar("PictureT")


class ForcedCaptioner(Protocol[PictureT]):
    """A captioner that reads its captions again, with gradients."""

    @property
    def name(self) -> str:
        """The name of the model, in the form in which the user wrote it."""

    @property
    def network(self) -> torch.nn.Module:
        """The network in evaluation mode."""

    @property
    def side(self) -> int:
        """The height in pixels of the captioner's pictures."""

    def prepare(self, photo: Image) -> PictureT:
        """A photo in the form that the network takes."""

    def pixels(self, picture: PictureT) -> torch.Tensor:
        """(3, H, W) float32 a photo after the captioner's preprocessing."""

    def write(self, pictures: Sequence[PictureT]) -> list[WrittenCaption]:
        """A caption of each of B pictures of equal form; each word is the likeliest (greedy)."""

    def logits(
        self, pictures: Sequence[PictureT], captions: Sequence[WrittenCaption]
    ) -> torch.Tensor:
        """(B, L + 1, V) logits at each token of a caption, and at the end token after it."""

    def first_token(self, word: str) -> int | None:
        """A word's first token within a caption, or None if the captioner cannot write the word."""


class PublishedForced(Captioner):
    @property
    def name(self) -> str:
        return self._model.name

    @property
    def network(self) -> Any:
        """The network; its attention is computed in a way that shows the attention weights."""
        if hasattr(self._network, "set_attn_implementation"):
            self._network.set_attn_implementation("eager")
        return self._network

    @property
    def side(self) -> int:
        from PIL import Image

        return int(self.pixels(self.prepare(Image.new("RGB", (64, 64)))).shape[1])

    def prepare(self, photo: Image) -> PreparedPhoto:
        return self._prepare(photo, "")

    def pixels(self, picture: PreparedPhoto) -> torch.Tensor:
        pixels = picture.inputs.get(_PIXELS)
        if pixels is None or pixels.dim() != 4 or len(pixels) != 1:
            raise NotApplicableError(
                f"{self._model.name}: a {self._model.kind} cuts pictures into pieces, so no map "
                "can be drawn; choose a captioner that sees a picture whole"
            )
        return pixels[0].float()

    def write(self, pictures: Sequence[PreparedPhoto]) -> list[WrittenCaption]:
        rows = self._tokens(pictures, None, 1)
        begun = [self._first_tokens(picture) for picture in pictures]
        return [
            self._caption(before, row) if before else self._caption(row[:1], row[1:])
            for before, row in zip(begun, rows, strict=True)
        ]

    def _caption(self, before: Sequence[int], row: Sequence[int]) -> WrittenCaption:
        """The caption in a row of tokens, up to the end token."""
        config, tokenizer = self._network.generation_config, self._processor.tokenizer
        named = config.eos_token_id
        ends = {config.pad_token_id, *(named if isinstance(named, list) else [named])}
        tokens = list(takewhile(lambda token: token not in ends, row))
        cuts = [
            len(tokenizer.decode(tokens[:length], skip_special_tokens=True))
            for length in range(len(tokens) + 1)
        ]
        text = tokenizer.decode(tokens, skip_special_tokens=True)
        return WrittenCaption(text, before, tokens, list(pairwise(cuts)))

    def logits(
        self, pictures: Sequence[PreparedPhoto], captions: Sequence[WrittenCaption]
    ) -> torch.Tensor:
        import torch

        longest = max(len(caption.tokens) for caption in captions)
        pad = self._network.generation_config.pad_token_id
        lines = [
            [*caption.before, *caption.tokens, *[pad] * (longest - len(caption.tokens))]
            for caption in captions
        ]
        tokens = torch.tensor(lines, device=self._device)
        inputs = self._inputs(pictures)
        if self._writes_apart:
            inputs["decoder_input_ids"] = tokens
        else:
            inputs |= _append_caption(self._model.kind, inputs, tokens)
        try:
            logits: torch.Tensor = self._network(**inputs).logits
        except (torch.OutOfMemoryError, BiasPipelineError):
            raise
        except Exception as error:  # whatever the library raises
            raise DataError(
                f"{self._model.name}: cannot read its own captions again ({first_line(error)})"
            ) from error
        return logits[:, -(longest + 1) :].float()

    def first_token(self, word: str) -> int | None:
        tokenizer = self._processor.tokenizer
        alone, behind = (
            tokenizer(text, add_special_tokens=False).input_ids for text in ("a", f"a {word}")
        )
        following = behind[len(alone) :]
        return following[0] if following and following[0] != tokenizer.unk_token_id else None


def _append_caption(kind: str, inputs: dict[str, Any], tokens: torch.Tensor) -> dict[str, Any]:
    """The inputs of the prompt with the tokens of the caption behind them."""
    from torch.nn.functional import pad

    before = inputs.get("input_ids")
    if before is None:
        return {"input_ids": tokens, _MASK: tokens.new_ones(tokens.shape)}
    more = tokens.shape[1] - before.shape[1]
    types = _TYPES if kind == PALIGEMMA else ""  # PaliGemma reads type 0 in both directions
    others = {
        name: pad(value, (0, more), value=int(name in (_MASK, types)))
        for name, value in inputs.items()
        if value.shape == before.shape
    }
    return {**others, "input_ids": tokens}


_LAST = {"sat": "next_word", "grit": "cap_generator.fc"}  # the layers that give logits


class FittedForced(FittedNet):
    longest = 30  # words of a caption, as for ``caption``

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        super().__init__(model, device)
        if self.fitted.emotions:
            raise NotApplicableError(
                f"{model.name}: its captions are grounded in an emotion, which is not given "
                "here; take a captioner that was fitted without encoder.grounding"
            )

    def pixels(self, picture: Pixels) -> torch.Tensor:
        return self.picture([picture])["pixels"][0].float()

    def write(self, pictures: Sequence[Pixels]) -> list[WrittenCaption]:
        from bias_pipeline.pictures.captioners.decoding import beam_search

        rows = beam_search(self.network, self.picture(pictures), beams=1, longest=self.longest)
        return [self._caption(row) for row in rows]

    def _caption(self, row: Sequence[int]) -> WrittenCaption:
        names = (*SPECIALS, *self.fitted.words)
        words = [names[number] for number in row]
        ends = list(accumulate(len(word) + 1 for word in words))
        spans = [(end - len(word) - 1, end - 1) for word, end in zip(words, ends, strict=True)]
        return WrittenCaption(" ".join(words), [START], row, spans)

    def logits(
        self, pictures: Sequence[Pixels], captions: Sequence[WrittenCaption]
    ) -> torch.Tensor:
        import torch

        longest = max(len(caption.tokens) for caption in captions)
        lines = [
            [*caption.before, *caption.tokens, *[PAD] * (longest - len(caption.tokens))]
            for caption in captions
        ]
        tokens = torch.tensor(lines, device=self.device)
        steps: list[torch.Tensor] = []

        def read(layer: Any, inputs: Any, output: torch.Tensor) -> None:
            del layer, inputs
            steps.append(output)

        last = self.network.get_submodule(_LAST[self.fitted.kind])
        handle = last.register_forward_hook(read)
        try:
            self.network.next_word_log_probs(tokens, **self.picture(pictures))
        finally:
            handle.remove()
        return torch.stack(steps, dim=1) if steps[0].dim() == 2 else steps[0]

    def first_token(self, word: str) -> int | None:
        return self.fitted.vocabulary.get(word)
