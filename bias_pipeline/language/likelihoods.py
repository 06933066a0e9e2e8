"""Likelihoods of texts under language models, causal or masked.

Five numbers are stored for each text, and every pooling can be computed from these numbers without
scoring the text again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bias_pipeline.array_types import BoolArray, Float32Array, Float64Array, IntArray
from bias_pipeline.errors import DataError
from bias_pipeline.models.pretrained import Pretrained, check_tokens, load, tokenizer
from bias_pipeline.models.sentences import CAUSAL, MASKED, UNUSED, all_threads, positions_of

if TYPE_CHECKING:
    import torch

Tokens = tuple[int, ...]
Kind = Literal["causal", "masked"]
KINDS: Mapping[Kind, tuple[str, ...]] = {"causal": CAUSAL, "masked": MASKED}

# The five numbers of a text of n scored tokens with probabilities p: n, the sum of log p, log of
# the sum of p, log p of the token that ends the text, and log p of its last word.
COLUMNS = ("tokens", "total", "log_sum", "end", "last_word")
_HEAD_ROWS = 96  # prefixes whose whole vocabulary is scored at once; bounds memory
_TOGETHER = 256  # prefixes per pass through the network
_MASKED_TOKENS = 4096  # per pass of a masked model; a whole vocabulary is scored at each
_WINDOWS = ("sliding_window", "window_size")  # the second name is GPT-Neo's; None: no window


class Likelihoods:
    """Computes the five numbers of :data:`COLUMNS` for texts, with one model.

    Captions share many prefixes. A causal model computes each distinct prefix once. The computation
    of prefixes includes the head over the vocabulary, which is the most expensive part. Nothing is
    padded. A ``causal`` model gives P(token | tokens before it). A ``masked`` model gives P(token |
    all other tokens), the pseudo-likelihood (Salazar et al. 2020), and has no end token.
    """

    cut = ()  # texts that are too long are refused

    def __init__(self, model: Pretrained, kind: Kind, bos: bool, device: torch.device) -> None:
        import transformers

        architecture: Any = {
            "causal": transformers.AutoModelForCausalLM,
            "masked": transformers.AutoModelForMaskedLM,
        }[kind]
        self._name, self._kind, self._device = model.name, kind, device
        self._tokenizer = tokenizer(model)
        self._first = (
            self._special_token("bos", "begins a text; metric.bos=false does without")
            if (bos and kind == "causal")
            else None
        )
        if kind == "masked":
            self._special_token("mask", "stands for a token")
        self._network = load(model, architecture, device, UNUSED)
        self._positions = positions_of(self._network.config, model.kind)
        self._together = self._most_together() if kind == "causal" and self._can_share() else 0

    def _special_token(self, name: str, purpose: str) -> int:
        token_id = getattr(self._tokenizer, f"{name}_token_id")
        if token_id is None:
            raise DataError(
                f"{self._name}: its tokenizer has no {name.upper()} token, which {purpose}"
            )
        return int(token_id)

    def embed(self, texts: Sequence[str]) -> Float32Array:
        """(N, 5) the five numbers of each text."""
        rows = [self._tokens(text) for text in texts]
        words = [self._last_word(text, row) for text, row in zip(texts, rows, strict=True)]
        with all_threads():
            numbers = (
                self._score_causal(rows, words)
                if self._kind == "causal"
                else self._score_masked(rows, words)
            )
        if not np.isfinite(numbers[:, :3]).all():
            raise DataError(
                f"{self._name}: gives log-likelihoods that are not numbers; its weights are broken"
            )
        return numbers

    def _tokens(self, text: str) -> Tokens:
        row = self._row(text)
        check_tokens(self._name, [row or (0,)], self._network.config.vocab_size)
        if len(row) > self._positions:
            raise DataError(
                f"{self._name}: reads {self._positions} tokens, and '{text[:60]}...' has "
                f"{len(row)}; shorten the caption or choose another metric.language_model"
            )
        if not self._scored_places(row):
            raise DataError(f"{self._name}: there is no token to score in {text[:60]!r}")
        return row

    def _row(self, text: str) -> Tokens:
        """A text's tokens, including a causal model's begin token."""
        sound = text.encode("utf-8", "replace").decode()  # the tokenizer refuses half surrogates
        masked = self._kind == "masked"
        ids = self._tokenizer(sound, add_special_tokens=masked)["input_ids"]
        return tuple(ids) if self._first is None else (self._first, *ids)

    def _scored_places(self, row: Tokens) -> list[int]:
        if self._kind == "causal":
            return list(range(1, len(row)))
        special = self._tokenizer.get_special_tokens_mask(row, already_has_special_tokens=True)
        return [place for place, is_special in enumerate(special) if not is_special]

    def _last_word(self, text: str, row: Tokens) -> int:
        """The number of scored tokens before the last word.

        The last word begins where the tokens of the text with and without this word first differ.
        """
        head = text.rstrip().rpartition(" ")[0]
        before = self._row(head) if head else row[:1]
        same = next((k for k, (a, b) in enumerate(zip(row, before, strict=False)) if a != b), None)
        same = min(len(row), len(before)) if same is None else same
        return sum(place < same for place in self._scored_places(row))

    def _score_causal(self, rows: Sequence[Tokens], words: Sequence[int]) -> Float32Array:
        known = PrefixTree(rows)
        hidden = self._hidden_states(known)
        normalisers = self._normalisers(hidden)
        end = self._tokenizer.eos_token_id
        ends = np.full(len(rows), -1 if end is None else int(end))
        targets = np.concatenate([[*row[1:], last] for row, last in zip(rows, ends, strict=True)])
        logits = self._logits_of(hidden, known.which, np.maximum(targets, 0))
        logs = np.where(targets < 0, np.nan, logits - normalisers[known.which])
        each = np.split(logs, np.cumsum([len(row) for row in rows])[:-1])
        return np.stack(
            [_numbers(line[:-1], line[-1], word) for line, word in zip(each, words, strict=True)]
        )

    def _hidden_states(self, known: PrefixTree) -> torch.Tensor:
        """(U, D) the last vector of each distinct prefix."""
        import torch

        size = int(self._network.get_output_embeddings().weight.shape[1])
        states = torch.empty((len(known.tokens), size), device=self._device)
        with torch.inference_mode():
            for nodes in known.parts(self._together):
                states[torch.from_numpy(nodes).to(self._device)] = self._vectors(known, nodes)
        return states

    def _vectors(self, known: PrefixTree, nodes: IntArray) -> torch.Tensor:
        """(V, D) the last vectors of prefixes; shorter prefixes come before longer prefixes.

        Each prefix attends only to its own prefixes, so one pass computes all prefixes.
        """
        import torch

        visible = torch.from_numpy(known.ancestry(nodes)).to(self._device)
        mask = torch.zeros(visible.shape, device=self._device)
        mask.masked_fill_(~visible, torch.finfo(mask.dtype).min)
        inputs = {
            "input_ids": torch.from_numpy(known.tokens[nodes])[None].to(self._device),
            "position_ids": torch.from_numpy(known.depths[nodes])[None].to(self._device),
        }
        if not visible.tril().equal(torch.ones_like(visible).tril()):  # else it is one plain text
            inputs["attention_mask"] = mask[None, None]
        vectors: torch.Tensor = self._body(**inputs).last_hidden_state[0].float()
        return vectors

    @property
    def _body(self) -> Any:
        """The network without its head; transformers 4.51 does not find the head of a Gemma 3."""
        body = self._network.base_model
        return self._network.get_decoder() if body is self._network else body

    def _most_together(self) -> int:
        """The largest number of prefixes in a pass with our mask.

        Under our mask, layers ignore their attention window, or apply it to positions in the batch.
        So a pass must not be longer than the window. A text longer than the window has its own
        pass, without our mask.
        """
        windows = [getattr(self._network.config, name, None) for name in _WINDOWS]
        return min([_TOGETHER, *(window for window in windows if window)])

    def _can_share(self) -> bool:
        """Whether the network applies our masks; some networks do not."""
        import torch

        tokens = [
            token % self._network.get_output_embeddings().weight.shape[0] for token in range(9)
        ]
        known = PrefixTree([tuple(tokens[:4]), (*tokens[:2], *tokens[5:9])])
        whole = np.arange(len(known.tokens))
        try:
            with torch.inference_mode():
                together = self._vectors(known, whole)
                apart = [(nodes, self._vectors(known, nodes)) for nodes in known.parts(0)]
        except (TypeError, ValueError, RuntimeError, IndexError):
            return False
        return all(torch.allclose(together[nodes], vectors, 1e-3, 1e-3) for nodes, vectors in apart)

    def _normalisers(self, hidden: torch.Tensor) -> Float64Array:
        """(U,) log of the sum over the vocabulary of exp(logit)."""
        import torch

        head = self._network.get_output_embeddings()
        with torch.inference_mode():
            parts = [
                torch.logsumexp(self._cap_logits(head(part)), dim=-1)
                for part in torch.split(hidden, _HEAD_ROWS)
            ]
        sums: Float64Array = torch.cat(parts).double().cpu().numpy()
        return sums

    def _logits_of(self, hidden: torch.Tensor, which: IntArray, targets: IntArray) -> Float64Array:
        """(T,) the logit of one target token after each of T prefixes."""
        import torch

        head = self._network.get_output_embeddings()
        wanted = torch.from_numpy(targets).to(self._device)
        places = torch.from_numpy(which).to(self._device)
        with torch.inference_mode():
            logits = (hidden[places] * head.weight[wanted]).sum(dim=-1)
            if getattr(head, "bias", None) is not None:
                logits = logits + head.bias[wanted]
            numbers: Float64Array = self._cap_logits(logits).double().cpu().numpy()
        return numbers

    def _cap_logits(self, logits: torch.Tensor) -> torch.Tensor:
        import torch

        most = getattr(self._network.config, "final_logit_softcapping", None)
        return logits if most is None else torch.tanh(logits / most) * most

    def _score_masked(self, rows: Sequence[Tokens], words: Sequence[int]) -> Float32Array:
        results = []
        for row, word in zip(rows, words, strict=True):
            places, most = self._scored_places(row), max(1, _MASKED_TOKENS // len(row))
            parts = [
                self._masked_tokens(row, places[first : first + most])
                for first in range(0, len(places), most)
            ]
            results.append(_numbers(np.concatenate(parts), np.nan, word))
        return np.stack(results)

    def _masked_tokens(self, row: Tokens, places: Sequence[int]) -> Float64Array:
        """(P,) log-probability of the token at each place when only this token is masked."""
        import torch

        tokens = torch.tensor([row] * len(places), device=self._device)
        tokens[torch.arange(len(places)), places] = self._tokenizer.mask_token_id
        with torch.inference_mode():
            logits = self._network(input_ids=tokens).logits.float()
            log_probs = logits[torch.arange(len(places)), places].log_softmax(dim=-1)
        picked = log_probs[torch.arange(len(places)), [row[place] for place in places]]
        numbers: Float64Array = picked.double().cpu().numpy()
        return numbers


class PrefixTree:
    """The distinct prefixes of rows of tokens.

    Example:
        >>> known = PrefixTree([(7, 8, 9), (7, 8, 5)])
        >>> known.which.tolist(), known.parents.tolist()
        ([0, 1, 2, 0, 1, 3], [-1, 0, 1, 1])
    """

    def __init__(self, rows: Sequence[Tokens]) -> None:
        numbers: dict[tuple[int, int], int] = {}
        ends, which = [], []
        for row in rows:
            at = -1
            for token in row:
                at = numbers.setdefault((at, token), len(numbers))
                which.append(at)
            ends.append(at)
        pairs = np.array(list(numbers), np.int64).reshape(-1, 2)
        # (T,) the distinct prefix that ends at each running token
        self.which = np.array(which, np.int64)
        # (U,) number of each prefix without its last token, -1 if it has one token; and the last
        # token
        self.parents, self.tokens = pairs[:, 0], pairs[:, 1]
        self.depths = np.zeros(len(pairs), np.int64)  # tokens before the last
        for node, parent in enumerate(self.parents.tolist()):
            self.depths[node] = self.depths[parent] + 1 if parent >= 0 else 0
        order = sorted(range(len(rows)), key=lambda k: rows[k])
        self._paths = [self._path(ends[k]) for k in order]  # neighbours share most

    def _path(self, end: int) -> list[int]:
        path = []
        while end >= 0:
            path.append(end)
            end = int(self.parents[end])
        return path[::-1]

    def parts(self, most: int) -> Iterator[IntArray]:
        """All prefixes in parts, in which every prefix comes after its own shorter prefixes."""
        part: dict[int, None] = {}
        for path in self._paths:
            if part and len(part.keys() | set(path)) > most:
                yield np.array(list(part), np.int64)
                part = {}
            part |= dict.fromkeys(path)
        if part:
            yield np.array(list(part), np.int64)

    def ancestry(self, nodes: IntArray) -> BoolArray:
        """(V, V) whether the second node equals the first or is a prefix of it."""
        place = {node: k for k, node in enumerate(nodes.tolist())}
        visible = np.eye(len(nodes), dtype=bool)
        for k, node in enumerate(nodes.tolist()):
            parent = place.get(int(self.parents[node]))
            if parent is not None:
                visible[k] |= visible[parent]
        return visible


def _numbers(logs: Float64Array, end: float, word: int) -> Float32Array:
    """(5,) see :data:`COLUMNS`."""
    most = logs.max()
    log_sum = most + np.log(np.exp(logs - most).sum())
    return np.array([len(logs), logs.sum(), log_sum, end, logs[word:].sum()], np.float32)


def pool_tokens(numbers: Float32Array, term: str, *, end: bool) -> Float64Array:
    """(N,) log P of texts, from their five numbers (N, 5).

    For ``arithmetic``, P is the mean probability of a token (as published). For ``geometric``, P is
    the inverse of perplexity. For ``total``, P is the probability of the whole text. For ``cloze``,
    P is the probability of the last word after the other words. Source: Sabir and Padro 2023,
    section 4, "mean token probability", and its code.

    Example:
        >>> sums = np.log(np.array([[np.e**2, 0.5 * 0.25, 0.75, 0.0625, 0.25]])).astype(np.float32)
        >>> np.exp(pool_tokens(sums, "arithmetic", end=False)).round(4).tolist()
        [0.375]
        >>> np.exp(pool_tokens(sums, "geometric", end=True)).round(4).tolist()
        [0.1984]
    """
    n, total, log_sum, ends, last_word = numbers.astype(np.float64).T
    if term == "cloze":
        return last_word
    if end:
        n, total, log_sum = n + 1, total + ends, np.logaddexp(log_sum, ends)
    return {"arithmetic": log_sum - np.log(n), "geometric": total / n, "total": total}[term]
