"""``anonymous`` from pictures to what is kept, answered in a real browser."""

import shlex
import shutil

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.io.files import read_csv
from tests.cli.test_rate import serving
from tests.people.web.chromium import SLOW_IN_CHROMIUM
from tests.people.web.test_browser import PHONE, browse, driver, join

__all__ = ["browse", "driver"]  # fixtures
pytestmark = SLOW_IN_CHROMIUM


def printed_words(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The options of the printed ``rate``, without its folder, which ``serving`` chooses."""
    words = shlex.split(capfd.readouterr().out.splitlines()[-1])
    place = words.index("--out")
    return words[words.index("rate") + 1 : place] + words[place + 2 :]


def test_pictures_are_kept_by_keys(browse, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    build = ["anonymous", "build", "--scenes", "--out", "a", "dataset.n_images=3"]
    assert main(build) == main(["anonymous", "filter", "a"]) == 0
    browser = browse()
    with serving(tmp_path, *printed_words(capfd)) as (address, _):
        join(browser, address, "anna")
        assert "no person" in browser.text
        for number, key in enumerate("313", 1):  # cannot tell, can tell, cannot tell
            browser.press(key)
            browser.wait_for_text("Thank you" if number == 3 else f"{number} of 3 answered")
    shutil.copytree("out", "a/filter")
    assert main(["anonymous", "filter", "a"]) == 0
    assert len(read_csv((tmp_path / "a" / "kept.csv").read_text())) == 2


def test_captions_are_rated_on_a_phone(browse, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    build = ["anonymous", "build", "--scenes", "--out", "a", "dataset.n_images=3"]
    assert main(build) == main(["anonymous", "score", "a"]) == 0
    words = shlex.split(capfd.readouterr().out.splitlines()[-2])  # of the last captioner
    browser = browse(PHONE)
    with serving(tmp_path, *words[words.index("rate") + 1 : -2]) as (address, _):
        join(browser, address, "anna")
        for number, value in enumerate(("female", "Unsure", "male"), 1):
            browser.click(f"button[value={value}]")
            browser.wait_for_text("Thank you" if number == 3 else f"{number} of 3 answered")
    shutil.copy("out/answers.csv", words[-1])
    assert main(["anonymous", "score", "a"]) == 0
    lines = read_csv((tmp_path / "a" / "scores.csv").read_text())
    assert {line["part"]: line["value"] for line in lines}["gt"] == str(2 / 3)
