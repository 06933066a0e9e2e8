"""Makes vectors of texts with masked, causal and sentence models of transformers.

The weights are frozen here; ``attack/language_models.py`` trains weights. The vectors of a text's
tokens become one vector. Sentence models describe this in ``modules.json`` and its folders (the
format of Reimers and Gurevych's sentence-transformers, 2019). For other models the user chooses the
pooling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.json_files import expect, load_json
from bias_pipeline.io.machine import has_bf16, n_threads
from bias_pipeline.models.pretrained import Pretrained, check_tokens, load, tokenizer

if TYPE_CHECKING:
    import torch

How = Literal["mean", "cls", "last"]
Precision = Literal["float32", "bfloat16"]
_HOWS: Mapping[str, How] = {"mean": "mean", "mean_tokens": "mean", "cls": "cls",
                            "cls_token": "cls", "lasttoken": "last"}  # fmt: skip
_MODULES = "modules.json"
_KNOWN = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class Pooling:
    """The way in which the vectors of tokens become one vector."""

    how: How  # the mean, or the vector of the first or of the last token
    normalize: bool = False  # whether the vector of a text gets length 1
    lowercase: bool = False  # whether texts are lower-cased first
    # How many tokens are read, with special tokens; None: as many as the model has positions
    longest: int | None = None


def own_pooling(folder: Path, otherwise: How, chosen: How | None = None) -> Pooling:
    """The pooling that a model's own files describe."""
    path = folder / _MODULES
    if not path.is_file():
        return Pooling(chosen or otherwise)
    modules = expect(load_json(path, what="a sentence model's parts"), list, path, "")
    paths = {
        str(expect(module, dict, path, "").get("type")).rpartition(".")[2]: module.get("path", "")
        for module in modules
    }
    unknown = sorted(set(paths) - set(_KNOWN))
    if unknown:
        raise DataError(f"{path}: a part {unknown[0]!r} is not supported; parts are {_KNOWN}")
    settings = folder / "sentence_bert_config.json"
    reading: Mapping[str, Any] = {}
    if settings.is_file():
        reading = expect(load_json(settings, what="a model's settings"), dict, settings, "")
    longest = reading.get("max_seq_length")
    if chosen is None and "Pooling" in paths:
        chosen = _how(folder / str(paths["Pooling"]) / "config.json")
    return Pooling(
        chosen or otherwise,
        normalize="Normalize" in paths,
        lowercase=reading.get("do_lower_case") is True,
        longest=longest if type(longest) is int and longest > 0 else None,
    )


def _how(path: Path) -> How:
    """The pooling that a file switches on; it must be exactly one known kind."""
    settings = expect(load_json(path, what="a model's pooling"), dict, path, "")
    named = settings.get("pooling_mode")
    prefix = "pooling_mode_"
    switched_on = [
        key.removeprefix(prefix) for key, on in settings.items() if key.startswith(prefix) and on
    ]
    chosen = [named] if isinstance(named, str) else switched_on
    if len(chosen) != 1 or chosen[0] not in _HOWS:
        raise DataError(
            f"{path}: pools by {' and '.join(chosen) or 'nothing'}; mean, cls and last token are "
            "known: choose one with encoder.pooling=..."
        )
    return _HOWS[chosen[0]]


MASKED = (
    "albert", "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "ernie",
    "modernbert", "mpnet", "roberta", "xlm-roberta",
)  # fmt: skip
CAUSAL = (
    "bloom", "gemma", "gemma2", "gemma3_text", "gpt2", "gpt_neo", "gpt_neox", "gptj", "llama",
    "mistral", "olmo", "olmo2", "opt", "phi", "phi3", "qwen2", "qwen3", "smollm3", "stablelm",
)  # fmt: skip
KINDS = (*MASKED, *CAUSAL)
UNKNOWN = "<unk>"  # vocabulary alignment puts this in place of a word
UNUSED = ("pooler.",)  # weights that we do not use and many files lack

# The positions of these models begin after the position of the padding.
_SHIFTED = ("camembert", "mpnet", "roberta", "xlm-roberta")
_BATCH = 4096  # tokens per batch; on CPUs a larger batch is slower


def default_pooling(kind: str) -> How:
    """The last token for causal models, since it has seen the whole text; otherwise the mean."""
    return "last" if kind in CAUSAL else "mean"


def pooling_of(model: Pretrained, how: How | None, normalize: bool | None) -> Pooling:
    pooling = own_pooling(model.folder, default_pooling(model.kind), how)
    return pooling if normalize is None else replace(pooling, normalize=normalize)


class Tokens:
    """Turns texts into numbers of a model's tokens.

    Words in angle brackets are our special tokens: ``<unk>`` (from alignment) becomes the model's
    unknown token, and any other special token (from masking) becomes the model's mask token. A
    model without such a token reads the word in angle brackets like any text.
    """

    def __init__(self, model: Pretrained, pooling: Pooling, positions: int, n_tokens: int) -> None:
        self._name, self._n_tokens = model.name, n_tokens
        self._tokenizer = tokenizer(model)
        self._lowercase = pooling.lowercase
        known = (pooling.longest, positions, self._tokenizer.model_max_length)
        self.longest = min(number for number in known if number)
        self.cut: frozenset[int] = frozenset()

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """The token numbers of each text, at least one; ``cut`` lists the texts that were cut."""
        marked = []
        for text in texts:
            sound = text.encode("utf-8", "replace").decode()  # tokenizers refuse half surrogates
            sound = sound.lower() if self._lowercase else sound
            marked.append(" ".join(map(self._mark, sound.split(" "))) if "<" in sound else sound)
        rows: list[list[int]] = self._tokenizer(marked)["input_ids"] if marked else []
        long = [place for place, row in enumerate(rows) if len(row) > self.longest]
        self.cut = frozenset(long)
        for place in long:
            rows[place] = self._tokenizer(marked[place], truncation=True, max_length=self.longest)[
                "input_ids"
            ]
        first = (self._tokenizer.bos_token_id, self._tokenizer.eos_token_id)
        nothing = next(n for n in (*first, self._tokenizer.pad_token_id, 0) if n is not None)
        rows = [row or [int(nothing)] for row in rows]
        check_tokens(self._name, rows, self._n_tokens)
        return rows

    @property
    def padding(self) -> int:
        return int(self._tokenizer.pad_token_id or 0)

    def _mark(self, word: str) -> str:
        if len(word) < 3 or word[0] != "<" or word[-1] != ">":
            return word
        tokenizer = self._tokenizer
        token = tokenizer.mask_token
        if word == UNKNOWN:  # a byte-level vocabulary knows every word
            token = tokenizer.unk_token if tokenizer.unk_token != tokenizer.eos_token else None
        return str(token or word)


def tokens_of(model: Pretrained, pooling: Pooling) -> Tokens:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(
        model.folder, local_files_only=True, trust_remote_code=False
    )
    return Tokens(model, pooling, positions_of(config, model.kind), config.vocab_size)


def positions_of(config: Any, kind: str) -> int:
    most = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if not most:
        return 1 << 20  # positions are relative
    return int(most) - (int(config.pad_token_id) + 1 if kind in _SHIFTED else 0)


def vector_size(config: Any) -> int:
    """D, the size of a network's token vectors; some OPT models do not call it hidden size."""
    return int(getattr(config, "word_embed_proj_dim", None) or config.hidden_size)


def network_of(model: Pretrained, device: torch.device) -> Any:
    from transformers import AutoModel

    return load(model, AutoModel, device, UNUSED)


def pool_tokens(hidden: torch.Tensor, how: How, lengths: torch.Tensor) -> torch.Tensor:
    """(N, D) a vector per text, from its tokens' vectors (N, L, D); padding is at the end."""
    import torch

    if how == "cls":
        return hidden[:, 0]
    if how == "last":
        return hidden[torch.arange(len(hidden), device=hidden.device), lengths - 1]
    inside = torch.arange(hidden.shape[1], device=hidden.device) < lengths[:, None]
    return (hidden * inside[..., None]).sum(dim=1) / lengths[:, None].to(hidden.dtype)


class Sentences:
    """Turns texts into vectors of a frozen model, in batches of equal length without padding."""

    def __init__(
        self,
        model: Pretrained,
        device: torch.device,
        pooling: Pooling,
        dtype: Precision = "float32",
    ) -> None:
        self._halves = dtype == "bfloat16"
        if self._halves and device.type == "cpu" and not has_bf16():
            raise ResourceError(
                f"{model.name}: this processor multiplies no numbers of 16 bits (bfloat16); use "
                "encoder.dtype=float32, or a GPU"
            )
        self._network = network_of(model, device)
        self._tokens = tokens_of(model, pooling)
        self._name, self._device, self._pooling = model.name, device, pooling
        self.size = vector_size(self._network.config)

    @property
    def cut(self) -> frozenset[int]:
        """The places of texts in the last call that were too long for the model."""
        return self._tokens.cut

    def read(self, text: str) -> str:
        return text

    def describe(self, texts: Sequence[str]) -> Float32Array:
        return self.embed(texts)

    def embed(self, texts: Sequence[str]) -> Float32Array:
        rows = self._tokens(texts)
        vectors = np.empty((len(rows), self.size), np.float32)
        with all_threads():
            for same in batches(np.array([len(row) for row in rows], np.int64)):
                vectors[same] = self._vectors([rows[place] for place in same.tolist()])
        if not np.isfinite(vectors).all():
            raise DataError(
                f"{self._name}: gives vectors that are not numbers; its weights are broken"
            )
        return vectors

    def _vectors(self, rows: Sequence[Sequence[int]]) -> Float32Array:
        import torch

        halves = torch.autocast(self._device.type, torch.bfloat16, enabled=self._halves)
        with torch.inference_mode(), halves:
            tokens = torch.tensor(rows, device=self._device)
            hidden = self._network(input_ids=tokens).last_hidden_state.float()
            lengths = torch.full((len(rows),), tokens.shape[1], device=self._device)
            vectors = pool_tokens(hidden, self._pooling.how, lengths)
            if self._pooling.normalize:
                vectors = torch.nn.functional.normalize(vectors, dim=-1)
            array: Float32Array = vectors.cpu().numpy()
            return array


def batches(lengths: IntArray) -> Iterator[IntArray]:
    """Batches of rows; texts of a batch have equal length and at most ``_BATCH`` tokens in all.

    Example:
        >>> [rows.tolist() for rows in batches(np.array([3, 2, 3]))]
        [[1], [0, 2]]
    """
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        size = max(1, _BATCH // length)
        yield from (rows[start : start + size] for start in range(0, len(rows), size))


@contextmanager
def all_threads() -> Iterator[None]:
    """Inside the block, compute on all cores, or with ``OMP_NUM_THREADS`` threads.

    Attackers use one thread each, which is too slow for embedding.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(n_threads())
    try:
        yield
    finally:
        torch.set_num_threads(before)
