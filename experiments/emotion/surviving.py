"""Which words still tell the emotion when the words for feelings are masked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bias_pipeline.run import compose
from bias_pipeline.text.transform import is_special

_WORDS = 4  # shown of each emotion
_FEWEST = 20  # captions that a word is in
WORLD = ("dataset=scenes", "dataset.world=affect", "attribute=emotion", "captioner=faithful")


def surviving_words() -> pd.DataFrame:
    """Emotion to the words that are in most captions of it, compared with all human captions.

    In brackets: by which factor.
    """
    cell = compose.cell(WORLD)
    corpus: Any = cell.corpus()
    for name in ("text", "masking"):
        transform: Any = cell.build(name)
        corpus = transform(corpus)
    captions, grouping = corpus.human, corpus.groupings["emotion"]
    codes = grouping.codes[captions.image_rows]
    rows = np.repeat(np.arange(len(captions)), captions.lengths)
    pairs = np.unique(np.stack([rows, captions.tokens]), axis=1)  # each word of a caption once
    counts = np.zeros((len(grouping.names), len(captions.types)))
    np.add.at(counts, (codes[pairs[0]], pairs[1]), 1)
    sizes = np.bincount(codes, minlength=len(grouping.names))
    usable = (counts.sum(axis=0) >= _FEWEST) & ~np.array([*map(is_special, captions.types)])
    factor = (counts / sizes[:, None]) / np.maximum(counts.sum(axis=0) / len(captions), 1e-12)
    factor[:, ~usable] = 0
    lines = {}
    for name, line in zip(grouping.names, factor, strict=True):
        best = np.argsort(-line, kind="stable")[:_WORDS]
        lines[name] = ", ".join(f"{captions.types[word]} ({line[word]:.1f})" for word in best)
    return pd.Series(lines).to_frame("words that still tell").rename_axis("emotion")
