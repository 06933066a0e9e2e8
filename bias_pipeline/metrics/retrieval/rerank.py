"""The first of each ranking, ordered again by a model that reads picture and text together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import Float32Array, IntArray
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.errors import UsageError
from bias_pipeline.inference.embedders import DualEncoder, Matcher
from bias_pipeline.metrics.functional.retrieval import Ties, top_ranks
from bias_pipeline.metrics.retrieval.ranked import Ranked


@dataclass(frozen=True, eq=False)
class Reranker:
    """Orders the first of each ranking again by judging pairs, which is better but slower.

    Attributes:
        matcher: judges pairs.
        pictures: of a whole corpus.
        n: how many of a ranking are ordered again; the rest stays behind them.
    """

    matcher: Matcher
    pictures: Pictures
    n: int

    def note(self, *, debiased: bool) -> str:
        """A note on the reordering.

        Args:
            debiased: whether vectors are debiased.
        """
        chose = "; the debiasing only chose them" if debiased else ""
        return (
            f"the first {self.n} of each ranking are in the order in which the encoder judges them "
            f"together with the query{chose}"
        )

    def ranked(self, queries: Sequence[str], before: Ranked) -> Ranked:
        """Rankings of C queries, the first n of each ordered by how well they match.

        Args:
            queries: C.
            before: the rankings by vectors, which decide ties.
        """
        images = before.images[:, : self.n]
        texts = np.broadcast_to(np.arange(len(queries))[:, None], images.shape)
        return before.reordered(_order(self._scores(queries, images, texts)))

    def places(
        self,
        queries: Float32Array,
        items: Float32Array,
        before: IntArray,
        captions: Sequence[str],
        rows: IntArray,
        *,
        of_texts: bool,
    ) -> IntArray:
        """(N,) the rank of each query's own item, with the first n ordered again.

        Args:
            queries: (N, D) of captions, or of pictures.
            items: (N, D) of the other kind.
            before: (N,) the places by vectors.
            captions: N.
            rows: (N,) of the corpus, their pictures.
            of_texts: whether the queries are the captions.
        """
        top = top_ranks(queries, items, min(self.n, len(items)))
        target = np.broadcast_to(np.arange(len(queries))[:, None], top.shape)
        text, picture = (target, top) if of_texts else (top, target)
        order = _order(self._scores(captions, rows[picture], text))
        hits = np.take_along_axis(top, order, axis=1) == target
        places: IntArray = np.where(hits.any(axis=1), hits.argmax(axis=1), before)
        return places

    def _scores(self, texts: Sequence[str], rows: IntArray, numbers: IntArray) -> Float32Array:
        """(C, M) how well the pictures of some rows match the texts of some indices."""
        pairs = np.column_stack([rows.ravel(), numbers.ravel()])
        return self.matcher.match(self.pictures, texts, pairs).reshape(rows.shape)


def _order(scores: Float32Array) -> IntArray:
    """(C, M) indices of the best score first."""
    return np.argsort(-scores, axis=1, kind="stable")


def reranker(n: int, dual: DualEncoder, corpus: Corpus) -> Reranker:
    """A reranker of the first n of each ranking of a corpus.

    Raises:
        UsageError: if the encoder cannot judge pairs.
    """
    if dual.matcher is None:
        raise no_judge(n)
    assert corpus.pictures is not None
    dual.matcher.require()
    return Reranker(dual.matcher, corpus.pictures, n)


def no_judge(rerank: int) -> UsageError:
    """The error for an encoder that cannot judge pairs."""
    return UsageError(
        f"metric.rerank={rerank}: the encoder has no mode that judges a picture and a text "
        "together; choose encoder=fiber, a BLIP for retrieval or a BridgeTower as encoder.model, "
        "or metric.rerank=null"
    )


def check_rerank(rerank: int, k: int, ties: Ties) -> None:
    """Refuse a depth that changes nothing, and ties, which are unknown after reordering.

    Args:
        rerank: how many are to be ordered again.
        k: depth.
        ties: what counts of equally near pictures.

    Raises:
        UsageError: naming the key.
    """
    if rerank <= k:
        raise UsageError(
            f"metric.rerank={rerank}: the first metric.k={k} stay the same in any order; choose a "
            "larger number"
        )
    if ties != "stable":
        raise UsageError(
            f"metric.ties={ties} needs the vectors' ranking, and metric.rerank={rerank} changes "
            "it; set metric.ties=stable or metric.rerank=null"
        )
