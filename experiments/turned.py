"""What turning one dial of a planted captioner does to scores, for studies that ask it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from bias_pipeline.report.content import finished_runs
from bias_pipeline.stats.compare import paired_difference
from experiments.study import markdown

Turned = Mapping[str, tuple[str, float]]  # captioner to the dial that is turned, and how far


def overrides(turned: Turned, **others: float) -> list[str]:
    """The settings that make these captioners; ``others`` are dials that all of them share."""
    return [
        f"+dataset.captioners.{name}.{key}={value}"
        for name, (dial, at) in turned.items()
        for key, value in {**others, dial: at}.items()
    ]


def changes(rows: pd.DataFrame, outputs: Path, base: str, turned: Turned) -> pd.DataFrame:
    """What turning a dial does to each study's score, image by image and seed by seed.

    Args:
        rows: of all studies, with ``study``, ``captioner``, ``part`` and ``run_id``.
        outputs: where their runs are.
        base: the captioner whose dials are not turned.
        turned: the others.
    """
    draws = finished_runs(outputs)[1]
    scored = rows[rows["part"] == "score"].set_index(["study", "captioner"])["run_id"]
    lines = []
    for study in rows["study"].unique():
        for name, (dial, at) in turned.items():
            one, other = (draws[scored[study, own]]["score"] for own in (name, base))
            change = paired_difference(one, other)
            ends = {"value": change.value, "low": change.ci_low, "high": change.ci_high}
            lines.append({"study": study, "dial": dial, "at": at, **ends, "p": change.p_value})
    return pd.DataFrame(lines)


def change_table(found: pd.DataFrame, studies: Sequence[str]) -> str:
    """A dial turned less not turned, in points, with 95 % intervals and p."""
    ends = (100 * found[key] for key in ("value", "low", "high"))
    table = found.assign(
        cell=[
            f"{v:+.1f} [{a:+.1f}, {b:+.1f}], p {p:.4f}"
            for v, a, b, p in zip(*ends, found["p"], strict=True)
        ]
    ).pivot_table(index=["dial", "at"], columns="study", values="cell", aggfunc="first", sort=False)
    return markdown(table[list(studies)].reset_index().set_index("dial"))
