"""Captions that are none: a model that declines to describe, or the error of a service."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from bias_pipeline.corpus.corpus import Corpus

# What such texts begin with; people do not begin a caption like that. Ours.
_DECLINES = re.compile(
    r"""^\W*(
    (i['’]?\ ?a?m\ (very\ |so\ )?sorry|sorry|my\ apologies|i\ apologi[sz]e)\b
    | (unfortunately,?\ )?i\ (can['’]?t|cannot|can\ not|am\ unable|am\ not\ able|won['’]?t)\b
    | i['’]m\ (unable|not\ able)\b
    | as\ an?\ (ai|language\ model|artificial)\b
    | (no\ caption|content\ (policy|filter)|request\ (timed\ out|failed)|rate\ limit)\b
    | (http\ )?error\b(?=\W*(\d{3}|:|$))
    | (traceback\b|exception:|internal\ server\ error|too\ many\ requests)
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def declines(texts: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Which texts say that there is no caption instead of being one.

    Args:
        texts: N captions.

    Returns:
        (N,) flags.

    Example:
        >>> declines(["I'm sorry, but I can't say.", "ERROR: 429", "a sorry dog"]).tolist()
        [True, True, False]
    """
    return np.fromiter((_DECLINES.match(text) is not None for text in texts), bool)


def declines_note(corpus: Corpus, attribute: str) -> str:
    """How many of the captioner's captions are none, by group; empty where all are captions.

    Args:
        corpus: raw captions.
        attribute: whose groups.
    """
    flags = corpus.read(_model_declines)
    if not flags.any():
        return ""
    grouping = corpus.groupings[attribute]
    codes = grouping.codes[corpus.model.image_rows]
    shares = ", ".join(
        f"{int(flags[codes == k].sum())} of {int((codes == k).sum())} ({name})"
        for k, name in enumerate(grouping.names)
    )
    return (
        f"{int(flags.sum())} of {len(flags)} captions decline to describe or are errors of a "
        f"service: {shares}; they are scored as captions, so leave them empty, or caption anew"
    )


def _model_declines(corpus: Corpus) -> npt.NDArray[np.bool_]:
    captions = corpus.model
    return declines(captions.text(row) for row in range(len(captions)))
