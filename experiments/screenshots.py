"""Pictures of a report for the documentation: light, dark and on a phone.

``python -m experiments.screenshots REPORT.html [FOLDER]`` writes ``report-*.webp`` to a folder
(``docs/images``). It needs Chromium, and Pillow, which matplotlib brings.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.browser import Browser, browser

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
MOST_BYTES = 300_000


@dataclass(frozen=True)
class View:
    """What a picture shows.

    Attributes:
        width: of the window in CSS pixels.
        height: likewise.
        dark: which theme.
        top: CSS selector of what stands on top; empty: the head of the page.
        pointed: whether the pointer is on the lowest point of the first plane.
    """

    width: int
    height: int
    dark: bool = False
    top: str = ""
    pointed: bool = False


PLANE = "section:has(.zoom)"
VIEWS = {
    "light": View(1200, 900),
    "dark": View(1200, 900, dark=True, top=f"{PLANE} h2", pointed=True),
    "phone": View(390, 844, top="section h2"),
    "phone-figure": View(390, 844, top=f"{PLANE} h2"),
}


def main(arguments: Sequence[str]) -> int:
    """Write all pictures of a report."""
    page = Path(arguments[0])
    folder = Path(arguments[1]) if len(arguments) > 1 else IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    with browser() as opened:
        for name, view in VIEWS.items():
            path = folder / f"report-{name}.webp"
            path.write_bytes(compressed(picture(opened, page, view)))
            print(path, path.stat().st_size)
    return 0


def picture(opened: Browser, page: Path, view: View) -> bytes:
    """A view of a page as PNG."""
    opened.show(page, view.width, view.height, view.dark)
    if view.top:
        opened.run(f"document.querySelector('{view.top}').scrollIntoView()")
    if view.top.startswith(PLANE):
        opened.wait_for(f"document.querySelector('{PLANE} .chart svg')")
        opened.run(f"document.querySelector('{view.top}').scrollIntoView()")
    if view.pointed:
        dots = f"[...document.querySelectorAll('{PLANE}')[0].querySelectorAll('.mark-symbol path')]"
        boxes = opened.run(f"{dots}.map(own => own.getBoundingClientRect().toJSON())")
        box = max(boxes, key=lambda own: own["y"])  # what is told hides no other point
        opened.point(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        opened.wait_for("document.querySelector('#vg-tooltip-element.visible')")
    return opened.picture()


def compressed(png: bytes) -> bytes:
    """A picture as WebP: without loss if that is small enough."""
    from PIL import Image

    image = Image.open(io.BytesIO(png)).convert("RGB")
    found = io.BytesIO()
    image.save(found, "webp", lossless=True, method=6)
    if found.tell() > MOST_BYTES:
        found = io.BytesIO()
        image.save(found, "webp", quality=85, method=6)
    return found.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
