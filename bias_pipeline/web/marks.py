"""Words that are marked in captions: those that name a group, and those that told attackers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.errors import DataError
from bias_pipeline.explain.linear import Gram, word_parts
from bias_pipeline.report.report_tables import Weighted
from bias_pipeline.report.word_attribution import read_words

Marked = Sequence[tuple[str, int]]  # words with their strength, -2 to 2; 0 is not marked


@dataclass(frozen=True)
class TellingWords:
    """What each n-gram adds to the log-odds of a group, as ``analysis words`` wrote it."""

    groups: tuple[str, ...]  # of the attribute
    # N-gram to (1,) towards the second of two groups, or (K,) towards each group
    votes: Mapping[Gram, Float64Array]
    order: int  # of the longest n-gram

    def marked(self, words: Sequence[str], group: str) -> Marked:
        """A caption's words with what they add.

        Of two groups, below 0 towards the first and above it towards the second; of more, towards
        the given group.

        Args:
            words: as attackers read them.
            group: of the image.
        """
        parts = word_parts(words, self.votes, self.order)
        of_group = len(self.groups) > 2 and group in self.groups
        column = self.groups.index(group) if of_group else 0
        return Weighted(tuple(zip(words, parts[:, column].tolist(), strict=True))).levels()


def telling_words(root: Path, run_id: str) -> TellingWords | None:
    """The words that ``analysis words`` wrote for a run; None if it was not asked.

    Args:
        root: the folder of runs.
        run_id: of the run.

    Raises:
        DataError: if they cannot be read.
    """
    path = root / f"words-{run_id}.csv"
    if not path.is_file():
        return None
    try:
        words = read_words(path)
    except (ValueError, LookupError) as error:
        raise DataError(f"{path}: is no complete file of words ({error})") from error
    votes = {
        word.gram: np.array([interval.value for interval in word.coefficients.values()])
        for word in words.words
        if word.side == "model" and word.gram
    }
    return TellingWords(words.groups, votes, max(map(len, votes), default=1)) if votes else None
