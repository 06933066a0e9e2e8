"""Pictures of reports for the documentation: on a desktop, on a phone, in the dark.

``python -m experiments.screenshots NAME=REPORT.html ... [--out FOLDER]`` writes, of each report,
``report-NAME-desktop.png``, ``-phone.png`` and ``-dark.png`` to a folder (``docs/images``). They
show the first screen, which has example captions: commit none of real data. It needs Chromium, and
Pillow, which comes with matplotlib.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.browser import Browser, browser

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
COLOURS = 256  # enough for text and lines


@dataclass(frozen=True)
class View:
    """A window.

    Attributes:
        width: in CSS pixels.
        height: likewise.
        dark: which theme.
    """

    width: int
    height: int
    dark: bool = False


VIEWS = {
    "desktop": View(1440, 900),
    "phone": View(390, 844),
    "dark": View(1440, 900, dark=True),
}


def main(arguments: Sequence[str]) -> int:
    """Write all pictures of some reports."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="+", metavar="NAME=REPORT.html")
    parser.add_argument("--out", type=Path, default=IMAGES)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    with browser(600) as opened:
        for name, _, page in (report.partition("=") for report in options.reports):
            for kind, view in VIEWS.items():
                path = options.out / f"report-{name}-{kind}.png"
                path.write_bytes(compress(picture(opened, Path(page), view)))
                print(path, path.stat().st_size)
    return 0


def picture(opened: Browser, page: Path, view: View) -> bytes:
    """The first screen of a page as PNG."""
    opened.show(page, view.width, view.height, view.dark)
    return opened.picture()


def compress(png: bytes) -> bytes:
    """The same picture in few colours."""
    from PIL import Image

    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS)
    buffer = io.BytesIO()
    image.save(buffer, "png", optimize=True)
    return buffer.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
