"""The choices of a scene, their dependence on groups, and the dials of simulated captioners.

The dependence of choices on groups is the bias of the data set. A slot is one choice: the activity,
what the person wears or carries, what is nearby, or the backdrop. The probabilities of a slot's
options, given an image's groups, are known exactly::

    P(option | gender, skin, age, emotion) proportional to weight x product of the leanings

Groups are independent of each other. We invented the leanings (:mod:`.activities`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.scenes.activities import ACTIVITIES, SETTINGS, factors

# The groups of each attribute, with their shares.
GROUPS: Mapping[str, Mapping[str, float]] = {
    "gender": {"Male": 0.6, "Female": 0.4},
    "skin": {"Light": 0.68, "Dark": 0.32},
    "age": {"young": 0.45, "old": 0.55},
    "emotion": {"happiness": 0.3, "sadness": 0.2, "anger": 0.18, "fear": 0.14, "surprise": 0.18},
}
ATTRIBUTES = tuple(GROUPS)
NOTHING = ""  # the option that adds nothing to the scene
KINDS = ("activity", "clothing", "carried", "nearby", "backdrop")

_DETAILS = """
clothing sport
  6 shirt|tee|top
  4 jersey|uniform @ Male 2.2
  4 jacket|windbreaker
  4 shorts @ Male 2
  3 hat|sun hat|visor
  3 cap|baseball cap @ Male 2.9 young 1.6
  3 skirt|skort @ Female 7.2
  3 tank top|halter top @ Female 3.5
  2.5 leggings|tights @ Female 5.7
  2 helmet @ Male 1.7 fear 2.7
  2 headband @ Female 3.2
  2 goggles|shades @ old 1.6
  2 hoodie|sweatshirt @ young 3.1 Male 1.5
  2 vest|fleece vest @ old 2.7
  1.5 gloves|mittens

clothing street
  5 shirt|tee|top
  5 jacket|coat|parka
  4 jeans|denim jeans
  4 dress|sundress|gown @ Female 8.8
  3 skirt|long skirt @ Female 7.2
  3 hat|sun hat|fedora @ old 1.9
  3 cap|baseball cap @ Male 3.2 young 1.7
  3 suit|business suit|blazer @ Male 4.7 old 1.6
  2.5 boots|heels @ Female 3.2
  2.5 sweater|pullover
  2.5 scarf|shawl @ Female 2.9 old 1.6
  2.5 sunglasses|shades @ young 1.6 happiness 2
  2.5 hoodie|sweatshirt @ young 3.8 Male 1.6 Dark 1.9
  2 raincoat|trench coat @ sadness 3.7
  2 vest|safety vest @ Male 2.6
  2 overalls|suspenders @ Male 2.9 old 1.7

clothing home
  6 shirt|tee|top
  4 sweater|pullover|jumper
  4 dress|sundress|gown @ Female 8.8
  3 apron|kitchen apron @ Female 2.2
  3 blouse|tunic @ Female 7.2
  3 glasses|spectacles|reading glasses @ old 3.1
  3 suit|business suit|blazer @ Male 4.7
  3 hoodie|sweatshirt @ young 3.4 Male 1.5
  2.5 cardigan|wool cardigan @ old 3.4 Female 1.6
  2.5 headphones|headset @ young 3.1 Male 1.5
  2.5 robe|bathrobe @ sadness 2.9
  2.5 pajamas|slippers @ young 1.7 fear 1.8
  2.5 necklace|pearls|earrings @ Female 5.7
  2.5 polo shirt|button down shirt @ Male 3.5
  2 vest|sweater vest @ Male 2.2 old 2.1

carried sport
  14
  2 bottle @ Dark 1.9
  2 backpack @ young 2.4
  1 cell phone @ young 1.9
  1 umbrella @ Female 2

carried street
  16
  3.5 handbag @ Female 7.2
  3 backpack @ young 3.1 Light 1.9
  2.5 tie @ Male 7.2
  2.5 umbrella @ Female 1.7 sadness 3.7
  2 suitcase @ Light 1.9
  2 cell phone @ young 2
  2 book @ old 2.1
  2 bottle @ Male 1.5 Dark 1.9
  2 cup @ old 1.6

carried home
  16
  3 cup @ old 1.9
  2.5 tie @ Male 7.2
  2 handbag @ Female 5.7
  2 bottle @ Male 1.6
  2 cell phone @ young 2.1
  2 book @ old 1.9
  2 bowl @ Female 1.7
  1.5 teddy bear @ young 2.7 Female 1.7 fear 2
  1.5 spoon
  1 wine glass @ old 1.9 happiness 1.8

nearby sport
  12
  2 bench @ old 1.9
  2 dog @ happiness 2.3
  2 bird @ Light 2.5
  2 bicycle @ Dark 2.8
  2 car @ Male 1.6
  1.5 truck @ Male 2.1
  1.5 chair @ old 1.7
  1.5 boat @ Light 2.2
  1 umbrella @ Female 1.6

nearby street
  18
  3 car @ Male 1.5
  2 truck @ Male 2 anger 2
  2 motorcycle @ Male 2.4
  2 bicycle @ Dark 2.8
  2 dog @ happiness 2.3
  2 bench @ old 2
  2 traffic light @ Dark 2.2 anger 1.8
  1.5 stop sign @ anger 2.3
  1.5 fire hydrant @ Light 2.5
  1.5 parking meter @ Dark 2.5
  1.5 bird @ Light 2.2
  1.5 clock @ old 1.7
  1.5 bus @ Dark 2.2
  1.5 potted plant @ Female 2.6
  1 horse @ Female 1.7

nearby home
  18
  3 chair
  2.5 potted plant @ Female 2.6
  2.5 tv @ Male 2
  2 clock @ old 2
  2 cat @ Female 2.2
  2 dog @ happiness 2
  2 couch @ Dark 2.2
  2 vase @ Female 2.4 Light 1.9
  1.5 laptop @ Male 1.7 young 1.7
  1.5 refrigerator
  1.5 microwave @ Dark 2.2
  1 toaster @ Light 2.5

backdrop sport
  3 on a sunny day|in bright sunshine|under a clear sky @ happiness 3.4
  2 on a cloudy day|under gray clouds|on a hazy afternoon @ Light 4 sadness 2.7
  2 in the evening|at sunset|during golden hour @ Dark 3.4
  2 in the rain|during a storm|in stormy weather @ fear 4.8 sadness 2.7
  2 in front of hills|with mountains far away @ Light 3.1
  2 in windy weather|on a breezy day @ surprise 3.1
  2 during a contest|in a tournament|at a sports event @ Dark 2.5 anger 3.7

backdrop street
  3 on a sunny day|in bright sunshine|under a clear sky @ happiness 3.4
  2 on a cloudy day|under gray clouds|in thick fog @ Light 4 sadness 3.1
  2 at night|after dark|late in the evening @ Dark 3.4 fear 4.8
  2 in the rain|during a storm|on a wet day @ sadness 4.3
  2 in front of a brick wall|by a painted wall|near colorful graffiti @ Dark 4
  2 near an old building|by a stone church|in front of a mansion @ Light 3.4
  2 during rush hour|in heavy traffic|amid loud noise @ anger 4.8
  2 during a festival|at a fair|with fireworks overhead @ surprise 4.8

backdrop home
  3 near a bright window|in warm daylight|with sunlight streaming in @ happiness 2.9 Light 2.2
  2 in dim light|with the lights off|in near darkness @ fear 4.8 sadness 2.9
  2 in front of a brick wall|with posters on the wall @ Dark 4
  2 in front of a white wall|by a fireplace|with curtains drawn @ Light 3.4
  2 amid a big mess|with clutter everywhere|among broken things @ anger 4.8
  2 with balloons overhead|among wrapped gifts @ surprise 4.8 happiness 2
  2 with a radio playing|with loud music on @ Dark 3.1
  2 late at night|early in the morning @ sadness 2
"""


@dataclass(frozen=True)
class Slot:
    """One choice among n options."""

    name: str  # "activity", or kind and setting such as "clothing street"
    # The n options; `NOTHING` means no option. Synonyms are one option, with "|" between them.
    options: tuple[str, ...]
    weights: tuple[float, ...]  # (n,) relative frequency of each option, before any leaning
    # For each option, the groups in which it is more frequent, each with the factor
    leans: tuple[Mapping[str, float], ...]

    def leans_on(self, attribute: str) -> bool:
        """Whether some option is more frequent in one group of the attribute than in another."""
        return any(group in lean for lean in self.leans for group in GROUPS[attribute])


def kind_of(slot: str) -> str:
    """The kind of a slot, which is its name without the setting.

    Example:
        >>> kind_of("clothing street")
        'clothing'
    """
    return slot.partition(" ")[0]


def slot_name(kind: str, setting: str) -> str:
    """The name of the slot that decides ``kind`` in a setting.

    Example:
        >>> slot_name("nearby", "home"), slot_name("activity", "home")
        ('nearby home', 'activity')
    """
    return kind if kind == "activity" else f"{kind} {setting}"


def read_slots(table: str) -> Iterator[Slot]:
    """Read blocks with a name and then a line per option, "weight synonyms @ group factor ..."."""
    for block in table.strip().split("\n\n"):
        name, *lines = block.splitlines()
        halves = [line.strip().partition(" @ ") for line in lines]
        leans = tuple(factors(right) for _, _, right in halves)
        weights, _, options = zip(*(left.partition(" ") for left, _, _ in halves), strict=True)
        yield Slot(name, options, tuple(map(float, weights)), leans)


_ACTIVITY = Slot(
    "activity",
    tuple(activity.name for activity in ACTIVITIES),
    tuple(activity.weight for activity in ACTIVITIES),
    tuple(activity.leans for activity in ACTIVITIES),
)
SLOTS: Mapping[str, Slot] = {slot.name: slot for slot in (_ACTIVITY, *read_slots(_DETAILS))}
SETTING_OF: tuple[int, ...] = tuple(SETTINGS.index(activity.setting) for activity in ACTIVITIES)


@lru_cache(maxsize=1)
def world_tables() -> Mapping[str, Float64Array]:
    """P(option | groups) of the world's own scenes.

    Example:
        >>> world_tables()["clothing street"].shape
        (2, 2, 2, 5, 16)
    """
    return {name: _table(slot) for name, slot in SLOTS.items()}


def _table(slot: Slot) -> Float64Array:
    table = np.array(slot.weights)
    for axis, groups in enumerate(GROUPS.values()):
        factors = np.array([[lean.get(group, 1.0) for lean in slot.leans] for group in groups])
        table = table * _on_axis(factors, axis)
    return normalise(table)


def _on_axis(factors: Float64Array, axis: int) -> Float64Array:
    """Reshape (K, n) to (1, .., K, .., 1, n) for broadcasting."""
    shape = [1] * len(ATTRIBUTES) + [factors.shape[1]]
    shape[axis] = len(factors)
    return factors.reshape(shape)


def normalise(table: Float64Array) -> Float64Array:
    probabilities: Float64Array = table / table.sum(axis=-1, keepdims=True)
    return probabilities


def shares(attribute: str) -> Float64Array:
    """(K,) shares of the attribute's groups.

    Example:
        >>> shares("gender").tolist()
        [0.6, 0.4]
    """
    return np.array(list(GROUPS[attribute].values()))


def table_by_group(attribute: str, table: Float64Array) -> Float64Array:
    """(K, ...) the average over all other attributes, P(option | group).

    Example:
        >>> table_by_group("skin", world_tables()["activity"]).shape
        (2, 40)
    """
    for axis, other in reversed(list(enumerate(ATTRIBUTES))):
        if other != attribute:
            table = np.tensordot(shares(other), table, axes=(0, axis))
    return table


def without_attribute(attribute: str, table: Float64Array) -> Float64Array:
    """The table in which the average over the attribute's groups replaces each group."""
    axis = ATTRIBUTES.index(attribute)
    average = np.expand_dims(np.tensordot(shares(attribute), table, axes=(0, axis)), axis)
    return np.broadcast_to(average, table.shape)


def typical(attribute: str, table: Float64Array) -> Float64Array:
    """The table of only those options that a group has more often than the average."""
    marginal = table_by_group(attribute, table)  # (K, n)
    over = marginal > shares(attribute) @ marginal
    return normalise(table * _on_axis(over.astype(np.float64), ATTRIBUTES.index(attribute)))


def draw(table: Float64Array, codes: Sequence[IntArray], u: Float64Array) -> IntArray:
    """(N,) option numbers, drawn by ``u`` (N,) in [0, 1); ``codes`` are four columns of groups."""
    # Rounded, since the last bit of a sum depends on the platform.
    bounds = np.round(np.cumsum(table, axis=-1), 12)[..., :-1]
    chosen: IntArray = (bounds[tuple(codes)] <= u[:, None]).sum(axis=1)
    return chosen


def check_dials(dials: object, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Refuse dials that are out of range; a dial without a range must be 0 or more."""
    for name, value in vars(dials).items():
        low, high = ranges.get(name, (0.0, math.inf))
        if not isinstance(value, str) and not (math.isfinite(value) and low <= value <= high):
            raise UsageError(f"scenes: dial {name} is {value}; it must be in [{low}, {high}]")


@dataclass(frozen=True)
class BiasSettings:
    """How a captioner differs from an annotator.

    With all dials at their defaults there is no difference. A dial changes one thing and no other
    random draw.

    Example:
        >>> BiasSettings(a_to_t=0.5, attribute="skin").t_to_a
        0.0
    """

    # From -1 to 1, neutral 0: amplification attribute -> task. With this probability each slot
    # (activity, clothing, carried, nearby, backdrop) is imagined instead of perceived. What is
    # imagined is typical of the person's group or, if the dial is negative, drawn without the
    # attribute's influence.
    a_to_t: float = 0.0
    # From 0 to 1, neutral 0: amplification task -> attribute. The share of captions whose words for
    # the attribute follow the group that the scene suggests, not the person's group.
    t_to_a: float = 0.0
    # From 0 to 1, neutral 1: the share of each list of synonyms and sentence frames that is used,
    # counted by frequency. 0: always the most frequent synonym.
    vocabulary: float = 1.0
    # 0 or more, neutral 1: multiplies the probability of every detail that depends on attributes
    # only through the backdrop (place, backdrop, company, colours, long frames)
    length: float = 1.0
    # 0 or more, neutral 1: multiplies the probability that an object is named
    mention_rate: float = 1.0
    # 0 or more, neutral 1: multiplies the probability of a gendered rather than a neutral word for
    # the person
    gender_word_rate: float = 1.0
    # A whole number from 1 to 50, neutral 1: how many sentences a caption has. Each sentence is
    # what another person would write about what the captioner perceives, with the same other dials.
    sentences: int = 1
    attribute: str = "gender"  # the attribute that `a_to_t` and `t_to_a` amplify
    # From 0 to 1, neutral 0: the share of captions whose synonyms follow the person's skin:
    # frequent synonyms for light skin, rare synonyms for dark skin. Over all images each synonym
    # stays equally frequent.
    skin_wording: float = 0.0
    # 0 or more, neutral 1: multiplies the probability of a word for the person's skin
    skin_word_rate: float = 1.0
    # From 0 to 1, neutral 0: the share of captions that end in a sentence on the person's looks
    adjectives: float = 0.0
    # From 0 to 1, neutral 0: how much more often these adjectives come from the list of the
    # person's group
    adjective_lean: float = 0.0

    def __post_init__(self) -> None:
        if self.attribute not in GROUPS:
            raise UsageError(
                f"scenes: unknown attribute {self.attribute!r}; "
                f"{did_you_mean(self.attribute, GROUPS)}"
            )
        check_dials(self, _RANGES)
        if self.sentences != int(self.sentences):
            raise UsageError(f"scenes: dial sentences is {self.sentences}; use a whole number")


_RANGES: Mapping[str, tuple[float, float]] = {
    "sentences": (1, 50),
    "a_to_t": (-1.0, 1.0),
    "t_to_a": (0.0, 1.0),
    "vocabulary": (0.0, 1.0),
    "skin_wording": (0.0, 1.0),
    "adjectives": (0.0, 1.0),
    "adjective_lean": (0.0, 1.0),
}
