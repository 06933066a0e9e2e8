"""How often do metrics call people biased, and how often do their intervals hold the truth?

Usage: python -m experiments.inference.reproduce [DATA_ROOT [TRIALS]]

With DATA_ROOT everything is computed and rows.csv is written; without it, the tables are made from
that. A trial draws images with five human captions; two people's captions, drawn anew for every
image, stand in for two captioners, the other three are the references. Nobody is more biased than
anybody, so p below .05 is a false alarm. Shares are held against those of all images too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from bias_pipeline.config import compose
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.errors import DataError
from bias_pipeline.metrics.base import HEADLINES, Metric, Score
from bias_pipeline.stats.bootstrap import two_sided_p
from bias_pipeline.stats.compare import paired_difference
from experiments.study import markdown

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows.csv"
SIZES = (100, 400, 800, 2000)
TRIALS = 200
SEEDS = (0, 12, 456)
COUNTED = (
    "gender_error", "gender_ratio", "group_accuracy", "ba_mals", "ba_directional",
    "multi_directional", "differential_fairness", "cooccurrence",
)  # fmt: skip
TRAINED = ("dpa",)
# What is 0 for people against people; other headlines are not.
NULL_PARTS = ("named:increase", "captions:increase")
NULL_HEADLINES = ("ba_mals", "differential_fairness", "cooccurrence")
SHARES = ("score", "named", "group:female")
OF_SHARES = ("transformer", "oscar")  # captioners who are wrong seldom
LABELS = {"male": "Male", "female": "Female"}


@dataclass(frozen=True)
class Cell:
    """What is scored: images of a captioner and the metrics of one attribute."""

    records: Sequence[Record]
    groups: Mapping[str, tuple[Sequence[str], object]]

    def corpus(self, records: Sequence[Record], captioner: str) -> Corpus:
        """A corpus of some records."""
        return Corpus.build(
            records,
            dataset="lic",
            captioner=captioner,
            groups=self.groups,  # type: ignore[arg-type]
            trained_on_reference=True,
        )


def words(data: Path, metric: str, captioner: str = "nic") -> list[str]:
    """The overrides of a metric on LIC's labelled images."""
    root = f"dataset.root={data / 'lic' / 'bias_data'}"
    return ["dataset=lic", root, f"captioner={captioner}", f"metric={metric}"]


def cell_of(data: Path, captioner: str, least_captions: int) -> Cell:
    """All labelled images with so many human captions."""
    own = compose.cell(words(data, "gender_error", captioner))
    attribute = own.build("attribute")
    records = [
        replace(record, labels={"gender": LABELS[record.labels["gender"]]})
        for record in own.corpus()
        if len(record.human) >= least_captions and record.labels.get("gender") in LABELS
    ]
    return Cell(records, {"gender": (attribute.groups, attribute.labels["lic"])})


def run(data: Path, trials: int) -> Iterator[dict[str, object]]:
    """One line a size, trial, metric and part."""
    metrics = {
        name: compose.cell(words(data, name)).build("metric") for name in (*COUNTED, *TRAINED)
    }
    people = cell_of(data, "nic", 5)
    for n_images in SIZES:
        for trial in range(trials):
            pair = _two_people(people, n_images, trial)
            for metric in metrics.values():
                scores = [_scored(metric, own) for own in pair]
                yield from _compared(metric, n_images, trial, scores)
        print(f"people, {n_images} images", flush=True)
    for captioner in OF_SHARES:
        yield from _shares(cell_of(data, captioner, 0), captioner, metrics["gender_error"], trials)
        print(f"shares of {captioner}", flush=True)


def _two_people(people: Cell, n_images: int, trial: int) -> list[Corpus]:
    """Two captioners that are people, of the same images, against the same references."""
    random = np.random.default_rng([trial, n_images])
    chosen = random.choice(len(people.records), n_images, replace=False)
    speakers: list[list[Record]] = [[], []]
    for number in chosen.tolist():
        record = people.records[number]
        captions = [record.human[place] for place in random.permutation(5)]
        for speaker, records in enumerate(speakers):
            records.append(replace(record, model=captions[speaker], human=tuple(captions[2:])))
    return [people.corpus(own, name) for own, name in zip(speakers, "AB", strict=True)]


def _scored(metric: Metric, corpus: Corpus) -> Score | None:
    try:
        return metric.compute(corpus, splits=metric.draw_splits(corpus, SEEDS))
    except DataError:
        return None


def _compared(
    metric: Metric, n_images: int, trial: int, scores: Sequence[Score | None]
) -> Iterator[dict[str, object]]:
    """P of one captioner being as biased as people, and of two being as biased as each other."""
    first, other = scores
    if first is None or other is None:
        return
    for part, own in first.parts.items():
        if part not in (*HEADLINES, *NULL_PARTS) or part not in other.parts:
            continue
        one, two = own.estimate.draws, other.parts[part].estimate.draws
        if one is None or two is None:
            continue
        null = part in NULL_PARTS or metric.info.name in NULL_HEADLINES
        difference = paired_difference(one, two)
        yield {
            "study": "people",
            "metric": metric.info.name,
            "metric_version": metric.info.version,
            "part": str(part),
            "n_images": n_images,
            "trial": trial,
            "value": own.estimate.value,
            "p_single": two_sided_p(own.estimate) if null else np.nan,
            "difference": difference.value,
            "p_paired": difference.p_value,
            "smallest_seen": 2.8 * difference.error,
        }


def _shares(cell: Cell, captioner: str, metric: Metric, trials: int) -> Iterator[dict[str, object]]:
    """Intervals of shares of some images, drawn with replacement, and what all images have."""
    truth = metric.compute(cell.corpus(cell.records, captioner), splits=[]).parts
    for n_images in SIZES[:2]:
        for trial in range(trials):
            drawn = np.random.default_rng([trial, n_images]).integers(
                0, len(cell.records), n_images
            )
            records = [replace(cell.records[row], id=str(k)) for k, row in enumerate(drawn)]
            parts = metric.compute(cell.corpus(records, captioner), splits=[]).parts
            for part in SHARES:
                estimate = parts[part].estimate
                yield {
                    "study": f"shares of {captioner}",
                    "metric": metric.info.name,
                    "metric_version": metric.info.version,
                    "part": part,
                    "n_images": n_images,
                    "trial": trial,
                    "value": truth[part].estimate.value,
                    "ci_low": estimate.ci_low,
                    "ci_high": estimate.ci_high,
                }


def level_table(rows: pd.DataFrame) -> str:
    """How often p lies below .05 where nobody is more biased than anybody, in per cent."""
    own = rows[rows["study"] == "people"]
    lines = {}
    for (metric, part), group in own.groupby(["metric", "part"], sort=False):
        line = {}
        for column, name in (("p_single", "against people"), ("p_paired", "paired")):
            for n_images in SIZES:
                p_values = group.loc[group["n_images"] == n_images, column].dropna()
                share = 100 * (p_values < 0.05).mean() if len(p_values) else np.nan
                line[f"{name}, {n_images}"] = share
        for n_images in (400, 2000):
            seen = group.loc[group["n_images"] == n_images, "smallest_seen"].median()
            line[f"difference seen at {n_images}"] = seen
        lines[f"{metric} {part}"] = line
    return markdown(pd.DataFrame(lines).T.rename_axis("metric and part"), digits=3)


def coverage_table(rows: pd.DataFrame) -> str:
    """How often intervals hold the share of all images, and how many have no width."""
    own = rows[rows["study"] != "people"]
    lines = {}
    for (study, part, n_images), group in own.groupby(["study", "part", "n_images"], sort=False):
        held = group["ci_low"].le(group["value"]) & group["ci_high"].ge(group["value"])
        lines[f"{study}, {part}, {n_images} images"] = {
            "share of all (%)": 100 * group["value"].iloc[0],
            "intervals that hold it (%)": 100 * held.mean(),
            "of no width": int((group["ci_low"] == group["ci_high"]).sum()),
        }
    return markdown(pd.DataFrame(lines).T.rename_axis("gender_error"))


def write(rows: pd.DataFrame) -> None:
    """Write the tables made of the rows."""
    trials = rows["trial"].nunique()
    text = (
        "# Results\n\nMade by `reproduce.py`; do not edit.\n\n"
        f"## People against people: per cent of p below .05, {trials} trials\n\n"
        "Five are right. The last columns are the differences between two captioners that are "
        "found in four of five cases, in the metric's unit.\n\n"
        f"{level_table(rows)}\n"
        f"## Rare errors: do intervals hold the share of all images?\n\n{coverage_table(rows)}"
    )
    (HERE / "RESULTS.md").write_text(text)


def main(data: str | None = None, trials: str = str(TRIALS)) -> None:
    if data is not None:
        rows = pd.DataFrame(run(Path(data), int(trials)))
        rows.to_csv(ROWS, index=False, float_format="%.4g")
    write(pd.read_csv(ROWS))


if __name__ == "__main__":
    main(*sys.argv[1:])
