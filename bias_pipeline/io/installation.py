"""Finds which copy of this package runs, and the versions of Python and of other packages."""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

OLDEST_PYTHON = (3, 11)
PACKAGE = Path(__file__).resolve().parents[1]
# The packages that audit, compare, report, counting metrics and attackers on n-grams import.
_OF_AUDIT = frozenset(
    {
        *("ftfy", "hydra-core", "jinja2", "matplotlib", "numpy", "omegaconf", "pandas", "pillow"),
        *("pyarrow", "rich", "scipy"),
    }
)
# A requirement without a marker, which no extra has
_REQUIREMENT = re.compile(r"^([\w.-]+)[^;]*$")


def check_python() -> None:
    """Refuse a Python that is too old before importing modules that it could not read."""
    if sys.version_info >= OLDEST_PYTHON:
        return
    needed, this = (".".join(map(str, v[:3])) for v in (OLDEST_PYTHON, sys.version_info))
    message = f"bias_pipeline needs Python {needed} or later; this is Python {this}"
    if sys.argv[:1] == ["-m"]:  # its value while ``python -m`` imports a package
        sys.stderr.write(f"error: {message}\n")
        raise SystemExit(5)
    raise ImportError(message)


def requirements() -> list[str]:
    """The packages that the installed package always needs; empty if it is not installed."""
    return [match[1] for line in _requires() if (match := _REQUIREMENT.match(line))]


def requirements_of_audit() -> list[str]:
    """What an audit without networks needs, as lines for ``pip install -r``."""
    lines = [line.partition(";")[0].strip() for line in _requires()]
    named = {line: match[1].lower() for line in lines if (match := _REQUIREMENT.match(line))}
    return sorted(line for line, name in named.items() if name in _OF_AUDIT)


def _requires() -> list[str]:
    """The requirements in the installed package's metadata; empty if it is not installed."""
    try:
        return metadata.requires("bias_pipeline") or []
    except metadata.PackageNotFoundError:
        return []


def versions() -> list[str]:
    """A line for Python and for each package that this package always needs, with its version."""
    return [f"Python {sys.version.split()[0]}", *map(_version, requirements())]


def _version(package: str) -> str:
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return f"{package} is not installed"


def doubts() -> list[str]:
    """Sentences that say why the running copy of this package may not be the expected copy.

    A copy counts as installed if its code lies beside pip's record of it. An editable install puts
    only its record there, without code.
    """
    records = [
        (Path(folder or "."), record.stem.split("-")[1])
        for folder in dict.fromkeys(sys.path)
        for record in Path(folder or ".").glob("bias_pipeline-*.dist-info")
    ]
    copies = [(folder / PACKAGE.name / "__init__.py").resolve() for folder, _ in records]
    others = [copy.parents[1] for copy in copies if copy.is_file() and copy.parent != PACKAGE]
    installed = sorted({version for _, version in records})
    sentences = [
        f"this is bias_pipeline in {PACKAGE.parent}, not the copy installed in {folder}: start "
        "in another folder, or uninstall one of them"
        for folder in others
    ]
    if len(installed) > 1:
        sentences.append(
            f"bias_pipeline is installed in {len(installed)} versions, {' and '.join(installed)}: "
            "run pip uninstall bias_pipeline until none is left, and install one"
        )
    return sentences
