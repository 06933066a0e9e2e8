"""Show, Attend and Tell (Xu et al. 2015) with a prompt, in published versions. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bias_pipeline.pictures.captioners.nets import init_he
from bias_pipeline.pictures.captioners.prompt import PAD


@dataclass(frozen=True)
class Design:
    """One version of the network."""

    tanh: bool  # whether attention scores first pass a tanh; otherwise a ReLU
    tanh_start: bool  # whether the first state is a tanh of the mean region; otherwise linear in it
    # Whether the next word depends on state, regions and last word (the paper's equation 7), or
    # only on the state
    deep_output: bool
    # Whether a captioner's word probabilities start as word frequencies. An attacker's do not: its
    # loss is on the answers, and masked captions lack these words.
    frequent_first: bool = False


# ImageCaptioner2 does not say which version it uses.
DESIGNS: Mapping[str, Design] = {
    "paper": Design(tanh=True, tanh_start=True, deep_output=True),
    "tutorial": Design(tanh=False, tanh_start=False, deep_output=False),
    "artemis": Design(tanh=False, tanh_start=False, deep_output=False, frequent_first=True),
}


class Step(NamedTuple):
    hidden: Tensor  # (B, H) output of the cell
    cell: Tensor  # (B, H) state of the cell
    context: Tensor  # (B, D) attended regions
    weights: Tensor  # (B, R) weights of the attention


class EncodedPictures(NamedTuple):
    """Values that are equal for all steps of a batch."""

    regions: Tensor  # (B, R, D)
    keys: Tensor  # (B, R, A) regions projected for attention
    present: Tensor  # (B, R) which regions are present
    # Weights and biases of all linear layers of the state, concatenated
    by_state: tuple[Tensor, Tensor]
    # (B, 4 H) what the group adds to the gates of the cell; None without grounding
    ground: Tensor | None


@dataclass(frozen=True)
class SatDecodingState:
    """The state of B captions in progress."""

    step: Step
    encoded: EncodedPictures

    def take(self, rows: Tensor) -> SatDecodingState:
        step = Step(*(tensor[rows] for tensor in self.step))
        regions, keys, present, by_state, ground = self.encoded
        taken = None if ground is None else ground[rows]
        return SatDecodingState(
            step, EncodedPictures(regions[rows], keys[rows], present[rows], by_state, taken)
        )


class SatNet(nn.Module):
    """Computes the log-probability of each answer to a prompt, read word by word, on a picture."""

    together = 256  # pictures per batch when the network predicts

    def __init__(
        self,
        seeing: nn.Module,
        n_words: int,
        answers: Sequence[Sequence[int]],
        design: Design,
        *,
        embedding_dim: int,
        hidden_dim: int,
        attention_dim: int,
        dropout: float,
        attention_penalty: float,
        he: bool,
        n_groups: int = 0,
    ) -> None:
        super().__init__()
        self.seeing, self.design = seeing, design
        self.answers = [list(answer) for answer in answers]
        self.output_dim = len(answers)
        self.attention_penalty = attention_penalty
        self.penalty: Tensor | float = 0.0  # the penalty on the last batch's attention, in the loss
        region_dim = int(seeing.output_dim)  # type: ignore[arg-type]
        self.vectors = nn.Embedding(n_words, embedding_dim, padding_idx=PAD)
        self.region_key = nn.Linear(region_dim, attention_dim)
        self.state_key = nn.Linear(hidden_dim, attention_dim)
        self.score = nn.Linear(attention_dim, 1)
        self.attention = nn.Softmax(dim=1)  # a layer, so that hooks can read its weights
        self.first_hidden = nn.Linear(region_dim, hidden_dim)
        self.first_cell = nn.Linear(region_dim, hidden_dim)
        self.gate = nn.Linear(hidden_dim, region_dim)
        self.cell = nn.LSTMCell(embedding_dim + region_dim + n_groups, hidden_dim)
        self.dropout = nn.Dropout(dropout)
        self.next_word = nn.Linear(embedding_dim if design.deep_output else hidden_dim, n_words)
        if design.deep_output:
            self.from_state = nn.Linear(hidden_dim, embedding_dim)
            self.from_context = nn.Linear(region_dim, embedding_dim)
        self.ground = nn.Linear(n_groups, n_groups) if n_groups else None
        if he:
            init_he(self)
        self.guess = nn.Linear(region_dim, n_groups).requires_grad_(False) if n_groups else None

    def init_word_frequencies(self, counts: Sequence[int]) -> None:
        """Initialise word probabilities as word frequencies (ArtEmis)."""
        often = torch.tensor(counts, dtype=torch.float32).clamp(min=1)
        with torch.no_grad():
            self.next_word.bias.copy_((often / often.sum()).log())

    def forward(
        self,
        tokens: Tensor,
        lengths: Tensor,
        tail: Tensor | None = None,
        tail_lengths: Tensor | None = None,
        **picture: Tensor,
    ) -> Tensor:
        """(B, K) the log-probability of each answer after words (B, L) and before words (B, M)."""
        encoded = self._encode(picture, None)
        step = self._start(encoded)
        total = torch.zeros_like(encoded.present, dtype=torch.float32)
        read = self._word_gates(tokens)
        shortest = int(lengths.min())
        for place in range(tokens.shape[1]):
            after = self._step(read[:, place], step, encoded)
            if place < shortest:
                step, total = after, total + after.weights
            else:
                live = place < lengths
                step, total = _where_live(live, after, step), total + after.weights * live[:, None]
        self.penalty = self._uneven_attention_penalty(total, encoded.present)
        last = tokens.gather(1, lengths[:, None] - 1).squeeze(1)
        words = self._words(step, last)
        if tail is None and all(len(answer) == 1 for answer in self.answers):
            return words[:, [answer[0] for answer in self.answers]]
        scores = [
            self._answer_log_prob(answer, step, words, encoded, tail, tail_lengths)
            for answer in self.answers
        ]
        return torch.stack(scores, dim=1)

    def next_word_log_probs(
        self, tokens: Tensor, group: Tensor | None = None, **picture: Tensor
    ) -> Tensor:
        """(B, L, V) log-probability that each word of the vocabulary follows each of L words.

        ``group`` (B, K) is the vector of each caption's group, if captions are written for a group.
        """
        encoded = self._encode(picture, group)
        step = self._start(encoded)
        total = torch.zeros_like(encoded.present, dtype=torch.float32)
        read, scores = self._word_gates(tokens), []
        for place in range(tokens.shape[1]):
            step = self._step(read[:, place], step, encoded)
            total = total + step.weights * (tokens[:, place] != PAD)[:, None]
            scores.append(self._words(step, tokens[:, place]))
        self.penalty = self._uneven_attention_penalty(total, encoded.present)
        return torch.stack(scores, dim=1)

    def initial_state(self, group: Tensor | None = None, **picture: Tensor) -> SatDecodingState:
        encoded = self._encode(picture, group)
        return SatDecodingState(self._start(encoded), encoded)

    def means(self, **picture: Tensor) -> Tensor:
        """(B, D) the mean region of each picture."""
        return _mean(*self.seeing(**picture))

    def step(self, reading: SatDecodingState, words: Tensor) -> tuple[SatDecodingState, Tensor]:
        step = self._step(self._word_gates(words), reading.step, reading.encoded)
        return SatDecodingState(step, reading.encoded), self._words(step, words)

    def _encode(self, picture: Mapping[str, Tensor], group: Tensor | None) -> EncodedPictures:
        """Prepare the pictures, and the vector (B, K) of each caption's group, for all steps."""
        regions, present = self.seeing(**picture)
        linear = (self.state_key, self.gate)
        weights = torch.cat([self.cell.weight_hh, *(layer.weight for layer in linear)])
        biases = torch.cat([self.cell.bias_hh, *(layer.bias for layer in linear)])
        ground = None  # (B, 4 H) what the group adds to the gates of the cell
        if group is not None:
            assert self.ground is not None
            by_group = self.cell.weight_ih[:, -group.shape[1] :]
            ground = nn.functional.linear(torch.relu(self.ground(group)), by_group)
        return EncodedPictures(
            regions, self.region_key(regions), present, (weights, biases), ground
        )

    def _start(self, encoded: EncodedPictures) -> Step:
        """The state before any word, computed from the mean region."""
        mean = _mean(encoded.regions, encoded.present)
        hidden, cell = self.first_hidden(mean), self.first_cell(mean)
        if self.design.tanh_start:
            hidden, cell = torch.tanh(hidden), torch.tanh(cell)
        return Step(hidden, cell, mean, encoded.present.to(encoded.regions.dtype))

    def _word_gates(self, words: Tensor) -> Tensor:
        """(..., 4 H) the contribution of words (...) to the gates of the cell."""
        size = self.vectors.embedding_dim
        vectors = self.vectors(words)
        return nn.functional.linear(vectors, self.cell.weight_ih[:, :size], self.cell.bias_ih)

    def _step(self, read: Tensor, before: Step, encoded: EncodedPictures) -> Step:
        """Read one word, given as (B, 4 H), and attend to the regions (eq. 1 to 6 of the paper)."""
        size = self.vectors.embedding_dim
        hidden_dim, key_dim = self.cell.hidden_size, encoded.keys.shape[2]
        ends = [4 * hidden_dim, 4 * hidden_dim + key_dim]
        by_state = nn.functional.linear(before.hidden, *encoded.by_state)
        recurrent, key, gate = by_state.tensor_split(ends, dim=1)
        bend = torch.tanh if self.design.tanh else torch.relu
        scores = self.score(bend(encoded.keys + key[:, None])).squeeze(2).float()
        weights = self.attention(scores.masked_fill(~encoded.present, -torch.inf))
        context = (weights.to(encoded.regions.dtype)[:, None] @ encoded.regions).squeeze(1)
        context = torch.sigmoid(gate) * context
        end = size + context.shape[1]
        gates = read + recurrent + nn.functional.linear(context, self.cell.weight_ih[:, size:end])
        if encoded.ground is not None:
            gates = gates + encoded.ground
        let_in, forget, new, out = gates.chunk(4, dim=1)
        cell = torch.sigmoid(forget) * before.cell + torch.sigmoid(let_in) * torch.tanh(new)
        return Step(torch.sigmoid(out) * torch.tanh(cell), cell, context, weights)

    def _words(self, step: Step, last: Tensor) -> Tensor:
        """(B, V) log-probabilities of the next word after the last word (B,) of each caption."""
        state = self.dropout(step.hidden)
        if self.design.deep_output:
            context = self.from_context(step.context)
            state = self.dropout(self.vectors(last) + self.from_state(state) + context)
        return self.next_word(state).float().log_softmax(dim=1)

    def _answer_log_prob(
        self,
        answer: Sequence[int],
        step: Step,
        words: Tensor,
        encoded: EncodedPictures,
        tail: Tensor | None,
        tail_lengths: Tensor | None,
    ) -> Tensor:
        n_rows = len(words)
        tokens = torch.tensor(answer, device=words.device).expand(n_rows, -1)
        follows = tokens if tail is None else torch.cat([tokens, tail], dim=1)
        lengths = torch.full((n_rows,), len(answer), device=words.device)
        if tail_lengths is not None:
            lengths = lengths + tail_lengths
        log_probs = torch.zeros(n_rows, device=words.device)
        for place in range(follows.shape[1]):
            word = follows[:, place]
            live = place < lengths
            own_likely = words.gather(1, word[:, None]).squeeze(1)
            log_probs = log_probs + torch.where(live, own_likely, torch.zeros_like(own_likely))
            if place + 1 < follows.shape[1]:
                step = self._step(self._word_gates(word), step, encoded)
                words = self._words(step, word)
        return log_probs

    def _uneven_attention_penalty(self, total: Tensor, present: Tensor) -> Tensor | float:
        """How far the total attention to each region is from 1 (equation 14 of the paper)."""
        if not self.attention_penalty:
            return 0.0
        off = ((1 - total) ** 2) * present
        return self.attention_penalty * (off.sum(dim=1) / present.sum(dim=1)).mean()


def _mean(regions: Tensor, present: Tensor) -> Tensor:
    """(B, D) the mean of the regions (B, R, D) that are ``present`` (B, R)."""
    share = present.to(regions.dtype)[..., None]
    return (regions * share).sum(dim=1) / share.sum(dim=1)


def _where_live(live: Tensor, after: Step, before: Step) -> Step:
    """The step after the word for rows that are ``live`` (B,), and the step before for others."""
    hidden, cell, context = (
        torch.where(live[:, None], a.to(b.dtype), b)
        for a, b in zip(after[:3], before[:3], strict=True)
    )
    return Step(hidden, cell, context, after.weights)
