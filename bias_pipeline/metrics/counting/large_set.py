"""Reads how often annotators of a large set of captions mention each concept, by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bias_pipeline.corpus.attribute import Attribute, Words, words_of
from bias_pipeline.declared import Configurable
from bias_pipeline.metrics.functional.descriptions import HazardRatio


@dataclass(frozen=True)
class GroupRatios(Configurable):
    """Annotators' log hazard ratios between two groups, as in ``conf/annotators``."""

    groups: Sequence[str]  # ratios are of the second over the first
    ratios: Mapping[str, Sequence[float]]  # concept to log ratio and standard error
    alone: Words = ()  # concepts that annotators say of one group alone


@dataclass(frozen=True)
class LargeSet(Configurable):
    """How often annotators of many images mention each concept, by group."""

    captions: int  # how many captions were read
    mentions: Mapping[str, int]  # how many captions have each concept, if any
    attributes: Mapping[str, GroupRatios] = field(default_factory=dict)
    least: int = 40  # a concept with fewer mentions is one that annotators hardly ever say
    source: str = ""

    def is_rare(self, concept: str) -> bool:
        return self.mentions.get(concept, 0) < self.least

    def ratios(self, attribute: Attribute, groups: Sequence[str]) -> dict[str, HazardRatio]:
        """For each concept, the ratio of the second group to the first; empty for other groups."""
        known = self.attributes.get(attribute.name)
        if known is None or sorted(known.groups) != sorted(groups):
            return {}
        sign = 1 if tuple(known.groups) == tuple(groups) else -1
        return {
            concept: HazardRatio(sign * float(log_ratio), float(error))
            for concept, (log_ratio, error) in known.ratios.items()
            if not self.is_rare(concept)
        }

    def single_group_concepts(self, attribute: Attribute) -> frozenset[str]:
        """The concepts that annotators mention only for one group of the attribute."""
        known = (self.attributes.get(single.name) for single in attribute.singles)
        return frozenset(concept for one in known if one for concept in words_of(one.alone))
