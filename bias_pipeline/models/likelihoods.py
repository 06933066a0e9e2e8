"""How likely language models find texts: token by token, or each token by all others.

Five numbers are kept of a text, from which every way of pooling follows, so that no text is scored
twice for another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from bias_pipeline.errors import DataError
from bias_pipeline.models.pretrained import Pretrained, load, tokenizer
from bias_pipeline.models.sentences import (
    CAUSAL,
    MASKED,
    UNUSED,
    all_threads,
    positions_of,
)

if TYPE_CHECKING:
    import torch

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
Tokens = tuple[int, ...]
Kind = Literal["causal", "masked"]
KINDS: Mapping[Kind, tuple[str, ...]] = {"causal": CAUSAL, "masked": MASKED}

# What is kept of a text of n scored tokens with probabilities p: n, the sum of log p, log of the
# sum of p, log p of the token that ends the text, and that of its last word.
COLUMNS = ("tokens", "total", "log_sum", "end", "last_word")
_HEAD_ROWS = 96  # beginnings whose whole vocabulary is scored at once; bounds memory
_TOGETHER = 256  # beginnings that go through the network at once
_WINDOWS = ("sliding_window", "window_size")  # the latter is GPT-Neo's; None: no window


class Likelihoods:
    """Texts as the five numbers of :data:`COLUMNS`, by one model.

    Captions mostly begin alike. A causal model computes each distinct beginning of the texts at
    hand once, and the head over its whole vocabulary, the costliest part, as often. Nothing is
    padded.

    Args:
        model: the model.
        kind: ``causal``: P(token | those before it); ``masked``: P(token | all others), the
            pseudo-likelihood (Salazar et al. 2020), where nothing ends a text.
        bos: whether a causal model first sees its token for the beginning; without it, the first
            token has no probability and is not scored.
        device: where to compute.

    Raises:
        DataError: if the model lacks a token that is asked for, or its weights are broken.
        ResourceError: if it has no tokenizer.
    """

    cut = ()  # what is too long is refused

    def __init__(self, model: Pretrained, kind: Kind, bos: bool, device: torch.device) -> None:
        import transformers

        own: Any = {
            "causal": transformers.AutoModelForCausalLM,
            "masked": transformers.AutoModelForMaskedLM,
        }[kind]
        self._name, self._kind, self._device = model.name, kind, device
        self._tokenizer = tokenizer(model)
        self._first = (
            self._needed("bos", "begins a text; metric.bos=false does without")
            if (bos and kind == "causal")
            else None
        )
        if kind == "masked":
            self._needed("mask", "stands for a token")
        self._network = load(model, own, device, UNUSED)
        self._positions = positions_of(self._network.config, model.kind)
        self._together = self._most_together() if kind == "causal" and self._can_share() else 0

    def _needed(self, name: str, purpose: str) -> int:
        found = getattr(self._tokenizer, f"{name}_token_id")
        if found is None:
            raise DataError(
                f"{self._name}: its tokenizer has no {name.upper()} token, which {purpose}"
            )
        return int(found)

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """(N, 5) the numbers of each text.

        Raises:
            DataError: if a text is longer than the model reads or has nothing to score, or the
                model gives what is no number.
        """
        rows = [self._tokens(text) for text in texts]
        words = [self._last_word(text, row) for text, row in zip(texts, rows, strict=True)]
        with all_threads():
            found = (
                self._causal(rows, words) if self._kind == "causal" else self._masked(rows, words)
            )
        if not np.isfinite(found[:, :3]).all():
            raise DataError(
                f"{self._name}: gives log-likelihoods that are no numbers; its weights are broken"
            )
        return found

    def _tokens(self, text: str) -> Tokens:
        """What the network reads of a text that it can score."""
        row = self._row(text)
        if len(row) > self._positions:
            raise DataError(
                f"{self._name}: reads {self._positions} tokens, and '{text[:60]}...' has "
                f"{len(row)}; shorten the caption or choose another metric.language_model"
            )
        if not self._scored(row):
            raise DataError(f"{self._name}: there is no token to score in {text[:60]!r}")
        return row

    def _row(self, text: str) -> Tokens:
        """A text's tokens, a causal model's for the beginning included."""
        sound = text.encode("utf-8", "replace").decode()  # half a sign cannot be told to Rust
        masked = self._kind == "masked"
        ids = self._tokenizer(sound, add_special_tokens=masked)["input_ids"]
        return tuple(ids) if self._first is None else (self._first, *ids)

    def _scored(self, row: Tokens) -> list[int]:
        """Places of the tokens that have a probability."""
        if self._kind == "causal":
            return list(range(1, len(row)))
        special = self._tokenizer.get_special_tokens_mask(row, already_has_special_tokens=True)
        return [place for place, own in enumerate(special) if not own]

    def _last_word(self, text: str, row: Tokens) -> int:
        """How many of the scored tokens are not of the last word.

        The last word's tokens are those after the longest beginning that the text has in common
        with itself without that word.
        """
        head = text.rstrip().rpartition(" ")[0]
        before = self._row(head) if head else row[:1]
        same = next((k for k, (a, b) in enumerate(zip(row, before, strict=False)) if a != b), None)
        same = min(len(row), len(before)) if same is None else same
        return sum(place < same for place in self._scored(row))

    def _causal(self, rows: Sequence[Tokens], words: Sequence[int]) -> FloatArray:
        known = Beginnings(rows)
        hidden = self._hidden(known)
        normalisers = self._normalisers(hidden)
        end = self._tokenizer.eos_token_id
        ends = np.full(len(rows), -1 if end is None else int(end))
        targets = np.concatenate([[*row[1:], last] for row, last in zip(rows, ends, strict=True)])
        logits = self._logits_of(hidden, known.which, np.maximum(targets, 0))
        logs = np.where(targets < 0, np.nan, logits - normalisers[known.which])
        each = np.split(logs, np.cumsum([len(row) for row in rows])[:-1])
        return np.stack(
            [_numbers(own[:-1], own[-1], word) for own, word in zip(each, words, strict=True)]
        )

    def _hidden(self, known: Beginnings) -> torch.Tensor:
        """(U, D) the last vector of each distinct beginning."""
        import torch

        size = int(self._network.get_output_embeddings().weight.shape[1])
        found = torch.empty((len(known.tokens), size), device=self._device)
        with torch.inference_mode():
            for nodes in known.parts(self._together):
                found[torch.from_numpy(nodes).to(self._device)] = self._vectors(known, nodes)
        return found

    def _vectors(self, known: Beginnings, nodes: IntArray) -> torch.Tensor:
        """(V, D) the last vectors of beginnings of which each comes after its own beginning.

        Each sees those that it begins with and no other, so one pass serves all of them.
        """
        import torch

        seen = torch.from_numpy(known.ancestry(nodes)).to(self._device)
        mask = torch.zeros(seen.shape, device=self._device)
        mask.masked_fill_(~seen, torch.finfo(mask.dtype).min)
        told = {
            "input_ids": torch.from_numpy(known.tokens[nodes])[None].to(self._device),
            "position_ids": torch.from_numpy(known.depths[nodes])[None].to(self._device),
        }
        if not seen.tril().equal(torch.ones_like(seen).tril()):  # else it is one plain text
            told["attention_mask"] = mask[None, None]
        vectors: torch.Tensor = self._body(**told).last_hidden_state[0].float()
        return vectors

    @property
    def _body(self) -> Any:
        """The network without its head; transformers 4.51 does not find that of a Gemma 3."""
        body = self._network.base_model
        return self._network.get_decoder() if body is self._network else body

    def _most_together(self) -> int:
        """Beginnings that may go through the network at once, under a mask of ours.

        With such a mask no layer heeds its window of the last tokens, or heeds it by places among
        the beginnings. None of them is farther away where there are no more than a window has; a
        longer text goes alone, without a mask.
        """
        windows = [getattr(self._network.config, name, None) for name in _WINDOWS]
        return min([_TOGETHER, *(own for own in windows if own)])

    def _can_share(self) -> bool:
        """Whether the network heeds such masks: not all do, and some take none."""
        import torch

        tokens = [
            token % self._network.get_output_embeddings().weight.shape[0] for token in range(9)
        ]
        known = Beginnings([tuple(tokens[:4]), (*tokens[:2], *tokens[5:9])])
        whole = np.arange(len(known.tokens))
        try:
            with torch.inference_mode():
                together = self._vectors(known, whole)
                apart = [(nodes, self._vectors(known, nodes)) for nodes in known.parts(0)]
        except (TypeError, ValueError, RuntimeError, IndexError):
            return False
        return all(torch.allclose(together[nodes], own, 1e-3, 1e-3) for nodes, own in apart)

    def _normalisers(self, hidden: torch.Tensor) -> npt.NDArray[np.float64]:
        """(U,) log of the sum over the vocabulary of exp(logit)."""
        import torch

        head = self._network.get_output_embeddings()
        with torch.inference_mode():
            parts = [
                torch.logsumexp(self._capped(head(part)), dim=-1)
                for part in torch.split(hidden, _HEAD_ROWS)
            ]
        own: npt.NDArray[np.float64] = torch.cat(parts).double().cpu().numpy()
        return own

    def _logits_of(
        self, hidden: torch.Tensor, which: IntArray, targets: IntArray
    ) -> npt.NDArray[np.float64]:
        """(T,) the logit of one token after each of T running ones."""
        import torch

        head = self._network.get_output_embeddings()
        wanted = torch.from_numpy(targets).to(self._device)
        places = torch.from_numpy(which).to(self._device)
        with torch.inference_mode():
            logits = (hidden[places] * head.weight[wanted]).sum(dim=-1)
            if getattr(head, "bias", None) is not None:
                logits = logits + head.bias[wanted]
            own: npt.NDArray[np.float64] = self._capped(logits).double().cpu().numpy()
        return own

    def _capped(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits as Gemma 2 bounds them."""
        import torch

        most = getattr(self._network.config, "final_logit_softcapping", None)
        return logits if most is None else torch.tanh(logits / most) * most

    def _masked(self, rows: Sequence[Tokens], words: Sequence[int]) -> FloatArray:
        import torch

        found = []
        for row, word in zip(rows, words, strict=True):
            places = self._scored(row)
            tokens = torch.tensor([row] * len(places), device=self._device)
            tokens[torch.arange(len(places)), places] = self._tokenizer.mask_token_id
            with torch.inference_mode():
                logits = self._network(input_ids=tokens).logits.float()
                own = logits[torch.arange(len(places)), places].log_softmax(dim=-1)
            picked = own[torch.arange(len(places)), [row[place] for place in places]]
            found.append(_numbers(picked.double().cpu().numpy(), np.nan, word))
        return np.stack(found)


class Beginnings:
    """The distinct beginnings of rows of tokens: captions mostly begin alike.

    Args:
        rows: of T tokens in all.

    Attributes:
        which: (T,) the distinct beginning that ends at each running token.
        tokens: (U,) the token that each distinct beginning ends with.
        parents: (U,) what it is without that token, -1 for nothing; always a lower number.
        depths: (U,) how many tokens come before that token.

    Example:
        >>> known = Beginnings([(7, 8, 9), (7, 8, 5)])
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
        self.which = np.array(which, np.int64)
        self.parents, self.tokens = pairs[:, 0], pairs[:, 1]
        self.depths = np.zeros(len(pairs), np.int64)
        for own, parent in enumerate(self.parents.tolist()):
            self.depths[own] = self.depths[parent] + 1 if parent >= 0 else 0
        order = sorted(range(len(rows)), key=lambda k: rows[k])
        self._paths = [self._path(ends[k]) for k in order]  # neighbours have most in common

    def _path(self, end: int) -> list[int]:
        """The beginnings of a beginning, itself the last."""
        found = []
        while end >= 0:
            found.append(end)
            end = int(self.parents[end])
        return found[::-1]

    def parts(self, most: int) -> Iterator[IntArray]:
        """All beginnings in parts, with each of them all that it begins with before it.

        Args:
            most: beginnings of a part, unless one row has more; 0 gives every row a part of its
                own.
        """
        part: dict[int, None] = {}
        for path in self._paths:
            if part and len(part.keys() | set(path)) > most:
                yield np.array(list(part), np.int64)
                part = {}
            part |= dict.fromkeys(path)
        if part:
            yield np.array(list(part), np.int64)

    def ancestry(self, nodes: IntArray) -> npt.NDArray[np.bool_]:
        """(V, V) whether the second of a part is what the first begins with, or the same."""
        place = {node: k for k, node in enumerate(nodes.tolist())}
        seen = np.eye(len(nodes), dtype=bool)
        for k, node in enumerate(nodes.tolist()):
            parent = place.get(int(self.parents[node]))
            if parent is not None:
                seen[k] |= seen[parent]
        return seen


def _numbers(logs: npt.NDArray[np.float64], end: float, word: int) -> FloatArray:
    """(5,) see :data:`COLUMNS`."""
    most = logs.max()
    log_sum = most + np.log(np.exp(logs - most).sum())
    return np.array([len(logs), logs.sum(), log_sum, end, logs[word:].sum()], np.float32)


def pooled(numbers: FloatArray, term: str, *, end: bool) -> npt.NDArray[np.float64]:
    """(N,) log P of texts, of what is kept of them.

    Args:
        numbers: (N, 5), see :data:`COLUMNS`.
        term: ``arithmetic``: the mean probability of a token, as published; ``geometric``: the
            inverse of perplexity; ``total``: the probability of the whole text; ``cloze``: that of
            its last word after the others.
        end: whether the token that ends a text is one of them; plays no part in ``cloze``.

    Source: Sabir and Padro 2023, section 4, "mean token probability", and its public code.

    Example:
        >>> kept = np.log(np.array([[np.e**2, 0.5 * 0.25, 0.75, 0.0625, 0.25]])).astype(np.float32)
        >>> np.exp(pooled(kept, "arithmetic", end=False)).round(4).tolist()
        [0.375]
        >>> np.exp(pooled(kept, "geometric", end=True)).round(4).tolist()
        [0.1984]
    """
    n, total, log_sum, ends, last_word = numbers.astype(np.float64).T
    if term == "cloze":
        return last_word
    if end:
        n, total, log_sum = n + 1, total + ends, np.logaddexp(log_sum, ends)
    return {"arithmetic": log_sum - np.log(n), "geometric": total / n, "total": total}[term]
