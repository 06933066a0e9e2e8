"""Draws pages of ``rate`` and ``browse`` about scenes, on a desk and on a phone, for docs/.

Usage: python -m tests.web.screenshots rate|browse FILE.png
"""

from __future__ import annotations

import base64
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
from tests.web.chromium import Chromium, chromedriver
from tests.web.test_browse_images import computed
from tests.web.test_browser import join

SIZES = {"rate": ((760, 820), (360, 720)), "browse": ((1000, 820), (360, 720))}
_GAP = 20
_LAZY = 2  # seconds until pictures that are loaded late are there


def main(page: str, out: str) -> None:
    with tempfile.TemporaryDirectory() as name, chromedriver() as driver:
        browsers = [Chromium(driver, size) for size in SIZES[page]]
        with {"rate": _rate, "browse": _browse}[page](Path(name), browsers):
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
def _browse(folder: Path, browsers: list[Chromium]) -> Iterator[None]:
    """The images behind a score, with what told attackers."""
    settings = ("metric=lic", "captioner=amplifier", "seeds=2", "logger=[]")
    run = computed(folder, *settings).run_id
    words = ["analysis", "words", *settings, f"paths.outputs={folder}"]
    subprocess.run([sys.executable, "-m", "bias_pipeline", *words], check=True)
    with browsing(folder) as (address, _):
        for browser in browsers:
            browser.open(f"{address}run/{run}/images?word=tie&group=male")
            browser.wait_for_text("attackers read:")
        yield


def _shot(browser: Chromium) -> Image.Image:
    time.sleep(_LAZY)
    picture = browser.picture
    browser.close()
    with Image.open(BytesIO(base64.b64decode(picture))) as opened:
        return opened.convert("RGB")


if __name__ == "__main__":
    main(*sys.argv[1:])
