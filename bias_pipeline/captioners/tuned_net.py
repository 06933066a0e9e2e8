"""The network of ``encoder=hf_lora``. Needs PyTorch and peft."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from torch import Tensor, nn

from bias_pipeline.models.picture_text import PictureText, Question


class TunedNet(nn.Module):
    """A model of transformers with low-rank matrices added to its linear layers.

    Args:
        model: whose weights are frozen.
        questions: N, of K answers each.
        rank: of the matrices.
        alpha: their product is multiplied by ``alpha / rank``.
        dropout: on their inputs.

    Attributes:
        output_dim: K.
        network: the model with the learnt matrices.
    """

    def __init__(
        self,
        model: PictureText,
        questions: Sequence[Question],
        rank: int,
        alpha: int,
        dropout: float,
    ) -> None:
        import peft

        super().__init__()
        config = peft.LoraConfig(
            r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules="all-linear"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # between peft and transformers
            self.network = model.network = peft.get_peft_model(model.network, config)
        self.output_dim = len(questions[0].follows)
        self._model, self._questions = model, questions

    def forward(self, rows: Tensor) -> Tensor:
        """(B, K) log-probabilities of the answers.

        Args:
            rows: (B,) which questions.
        """
        requests = [self._model.read(self._questions[row]) for row in rows.tolist()]
        return self._model.likely(requests)
