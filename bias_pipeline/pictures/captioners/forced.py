"""Captions of ``fit sat`` and ``fit grit``, read again by the captioner that wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from bias_pipeline.corpus.pictures import Pixels
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.pictures.captioners.fitted import SPECIALS, FittedNet
from bias_pipeline.pictures.captioners.prompt import PAD, START
from bias_pipeline.pictures.forced_captions import WrittenCaption

if TYPE_CHECKING:
    import torch

    from bias_pipeline.models.pretrained import Pretrained

_LAST = {"sat": "next_word", "grit": "cap_generator.fc"}  # the layers that give logits


class FittedForced(FittedNet):
    """See :class:`~bias_pipeline.pictures.forced_captions.ForcedCaptioner`."""

    longest = 30  # words of a caption, as in ``caption``

    def __init__(self, model: Pretrained, device: torch.device) -> None:
        super().__init__(model, device)
        if self.fitted.emotions:
            raise NotApplicableError(
                f"{model.name}: its captions are grounded in an emotion, which is not given here; "
                "take one that was fitted without encoder.grounding"
            )

    @property
    def side(self) -> int:
        """Pixels a side of its pictures."""
        return self.fitted.side

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
