"""The page ``benchmarks``: ours beside other libraries, from the rows that ``make bench`` keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from benchmarks.peers import REPEATS, peer_rows
from benchmarks.record import RESULTS, table

_SECTION = re.compile(r"(?ms)^## (.*?)\n(.*?)(?=^## |\Z)")
_RUN = re.compile(r"`(python -m [^`]*)` on (\d{4}-\d\d-\d\d)")
_COMMAND = "python -m benchmarks.peers"


@dataclass(frozen=True)
class Ratio:
    """A ratio that a section of RESULTS.md states.

    Attributes:
        section: its heading.
        line: what the line of its table starts with.
        column: the column of the ratio.
        what: was computed, and beside what.
    """

    section: str
    line: str
    column: str
    what: str


RATIOS = (
    Ratio(
        "Neural attackers, 2 cores",
        "**median**",
        "times as fast",
        "LSTM attackers of RELIC's size, beside plain PyTorch",
    ),
    Ratio(
        "Counting metrics beside pandas",
        "numbers alone",
        "times as fast, target 10",
        "four counting metrics of 400,000 captions, beside plain pandas",
    ),
    Ratio(
        "Frozen encoders, one core",
        "**median**",
        "times as fast",
        "vectors of captions by MiniLM, beside sentence-transformers",
    ),
    Ratio(
        "Retrieval",
        "faiss | 100",
        "wall / ours",
        "the 100 nearest of a million embeddings on disk, beside faiss",
    ),
    Ratio(
        "GRIT",
        "released, 8 pictures, with gradients",
        "times as fast",
        "deformable attention with gradients, beside transformers",
    ),
    Ratio(
        "Captions",
        "Qwen2-VL of six small layers",
        "times the loop",
        "captions by a language model of pictures, beside a plain loop",
    ),
)


def benchmarks_page() -> str:
    """The page."""
    rows = peer_rows()
    machines = sorted({row["machine"] for row in rows})
    return "\n".join(
        [
            "# Benchmarks\n",
            "How fast is it beside what else computes the same? Seconds are of CPU on one thread, "
            f"the median of {REPEATS} repeats, both in turn in one process on the same inputs, so "
            "that other work on the machine slows both alike. A ratio above 1 means that we are "
            "faster.\n",
            table(
                ["what", "beside", "its (s)", "ours (s)", "times as fast", "differ by", "load"],
                list(_peers(rows)),
            ),
            "*Times as fast* has the median and, in brackets, the smallest and the largest of the "
            "repeats; *differ by* is the largest difference between the two results; *load* is "
            "that of the machine when it began.\n",
            f"`{_COMMAND}` on {', '.join(sorted({row['day'] for row in rows}))}: "
            f"{' '.join(machines)}\n",
            "## From other benchmarks\n",
            table(
                ["what", "times as fast", "command", "day"], [_ratio_lines(one) for one in RATIOS]
            ),
            "[All measurements](../benchmarks/RESULTS.md), with their targets, were made by `make "
            "bench`.\n",
        ]
    )


def _peers(rows: list[dict[str, str]]) -> Iterator[list[str]]:
    for package in sorted({row["package"] for row in rows}):
        repeats = [row for row in rows if row["package"] == package]
        first, difference = repeats[0], float(repeats[0]["difference"])
        theirs, ours = ([float(row[side]) for row in repeats] for side in ("theirs", "ours"))
        ratios = [one / other for one, other in zip(theirs, ours, strict=True)]
        yield [
            first["what"],
            f"{package} {first['version']}",
            f"{median(theirs):.3f}",
            f"{median(ours):.3f}",
            f"{median(ratios):.1f} [{min(ratios):.1f}, {max(ratios):.1f}]",
            f"{difference:.0e}" if difference else "0",
            first["load"],
        ]


def _ratio_lines(ratio: Ratio) -> list[str]:
    """The ratio as its section has it, with command and day.

    Raises:
        ValueError: if the section has no such number.
    """
    sections = dict(_SECTION.findall(RESULTS.read_text(encoding="utf-8")))
    text = sections.get(ratio.section, "")
    run, header = _RUN.search(text), []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if ratio.column in cells:
            header = cells
        elif header and line.startswith(f"| {ratio.line} "):
            assert run is not None
            return [
                ratio.what,
                cells[header.index(ratio.column)].partition(" (")[0].strip("*"),
                f"`{run[1]}`",
                run[2],
            ]
    raise ValueError(f"RESULTS.md: no {ratio.column!r} of {ratio.line!r} in {ratio.section!r}")
