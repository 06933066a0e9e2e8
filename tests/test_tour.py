"""The notebook shows what its cells give."""

from __future__ import annotations

import json
import re

import pytest

from experiments.notebook import executed, shown
from tests.corpora import REPOSITORY

NUMBER = re.compile(r"-?\d+\.\d+")


def test_the_tour_shows_what_it_gives() -> None:
    """Numbers to the last digit, which another machine may round the other way."""
    path = REPOSITORY / "experiments" / "tour.ipynb"
    committed = json.loads(path.read_text(encoding="utf-8"))
    for retained, fresh in zip(shown(committed), shown(executed(committed)), strict=True):
        assert NUMBER.sub("#", retained) == NUMBER.sub("#", fresh)
        numbers = [[float(n) for n in NUMBER.findall(text)] for text in (retained, fresh)]
        assert numbers[0] == pytest.approx(numbers[1], abs=0.0015)
