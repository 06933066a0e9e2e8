"""Compares word lists in another language with English lists, on captions of the same images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from bias_pipeline.declared import Configurable, Count, Range, Text
from bias_pipeline.errors import UsageError

# By how much lists may be worse than English ones; the same as `Limits.negligible` of an answer.
NEGLIGIBLE = 0.02
Field = Literal["lists", "english", "low", "high"]
FIELDS: tuple[Field, ...] = ("lists", "english", "low", "high")
# A share with the lists, the same share with English lists, and the 95 % interval of the difference
Compared = Mapping[Field, Annotated[float, Range(low=-1, high=1)]]


@dataclass(frozen=True)
class ListCheck(Configurable):
    """The result of the command ``data check_lists`` on human captions in both languages.

    Attributes:
        words: digest of the checked lists.
        images: how many images both languages describe.
        leak: share of images whose group an attacker guesses from masked captions with the same
            number of words.
        wrong: among captions that name a group, the share that name a wrong group.

    Raises:
        UsageError: if a comparison lacks a number.
    """

    words: Annotated[str, Text(r"[0-9a-f]{12}", "a digest that data check_lists printed")]
    images: Count
    leak: Compared
    wrong: Compared

    def __post_init__(self) -> None:
        """Check that both comparisons are complete."""
        for name in ("leak", "wrong"):
            if absent := {*FIELDS} - {*getattr(self, name)}:
                raise UsageError(
                    f"english_check.{name} has no {min(absent)}: copy all lines that data "
                    "check_lists prints"
                )

    @property
    def outcome(self) -> Literal["passed", "worse", "undecided"]:
        """``passed`` if neither number can be more than 2 points worse than the English number.

        Example:
            >>> same = {"lists": 0.56, "english": 0.56, "low": -0.01, "high": 0.01}
            >>> more = {"lists": 0.72, "english": 0.56, "low": 0.12, "high": 0.2}
            >>> [ListCheck("0" * 12, 9, leak, same).outcome for leak in (same, more)]
            ['passed', 'worse']
        """
        both = (self.leak, self.wrong)
        if all(one["high"] <= NEGLIGIBLE for one in both):
            return "passed"
        return "worse" if any(one["low"] > 0 for one in both) else "undecided"
