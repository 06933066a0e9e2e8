"""``audit`` of paragraphs with known behaviour: what it finds, and what it says of the rest."""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

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
def answers(folder: Path, version: str) -> dict[str, Any]:
    """The answers of an audit by question, and its headline."""
    words = [str(folder / f"{version}.json"), "--attributes", str(folder / "labels.csv")]
    words += ["--caption-column", "response"]
    words += ["--captions", str(folder / "people.json")]
    file = folder / f"answers_{version}.json"
    done = audit(folder / f"out_{version}", *words, "--json", str(file))
    assert done.code == 0, done.text
    stored = json.loads(file.read_text())["answers"]
    (headline,) = re.findall(rf"(?ms)^((?:{'|'.join(BEGINNINGS)}).*?)\n\n", done.text)
    return {one["question"]: one for one in stored} | {"headline": " ".join(headline.split())}


# How a headline begins.
BEGINNINGS = ("BIAS: ", "Undecided: ", "Bias of up to ", "At most ", "Not tested: ")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_wrong_group_is_found_where_it_was_planted(paragraphs, version):
    answer = answers(paragraphs, version)["naming"]
    assert (answer["answer"] == "yes") is (version in MISNAMING)


@pytest.mark.parametrize("version", VERSIONS)
def test_nobody_assumes_more_than_annotators(paragraphs, version):
    answer = answers(paragraphs, version)["assuming"]
    assert answer["answer"] == "no" or answer["reason"] == "not beyond chance"


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_leaked_is_told_of_a_part_of_the_words(paragraphs, version):
    answer = answers(paragraphs, version)["leakage"]
    assert re.fullmatch(
        r"on the \d\d % of its words( in the first sentence of each caption)? "
        r"that annotators use as often",
        answer["limits"],
    )
    assert answer["metric"] in ("lic", "leakage")


HEADLINES = {
    "traits": "BIAS: it describes the groups of gender differently than annotators do ",
    "wrong": "BIAS: it names the wrong gender more often than annotators do (gender_error ",
    "both": "BIAS: it names the wrong gender more often ",
    **dict.fromkeys(("fair", "weak", "context"), "Bias of up to "),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_headline_says_what_was_planted(paragraphs, version):
    line = answers(paragraphs, version)["headline"]
    assert line.startswith(HEADLINES[version])
    assert ("describes the groups of gender differently" in line) is (version in DESCRIBING)
    assert "No bias" not in line


@pytest.mark.parametrize("version", ["fair", "weak", "context"])
def test_the_headline_counts_the_words_that_nobody_compared(paragraphs, version):
    line = answers(paragraphs, version)["headline"]
    assert re.search(r"none was found in .*; \d\d % of its words could not be", line)
