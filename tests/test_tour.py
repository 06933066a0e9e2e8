"""The notebooks show what their cells give."""

import json
import re

import pytest

from experiments.notebook import cell_outputs, execute
from tests.corpora import REPOSITORY

NUMBER = re.compile(r"-?\d+\.\d+")


@pytest.mark.slow  # all its cells
def test_the_tour_shows_what_it_gives():
    """Numbers to the last digit, which another machine may round the other way."""
    path = REPOSITORY / "experiments" / "tour.ipynb"
    committed = json.loads(path.read_text(encoding="utf-8"))
    for retained, fresh in zip(
        cell_outputs(committed), cell_outputs(execute(committed)), strict=True
    ):
        assert NUMBER.sub("#", retained) == NUMBER.sub("#", fresh)
        numbers = [[float(n) for n in NUMBER.findall(text)] for text in (retained, fresh)]
        assert numbers[0] == pytest.approx(numbers[1], abs=0.0015)


@pytest.mark.slow  # two networks are trained
def test_the_notebook_on_retrieval_shows_what_it_gives():
    """Trained networks differ a little between processors, what is known of them does not."""
    path = REPOSITORY / "experiments" / "retrieval.ipynb"
    committed = json.loads(path.read_text(encoding="utf-8"))
    fresh = execute(committed)
    kinds = [
        [sorted(output["data"]) for cell in notebook["cells"] for output in cell.get("outputs", ())]
        for notebook in (committed, fresh)
    ]
    assert kinds[0] == kinds[1]
    for notebook in (committed, fresh):
        text = "\n".join(cell_outputs(notebook))
        plain, biased = _numbers(text, "score")
        assert biased < plain - 0.1
        assert _numbers(text, "mean_difference")[0] > _numbers(text, "none")[0] + 0.3


def _numbers(text: str, line: str) -> list[float]:
    """The numbers of the first line of a table that begins with a word."""
    match = re.search(rf"(?m)^{line} .*$", text)
    assert match
    return [float(number) for number in NUMBER.findall(match[0])]
