"""What an installation costs: seconds and megabytes of the wheel alone and with its extras.

Usage: python -m benchmarks.install
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks.record import publish, table
from tests.environments import CONSTRAINTS, build, environment

EXTRAS = ("", "[all]")


def measure(wheel: Path, extra: str, folder: Path) -> list[str]:
    """A line of the table: what pip adds to a new environment, and how long it takes."""
    env = environment(folder)
    empty = env.megabytes
    seconds = env.install(*CONSTRAINTS, f"{wheel}{extra}")
    packages = env.run(["python", "-m", "pip", "list", "--format=freeze"], folder).text
    n_packages = packages.count("==") - 2  # pip and setuptools were there before
    return [
        f"`bias_pipeline{extra}`",
        str(n_packages),
        f"{env.megabytes - empty:,.0f}",
        f"{seconds:.0f}",
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, wheel = build(folder / "dist")
        lines = [measure(wheel, extra, folder / str(n)) for n, extra in enumerate(EXTRAS)]
        size = wheel.stat().st_size / 1e6
    body = table(["what", "packages", "on disk (MB)", "pip (s)"], lines)
    torch = "the build for CPUs" if CONSTRAINTS else "that of the index"
    load = f"a load of {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores"
    body += (
        f"\nThe wheel has {size:.1f} MB. PyTorch is {torch}. What is in pip's cache is not "
        f"downloaded again. One installation each, at {load}.\n"
    )
    publish("Installation", "python -m benchmarks.install", body)


if __name__ == "__main__":
    main()
