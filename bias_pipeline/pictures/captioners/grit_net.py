"""The grid network and the caption decoder of a prompted GRIT (Nguyen et al. 2022). PyTorch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bias_pipeline.pictures.captioners.prompt import PAD
from bias_pipeline.pictures.grit.detector import Visual
from bias_pipeline.pictures.grit.sizes import GritSize


@dataclass(frozen=True)
class GritState:
    """The pictures' features for B captions in progress, and the (B, L) words so far."""

    visual: Visual
    tokens: Tensor

    def take(self, rows: Tensor) -> GritState:
        grid, regions = self.visual
        return GritState(Visual(grid[rows], regions[rows]), self.tokens[rows])


class GritNet(nn.Module):
    together = 128  # pictures per batch when the network predicts

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
        """(B, K) the log-probability of each answer after words (B, L) and before words (B, M)."""
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
        """(B, L, V) log-probability that each word of the vocabulary follows each of L words."""
        return self.cap_generator.next_word_log_probs(
            self.cap_generator(tokens, self._encode(picture))
        )

    def initial_state(self, **picture: Tensor) -> GritState:
        visual = self._encode(picture)
        nothing = torch.zeros((len(visual.grid), 0), dtype=torch.int64, device=visual.grid.device)
        return GritState(visual, nothing)

    def step(self, state: GritState, words: Tensor) -> tuple[GritState, Tensor]:
        """Read a word (B,) of each caption; returns (B, V) log-probabilities of the next word.

        The method reads all words again, since captions are short, and stores no state of layers.
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
        """(B,) the log-probability of an answer of several words and the words after it."""
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


class CaptionAttention(nn.Module):
    """Multi-head attention, then a residual and a normalisation (Vaswani et al. 2017)."""

    def __init__(self, size: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.fc_q, self.fc_k, self.fc_v, self.fc_o = (nn.Linear(size, size) for _ in range(4))
        self.layer_norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries: Tensor, context: Tensor, visible: Tensor | None = None) -> Tensor:
        """Map queries (B, Q, C) to their shape; ``visible`` limits what they see of (B, S, C)."""
        q, k, v = (
            vectors.unflatten(2, (self.n_heads, -1)).transpose(1, 2)
            for vectors in (self.fc_q(queries), *self._keys_and_values(context))
        )
        attended = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        attended = self.fc_o(attended.transpose(1, 2).flatten(2))
        output: Tensor = self.layer_norm(queries + self.dropout(attended))
        return output

    def _keys_and_values(self, context: Tensor) -> tuple[Tensor, Tensor]:
        return self.fc_k(context), self.fc_v(context)


class MemoryAttention(CaptionAttention):
    """Attention to the context and to M learnt slots that do not depend on the input.

    The slots are the memory of the M2 transformer (Cornia et al. 2020, section 3.1), scaled as in
    GRIT's code until April 2023. Keys are scaled by the square root of a head's size, and values by
    the square root of M.
    """

    def __init__(self, size: int, n_heads: int, dropout: float, n_memories: int) -> None:
        super().__init__(size, n_heads, dropout)
        self.memory_keys = nn.Parameter(torch.randn(1, n_memories, size) * (n_heads / size))
        self.memory_values = nn.Parameter(torch.randn(1, n_memories, size) / n_memories)

    def _keys_and_values(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and the values, each (B, S + M, C), where the slots are last."""
        _, n_memories, size = self.memory_keys.shape
        slots = (
            self.memory_keys * math.sqrt(size / self.n_heads),
            self.memory_values * math.sqrt(n_memories),
        )
        keys, values = (
            torch.cat([vectors, slot.expand(len(context), -1, -1)], dim=1)
            for vectors, slot in zip(super()._keys_and_values(context), slots, strict=True)
        )
        return keys, values


class FeedForward(nn.Module):
    """Two linear layers, followed by a residual and a normalisation."""

    def __init__(self, size: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(size, inner), nn.Linear(inner, size)
        self.layer_norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        inner = self.dropout(torch.relu(self.fc1(vectors)))
        output: Tensor = self.layer_norm(vectors + self.dropout(self.fc2(inner)))
        return output


class GridLayer(nn.Module):
    def __init__(self, size: GritSize, n_memories: int) -> None:
        super().__init__()
        shape = (size.size, size.n_heads, size.dropout)
        self.mhatt = MemoryAttention(*shape, n_memories) if n_memories else CaptionAttention(*shape)
        self.pwff = FeedForward(size.size, size.inner, size.dropout)

    def forward(self, grid: Tensor) -> Tensor:
        output: Tensor = self.pwff(self.mhatt(grid, grid))
        return output


class GridNet(nn.Module):
    """The grid feature network, which encodes the coarsest grid of the backbone for the decoder."""

    def __init__(self, n_inputs: int, size: GritSize, n_memories: int = 0) -> None:
        super().__init__()
        self.fc = nn.Linear(n_inputs, size.size)
        self.dropout = nn.Dropout(size.dropout)
        self.layer_norm = nn.LayerNorm(size.size)
        self.layers = nn.ModuleList(GridLayer(size, n_memories) for _ in range(size.grid_layers))

    def forward(self, grid: Tensor) -> Tensor:
        states: Tensor = self.layer_norm(self.dropout(torch.relu(self.fc(grid))))
        for layer in self.layers:
            states = layer(states)
        return states


class ParallelLayer(nn.Module):
    """Words attend to earlier words, and then to the grid and the regions in parallel.

    The layer is the parallel cross-attention of Nguyen et al. (2022). Gates that read the word and
    the attended vectors give each number of the attended grid and regions a weight::

        a_g = sigmoid(W_1 [word, grid]), a_r = sigmoid(W_2 [word, regions])
        (a_g * grid + a_r * regions) / sqrt(2)

    In the released network both gates have the weights of the first gate, W_1; W_2 is saved but
    never used. ``second_gate`` chooses ``paper`` (as above) or ``released``.
    """

    def __init__(self, size: GritSize, second_gate: str) -> None:
        super().__init__()
        shape = (size.size, size.n_heads, size.dropout)
        self.self_att, self.vis_att1, self.vis_att2 = (CaptionAttention(*shape) for _ in range(3))
        self.fc_alpha1 = nn.Linear(2 * size.size, size.size)
        self.fc_alpha2 = nn.Linear(2 * size.size, size.size) if second_gate == "paper" else None
        self.pwff = FeedForward(size.size, size.inner, size.dropout)

    def forward(self, words: Tensor, present: Tensor, visible: Tensor, visual: Visual) -> Tensor:
        """Map words (B, L, C) to the same shape; ``visible`` (L, L) says what a word sees."""
        words = self.self_att(words, words, visible) * present
        grid = self.vis_att1(words, visual.grid) * present
        regions = self.vis_att2(words, visual.regions) * present
        second = self.fc_alpha1 if self.fc_alpha2 is None else self.fc_alpha2
        attended = self._let_in(self.fc_alpha1, words, grid) + self._let_in(second, words, regions)
        output: Tensor = self.pwff(attended / math.sqrt(2)) * present
        return output

    @staticmethod
    def _let_in(gate: nn.Module, words: Tensor, attended: Tensor) -> Tensor:
        return torch.sigmoid(gate(torch.cat([words, attended], dim=2))) * attended


class CaptionDecoder(nn.Module):
    # (P, C) the vectors of positions, which are never trained; None for sines and cosines. The
    # authors' code makes sines and cosines and then overwrites them by random numbers, so the
    # vectors of a file cannot be computed.
    positions: Tensor | None

    def __init__(
        self, n_words: int, size: GritSize, second_gate: str, n_positions: int = 0
    ) -> None:
        super().__init__()
        table = torch.zeros(n_positions, size.size) if n_positions else None
        self.register_buffer("positions", table)
        self.word_emb = nn.Embedding(n_words, size.size, padding_idx=PAD)
        self.layers = nn.ModuleList(
            ParallelLayer(size, second_gate) for _ in range(size.caption_layers)
        )
        self.fc = nn.Linear(size.size, n_words, bias=False)

    def forward(self, tokens: Tensor, visual: Visual) -> Tensor:
        """(B, L, C) the state after each of the words (B, L), with padding at the end."""
        length = tokens.shape[1]
        present = (tokens != PAD)[..., None].to(self.word_emb.weight.dtype)
        visible = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
        words = self.word_emb(tokens) + self._positions(length).to(self.word_emb.weight) * present
        for layer in self.layers:
            words = layer(words, present, visible, visual)
        return words

    def next_word_log_probs(self, states: Tensor) -> Tensor:
        return self.fc(states).float().log_softmax(dim=-1)

    def _positions(self, length: int) -> Tensor:
        """(length, C) the vectors of positions, where the first word has position 1."""
        if self.positions is not None:
            known = self.positions[1 : length + 1]
            return nn.functional.pad(known, (0, 0, 0, length - len(known)))  # the rest is padding
        size = self.word_emb.embedding_dim
        rate = torch.exp(torch.arange(0, size, 2) * (-math.log(10_000.0) / size))
        angle = torch.arange(1, length + 1)[:, None] * rate
        return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)
