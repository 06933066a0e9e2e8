"""``debias=none``: vectors as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bias_pipeline.debias.base import Debias, Examples, Side
from bias_pipeline.declared import Count
from bias_pipeline.inference.embedders import DualEncoder


@dataclass(frozen=True)
class Untouched(Debias):
    """Nothing is edited. The settings of others are taken, so that a sweep can begin with it.

    Attributes:
        k: plays no part.
        side: plays no part.
        renormalise: plays no part.
    """

    k: Count = 10
    side: Side = "both"
    pairing: str = "random"
    renormalise: bool = True

    @property
    def sides(self) -> tuple[str, ...]:
        """None."""
        return ()

    def around(self, dual: DualEncoder, examples: Mapping[str, Examples]) -> DualEncoder:
        """See the base."""
        del examples
        return dual

    @classmethod
    def by_content(cls, settings: Mapping[str, Any]) -> Mapping[str, object]:
        """One run, whatever others are set to."""
        return dict.fromkeys((key for key in settings if key != "_target_"), None)
