"""Makes groups from other groups: products of two attributes, large groups, redrawn labels.

For an intersection of attributes, with groups such as male-light, the data set is read once for
each attribute. An image that has a group of each attribute belongs to the product of both groups.
Labels can also be replaced at random with given rates. Then the labels contain more errors than
before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.corpus.attribute import Attribute, Naming
from bias_pipeline.corpus.corpus import NO_GROUP, UNSURE, Corpus, Grouping
from bias_pipeline.corpus.split import SMALLEST_GROUP
from bias_pipeline.corpus.split_rules import limit_images
from bias_pipeline.declared import Count
from bias_pipeline.errors import DataError, UsageError, did_you_mean, inflect
from bias_pipeline.io.hashing import UIntArray, hash_ids, random_words

FEWEST = 100


@dataclass(frozen=True)
class Intersection(Attribute):
    """The product of two attributes, as ``attribute=[gender,race]``.

    A group of the product has no words of its own. ``words`` contains the words of both parts, so
    that masking replaces all of them. A caption names a group of the product if it names a group of
    each part; a caption that names a group of only one part names no group of the product.
    """

    parts: Mapping[str, Attribute] = field(default_factory=dict)  # `first` and `second`
    min_images: Count = FEWEST  # how many images every group of the product must have; ours

    def __post_init__(self) -> None:
        """Check that the parts are two attributes with words in one language."""
        first, second = self.pair
        if first.name == second.name:
            raise UsageError(f"attribute=[{first.name},{second.name}]: name two attributes")
        if first.language != second.language:
            raise UsageError(
                f"attribute=[{first.name},{second.name}]: their words are of two languages, "
                f"{first.language} and {second.language}; name attributes of one language"
            )
        object.__setattr__(self, "language", first.language)
        object.__setattr__(self, "words", {**first.words, **second.words})
        object.__setattr__(self, "also_masked", (*first.also_masked, *second.also_masked))
        groups = [f"{a}-{b}" for a, b in product(first.groups, second.groups)]
        object.__setattr__(self, "groups", groups)

    def namings(self, preset: str | None = None) -> tuple[Naming, ...]:
        """The words that name a group of each attribute. A caption must name both groups."""
        return tuple(naming for part in self.pair for naming in part.namings(preset))

    @property
    def singles(self) -> tuple[Attribute, ...]:
        return self.pair

    @property
    def pair(self) -> tuple[Attribute, Attribute]:
        return self.parts["first"], self.parts["second"]


def scored_corpus(
    corpora: Sequence[Corpus], attribute: Attribute, limit: int | None = None
) -> Corpus:
    if not isinstance(attribute, Intersection):
        (corpus,) = corpora
        return limit_images(corpus, limit)
    chosen = limit_images(intersect(corpora, attribute), limit)
    _check_sizes(chosen.groupings[attribute.name], attribute)
    return chosen


def intersect(corpora: Sequence[Corpus], attribute: Intersection) -> Corpus:
    """A corpus of the images in both corpora, with the groups of the product."""
    first, second = corpora
    place = {identifier: row for row, identifier in enumerate(second.ids)}
    rows = np.array([row for row, i in enumerate(first.ids) if i in place], np.int64)
    if not len(rows):
        raise DataError(
            f"no image has labels of both {attribute.pair[0].name} and {attribute.pair[1].name}"
        )
    others = np.array([place[first.ids[row]] for row in rows], np.int64)
    grouping = cross_attributes(
        [
            replace(corpus.groupings[part.name], codes=corpus.groupings[part.name].codes[chosen])
            for corpus, part, chosen in zip(corpora, attribute.pair, (rows, others), strict=True)
        ]
    )
    _check_sizes(grouping, attribute)
    lost = len(first) + len(second) - 2 * len(rows)
    note = (
        f"{inflect(lost, 'images are')} labelled for only one attribute of {attribute.name}: left "
        "out"
    )
    shared = first.take(rows)
    return replace(
        shared,
        groupings={attribute.name: grouping},
        notes=(*dict.fromkeys((*first.notes, *second.notes)), *([note] if lost else [])),
    )


def cross_attributes(parts: Sequence[Grouping]) -> Grouping:
    """The groups of two attributes together.

    Images that lack a group of one attribute belong to no group. An image is unsure if one of its
    two labels is unsure.
    """
    first, second = parts
    known = (first.codes >= 0) & (second.codes >= 0)
    unknown = np.where((first.codes == NO_GROUP) | (second.codes == NO_GROUP), NO_GROUP, UNSURE)
    codes = np.where(known, first.codes * len(second.names) + second.codes, unknown)
    names = tuple(f"{a}-{b}" for a, b in product(first.names, second.names))
    strata = [
        f"{_group_name(first, row)}-{_group_name(second, row)}"
        for row in np.flatnonzero(~known).tolist()
    ]
    return Grouping(names, codes, dict(Counter(strata)))


def _group_name(grouping: Grouping, row: int) -> str:
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
    """Add the groups of further attributes to a corpus."""
    return replace(
        corpus,
        groupings={
            **corpus.groupings,
            **{
                name: _grouping_at(corpus.ids, other.groupings[name], other.ids)
                for name, other in others.items()
            },
        },
    )


def _grouping_at(ids: Sequence[str], grouping: Grouping, known: Sequence[str]) -> Grouping:
    place = {identifier: row for row, identifier in enumerate(known)}
    rows = np.array([place.get(identifier, -1) for identifier in ids], np.int64)
    return replace(grouping, codes=np.where(rows >= 0, grouping.codes[rows], NO_GROUP))


# Balanced attackers get as many images of every group as the smallest group has; with fewer than
# twenty, a tenth is one test image. Ours.
FEWEST_OF_SEVERAL = 20


def without_small_groups(corpus: Corpus, attribute: str) -> Corpus:
    """A corpus without small groups, with a note. Images of small groups then belong to no group.

    A group needs twenty images, or ten if fewer than two groups have twenty. If fewer than two
    groups would remain, the corpus does not change.
    """
    grouping = corpus.groupings[attribute]
    sizes = np.array(list(grouping.sizes.values()))
    enough = (sizes >= FEWEST_OF_SEVERAL).sum() >= 2
    fewest = FEWEST_OF_SEVERAL if enough else SMALLEST_GROUP
    large = np.flatnonzero(sizes >= fewest)
    if not 2 <= len(large) < len(sizes):
        return corpus
    small = {name: n for name, n in grouping.sizes.items() if n < fewest}
    listing = ", ".join(f"{name} ({n})" for name, n in small.items())
    note = f"attackers leave out groups of fewer than {fewest} images: {listing}"
    return replace(
        corpus,
        groupings={**corpus.groupings, attribute: _keep_groups(grouping, large)},
        notes=(*corpus.notes, note),
    )


def _keep_groups(grouping: Grouping, groups: IntArray) -> Grouping:
    """A grouping with only some of its groups; images of other groups have no group."""
    place = np.full(len(grouping.names), NO_GROUP, np.int64)
    place[groups] = np.arange(len(groups))
    codes = np.where(grouping.labelled, place[grouping.codes], grouping.codes)
    names = tuple(grouping.names[group] for group in groups)
    left_out = {name: n for name, n in grouping.sizes.items() if name not in names}
    return Grouping(names, codes, {**grouping.strata, **left_out})


# Group to the share of its images with a wrong label, or to the share with each label.
ErrorRates = Mapping[str, float | Mapping[str, float]]

_ROUNDED = 0.002  # how far the shares of a table may be from 1


@dataclass(frozen=True)
class LabelNoise:
    """How often labels of an attribute are wrong."""

    attribute: str  # the attribute's name
    # Group to the share of its images, in [0, 1], with a wrong label; every other group is then
    # equally often the wrong label. Or group to the share with each label; the share of the group
    # itself is what the other shares leave
    rates: ErrorRates

    @classmethod
    def from_rates(cls, attribute: Attribute, rates: ErrorRates) -> LabelNoise:
        """Check the rates that a user gave, and return the label noise.

        Example:
            >>> gender = Attribute("gender", ("male", "female"), {}, {})
            >>> noise = LabelNoise.from_rates(gender, {"male": 0.02, "female": {"male": 0.1}})
            >>> noise.wrong_shares(("male", "female"))
            {'male': 0.02, 'female': 0.1}
        """
        if attribute.is_crossed:
            names = [single.name for single in attribute.singles]
            raise UsageError(
                f"dataset.label_noise has rates of one attribute, not of "
                f"attribute=[{','.join(names)}]; "
                f"score them one by one, attribute={','.join(names)}, with a table of both "
                "(dataset.label_noise=FILE)"
            )
        named = {name for rate in rates.values() if isinstance(rate, Mapping) for name in rate}
        for name in sorted({*rates, *named} - set(attribute.groups)):
            raise UsageError(
                f"dataset.label_noise: attribute {attribute.name!r} has no group {name!r}; "
                f"{did_you_mean(name, attribute.groups)}"
            )
        noise = cls(attribute.name, rates)
        for group, rate in rates.items():
            whole = isinstance(rate, Mapping) and group in rate
            total = sum(rate.values()) if isinstance(rate, Mapping) else rate
            if total > 1 + _ROUNDED or (whole and total < 1 - _ROUNDED):
                raise UsageError(
                    f"dataset.label_noise.{group}: shares of its images add up to {total:.3f}; "
                    f"they must add up to 1, or to less if {group}'s own is left out"
                )
        return noise

    def wrong_shares(self, groups: Sequence[str]) -> dict[str, float]:
        for group in groups:
            if group not in self.rates:
                raise UsageError(
                    f"dataset.label_noise has nothing on {self.attribute} {group!r}; give its "
                    "share of wrong labels, 0 if none is wrong"
                )
        return {group: self._wrong_share(group) for group in groups}

    def _wrong_share(self, group: str) -> float:
        rate = self.rates[group]
        if isinstance(rate, Mapping):
            return min(1.0, sum(share for label, share in rate.items() if label != group))
        return rate

    def redrawn(self, corpus: Corpus, draw: int) -> Corpus:
        """The corpus with new labels, drawn as if the present labels were true.

        Errors are independent of each other and of captions. If a drawn label is none of the
        corpus's groups, the image belongs to no group.
        """
        grouping = corpus.groupings[self.attribute]
        words = random_words("label noise", draw, corpus.read(_record_keys))
        uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        ends = self._ends(grouping.names)[np.maximum(grouping.codes, 0)]
        labels = (uniform[:, None] >= ends).sum(axis=1)
        labels[labels == len(grouping.names)] = NO_GROUP
        codes = np.where(grouping.codes >= 0, labels, grouping.codes)
        drawn = Grouping(grouping.names, codes, grouping.strata)
        return replace(
            corpus,
            groupings={**corpus.groupings, self.attribute: drawn},
            samples=tuple(self.redrawn(sample, draw) for sample in corpus.samples),
        )

    def _ends(self, names: tuple[str, ...]) -> Float64Array:
        """(K, K): for each group, the upper end of each label's part of [0, 1)."""
        wrong = self.wrong_shares(names)
        shares = np.zeros((len(names), len(names)))
        for row, group in enumerate(names):
            rate = self.rates[group]
            each = rate if isinstance(rate, Mapping) else None
            for column, label in enumerate(names):
                even = wrong[group] / max(len(names) - 1, 1)
                shares[row, column] = even if each is None else each.get(label, 0.0)
            shares[row, row] = 1 - wrong[group]
        ends = np.cumsum(shares, axis=1)
        return np.where(np.isclose(ends, 1), 1.0, ends)


def _record_keys(corpus: Corpus) -> UIntArray:
    """(N,): a hash of each record id, since each person in a picture has a label."""
    return hash_ids(corpus.ids)
