"""What do 100, 400 and 1,000 labels by people give back where a machine labelled the photos?

Usage: python -m experiments.gold.study DATA_ROOT

Published captions are scored by LIC's labels, by labels of a machine that errs more often for
women, and by these labels corrected by gold labels of photos drawn at random. It takes some seven
minutes and writes rows.csv.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from bias_pipeline.array_types import IntArray
from bias_pipeline.corpus.corpus import NO_GROUP, UNSURE, Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.metrics.base import Metric, Number, Score
from bias_pipeline.metrics.gold import with_gold
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.run import compose
from experiments.study import lic_data

ROWS = Path(__file__).parent / "rows.csv"
CAPTIONERS = ("oscar", "nic", "sat")
ERRORS = {"male": 0.04, "female": 0.12}  # shares of labels in which the machine is wrong
LABELS = (100, 400, 1000)
DRAWS = 16
NUMBERS = {
    "gender_error": ("score", "group:male", "group:female"),
    "ba_directional": ("t_to_a:named",),
    "lic": ("score", "model"),
    "dbac": ("a_to_t", "a_to_t:shared"),
}
# Attackers learn machine labels, so the target of these is what such attackers know of true groups
ATTACKED = {"lic": ["metric.learning_curve=false"], "dbac": ["metric.positions=1"]}


def by_machine(corpus: Corpus, seed: int = 0) -> Corpus:
    """The corpus as labelled by a machine that errs."""
    grouping = corpus.groupings["gender"]
    shares = np.array([ERRORS[name] for name in grouping.names])
    errs = np.random.default_rng(seed).random(len(corpus)) < shares[grouping.codes]
    codes = np.where(errs & grouping.labelled, 1 - grouping.codes, grouping.codes)
    return replace(corpus, groupings={"gender": replace(grouping, codes=codes)})


def gold_of(corpus: Corpus, rows: IntArray) -> GoldLabels:
    """People's labels of some photos."""
    grouping = corpus.groupings["gender"]
    codes = {corpus.ids[row]: int(grouping.codes[row]) for row in rows.tolist()}
    return GoldLabels(
        file="gold.csv",
        attribute="gender",
        groups={image: grouping.names[code] for image, code in codes.items() if code >= 0},
        unsure=frozenset(image for image, code in codes.items() if code == UNSURE),
        others=frozenset(image for image, code in codes.items() if code == NO_GROUP),
        chances={},
    )


def score_of(metric: Metric, corpus: Corpus) -> Score:
    return metric.compute(corpus, splits=metric.draw_splits(corpus, [0]))


def half_width(number: Number) -> float:
    return (number.ci_high - number.ci_low) / 2


def cell(
    captioner: str, name: str, metric: Metric, people: Corpus, machine: Corpus, draws: int
) -> Iterator[dict[str, object]]:
    """A row for each number and amount of gold labels."""
    score = score_of(metric, machine)
    target = (
        with_gold(score, machine, metric, gold_of(people, np.arange(len(people))))
        if name in ATTACKED
        else score_of(metric, people)
    )
    for n in LABELS:
        corrected = []
        for draw in range(draws):
            rows = np.random.default_rng([n, draw]).choice(len(people), n, replace=False)
            corrected.append(with_gold(score, machine, metric, gold_of(people, rows)))
        for part in NUMBERS[name]:
            fields = vars(next(key for key in score.parts if key == part))
            alone = PartName(**{**fields, "detail": "gold"}) if not fields["detail"] else None
            true = target.parts[alone if name in ATTACKED else part].value
            inside = [s.parts[part].ci_low <= true <= s.parts[part].ci_high for s in corrected]
            widths = [half_width(s.parts[part]) for s in corrected]
            yield {
                "captioner": captioner,
                "metric": name,
                "part": part,
                "labels": n,
                "draws": draws,
                "people": true,
                "machine": score.parts[part].value,
                "machine_half_width": half_width(score.parts[part]),
                "given": int(np.sum(~np.isnan(widths))),
                "contain": int(np.sum(inside)),
                "half_width": float(np.nanmean(widths)),
                "half_width_alone": float(np.mean([half_width(s.parts[alone]) for s in corrected]))
                if alone
                else float("nan"),
            }


def run(data: Path, draws: int = DRAWS) -> pd.DataFrame:
    """The rows of all captioners and metrics."""
    lines: list[dict[str, object]] = []
    for captioner in CAPTIONERS:
        for name in NUMBERS:
            words = [f"metric={name}", f"captioner={captioner}", "stats.resamples=500"]
            composed = compose.cell([*words, *ATTACKED.get(name, []), *lic_data(data)])
            people = composed.corpus()
            metric = composed.build("metric")
            print(captioner, name, flush=True)
            lines += cell(captioner, name, metric, people, by_machine(people), draws)
    return pd.DataFrame(lines)


def main() -> None:
    run(Path(sys.argv[1])).round(5).to_csv(ROWS, index=False)


if __name__ == "__main__":
    main()
