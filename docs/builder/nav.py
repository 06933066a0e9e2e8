"""The order of the site: where each page stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.metrics.catalogue import metric_names
from docs.builder.sources import REPOSITORY, pages

Nav = list[dict[str, object]]

START = tuple(f"docs/{name}.md" for name in ("start", "which_metric", "language_models", "screens"))
GUIDES = (
    *(
        f"docs/{name}.md"
        for name in (
            "data",
            "labels",
            "audit",
            "ci",
            "images",
            "captioners",
            "sweeping",
            "python",
            "integrations",
        )
    ),
    "CONTRIBUTING.md",
)
UNDERSTAND = tuple(
    f"docs/{name}.md"
    for name in (
        "equal_speech",
        "intervals",
        "footguns",
        "limits",
        "counting",
        "dbac",
        "descriptions",
        "pairs",
        "pictures",
        "language",
        "encoders",
        "retrieval",
    )
)
REFERENCE = (
    *(f"docs/{name}.md" for name in ("glossary", "results", "variants", "faults")),
    "SECURITY.md",
    "docs/versions.md",
    "CHANGELOG.md",
    "benchmarks/RESULTS.md",
)


def nav(generated: Sequence[str]) -> Nav:
    """The four tabs of the site, in the order of work, with every page in one of them.

    Args:
        generated: paths of the pages that are made from code.
    """
    known = {*START, *GUIDES, *UNDERSTAND, *REFERENCE, "README.md", *generated}
    here = [str(page) for page in pages()]
    further = [path for path in here if path.startswith("docs/") and path not in known]
    metrics = [f"docs/metrics/{name}.md" for name in metric_names()]
    studies = ["experiments/README.md", "docs/papers.md", "docs/benchmarks.md", *_studies(here)]
    return [
        {
            "Start": [
                "README.md",
                *START,
                {"Tutorials": _entries_under("docs/tutorials", generated)},
            ]
        },
        {"Guides": [*GUIDES, *further]},
        {"Understand": [*UNDERSTAND, {"Studies": studies}]},
        {
            "Reference": [
                {"Metrics": ["docs/metrics.md", *_name_entries(metrics)]},
                "docs/commands.md",
                {"Configuration": _entries_under("docs/configuration", generated)},
                {"Python": _entries_under("docs/python", generated)},
                *REFERENCE,
            ]
        },
    ]


def _name_entries(paths: Sequence[str]) -> list[dict[str, str]]:
    return [{Path(path).stem: path} for path in paths]


def _entries_under(start: str, generated: Sequence[str]) -> list[object]:
    """A page that lists others, and those."""
    first = [path for path in generated if path == f"{start}.md"]
    return [*first, *sorted(path for path in generated if path.startswith(f"{start}/"))]


def _studies(here: Sequence[str]) -> list[object]:
    """Each study with its pages of tables."""
    first = sorted(path for path in here if re.fullmatch(r"experiments/.+/README\.md", path))
    return [{_title(path): [path, *_tables_beside(path, here)]} for path in first]


def _tables_beside(first: str, here: Sequence[str]) -> list[object]:
    folder = Path(first).parent
    tables = [path for path in here if Path(path).parent == folder and path != first]
    return [{_table_title(path): path} for path in tables]


def _title(first: str) -> str:
    """A study's heading."""
    match = re.search(r"(?m)^# (.*)$", (REPOSITORY / first).read_text(encoding="utf-8"))
    assert match, first
    return match[1]


def _table_title(path: str) -> str:
    return "Tables" if path.endswith("RESULTS.md") else Path(path).stem.capitalize()
