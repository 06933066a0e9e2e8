"""The dials of a simulated captioner."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from bias_pipeline.datasets.scenes.slots import GROUPS
from bias_pipeline.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class BiasSettings:
    """How a captioner differs from a person; with neutral dials it writes like another person.

    Each dial changes one thing and no other draw.

    Example:
        >>> BiasSettings(a_to_t=0.5, attribute="skin").t_to_a
        0.0
    """

    # From -1 to 1, neutral 0: amplification attribute -> task. With this probability each slot
    # (activity, clothing, carried, nearby, backdrop) is imagined instead of perceived: as typical
    # of the person's group, or, if negative, as without the attribute's influence.
    a_to_t: float = 0.0
    # From 0 to 1, neutral 0: amplification task -> attribute. The share of captions whose attribute
    # words follow the group that the scene suggests, not the person's.
    t_to_a: float = 0.0
    # From 0 to 1, neutral 1: the share of each list of synonyms and sentence frames in use, counted
    # by frequency. 0: always the most frequent one.
    vocabulary: float = 1.0
    # 0 or more, neutral 1: multiplies the probability of every detail that depends on attributes
    # only through the backdrop (place, backdrop, company, colours, long frames)
    length: float = 1.0
    # 0 or more, neutral 1: multiplies the probability that an object is named
    mention_rate: float = 1.0
    # 0 or more, neutral 1: multiplies the probability of a gendered rather than a neutral word for
    # the person
    gender_word_rate: float = 1.0
    # A whole number from 1 to 50, neutral 1: how many sentences a caption has. Each is what another
    # person would write of what the captioner perceives, with the other dials.
    sentences: int = 1
    attribute: str = "gender"  # the one that `a_to_t` and `t_to_a` amplify

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            UsageError: if a dial is out of its range or the attribute is unknown.
        """
        if self.attribute not in GROUPS:
            raise UsageError(
                f"scenes: unknown attribute {self.attribute!r}; "
                f"{did_you_mean(self.attribute, GROUPS)}"
            )
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not (math.isfinite(value) and low <= value <= high):
                raise UsageError(f"scenes: dial {name} is {value}; it must be in [{low}, {high}]")
        if self.sentences != int(self.sentences):
            raise UsageError(f"scenes: dial sentences is {self.sentences}; use a whole number")


_RANGES = {
    field.name: (0.0, math.inf) for field in fields(BiasSettings) if field.name != "attribute"
}
_RANGES |= {
    "sentences": (1, 50),
    "a_to_t": (-1.0, 1.0),
    "t_to_a": (0.0, 1.0),
    "vocabulary": (0.0, 1.0),
}
