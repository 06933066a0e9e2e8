"""What a pass of a gate is worth if versions are made until one passes on the same pictures.

Usage: python -m experiments.retried_gates.study

Errors of a baseline and of versions of a captioner on 2,000 pictures are drawn, so the truth is
known. It takes a minute and writes rows.csv.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from bias_pipeline.array_types import Float64Array

HERE = Path(__file__).parent
PICTURES, WRONG, MARGIN = 2_000, 0.05, 0.02
Z = 1.959964
LOOKS = 50


def standardise(difference: Float64Array) -> float:
    """A mean of paired differences in standard errors."""
    error = difference.std(ddof=1) / math.sqrt(len(difference))
    return float(difference.mean() / error) if error else 0.0


def share_of_passes(versions: int, runs: int, rng: np.random.Generator) -> float:
    """Share of runs in which a gate with a margin passes once.

    Every version is wrong by exactly the margin more often than the baseline, so none should.
    """
    passed = 0
    for _ in range(runs):
        baseline = rng.random(PICTURES) < WRONG
        chance = np.where(baseline, 0.5, (WRONG / 2 + MARGIN) / (1 - WRONG))
        passed += any(
            standardise(MARGIN - (rng.random(PICTURES) < chance) + baseline) > Z
            for _ in range(versions)
        )
    return passed / runs


def share_of_claims(keeps: str, runs: int, rng: np.random.Generator) -> tuple[float, float]:
    """Of versions that are exactly as fair as the baseline, one look each at the same pictures.

    Args:
        keeps: what the next version is made from: ``first`` (looks change nothing), ``better``
            (a version whose error seems lower), ``fairer`` (one that is called fairer).

    Returns:
        Share of runs in which some version is called fairer or less fair, and in which the version
        that is kept in the end is called fairer.
    """
    claimed = final = 0
    for _ in range(runs):
        baseline = (rng.random(PICTURES) < WRONG).astype(float)
        current, claim = baseline, False
        for _ in range(LOOKS):
            changed = rng.random(PICTURES) < (0.5 if keeps == "first" else 0.3)
            version = np.where(changed, rng.random(PICTURES) < WRONG, current).astype(float)
            distance = standardise(version - baseline)
            claim |= abs(distance) > Z
            better = keeps == "better" and version.mean() < current.mean()
            if better or (keeps == "fairer" and distance < -Z):
                current = version
        claimed += claim
        final += standardise(current - baseline) < -Z
    return claimed / runs, final / runs


def lines(runs: int = 400) -> Iterator[dict[str, object]]:
    """The rows of the study."""
    rng = np.random.default_rng(0)
    for versions in (1, 5, 20, 50):
        share = share_of_passes(versions, runs, rng)
        yield {"what": "passes a margin once", "who": f"{versions} versions", "share": share}
    for keeps in ("first", "better", "fairer"):
        claimed, final = share_of_claims(keeps, runs // 2, rng)
        yield {"what": f"false claim in {LOOKS} looks", "who": f"keeps {keeps}", "share": claimed}
        if keeps != "first":
            yield {"what": "kept version called fairer", "who": f"keeps {keeps}", "share": final}


def main() -> None:
    """Make rows.csv."""
    table = pd.DataFrame(lines()).round(3)
    table.to_csv(HERE / "rows.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
