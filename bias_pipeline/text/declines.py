"""Finds texts that are no captions: a model's refusal, or a service's error message."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from bias_pipeline.array_types import BoolArray
from bias_pipeline.corpus.corpus import Corpus

# Beginnings of such texts; people's captions do not begin like that. Ours.
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


def declines(texts: Iterable[str]) -> BoolArray:
    """Which texts are refusals or errors instead of captions.

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
    """A note on how many of the captioner's texts are no captions, by group; empty if all are.

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
        f"service: {shares}; they are scored as captions, so replace them by empty ones or "
        "caption these images again"
    )


def _model_declines(corpus: Corpus) -> BoolArray:
    captions = corpus.model
    return declines(captions.text(row) for row in range(len(captions)))
