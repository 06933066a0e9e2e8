"""Pictures of five pages of the site, for CONTRIBUTING.md: on a desktop, on a phone, in the dark.

``python -m docs.builder.pictures`` after ``make docs``. It needs Chromium and Pillow.
"""

from __future__ import annotations

from docs.builder.sources import REPOSITORY
from experiments.browser import browser
from experiments.screenshots import IMAGES, VIEWS, compress, picture

SITE = REPOSITORY / "site"
PAGES = (
    ("home", "index.html", "desktop"),
    ("metric", "docs/metrics/lic.html", "dark"),
    ("papers", "docs/papers.html", "desktop"),
    ("first_hour", "docs/first_hour.html", "phone"),
    ("commands", "docs/commands.html", "phone"),
)


def main() -> None:
    """Write the pictures."""
    for name, page, view in PAGES:
        with browser(120) as opened:  # a new one each: a page remembers the theme of the one before
            path = IMAGES / f"site-{name}-{view}.png"
            path.write_bytes(compress(picture(opened, SITE / page, VIEWS[view])))
            print(path.relative_to(REPOSITORY), path.stat().st_size)


if __name__ == "__main__":
    main()
