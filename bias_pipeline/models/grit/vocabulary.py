"""The words of a released GRIT, by number."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bias_pipeline.errors import DataError
from bias_pipeline.io.json_files import expect, load_json

SPECIALS = ("<unk>", "<pad>", "<bos>")  # numbers 0, 1 and 2, as ours


def read_vocabulary(path: Path, n_words: int | None = None) -> Mapping[str, int]:
    """Word to number.

    Args:
        path: of the file.
        n_words: the number of words in the weights, None to skip the check.

    Raises:
        ResourceError: if the file is not there.
        DataError: if it is no vocabulary of GRIT's.
    """
    contents = expect(load_json(path, what="GRIT's vocabulary"), dict, path, "")
    words = expect(contents.get("itos"), list, path, "itos")
    if tuple(words[: len(SPECIALS)]) != SPECIALS or not all(isinstance(w, str) for w in words):
        raise DataError(f"{path}: itos must be words, the first of them {', '.join(SPECIALS)}")
    if n_words not in (None, len(words)):
        raise DataError(f"{path}: it has {len(words)} words, but the weights have {n_words}")
    return {word: number for number, word in enumerate(words)}


def shared_rows(ours: Mapping[str, int], theirs: Mapping[str, int]) -> dict[int, int]:
    """Our number to the file's, of the specials and of words that both have.

    Example:
        >>> shared_rows({"man": 3, "gender": 4}, {"<unk>": 0, "<pad>": 1, "<bos>": 2, "man": 12})
        {0: 0, 1: 1, 2: 2, 3: 12}
    """
    specials = {number: number for number in range(len(SPECIALS))}
    return specials | {number: theirs[word] for word, number in ours.items() if word in theirs}
