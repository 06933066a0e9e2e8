"""Finds prompts in a captioner's captions, before, after or instead of a description."""

from __future__ import annotations

from collections import Counter

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.corpus.attribute import words_of
from bias_pipeline.corpus.captions import Captions, each_caption
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.text.phrases import phrase_pattern, plain_text
from bias_pipeline.text.sentences import sentences_of

_REPEATED = 3  # a request that begins or ends so many captions is a prompt
# The first words of the requests in `phrases.csv`.
_ASKING = frozenset(
    words_of(
        "please, kindly, can, could, would, will, help, describe, caption, explain, summarize, "
        "summarise, identify, write, give, provide, generate, create, tell, list, analyze, "
        "analyse, detail, what, who, where, which, how, is, are, does, do"
    )
)


def echoes(corpus: Corpus) -> BoolArray:
    """(C,) flags: true for model captions in which every sentence is a prompt or a request.

    A request is a sentence that asks for something, or a question about the image
    (``phrases.csv``). Ordinary captions do not count as prompts, even if they occur often.
    """
    known = corpus.read(prompts_in)
    flags = np.zeros(len(corpus.model), bool)
    for row in _asking_rows(corpus.model, known).tolist():
        sentences = sentences_of(corpus.model.text(row))
        flags[row] = bool(sentences) and all(
            _plain_text(sentence) in known or phrase_pattern("request").fullmatch(_bare(sentence))
            for sentence in sentences
        )
    return flags


def prompts_in(corpus: Corpus) -> frozenset[str]:
    """The sentences of prompts in the file, and requests that begin or end at least three captions.

    If prompts differ between captions, only requests are used, since the prompts may be the texts
    from which pictures were generated.
    """
    prompts = [prompt for prompt in corpus.prompts if len(corpus.prompts) == 1 or _asks(prompt)]
    known = {_plain_text(sentence) for prompt in prompts for sentence in sentences_of(prompt)}
    counts: Counter[str] = Counter()
    for row in _asking_rows(corpus.model, frozenset()).tolist():
        sentences = sentences_of(corpus.model.text(row))
        counts.update({_plain_text(s) for s in (*sentences[:1], *sentences[-1:]) if _asks(s)})
    return frozenset(known).union(s for s, n in counts.items() if n >= _REPEATED) - {""}


def without_prompts(text: str, known: frozenset[str]) -> str:
    """A caption without prompts before and after it. A text with only prompts does not change.

    Example:
        >>> known = frozenset(["describe this image", "is it a man"])
        >>> without_prompts("Is it a man? A dog sits. Describe this image.", known)
        'A dog sits.'
    """
    sentences = sentences_of(text)
    content = [place for place, s in enumerate(sentences) if _plain_text(s) not in known]
    if not content or len(content) == len(sentences):
        return text
    return " ".join(sentences[content[0] : content[-1] + 1])


def captions_without_prompts(corpus: Corpus) -> tuple[Corpus, int]:
    """The corpus after :func:`without_prompts`, and the number of changed captions."""
    known = corpus.read(prompts_in)
    rows = _asking_rows(corpus.model, known) if known else ()
    texts = {row: corpus.model.text(row) for row in rows}
    described = {row: without_prompts(text, known) for row, text in texts.items()}
    changed = {row: text for row, text in described.items() if text != texts[row]}
    if not changed:
        return corpus, 0
    return corpus.rewrite({"model": corpus.model.with_texts(changed)}), len(changed)


def _asks(sentence: str) -> bool:
    """Whether a sentence has the form of a request or a question, as captions may too."""
    bare = _bare(sentence)
    return any(phrase_pattern(k).fullmatch(bare) for k in ("request", "repeated request"))


def _asking_rows(captions: Captions, known: frozenset[str]) -> IntArray:
    """The rows of captions with a sentence whose first word can begin a request or a prompt."""
    return np.flatnonzero(captions.read(_may_ask, known))


@each_caption
def _may_ask(captions: Captions, known: frozenset[str]) -> BoolArray:
    """(C,) flags: true for captions that :func:`_asking_rows` returns."""
    first = _ASKING.union(sentence.split()[0] for sentence in known)
    asks = np.array([_plain_text(word) in first for word in captions.types], bool)
    ends = np.array(
        [word[-1] in ".!?:" or not any(map(str.isalnum, word)) for word in captions.types], bool
    )
    flags = np.zeros(len(captions), bool)
    if not asks.any():
        return flags
    begins = np.concatenate([[True], ends[captions.tokens[:-1]]])
    begins[captions.starts[:-1][captions.lengths > 0]] = True
    places = np.flatnonzero(begins & asks[captions.tokens])
    flags[np.searchsorted(captions.starts, places, side="right") - 1] = True
    return flags


def _plain_text(sentence: str) -> str:
    return _bare(sentence).strip(".!?:;, ")


def _bare(sentence: str) -> str:
    """A sentence in lower case, without blanks and punctuation at its ends."""
    return plain_text(sentence).strip(" /\"'“”*#-–—_>`")
