"""How contextual alignment changes people's captions, by the distance it allows.

DBAC's appendix A chooses delta so that 60 % of all substitutions are contextual; its Table 7
measures with METEOR how much meaning remains. Nothing is trained here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.io.hashing import random_words
from bias_pipeline.metrics.meteor import meteor
from bias_pipeline.text.align import ConstantAlignment
from bias_pipeline.text.contextual import ENOUGH, ContextualAlignment, distance_of, is_word

DELTAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


@dataclass(frozen=True)
class Reach:
    """The substitutions for one captioner."""

    captioner: str  # its name
    words: int  # distinct human words that it does not use; punctuation does not count
    running: int  # how often they occur in human captions
    shares: Float64Array  # (D,) the share of those running words with a near word, for each delta
    # The delta at which 60 % of the running words have a near word; infinite if too few of them
    # have a vector, 0 if there are none
    enough: float


def reach(corpus: Corpus, align: ContextualAlignment, deltas: Sequence[float] = DELTAS) -> Reach:
    """How many substitutions would be contextual at each delta.

    Args:
        corpus: as it reaches the alignment, masked.
        align: its vectors and vocabulary are used, its delta is not.
        deltas: cosine distances.

    Raises:
        DataError: as of :class:`~bias_pipeline.text.contextual.ContextualAlignment`.
    """
    substitutions = [one for one in align.substitutions(corpus, "human") if is_word(one.word)]
    distances = np.array([one.distance for one in substitutions])
    counts = np.array([one.count for one in substitutions], np.int64)
    near = distances < np.array(deltas)[:, None]  # NaN is not
    return Reach(
        captioner=corpus.captioner,
        words=len(substitutions),
        running=int(counts.sum()),
        shares=near @ counts / max(counts.sum(), 1),
        enough=distance_of(ENOUGH, distances, counts),
    )


@dataclass(frozen=True)
class Likeness:
    """Similarity of aligned captions to their originals: METEOR in [0, 1], mean over captions."""

    captions: int  # how many were scored
    constant: float  # unknown words replaced by `<unk>`
    contextual: float  # unknown words replaced by near words


def likeness(corpus: Corpus, align: ContextualAlignment, n_captions: int) -> Likeness:
    """METEOR between human captions and their aligned forms; NaN without the program.

    Args:
        corpus: as it reaches the alignment, masked.
        align: the contextual alignment.
        n_captions: how many images, chosen by their ids; of each the first caption.
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
    """Rows of the first human captions of the images whose hashed ids come first."""
    first = np.flatnonzero(corpus.human.positions == 0)
    keys = corpus.keys[corpus.human.image_rows[first]]
    order = np.argsort(random_words("limit", 0, keys), kind="stable")
    return sorted(first[order[:n_captions]].tolist())
