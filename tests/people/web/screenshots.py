"""Draws pages of ``rate``, ``anonymous`` and ``browse`` about scenes, for docs/.

Usage: python -m tests.people.web.screenshots rate|filter|captions|browse FILE.png

Each is drawn on a desk and on a phone.
"""

import base64
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image

from tests.cli.test_browse import browsing
from tests.cli.test_rate import serving
from tests.people.web.chromium import Chromium, chromedriver
from tests.people.web.test_browse_images import compute_run
from tests.people.web.test_browser import join

_OF_QUESTIONS = ((760, 820), (360, 720))
SIZES = {
    **dict.fromkeys(("rate", "filter"), _OF_QUESTIONS),
    "captions": ((760, 560), (360, 720)),
    "browse": ((1000, 820), (360, 720)),
}
_GAP = 20
_LAZY = 2  # seconds until pictures that are loaded late are there


def main(page: str, out: str) -> None:
    with tempfile.TemporaryDirectory() as name, chromedriver() as driver:
        browsers = [Chromium(driver, size) for size in SIZES[page]]
        with _PAGES[page](Path(name), browsers):
            shots = [_shot(browser) for browser in browsers]
    width = sum(shot.width for shot in shots) + _GAP * (len(shots) - 1)
    sheet = Image.new("RGB", (width, max(shot.height for shot in shots)), "#888")
    left = 0
    for shot in shots:
        sheet.paste(shot, (left, 0))
        left += shot.width + _GAP
    sheet.save(out, optimize=True)


@contextmanager
def _rate(folder: Path, browsers: list[Chromium]) -> Iterator[None]:
    """The second item's page."""
    draw = ["data", "draw", "--out", str(folder / "drawn"), "--n-images", "12", "--side", "256"]
    subprocess.run([sys.executable, "-m", "bias_pipeline", *draw], check=True)
    words = (str(folder / "drawn" / "images"), "--attribute", "gender")
    with serving(folder, *words) as (address, _):
        for browser, rater in zip(browsers, ("desk", "phone"), strict=True):
            join(browser, address, rater)
            browser.press("1")
            browser.wait_for_text("1 of 12 answered")
        yield


@contextmanager
def _filter(folder: Path, browsers: list[Chromium]) -> Iterator[None]:
    """The two questions about a picture in which nobody can tell."""
    asks = _anonymous(folder, "filter")[-1]
    yield from _second_item(folder, asks, browsers, n_items=12)


@contextmanager
def _captions(folder: Path, browsers: list[Chromium]) -> Iterator[None]:
    """A caption that may assume a group."""
    asks = next(line for line in _anonymous(folder, "score") if "assumes" in line)
    yield from _second_item(folder, asks, browsers, n_items=12)


def _anonymous(folder: Path, step: str) -> list[str]:
    """The lines that a step prints about twelve people without marks."""
    words = ["dataset.n_images=12", "+dataset.captioners.assumes.t_to_a=0.9", "--side", "256"]
    build = ["build", "--scenes", "--out", "anonymous", *words]
    for command in (build, [step, "anonymous"]):
        done = subprocess.run(
            [sys.executable, "-m", "bias_pipeline", "anonymous", *command],
            check=True, cwd=folder, capture_output=True, text=True,
        )  # fmt: skip
    return done.stdout.splitlines()


def _second_item(folder: Path, asks: str, browsers: list[Chromium], n_items: int) -> Iterator[None]:
    """The second item of the study that a printed command starts."""
    words = shlex.split(asks)
    place = words.index("--out")
    options = words[words.index("rate") + 1 : place] + words[place + 2 :]
    with serving(folder, *options) as (address, _):
        for browser, rater in zip(browsers, ("desk", "phone"), strict=True):
            join(browser, address, rater)
            browser.press("3")
            browser.wait_for_text(f"1 of {n_items} answered")
        yield


@contextmanager
def _browse(folder: Path, browsers: list[Chromium]) -> Iterator[None]:
    """The images behind a score, with what told attackers."""
    settings = ("metric=lic", "captioner=amplifier", "seeds=2", "logger=[]")
    run = compute_run(folder, *settings).run_id
    words = ["analysis", "words", *settings, f"paths.outputs={folder}"]
    subprocess.run([sys.executable, "-m", "bias_pipeline", *words], check=True)
    with browsing(folder) as (address, _):
        for browser in browsers:
            browser.go_to(f"{address}run/{run}/images?word=tie&group=male")
            browser.wait_for_text("attackers read:")
        yield


_PAGES = {"rate": _rate, "filter": _filter, "captions": _captions, "browse": _browse}


def _shot(browser: Chromium) -> Image.Image:
    time.sleep(_LAZY)
    picture = browser.picture
    browser.close()
    with Image.open(BytesIO(base64.b64decode(picture))) as opened:
        return opened.convert("RGB")


if __name__ == "__main__":
    main(*sys.argv[1:])
