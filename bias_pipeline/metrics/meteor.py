"""METEOR by its authors' program, where that is installed: a Java archive inside pycocoevalcap."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from bias_pipeline.array_types import Float64Array

ABSENT = (
    "METEOR was not computed: it needs Java and the package pycocoevalcap "
    "(pip install 'bias_pipeline[quality]')"
)


def available() -> bool:
    """Whether Java and the program are installed."""
    return bool(shutil.which("java") and find_spec("pycocoevalcap"))


def meteor(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Float64Array:
    """(C,) METEOR 1.5 of each candidate against its references, in [0, 1]; NaN without Java.

    About 60 captions a second. Published tables print the value of all captions together, which
    is not quite the mean of these.

    Args:
        candidates: C captions, words joined by blanks.
        references: for each candidate one caption or more.

    Source: Denkowski and Lavie 2014, by their program.
    """
    if not available() or not candidates:
        return np.full(len(candidates), math.nan)
    from pycocoevalcap.meteor.meteor import Meteor

    program = Meteor()
    with program.meteor_p:  # closes its pipes and waits for it
        try:
            texts = {i: [text] for i, text in enumerate(candidates)}
            _, scores = program.compute_score({i: list(r) for i, r in enumerate(references)}, texts)
        finally:
            program.meteor_p.kill()
    return np.asarray(scores, np.float64)
