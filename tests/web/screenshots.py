"""Draws the pages of ``rate`` about scenes, on a desk and on a phone, for docs/people.md.

Usage: python -m tests.web.screenshots FILE.png
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image

from tests.cli.test_rate import serving
from tests.web.chromium import Chromium, chromedriver
from tests.web.test_browser import join

SIZES = {"desk": (760, 820), "phone": (360, 720)}
_GAP = 20


def main(out: str) -> None:
    with tempfile.TemporaryDirectory() as name, chromedriver() as driver:
        folder = Path(name)
        draw = ["data", "draw", "--out", str(folder / "drawn"), "--n-images", "12", "--side", "256"]
        subprocess.run([sys.executable, "-m", "bias_pipeline", *draw], check=True)
        words = (str(folder / "drawn" / "images"), "--attribute", "gender")
        with serving(folder, *words) as (address, _):
            shots = [_shot(Chromium(driver, size), address, who) for who, size in SIZES.items()]
    width = sum(shot.width for shot in shots) + _GAP * (len(shots) - 1)
    sheet = Image.new("RGB", (width, max(shot.height for shot in shots)), "#888")
    left = 0
    for shot in shots:
        sheet.paste(shot, (left, 0))
        left += shot.width + _GAP
    sheet.save(out, optimize=True)


def _shot(browser: Chromium, address: str, rater: str) -> Image.Image:
    """The second item's page."""
    join(browser, address, rater)
    browser.press("1")
    browser.wait_for_text("1 of 12 answered")
    browser.run("return document.querySelector('img').decode()")
    picture = browser.picture
    browser.close()
    with Image.open(BytesIO(base64.b64decode(picture))) as opened:
        return opened.convert("RGB")


if __name__ == "__main__":
    main(*sys.argv[1:])
