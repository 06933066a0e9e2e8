"""The vocabulary lists that LIC published, one pickle a captioner."""

from __future__ import annotations

from pathlib import Path

from bias_pipeline.datasets.pickles import load_pickle
from bias_pipeline.errors import DataError


def load_vocabulary(path: Path) -> list[str] | None:
    """The words of a list, None if the file is not there.

    Raises:
        DataError: if it is not a list of words.
    """
    if not path.is_file():
        return None
    words = load_pickle(path)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise DataError(f"{path}: a vocabulary must be a list of words")
    return words
