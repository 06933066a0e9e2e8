"""``audit`` of paragraphs with known behaviour: what it finds, and what it says of the rest."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.cli.test_audit import audit
from tests.corpora import DATA

pytestmark = [pytest.mark.real, pytest.mark.slow]

VERSIONS = ("fair", "traits", "weak", "context", "wrong", "both")
MISNAMING, DESCRIBING = {"wrong", "both"}, {"traits", "both"}


@pytest.fixture(scope="module")
def paragraphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,500 paragraphs of each version, and three of people's five captions of their images."""
    script = DATA.parent / "speakers" / "paragraphs.py"
    if not script.is_file():
        pytest.skip(f"no speakers at {script}")
    folder = tmp_path_factory.mktemp("paragraphs")
    command = [sys.executable, str(script), str(DATA), str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


@cache
def answers(folder: Path, version: str, annotated: bool = True) -> dict[str, str]:
    """The lines of an audit by how they begin, and its headline."""
    words = [str(folder / f"{version}.json"), "--attributes", str(folder / "labels.csv")]
    words += ["--caption-column", "response"]
    words += ["--captions", str(folder / "people.json")] if annotated else []
    done = audit(folder / f"out_{version}_{annotated}", *words)
    assert done.code == 0, done.text
    lines = done.text.rpartition("\n\n")[2].splitlines()
    questions = {question: rest for line in lines for question, _, rest in [line.partition("? ")]}
    first = next(number for number, line in enumerate(lines) if line.startswith("Does it "))
    return {**questions, "headline": " ".join(lines[:first])}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_wrong_group_is_found_where_it_was_planted(paragraphs, version):
    line = answers(paragraphs, version)["Does it name the wrong group"]
    expected = "Yes, beyond chance: " if version in MISNAMING else "Not beyond chance on gender"
    assert line.startswith(expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_other_descriptions_are_found_where_they_were_planted(paragraphs, version):
    line = answers(paragraphs, version)["Does it describe the groups differently"]
    expected = "Yes, beyond chance: " if version in DESCRIBING else "Not beyond chance on gender"
    assert line.startswith(expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_nobody_assumes_more_than_annotators(paragraphs, version):
    line = answers(paragraphs, version)["Does it assume what nobody can see"]
    assert line.startswith("Not beyond chance on gender")


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_given_away_is_told_of_a_part_of_the_words(paragraphs, version):
    line = answers(paragraphs, version)["Does it leak the group"]
    assert re.search(
        r"On the \d\d % of its words that annotators use as often: lic matched_both", line
    )
    assert "those that describe persons are tested below" in line


HEADLINES = {
    "traits": "BIAS: it describes male and female differently than annotators do: ",
    "wrong": "BIAS: it names the wrong gender: male in 6.1 %, female in 16.3 % of the captions",
    "both": "BIAS: it names the wrong gender: ",
    **dict.fromkeys(
        ("fair", "weak", "context"), "Not found in naming, assuming and describing: up to "
    ),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_headline_says_what_was_planted(paragraphs, version):
    line = answers(paragraphs, version)["headline"]
    assert line.startswith(HEADLINES[version])
    assert ("describes male and female differently" in line) is (version in DESCRIBING)
    assert "No bias" not in line


@pytest.mark.parametrize("version", ["fair", "weak", "context"])
def test_the_headline_counts_the_words_that_nobody_compared(paragraphs, version):
    line = answers(paragraphs, version)["headline"]
    assert re.search(r"\d of 100 captions are possible; \d\d % of its words could not be", line)


def test_without_annotators_no_difference_is_called_a_bias(paragraphs):
    line = answers(paragraphs, "traits", annotated=False)["headline"]
    assert line.startswith(
        "Cannot tell without annotators' captions: whether it names the wrong gender and "
    )
    assert "how it describes people (without annotators' captions" in line
    assert "Without annotators' captions we cannot tell whether pictures and habit" in line
