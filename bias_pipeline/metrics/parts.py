"""What the numbers of a score are called: fields, and the one place that makes a name of them.

Names are what rows and files have. Whoever must know what a number is of asks for a field.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

DIRECTIONS = ("a_to_t", "t_to_a")


class PartName(str):
    """The name of a part as rows have it, which knows what it was made of.

    Attributes:
        what: which number it is, such as ``score`` or ``quality``; empty for a plain one of a side,
            group or object.
        direction: one of :data:`DIRECTIONS`, empty where there are none.
        group: whose number it is, empty for that of all.
        object: the same of an object or task.
        side: ``model`` or ``human``, empty for what compares them.
        detail: which of several such numbers.

    Example:
        >>> PartName("quality", direction="a_to_t", side="human")
        'a_to_t:quality:human'
        >>> PartName(object="tie", side="model"), PartName("incorrect", group="female")
        ('object:tie:model', 'incorrect:female')
        >>> PartName(direction="t_to_a", group="female", object="tie")
        't_to_a:tie:female'
    """

    what: str
    direction: str
    group: str
    object: str
    side: str
    detail: str

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
        """See the class."""
        whose = _whose(what, direction, group, object)
        name = super().__new__(cls, ":".join(filter(None, (direction, what, *whose, side, detail))))
        name.what, name.direction, name.side, name.detail = what, direction, side, detail
        name.group, name.object = group, object
        return name

    @property
    def of_pair(self) -> bool:
        """Whether it is of a group and an object together."""
        return bool(self.group and self.object)


def _whose(what: str, direction: str, group: str, object: str) -> Iterable[str]:
    """Group and object, in the order of the direction; one alone says which of the two it is."""
    if group and object:
        return (object, group) if direction == "t_to_a" else (group, object)
    if what or not (group or object):
        return (group or object,)
    return ("group", group) if group else ("object", object)


SCORE = PartName("score")
A_TO_T, T_TO_A = (PartName(direction=name) for name in DIRECTIONS)
# The numbers that a metric is known by; every other part stands beside them.
HEADLINES = (SCORE, A_TO_T, T_TO_A)
MODEL, HUMAN = PartName(side="model"), PartName(side="human")
# The sides on the images that both describe.
MODEL_PAIRED = PartName(side="model", detail="paired")
HUMAN_PAIRED = PartName(side="human", detail="paired")


def direction_of(part: str) -> str:
    """The direction that a part of a finished result belongs to; empty if to none.

    Example:
        >>> direction_of("t_to_a:named"), direction_of("named:human")
        ('t_to_a', '')
    """
    first = part.partition(":")[0]
    return first if first in DIRECTIONS else ""


def beside(part: str, further: str) -> str:
    """The name of a number beside one of a finished result, such as people's.

    Example:
        >>> beside("named", "human")
        'named:human'
    """
    return f"{part}:{further}"
