"""The page ``benchmarks``: ours beside other libraries, from the rows that ``make bench`` keeps."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.peers import REPEATS, peer_rows
from benchmarks.record import PEERS, TOP, table, top_rows

_COMMAND = "python -m benchmarks.peers"


def benchmarks_page() -> str:
    """The page."""
    rows = peer_rows()
    machines = sorted({row["machine"] for row in rows})
    packages = {row["package"] for row in rows}
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
                TOP[PEERS], [row for row in top_rows(PEERS) if row[2].split()[0] not in packages]
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
