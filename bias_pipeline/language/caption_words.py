"""Finds words that masking leaves, words after group words, and words that alignment replaces.

DBAC's appendix A chooses delta so that 60 % of all substitutions are contextual; Table 7 of DBAC
measures with METEOR how much of the meaning remains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.attribute import Attribute, Naming
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus, Grouping
from bias_pipeline.errors import inflect
from bias_pipeline.io.hashing import random_words
from bias_pipeline.io.terminal import print_out
from bias_pipeline.language.contextual import ENOUGH, ContextualAlignment, distance_of, is_word
from bias_pipeline.metrics.functional.quality import meteor
from bias_pipeline.report.screen import print_table
from bias_pipeline.report.table import Cell, NumberCell, Table
from bias_pipeline.text.align import ConstantAlignment
from bias_pipeline.text.mentions import Listed, listed_words
from bias_pipeline.text.tokenize import Tokenize

MOST_UNMASKED, MOST_FOLLOWING = 40, 10  # how many words are printed


@dataclass(frozen=True)
class UnmaskedWord:
    """A revealing word that masking leaves."""

    side: str  # the side whose captions contain the word
    word: str  # the word
    names: str  # the group that the word names; empty if it names no group
    captions: int  # how many captions contain the word
    # For each group, the share of these captions whose image is of the group
    shares: dict[str, float]


def unmasked_words(
    corpus: Corpus, attribute: Attribute, masking: Callable[[Corpus], Corpus]
) -> list[UnmaskedWord]:
    """Words of the attribute's own list that ``masking`` leaves, the most frequent first."""
    masked = masking(Tokenize()(corpus))
    grouping = corpus.groupings[attribute.name]
    remaining = [
        _survivor(side, word, masked.side(side), grouping, attribute)
        for side in SIDES
        for word in attribute.all_words
        if word in masked.side(side).types
    ]
    return sorted((s for s in remaining if s.captions), key=lambda s: (-s.captions, s.word))


def _survivor(
    side: str, word: str, captions: Captions, grouping: Grouping, attribute: Attribute
) -> UnmaskedWord:
    holds = captions.mentions([word])
    groups = grouping.codes[captions.image_rows[holds]]
    groups = groups[groups >= 0]
    counts = np.bincount(groups, minlength=len(grouping.names)) / max(len(groups), 1)
    named = [group for group, words in attribute.words.items() if word in words]
    return UnmaskedWord(
        side=side,
        word=word,
        names=named[0] if named else "",
        captions=len(groups),
        shares=dict(zip(grouping.names, counts.tolist(), strict=True)),
    )


def print_unmasked_words(
    corpus: Corpus, attribute: Attribute, masking: Callable[[Corpus], Corpus]
) -> None:
    """Print the first lines of the table of :func:`unmasked_words`."""
    names = corpus.groupings[attribute.name].names
    remaining: Sequence[UnmaskedWord] = unmasked_words(corpus, attribute, masking)
    lines: list[list[Cell]] = [
        [
            *(word.side, word.word, word.names, NumberCell(word.captions, digits=0)),
            *(NumberCell(word.shares[g], fraction=True, digits=0, mark="%") for g in names),
        ]
        for word in remaining[:MOST_UNMASKED]
    ]
    caption = f"Words of {attribute.name} that masking leaves in"
    print_table(Table(caption, ["side", "word", "names", "captions", *names], lines, keys=3))
    hidden = max(len(remaining) - MOST_UNMASKED, 0)
    tail = f", {hidden} of them not shown" if hidden else ""
    print_out(f"{inflect(len(remaining), 'words are left')}{tail}")


END = "(end)"


@dataclass(frozen=True)
class Collocations:
    """The words that follow the listed words of an attribute in a side's captions."""

    side: str  # the side of the captions; only images of a group count
    attribute: str  # the attribute with the listed words
    captions: int  # how many captions there are
    holding: int  # how many captions contain a listed word, in any context
    naming: int  # how many captions name a group
    # The words right after a listed word with their counts, the most frequent first; `(end)` is the
    # end of a caption
    following: tuple[tuple[str, int], ...]


def collocations(corpus: Corpus, attribute: Attribute) -> list[Collocations]:
    """The words that follow listed words, for each side that has captions."""
    labelled = corpus.groupings[attribute.name].codes >= 0
    sides = {side: corpus.side(side) for side in SIDES}
    chosen = {
        side: captions.take(labelled[captions.image_rows]) for side, captions in sides.items()
    }
    return [
        _collocations_of(captions, side, naming)
        for naming in attribute.namings()
        for side, captions in chosen.items()
        if len(captions)
    ]


def _collocations_of(captions: Captions, side: str, naming: Naming) -> Collocations:
    listed = listed_words(captions, replace(naming, other_senses=frozenset(), applies_to=None))
    naming_words = listed_words(captions, naming)
    return Collocations(
        side=side,
        attribute=naming.attribute,
        captions=len(captions),
        holding=int(listed.holding(listed.names).sum()),
        naming=int(naming_words.holding(naming_words.names).sum()),
        following=tuple(sorted(_following(listed).items(), key=lambda item: (-item[1], item[0]))),
    )


def _following(listed: Listed) -> Counter[str]:
    """The words right after listed words in the same caption."""
    captions, after = listed.captions, listed.places + 1
    ends = np.isin(after, captions.starts)
    words = [captions.types[token] for token in captions.tokens[after[~ends]]]
    return Counter({END: int(ends.sum())} if ends.any() else {}) + Counter(words)


def print_collocations(corpus: Corpus, attribute: Attribute) -> None:
    """Print :func:`collocations` as a table of the most frequent following words."""
    lines = []
    for result in collocations(corpus, attribute):
        counts = map(str, (result.captions, result.holding, result.naming))
        follow = ", ".join(f"{word} {count}" for word, count in result.following[:MOST_FOLLOWING])
        lines.append([result.side, result.attribute, *counts, follow])
    caption = "Words that follow the words of an attribute's list"
    head = ["side", "words of", "captions", "with a word", "name a group", "most frequent next"]
    print_table(Table(caption, head, lines, keys=2, texts=True))


DELTAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


@dataclass(frozen=True)
class Reach:
    """The substitutions for one captioner."""

    captioner: str  # its name
    words: int  # distinct human words that the captioner does not use, without punctuation
    running: int  # how often these words occur in human captions
    shares: Float64Array  # (D,) the share of these occurrences that have a near word, by delta
    # The delta at which 60 % of these occurrences have a near word; infinite if too few of the
    # words have a vector, 0 if there are no such words
    enough: float


def reach(corpus: Corpus, align: ContextualAlignment, deltas: Sequence[float] = DELTAS) -> Reach:
    """The number of substitutions that would be contextual, at each delta."""
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
    """Similarity of aligned captions to their originals: mean METEOR over captions, in [0, 1]."""

    captions: int  # how many captions were scored
    constant: float  # METEOR if unknown words are replaced by `<unk>`
    contextual: float  # METEOR if unknown words are replaced by near words


def likeness(corpus: Corpus, align: ContextualAlignment, n_captions: int) -> Likeness:
    """METEOR between human captions and their aligned forms, or NaN if METEOR is not installed."""
    constant = ConstantAlignment(align.vocabulary, align.replacement, keep=[*align.keep])
    # The first human caption of the images whose hashed ids come first
    first = np.flatnonzero(corpus.human.positions == 0)
    keys = corpus.keys[corpus.human.image_rows[first]]
    order = np.argsort(random_words("limit", 0, keys), kind="stable")
    rows = sorted(first[order[:n_captions]].tolist())
    original = [[corpus.human.text(row)] for row in rows]
    scores = []
    for transform in (constant, align):
        aligned = transform(corpus).human
        scores.append(float(np.mean(meteor([aligned.text(row) for row in rows], original))))
    return Likeness(len(rows), *scores)
