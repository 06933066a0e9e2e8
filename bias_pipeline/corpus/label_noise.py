"""Labels that err more often than they do: groups drawn anew at given rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import NO_GROUP, Corpus, Grouping
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.io.hashing import UIntArray, hash_ids, random_words

# Group to the share of its images with a wrong label, or to the share with each label.
ErrorRates = Mapping[str, float | Mapping[str, float]]

_ROUNDED = 0.002  # how far the shares of a table may be from 1


@dataclass(frozen=True)
class LabelNoise:
    """How often labels of an attribute err."""

    attribute: str  # its name
    # Group to the share of its images, in [0, 1], that have a wrong label, which is each other
    # group equally often; or to the share that has each label, where that of the group itself is
    # what the others leave
    rates: ErrorRates

    @classmethod
    def of(cls, attribute: Attribute, rates: ErrorRates) -> LabelNoise:
        """Checked rates.

        Raises:
            UsageError: if a name is no group, or shares are not in [0, 1].

        Example:
            >>> gender = Attribute("gender", ("male", "female"), {}, {})
            >>> noise = LabelNoise.of(gender, {"male": 0.02, "female": {"male": 0.1}})
            >>> noise.wrong(("male", "female"))
            {'male': 0.02, 'female': 0.1}
        """
        if attribute.crossed:
            raise UsageError(
                f"dataset.label_noise is of one attribute, and {attribute.name!r} has the groups "
                "of two; score them one by one"
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

    def wrong(self, groups: Sequence[str]) -> dict[str, float]:
        """Group to the share of its images that have a wrong label.

        Raises:
            UsageError: if nothing is known of a group.
        """
        for group in groups:
            if group not in self.rates:
                raise UsageError(
                    f"dataset.label_noise says nothing of {self.attribute} {group!r}; give its "
                    "share of wrong labels, 0 if none is wrong"
                )
        return {group: self._wrong(group) for group in groups}

    def _wrong(self, group: str) -> float:
        rate = self.rates[group]
        if isinstance(rate, Mapping):
            return min(1.0, sum(share for label, share in rate.items() if label != group))
        return rate

    def redrawn(self, corpus: Corpus, draw: int) -> Corpus:
        """The corpus with labels that err that often more: its own count as the truth.

        Labels err independently of each other and of captions. An image whose drawn label is none
        of the corpus's groups belongs to no group.

        Args:
            corpus: whose labels are drawn anew.
            draw: which of several, from 0.
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
        """(K, K) for each group, where each label's part of [0, 1) ends."""
        wrong = self.wrong(names)
        shares = np.zeros((len(names), len(names)))
        for row, group in enumerate(names):
            rate = self.rates[group]
            each = rate if isinstance(rate, Mapping) else None
            for column, label in enumerate(names):
                even = wrong[group] / (len(names) - 1)
                shares[row, column] = even if each is None else each.get(label, 0.0)
            shares[row, row] = 1 - wrong[group]
        ends = np.cumsum(shares, axis=1)
        return np.where(np.isclose(ends, 1), 1.0, ends)


def _record_keys(corpus: Corpus) -> UIntArray:
    """(N,) a hash of each record's id: people in one picture have labels of their own."""
    return hash_ids(corpus.ids)
