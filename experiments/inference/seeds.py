"""How often does a test with few attackers find an effect where there is none?

Usage: python -m experiments.inference.seeds

Scores of attackers are drawn around 0 with a known spread, and images add theirs, the same for all
attackers of a run. The estimate and its p are made as every metric makes them, but for the spread
over images, which is known here. Writes SEEDS.md; some seconds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special

from experiments.study import markdown

PAGE = Path(__file__).resolve().parent / "SEEDS.md"
RUNS = 400_000
SEEDS = (3, 5, 10)
SPREADS = (0.5, 1.0, 2.0, 4.0)  # of attackers, in units of that over images
LEVELS = (0.05, 0.01, 0.001)


def p_values(n_seeds: int, spread: float, runs: int = RUNS) -> np.ndarray:
    """(runs,) p of scores that are only noise, as ``stats.bootstrap.combined_error`` does."""
    random = np.random.default_rng([n_seeds, round(10 * spread)])
    seed_values = spread * random.normal(size=(runs, n_seeds))
    value = seed_values.mean(axis=1) + random.normal(size=runs)
    of_seeds = seed_values.var(axis=1, ddof=1) / n_seeds
    variance = of_seeds + 1.0
    freedom = (n_seeds - 1) * (variance / of_seeds) ** 2
    p: np.ndarray = 2 * special.stdtr(freedom, -np.abs(value) / np.sqrt(variance))
    return p


def table() -> pd.DataFrame:
    """Per cent of runs whose p lies below each level."""
    lines = {}
    for n_seeds in SEEDS:
        for spread in SPREADS:
            p = p_values(n_seeds, spread)
            shares = {f"p < {level}": f"{100 * (p < level).mean():.2f}" for level in LEVELS}
            lines[f"{n_seeds} seeds, attackers {spread:g} times images"] = shares
    return pd.DataFrame(lines).T.rename_axis("spread")


def main() -> None:
    text = "# p with few attackers, where there is nothing to find (per cent)\n\n"
    PAGE.write_text(f"{text}Made by `seeds.py`; do not edit.\n\n{markdown(table())}")


if __name__ == "__main__":
    main()
