"""Stores the corpora that a process has read; its helpers get them and need not read again."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.io.kept_files import Traits, are_unchanged, files_opened
from bias_pipeline.io.machine import return_freed_memory

if TYPE_CHECKING:
    from bias_pipeline.corpus.corpus import Corpus

log = logging.getLogger(__name__)

_MOST = 16
# By settings, the corpus and the files that were read for it; the corpus requested
# last comes last
_corpora: dict[str, tuple[Corpus, Mapping[Path, Traits]]] = {}


def read_once(settings: str, read: Callable[[], Corpus]) -> Corpus:
    """The corpus of settings, which is read again only if its files have changed."""
    settings = f"{Path.cwd()} {settings}"  # since paths may be relative
    corpus, files = _corpora.pop(settings, (None, {}))
    if corpus is None or not are_unchanged(files):
        with files_opened() as files:
            corpus = read()
        return_freed_memory()
    _corpora[settings] = corpus, files
    if len(_corpora) > _MOST:
        del _corpora[next(iter(_corpora))]
    return corpus


def pickled_corpora() -> bytes:
    """The corpora for a helper of this process; empty if a corpus cannot be pickled."""
    try:
        return pickle.dumps(_corpora.copy(), pickle.HIGHEST_PROTOCOL)
    except Exception:  # for instance, drawn pictures or a user's class
        log.debug("helpers read the corpora themselves", exc_info=True)
        return b""


def take_over(content: bytes) -> None:
    """Make corpora of the parent process available in this process."""
    if content:
        _corpora.update(pickle.loads(content))  # noqa: S301  # written by our own process
        return_freed_memory()
