"""Where measurements are kept: one section a benchmark in RESULTS.md, with the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
RESULTS = HERE / "RESULTS.md"
PACKAGES = ("bias_pipeline", "hydra-core", "numpy", "scipy", "pandas", "pyarrow")

_HEAD = "# Measured speed\n\nMade by `make bench`; do not edit.\n"


def real_data() -> Path | None:
    """The ``bias_data`` folder of LIC, None where it is absent."""
    root = Path(os.environ.get("BIAS_PIPELINE_DATA", REPOSITORY.parent / "shared" / "data"))
    folder = root / "lic" / "bias_data"
    return folder if folder.is_dir() else None


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


def publish(title: str, command: str, body: str) -> None:
    """Print a section and put it into RESULTS.md in place of its predecessor."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    section = f"## {title}\n\n`{command}` on {day}: {machine()}\n\n{body}"
    print(section)
    known = RESULTS.read_text(encoding="utf-8") if RESULTS.is_file() else _HEAD
    others = [s for s in re.split(r"(?m)^(?=## )", known)[1:] if not s.startswith(f"## {title}\n")]
    parts = sorted(s.rstrip() + "\n" for s in [*others, section])
    RESULTS.write_text(_HEAD + "".join(f"\n{s}" for s in parts), encoding="utf-8")


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = re.findall(r"(?m)^model name\s*: (.*)$", info.read_text()) if info.is_file() else []
    return names[0] if names else platform.processor() or platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
