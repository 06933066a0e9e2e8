"""The five audits of docs/screens.md print what the page shows."""

import contextlib
import re

import pytest

from tests.screens import print_screen, shown_screens

SCREENS = shown_screens()[1:]  # the first command draws the data
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def test_a_screen_fits_a_terminal():
    lines = [screen.splitlines() for _, screen in SCREENS]
    assert len(lines) == 5
    assert all(1 < len(screen) <= 30 for screen in lines)
    assert max(len(line) for screen in lines for line in screen) <= 80


@pytest.mark.slow
def test_each_command_prints_its_screen(tmp_path):
    """Numbers within a tenth of a point, which another machine may round off."""
    with contextlib.chdir(tmp_path):
        print_screen(shown_screens()[0][0])
        for words, screen in SCREENS:
            text = print_screen(words)
            assert NUMBER.sub("#", " ".join(text.split())) == NUMBER.sub(
                "#", " ".join(screen.split())
            )
            one, other = ([*map(float, NUMBER.findall(each))] for each in (text, screen))
            assert one == pytest.approx(other, abs=0.101)
