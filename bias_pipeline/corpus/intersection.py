"""Groups made from others: those of two attributes at once, or only those that are large enough.

For an intersection, such as male-light, the data set is read once for each attribute; images that
belong to a group of both are in the group of the product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.attribute import Attribute, Naming
from bias_pipeline.corpus.corpus import NO_GROUP, UNSURE, Corpus, Grouping
from bias_pipeline.corpus.split_rules import limited
from bias_pipeline.declared import Count
from bias_pipeline.errors import DataError, UsageError

FEWEST = 100


@dataclass(frozen=True)
class Intersection(Attribute):
    """The product of two attributes, as ``attribute=[gender,race]``.

    A group of the product has no words of its own: ``words`` are those of the parts' groups, so
    that masking replaces both. A caption names a group of the product if it names one of each; a
    caption that names a group of only one attribute is neutral.
    """

    parts: Mapping[str, Attribute] = field(default_factory=dict)  # `first` and `second`
    min_images: Count = FEWEST  # how many images every group of the product must have; ours

    def __post_init__(self) -> None:
        """Check that the parts differ."""
        first, second = self.both
        if first.name == second.name:
            raise UsageError(f"attribute=[{first.name},{second.name}]: name two attributes")
        if self.min_images < 1:
            raise UsageError(f"attribute.min_images={self.min_images} must be at least 1")
        object.__setattr__(self, "words", {**first.words, **second.words})
        object.__setattr__(self, "also_masked", (*first.also_masked, *second.also_masked))
        groups = [f"{a}-{b}" for a, b in product(first.groups, second.groups)]
        object.__setattr__(self, "groups", groups)

    def namings(self, preset: str | None = None) -> tuple[Naming, ...]:
        """Those of both attributes; a caption must name a group of each."""
        return tuple(naming for part in self.both for naming in part.namings(preset))

    @property
    def singles(self) -> tuple[Attribute, ...]:
        """The attributes that labels are read for."""
        return self.both

    @property
    def both(self) -> tuple[Attribute, Attribute]:
        """The two attributes."""
        return self.parts["first"], self.parts["second"]


def scored_corpus(
    corpora: Sequence[Corpus], attribute: Attribute, limit: int | None = None
) -> Corpus:
    """What is scored for an attribute.

    Args:
        corpora: the same captioner's, read for each of the attribute's ``singles``.
        attribute: whose groups count.
        limit: see :func:`bias_pipeline.corpus.split_rules.limited`.
    """
    if not isinstance(attribute, Intersection):
        (corpus,) = corpora
        return limited(corpus, limit)
    chosen = limited(intersect(corpora, attribute), limit)
    _check_sizes(chosen.groupings[attribute.name], attribute)
    return chosen


def intersect(corpora: Sequence[Corpus], attribute: Intersection) -> Corpus:
    """One corpus with the groups of the product, of the images that both corpora have.

    Args:
        corpora: the same captioner's, read for each of the two attributes.
        attribute: the product.

    Raises:
        DataError: if they share no image, or a group of the product is too small.
    """
    first, second = corpora
    place = {identifier: row for row, identifier in enumerate(second.ids)}
    rows = np.array([row for row, i in enumerate(first.ids) if i in place], np.int64)
    if not len(rows):
        raise DataError(
            f"captioner {first.captioner!r}: no image has labels of both {attribute.both[0].name} "
            f"and {attribute.both[1].name}"
        )
    others = np.array([place[first.ids[row]] for row in rows], np.int64)
    grouping = cross_attributes(
        [
            replace(corpus.groupings[part.name], codes=corpus.groupings[part.name].codes[chosen])
            for corpus, part, chosen in zip(corpora, attribute.both, (rows, others), strict=True)
        ]
    )
    _check_sizes(grouping, attribute)
    lost = len(first) + len(second) - 2 * len(rows)
    note = f"{lost} images are labelled for one of {attribute.name} only: left out"
    shared = first.take(rows)
    return replace(
        shared,
        groupings={attribute.name: grouping},
        notes=(*dict.fromkeys((*first.notes, *second.notes)), *([note] if lost else [])),
    )


def cross_attributes(parts: Sequence[Grouping]) -> Grouping:
    """The groups of two attributes together; images of no group of either are strata.

    The group of the product is unsure where one of the two is unsure.
    """
    first, second = parts
    known = (first.codes >= 0) & (second.codes >= 0)
    unknown = np.where((first.codes == NO_GROUP) | (second.codes == NO_GROUP), NO_GROUP, UNSURE)
    codes = np.where(known, first.codes * len(second.names) + second.codes, unknown)
    names = tuple(f"{a}-{b}" for a, b in product(first.names, second.names))
    strata = [
        f"{_named(first, row)}-{_named(second, row)}" for row in np.flatnonzero(~known).tolist()
    ]
    return Grouping(names, codes, dict(Counter(strata)))


def _named(grouping: Grouping, row: int) -> str:
    code = int(grouping.codes[row])
    return grouping.names[code] if code >= 0 else "none"


def _check_sizes(grouping: Grouping, attribute: Intersection) -> None:
    small = [f"{name} {n}" for name, n in grouping.sizes.items() if n < attribute.min_images]
    if small:
        raise DataError(
            f"attribute {attribute.name!r}: too few images of {', '.join(small)}; every group "
            f"needs {attribute.min_images} (attribute.min_images), or score the two attributes "
            "one by one"
        )


def with_attributes(corpus: Corpus, others: Mapping[str, Corpus]) -> Corpus:
    """A corpus with the groups of more attributes.

    Args:
        corpus: what is scored; it keeps its images and their order.
        others: attribute to the same captioner's corpus read for it. Images that it lacks belong to
            none of its groups.
    """
    return replace(
        corpus,
        groupings={
            **corpus.groupings,
            **{
                name: _at(corpus.ids, other.groupings[name], other.ids)
                for name, other in others.items()
            },
        },
    )


def _at(ids: Sequence[str], grouping: Grouping, known: Sequence[str]) -> Grouping:
    place = {identifier: row for row, identifier in enumerate(known)}
    rows = np.array([place.get(identifier, -1) for identifier in ids], np.int64)
    return replace(grouping, codes=np.where(rows >= 0, grouping.codes[rows], NO_GROUP))


# Balanced attackers get as many images of every group as the smallest group has; with fewer than
# twenty, a tenth is one test image. Ours.
FEWEST_OF_SEVERAL = 20


def without_small_groups(corpus: Corpus, attribute: str) -> Corpus:
    """A corpus whose small groups are removed (their images become strata), with a note.

    Unchanged if fewer than two groups would remain.
    """
    grouping = corpus.groupings[attribute]
    sizes = np.array(list(grouping.sizes.values()))
    large = np.flatnonzero(sizes >= FEWEST_OF_SEVERAL)
    if not 2 <= len(large) < len(sizes):
        return corpus
    small = {name: n for name, n in grouping.sizes.items() if n < FEWEST_OF_SEVERAL}
    listing = ", ".join(f"{name} ({n})" for name, n in small.items())
    note = f"attackers leave out groups of fewer than {FEWEST_OF_SEVERAL} images: {listing}"
    return replace(
        corpus,
        groupings={**corpus.groupings, attribute: _only(grouping, large)},
        notes=(*corpus.notes, note),
    )


def _only(grouping: Grouping, groups: IntArray) -> Grouping:
    """A grouping with some of its groups; images of the others are counted as strata."""
    place = np.full(len(grouping.names) + 1, -1, np.int64)  # the last is of code -1
    place[groups] = np.arange(len(groups))
    names = tuple(grouping.names[group] for group in groups)
    left_out = {name: n for name, n in grouping.sizes.items() if name not in names}
    return Grouping(names, place[grouping.codes], {**grouping.strata, **left_out})
