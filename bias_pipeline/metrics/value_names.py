"""Makes and reads names of numbers, such as ``model:paired``. A name consists of fields.

Rows and files contain the names, while code reads the fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

DIRECTIONS = ("a_to_t", "t_to_a")


class PartName(str):
    """The name of a number in rows, with the fields of the name.

    Example:
        >>> PartName("quality", direction="a_to_t", side="human")
        'a_to_t:quality:human'
        >>> PartName(object="tie", side="model"), PartName("incorrect", group="female")
        ('object:tie:model', 'incorrect:female')
        >>> PartName(direction="t_to_a", group="female", object="tie")
        't_to_a:tie:female'
    """

    # Which number it is, such as `score` or `quality`; empty for the plain number of a side, group
    # or object
    what: str
    direction: str  # one of `DIRECTIONS`; empty if the metric has none
    group: str  # the group of the number; empty if it is about all groups
    object: str  # the object or task of the number; empty if it is about all
    side: str  # `model` or `human`; empty if the number compares the two
    detail: str  # tells several such numbers apart

    def __new__(
        cls,
        what: str = "",
        *,
        direction: str = "",
        group: str = "",
        object: str = "",
        side: str = "",
        detail: str = "",
    ) -> Self:
        whose = _subject(what, direction, group, object)
        name = super().__new__(cls, ":".join(filter(None, (direction, what, *whose, side, detail))))
        name.what, name.direction, name.side, name.detail = what, direction, side, detail
        name.group, name.object = group, object
        return name

    @property
    def of_pair(self) -> bool:
        """Whether the number is about a pair of a group and an object."""
        return bool(self.group and self.object)


def _subject(what: str, direction: str, group: str, object: str) -> Iterable[str]:
    """Group and object in the order of the direction. A single group or object gets a prefix."""
    if group and object:
        return (object, group) if direction == "t_to_a" else (group, object)
    if what or not (group or object):
        return (group or object,)
    return ("group", group) if group else ("object", object)


SCORE = PartName("score")
A_TO_T, T_TO_A = (PartName(direction=name) for name in DIRECTIONS)
# The main numbers of a metric; all other parts are details.
HEADLINES = (SCORE, A_TO_T, T_TO_A)
# In the facts of a metric of sets of pictures: part to set to its difference between groups.
GOLD, MACHINE = "gold", "machine"  # details: by gold labels alone, and before their correction
DECIDING = "deciding"
# Tables recognise the note on a learning curve by these words
CURVE, UNEVEN = "learning curve", "not level"
COMPARED = "compare captioners on equally many images"
MODEL, HUMAN = PartName(side="model"), PartName(side="human")
# The sides on the images that both describe.
MODEL_PAIRED = PartName(side="model", detail="paired")
HUMAN_PAIRED = PartName(side="human", detail="paired")
# At equal style: an annotator at the captioner's length, and the score minus the annotator's score.
ALIKE, BEYOND = (PartName("matched", detail=name) for name in ("alike", "beyond"))


def direction_of(part: str) -> str:
    """The direction to which a number of a finished result belongs; may be empty.

    Example:
        >>> direction_of("t_to_a:named"), direction_of("named:human")
        ('t_to_a', '')
    """
    first = part.partition(":")[0]
    return first if first in DIRECTIONS else ""


def object_of(part: str) -> str:
    """The object that a number of a finished result is about, or an empty text.

    Example:
        >>> object_of("object:tie"), object_of("object:tie:model"), object_of("score")
        ('tie', '', '')
    """
    kind, _, name = part.partition(":")
    return name if kind == "object" and ":" not in name else ""


def sibling_name(part: str, further: str) -> str:
    """The name of a related number in a finished result.

    A captioner's number has two related numbers: the annotators' number and the score.

    Example:
        >>> sibling_name("named", "human"), sibling_name("model", "human")
        ('named:human', 'human')
        >>> sibling_name("model", "increase"), sibling_name("whole:model", "increase")
        ('score', 'whole')
    """
    if part == MODEL:
        return {"human": HUMAN, "increase": SCORE}[further]
    if part.endswith(f":{MODEL}"):
        what = part.removesuffix(f":{MODEL}")
        return what if further == "increase" else f"{what}:{further}"
    return f"{part}:{further}"


def paired_names(part: str) -> tuple[str, str]:
    """For images that both sides describe, the names of a number and of the annotators' number.

    Example:
        >>> paired_names("model"), paired_names("named")
        (('model:paired', 'human:paired'), ('named:model:paired', 'named:human:paired'))
    """
    if part == MODEL:
        return MODEL_PAIRED, HUMAN_PAIRED
    return f"{part}:{MODEL_PAIRED}", f"{part}:{HUMAN_PAIRED}"
