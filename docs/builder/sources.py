"""The pages of the repository as sources of the site, at the same paths, so that links stay valid.

What a page links to and is no page itself (a script, a table, a figure) goes with it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PATTERNS = ("*.md", "docs/*.md", "experiments/**/*.md", "benchmarks/*.md")
_FENCED = re.compile(r"(?ms)(^ *```.*?^ *```$)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
# Browsers save a file of an unknown kind; as text they show it.
_SHOWN = {".py", ".yaml", ".csv", ".ipynb", ""}


def pages() -> list[Path]:
    """The Markdown pages of the repository, relative to it."""
    paths = {path for pattern in PATTERNS for path in REPOSITORY.glob(pattern)}
    return sorted(path.relative_to(REPOSITORY) for path in paths)


def stage(folder: Path) -> None:
    """Copy all pages, and the files they link to, into a folder."""
    for page in pages():
        text = (REPOSITORY / page).read_text(encoding="utf-8")
        for file in linked_files(page, text):
            target = folder / place_on_site(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPOSITORY / file, target)
        write(folder / page, with_links(text))


def write(path: Path, text: str) -> None:
    """Write a page, its folder too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def linked_files(page: Path, text: str) -> Iterator[Path]:
    """The files that a page links to and that are no pages, relative to the repository.

    Example:
        >>> [str(path) for path in linked_files(Path("docs/x.md"), "[a](../LICENSE) [b](y.md)")]
        ['LICENSE']
    """
    for target in targets(text):
        path = (REPOSITORY / page.parent / target).resolve()
        if path.suffix != ".md" and path.is_file():
            yield path.relative_to(REPOSITORY)


def targets(text: str) -> Iterator[str]:
    """What the links of a page outside of code lead to in the repository, without anchors."""
    for target in _LINK.findall(_FENCED.sub("", text)):
        path = target.partition("#")[0]
        if path and "://" not in path:
            yield path


def place_on_site(path: Path) -> Path:
    """Where a linked file is on the site: scripts and tables as text.

    Example:
        >>> str(place_on_site(Path("a/b.py"))), str(place_on_site(Path("c.svg")))
        ('a/b.py.txt', 'c.svg')
    """
    return path.with_name(f"{path.name}.txt") if path.suffix in _SHOWN else path


def with_links(text: str) -> str:
    """A page whose links to scripts and tables lead to where :func:`place_on_site` puts them.

    Example:
        >>> with_links("[a](x.py#L3) [b](y.md#z)")
        '[a](x.py.txt) [b](y.md#z)'
    """
    parts = _FENCED.split(text)
    parts[::2] = [_LINK.sub(_link, part) for part in parts[::2]]
    return "".join(parts)


def _link(match: re.Match[str]) -> str:
    path, _, _ = match[1].partition("#")
    if not path or "://" in path or Path(path).suffix not in _SHOWN:
        return match[0]
    return f"]({place_on_site(Path(path))})"
