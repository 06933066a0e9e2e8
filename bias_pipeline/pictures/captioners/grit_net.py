"""GRIT, prompted (Nguyen et al. 2022). Needs PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bias_pipeline.pictures.captioners.prompt import PAD
from bias_pipeline.pictures.grit.captions import CaptionDecoder, GridNet
from bias_pipeline.pictures.grit.detector import Visual
from bias_pipeline.pictures.grit.sizes import GritSize


@dataclass(frozen=True)
class GritState:
    """Features of the pictures of B captions being written, and the (B, L) words so far."""

    visual: Visual
    tokens: Tensor

    def take(self, rows: Tensor) -> GritState:
        grid, regions = self.visual
        return GritState(Visual(grid[rows], regions[rows]), self.tokens[rows])


class GritNet(nn.Module):
    """From a picture and a prompt, the log-probability of each answer."""

    together = 128  # pictures per batch when it predicts

    def __init__(
        self,
        detector: nn.Module,
        n_words: int,
        answers: Sequence[Sequence[int]],
        size: GritSize,
        second_gate: str,
        n_memories: int = 0,
        n_positions: int = 0,
    ) -> None:
        super().__init__()
        self.detector = detector
        self.answers = [list(answer) for answer in answers]
        self.output_dim = len(answers)
        self.grid_net = GridNet(int(detector.grid_dim), size, n_memories)  # type: ignore[arg-type]
        self.cap_generator = CaptionDecoder(n_words, size, second_gate, n_positions)

    def forward(
        self,
        tokens: Tensor,
        lengths: Tensor,
        tail: Tensor | None = None,
        tail_lengths: Tensor | None = None,
        **picture: Tensor,
    ) -> Tensor:
        """(B, K) log-probabilities of each answer after words (B, L), before a tail (B, M)."""
        visual = self._encode(picture)
        if tail is None and all(len(answer) == 1 for answer in self.answers):
            states = self.cap_generator(tokens, visual)
            last = states[torch.arange(len(states), device=states.device), lengths - 1]
            words = self.cap_generator.next_word_log_probs(last)
            return words[:, [answer[0] for answer in self.answers]]
        if tail is None or tail_lengths is None:
            tail, tail_lengths = tokens[:, :0], torch.zeros_like(lengths)
        scores = [
            self._answer_log_prob(tokens, lengths, answer, tail, tail_lengths, visual)
            for answer in self.answers
        ]
        return torch.stack(scores, dim=1)

    def next_word_log_probs(self, tokens: Tensor, **picture: Tensor) -> Tensor:
        """(B, L, V) logarithms of how likely each word is to follow each of L words."""
        return self.cap_generator.next_word_log_probs(
            self.cap_generator(tokens, self._encode(picture))
        )

    def initial_state(self, **picture: Tensor) -> GritState:
        """The state before any word of a caption."""
        visual = self._encode(picture)
        nothing = torch.zeros((len(visual.grid), 0), dtype=torch.int64, device=visual.grid.device)
        return GritState(visual, nothing)

    def step(self, state: GritState, words: Tensor) -> tuple[GritState, Tensor]:
        """Read a word (B,) of each caption; (B, V) log-probabilities of the next.

        All words are read again: captions are short, so no state of layers is kept.
        """
        tokens = torch.cat([state.tokens, words[:, None]], dim=1)
        states = self.cap_generator(tokens, state.visual)
        return GritState(state.visual, tokens), self.cap_generator.next_word_log_probs(
            states[:, -1]
        )

    def _encode(self, picture: Mapping[str, Tensor]) -> Visual:
        detected = self.detector(**picture)
        return Visual(self.grid_net(detected.grid), detected.regions)

    def _answer_log_prob(
        self,
        tokens: Tensor,
        lengths: Tensor,
        answer: Sequence[int],
        tail: Tensor,
        tail_lengths: Tensor,
        visual: Visual,
    ) -> Tensor:
        """(B,) log-probability of an answer of several words with the words after it."""
        follows = torch.cat([tokens.new_tensor(answer).expand(len(tokens), -1), tail], dim=1)
        n_follow = len(answer) + tail_lengths
        step = torch.arange(follows.shape[1], device=tokens.device)
        places = lengths[:, None] + step  # (B, F) where each of these words stands
        longer = tokens.new_full((len(tokens), tokens.shape[1] + follows.shape[1]), PAD)
        longer[:, : tokens.shape[1]] = tokens
        longer = longer.scatter(1, places, follows)
        states = self.cap_generator(longer, visual)
        before = (places - 1)[..., None].expand(-1, -1, states.shape[2])
        words = self.cap_generator.next_word_log_probs(states.gather(1, before))  # (B, F, V)
        log_probs = words.gather(2, follows[..., None]).squeeze(2)
        return (log_probs * (step < n_follow[:, None])).sum(dim=1)
