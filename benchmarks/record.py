"""Where measurements are kept: one section a benchmark in RESULTS.md, with the machine.

On top are two tables: ours beside others, and the bars of speed. Each benchmark publishes its own
rows of them. A row replaces the row that begins alike.

Usage: python -m benchmarks.record

This begins anew: it leaves only what was measured on a GPU.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
RESULTS = HERE / "RESULTS.md"
PACKAGES = ("bias_pipeline", "hydra-core", "numpy", "scipy", "pandas", "pyarrow")

_HEAD = (
    "# Measured speed\n\nMade by `make bench`; do not edit. Sections that begin with *A GPU* are "
    "kept from the machine that they name.\n"
)
PEERS, BARS = "Beside others", "Bars"
TOP = {
    PEERS: ("what", "ours", "the other", "its", "times as fast", "limit"),
    BARS: ("what", "before", "now", "now to before", "bar", "verdict"),
}
_ABOUT_BARS = (
    "*Before* is commit 1baf1bbf, measured in turn with ours in the same run on the same machine; "
    "where it was not, the column is empty and the bar is the number itself.\n"
)
Rows = Sequence[Sequence[str]]


def real_data() -> Path | None:
    """The ``bias_data`` folder of LIC, None where it is absent."""
    root = Path(os.environ.get("BIAS_PIPELINE_DATA", REPOSITORY.parent / "shared" / "data"))
    folder = root / "lic" / "bias_data"
    return folder.resolve() if folder.is_dir() else None


def machine() -> str:
    """CPU, cores, system and versions, as one sentence each."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return (
        f"{_cpu()}, {os.cpu_count()} cores, {_memory_gb():.0f} GB, {platform.system()} "
        f"{platform.release()}. Python {platform.python_version()}, {versions}."
    )


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    ruled = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in ruled) + "\n"


def met(yes: bool) -> str:
    """A verdict in a word."""
    return "met" if yes else "missed"


def beside(
    what: str, ours: str, other: str, its: str, times: float, at_least: float = 1.0
) -> list[str]:
    """A row of the table of others, with how many times as fast ours is, and is to be."""
    limit = f"{at_least:g} ({met(times >= at_least)})"
    return [what, ours, other, its, f"{times:.2f}", limit]


def publish(title: str, command: str, body: str, peers: Rows = (), bars: Rows = ()) -> None:
    """Print a section and put it into RESULTS.md in place of its predecessor.

    ``peers`` and ``bars`` are rows of the tables on top, with the columns of ``TOP``.
    """
    day = time.strftime("%Y-%m-%d", time.gmtime())
    section = f"## {title}\n\n`{command}` on {day}: {machine()}\n\n{body}"
    print(section, *map(" | ".join, [*peers, *bars]), sep="\n")
    sections = {**_sections(), title: section}
    for name, rows in ((PEERS, peers), (BARS, bars)):
        merged = {line[0]: line for line in [*top_rows(name), *rows]}
        if merged:
            note = f"\n{_ABOUT_BARS}" if name == BARS else ""
            sections[name] = f"## {name}\n\n{table(TOP[name], list(merged.values()))}{note}"
    _write(sections)


def top_rows(name: str) -> Rows:
    """The rows of a table on top of RESULTS.md."""
    lines = [one for one in _sections().get(name, "").splitlines() if one.startswith("| ")]
    return [line[2:-2].split(" | ") for line in lines[2:]]


def begin_anew() -> None:
    """Leave the sections that were measured on a GPU."""
    _write({title: text for title, text in _sections().items() if title.startswith("A GPU")})


def _sections() -> dict[str, str]:
    """Title to text."""
    known = RESULTS.read_text(encoding="utf-8") if RESULTS.is_file() else ""
    texts = re.split(r"(?m)^(?=## )", known)[1:]
    return {text.partition("\n")[0][len("## ") :]: text for text in texts}


def _write(sections: Mapping[str, str]) -> None:
    titles = sorted(sections, key=lambda title: (title not in TOP, title not in PEERS, title))
    text = "".join(f"\n{sections[title].rstrip()}\n" for title in titles)
    RESULTS.write_text(_HEAD + text, encoding="utf-8")


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = re.findall(r"(?m)^model name\s*: (.*)$", info.read_text()) if info.is_file() else []
    return names[0] if names else platform.processor() or platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


if __name__ == "__main__":
    begin_anew()
