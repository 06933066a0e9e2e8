"""The first of each ranking, ordered again by a model that looks at picture and text together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.pictures import Pictures
from bias_pipeline.errors import UsageError
from bias_pipeline.inference.embedders import DualEncoder, Matcher
from bias_pipeline.metrics.functional.retrieval import Ties, top_ranks
from bias_pipeline.metrics.retrieval.ranked import Ranked

IntArray = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Reranker:
    """Rankings by vectors are cheap, judging pairs is better: it is done for the first of each.

    Attributes:
        matcher: that judges pairs.
        pictures: of a whole corpus.
        n: how many of a ranking are ordered again; what is behind them stays there.
    """

    matcher: Matcher
    pictures: Pictures
    n: int

    def told(self, *, debiased: bool) -> str:
        """What it does, in a sentence.

        Args:
            debiased: whether vectors are.
        """
        chose = "; the debiasing only chose them" if debiased else ""
        return (
            f"the first {self.n} of each ranking are in the order in which the encoder judges them "
            f"together with the query{chose}"
        )

    def ranked(self, queries: Sequence[str], before: Ranked) -> Ranked:
        """Rankings of C queries, their first n in the order in which they match.

        Args:
            queries: C.
            before: as vectors have it; of equally matching pictures its first comes first.
        """
        images = before.images[:, : self.n]
        texts = np.broadcast_to(np.arange(len(queries))[:, None], images.shape)
        return before.reordered(_order(self._scores(queries, images, texts)))

    def places(
        self,
        queries: Vectors,
        items: Vectors,
        before: IntArray,
        captions: Sequence[str],
        rows: IntArray,
        *,
        of_texts: bool,
    ) -> IntArray:
        """(N,) at which place each query finds its own item, the first n ordered again.

        Args:
            queries: (N, D) of captions, or of pictures.
            items: (N, D) of the other.
            before: (N,) the places by vectors.
            captions: N.
            rows: (N,) of the corpus, their pictures.
            of_texts: whether the queries are the captions.
        """
        top = top_ranks(queries, items, min(self.n, len(items)))
        own = np.broadcast_to(np.arange(len(queries))[:, None], top.shape)
        text, picture = (own, top) if of_texts else (top, own)
        order = _order(self._scores(captions, rows[picture], text))
        hits = np.take_along_axis(top, order, axis=1) == own
        found: IntArray = np.where(hits.any(axis=1), hits.argmax(axis=1), before)
        return found

    def _scores(self, texts: Sequence[str], rows: IntArray, numbers: IntArray) -> Vectors:
        """(C, M) how well the pictures of some rows match the texts of some numbers."""
        pairs = np.column_stack([rows.ravel(), numbers.ravel()])
        return self.matcher.match(self.pictures, texts, pairs).reshape(rows.shape)


def _order(scores: Vectors) -> IntArray:
    """(C, M) places from the best on."""
    return np.argsort(-scores, axis=1, kind="stable")


def reranker(n: int, dual: DualEncoder, corpus: Corpus) -> Reranker:
    """What orders the first n of each ranking of a corpus again.

    Raises:
        UsageError: if the encoder cannot judge pairs.
    """
    if dual.matcher is None:
        raise no_judge(n)
    assert corpus.pictures is not None
    dual.matcher.require()
    return Reranker(dual.matcher, corpus.pictures, n)


def no_judge(rerank: int) -> UsageError:
    """That an encoder cannot judge pairs."""
    return UsageError(
        f"metric.rerank={rerank}: the encoder has no mode that judges a picture and a text "
        "together; choose encoder=fiber, a BLIP for retrieval or a BridgeTower as encoder.model, "
        "or metric.rerank=null"
    )


def check_rerank(rerank: int, k: int, ties: Ties) -> None:
    """Refuse what would change nothing, or asks what nobody knows then.

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
            f"metric.ties={ties} asks which vectors are equally near, and metric.rerank={rerank} "
            "puts what they find in another order; choose one of the two"
        )
