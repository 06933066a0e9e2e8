"""What contextual alignment does to people's captions, by the distance it allows.

DBAC's appendix A chooses delta so that 60 % of all substitutions are contextual; its Table 7 asks
with METEOR how much of the meaning is left. Nothing is trained here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.io.hashing import stream
from bias_pipeline.metrics.meteor import meteor
from bias_pipeline.text.align import ConstantAlignment
from bias_pipeline.text.contextual import ContextualAlignment, Substitution, is_word

FloatArray = npt.NDArray[np.float64]

DELTAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
ENOUGH = 0.6  # share of contextual substitutions that the paper asks for


@dataclass(frozen=True)
class Reach:
    """What is replaced for one captioner.

    Attributes:
        captioner: its name.
        words: distinct human words that it does not use; signs are none.
        running: how often they stand in human captions.
        shares: (D,) the share of those running words with a near word, for each delta.
        share_of_words: (D,) the same of distinct words.
        enough: the delta at which 60 % of the running words have a near one; infinite if vectors
            know too few of them.
    """

    captioner: str
    words: int
    running: int
    shares: FloatArray
    share_of_words: FloatArray
    enough: float


def reach(corpus: Corpus, align: ContextualAlignment, deltas: Sequence[float] = DELTAS) -> Reach:
    """How many substitutions would be contextual at each delta.

    Args:
        corpus: as it reaches the alignment, masked.
        align: whose vectors and vocabulary count; its own delta does not.
        deltas: cosine distances.
    """
    found = [one for one in align.substitutions(corpus, "human") if is_word(one.word)]
    distances = np.array([_far(one) for one in found])
    counts = np.array([one.count for one in found], float)
    near = distances < np.array(deltas)[:, None]
    return Reach(
        captioner=corpus.captioner,
        words=len(found),
        running=int(counts.sum()),
        shares=near @ counts / max(counts.sum(), 1),
        share_of_words=near.mean(axis=1) if len(found) else np.zeros(len(deltas)),
        enough=_quantile(distances, counts, ENOUGH),
    )


def _far(one: Substitution) -> float:
    return math.inf if math.isnan(one.distance) else one.distance


def _quantile(distances: FloatArray, counts: FloatArray, share: float) -> float:
    """The least distance that so large a share of the counts lies within.

    Example:
        >>> _quantile(np.array([0.3, 0.1, np.inf]), np.array([2.0, 2.0, 1.0]), 0.6)
        0.3
    """
    if not len(distances):
        return math.inf
    order = np.argsort(distances, kind="stable")
    reached = np.cumsum(counts[order]) >= share * counts.sum()
    return float(distances[order][np.argmax(reached)])


@dataclass(frozen=True)
class Likeness:
    """How like their originals aligned captions are, METEOR in [0, 1], mean over captions.

    Attributes:
        captions: how many were looked at.
        constant: unknown words made ``<unk>``.
        contextual: unknown words made near ones.
    """

    captions: int
    constant: float
    contextual: float


def likeness(corpus: Corpus, align: ContextualAlignment, n_captions: int) -> Likeness:
    """METEOR between human captions and their aligned forms; NaN without the program.

    Args:
        corpus: as it reaches the alignment, masked.
        align: the contextual alignment.
        n_captions: first captions of so many images, chosen by their ids.
    """
    constant = ConstantAlignment(align.vocabulary, align.replacement, keep=[*align.keep])
    rows = _chosen(corpus, n_captions)
    original = [corpus.human.text(row) for row in rows]
    scores = [
        float(np.mean(meteor(_texts(transform(corpus).human, rows), [[t] for t in original])))
        for transform in (constant, align)
    ]
    return Likeness(len(rows), *scores)


def _texts(captions: Captions, rows: Sequence[int]) -> list[str]:
    return [captions.text(row) for row in rows]


def _chosen(corpus: Corpus, n_captions: int) -> list[int]:
    """Rows of first human captions, of the images that come first by the hashes of their ids."""
    first = np.flatnonzero(corpus.human.positions == 0)
    keys = corpus.keys[corpus.human.image_rows[first]]
    order = np.argsort(stream("limit", 0, keys), kind="stable")
    return sorted(first[order[:n_captions]].tolist())
