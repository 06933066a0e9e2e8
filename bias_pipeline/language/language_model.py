"""Likelihoods of texts by language models; each text is scored once and cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from bias_pipeline.array_types import Float32Array, Float64Array
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.io.machine import GGUF
from bias_pipeline.language.gguf import KIND as GGUF_KIND
from bias_pipeline.language.gguf import find_gguf, unpack
from bias_pipeline.language.likelihoods import COLUMNS, KINDS, Kind, Likelihoods, pool_tokens
from bias_pipeline.models.model_location import MAIN
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained

if TYPE_CHECKING:
    from bias_pipeline.models.blocks import BlockStore

VERSION = 3  # raise it whenever any stored number changes

Term = Literal["arithmetic", "geometric", "total", "cloze"]


@dataclass(frozen=True)
class LanguageModel:
    """A causal or masked language model that scores texts.

    Example:
        >>> LanguageModel("gpt2").term
        'arithmetic'
    """

    model: str  # a folder, a `.gguf` file, or a name on the hub
    revision: str = MAIN  # revision of a name on the hub
    kind: Kind = "causal"  # the kind of the model; see `Likelihoods`
    # How the probabilities of a text's tokens become one number, see `pool_tokens`
    term: Term = "arithmetic"
    bos: bool = True  # whether a causal model gets its begin token first
    eos: bool = True  # whether a causal model's end token is scored too
    device: str = "auto"  # where to compute; `auto` is the first GPU if there is one
    cache: str | None = None  # folder that caches the numbers, None for no cache

    @property
    def pretrained_model(self) -> Pretrained:
        """The model on disk; a quantised model need not be unpacked yet."""
        model = find_gguf(self.model, self.revision) or find_pretrained(
            self.model, [kind for kinds in KINDS.values() for kind in kinds], revision=self.revision
        )
        if model.kind not in (*KINDS[self.kind], *((GGUF_KIND,) if self.kind == "causal" else ())):
            other = {"causal": "masked", "masked": "causal"}[self.kind]
            raise DataError(
                f"{self.model}: a {model.kind} is a {other} language model and cannot be used as a "
                f"{self.kind} one; set metric.lm_kind={other}"
            )
        return model

    def require(self) -> None:
        """Check before any work that the model and its libraries are present."""
        model = self.pretrained_model
        if model.kind == GGUF_KIND and not model.folder.is_dir():
            GGUF.require()

    @property
    def spec(self) -> Mapping[str, object]:
        """Settings that decide the stored numbers; digests, not paths, stand for the model."""
        return {
            "job": "likelihood",
            "version": VERSION,
            "kind": self.kind,
            "bos": self.bos,
            "files": dict(self.pretrained_model.files),
        }

    def log_likelihood(self, texts: Sequence[str]) -> Float64Array:
        """(N,) log P of each text; cached texts are not scored again."""
        distinct = list(dict.fromkeys(texts))
        place = {text: row for row, text in enumerate(distinct)}
        numbers = self._numbers(distinct)
        end = self.eos and self.kind == "causal" and self.term != "cloze"
        if end and np.isnan(numbers[:, COLUMNS.index("end")]).any():
            raise DataError(f"{self.model}: has no end token; set metric.eos=false")
        return pool_tokens(numbers, self.term, end=end)[[place[text] for text in texts]]

    def _numbers(self, texts: Sequence[str]) -> Float32Array:
        from bias_pipeline.models.text_vectors import embed_missing, vectors_from

        if not texts:
            return np.empty((0, len(COLUMNS)), np.float32)
        if self.cache is None:
            return self._load().embed(texts)
        embed_missing(texts, self._store(), self._load)
        return vectors_from(texts, self._store())

    def _store(self) -> BlockStore:
        from bias_pipeline.models.blocks import BlockStore

        return BlockStore(Path(str(self.cache)), self.spec, self.model)

    def _load(self) -> Likelihoods:
        model = unpack(self.pretrained_model)
        if model.kind not in KINDS[self.kind]:
            raise ResourceError(f"{self.model}: models of type {model.kind!r} are not supported")
        return _load_once(model, self.kind, self.bos, self.device)


@lru_cache(maxsize=1)
def _load_once(model: Pretrained, kind: Kind, bos: bool, device: str) -> Likelihoods:
    """The model; the model that was loaded last stays in memory."""
    return Likelihoods(model, kind, bos, device_of(device))
