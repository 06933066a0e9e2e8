"""ImageCaptioner2's Table 3 with all our metrics: do they agree on captioners?

Usage: python -m experiments.metric_comparison.study [DATA_ROOT [OUTPUTS]]

With DATA_ROOT all cells are run and rows.csv is written; without it, tables and figures are made
from the rows.csv that is there.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from bias_pipeline.corpus.attribute import LabelMap
from bias_pipeline.corpus.corpus import Corpus, Record
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from experiments.metric_comparison.figures import agreement_figure, mentions_figure
from experiments.metric_comparison.tables import table_texts
from experiments.study import (
    HOLD_OUT,
    HOLD_OUT_TASKS,
    lic_data,
    rows_of,
    sweep,
    write_results,
)

HERE = Path(__file__).resolve().parent
# nic is the th10 file; the published Ratio and Error fit only st10.
CAPTIONERS = ("all", "nic_st10")
# dbac at ten seeds would take four times as long as all the rest together.
STUDIES = {
    "attackers": ["metric=lic,leakage", "seeds=10", *HOLD_OUT],
    "dpa": ["metric=dpa", "seeds=10", *HOLD_OUT_TASKS],
    "dbac": ["metric=dbac", "seeds=3", *HOLD_OUT_TASKS],
    "counting": [
        "metric=gender_ratio,gender_error,group_accuracy,ba_mals,ba_directional,cooccurrence,"
        "differential_fairness,quality"
    ],
    "ba union": ["metric=ba_directional", "metric.labels=union"],
    "ba each": ["metric=ba_directional", "metric.labels=each"],
}
PARTS = (
    "score|model|human|a_to_t|t_to_a|mentions:.*|gap.*|group:[a-z]+|bleu_.*|(model|human):paired"
)


def run(data: Path, outputs: Path) -> pd.DataFrame:
    common = [*lic_data(data), "encoder=ngram"]
    frames = []
    for name, words in STUDIES.items():
        for captioner in CAPTIONERS:
            arguments = [*words, f"captioner={captioner}", *common, "logger=csv"]
            if name in ("counting", "ba union", "ba each"):
                arguments.remove("encoder=ngram")
            frames.append(sweep(name, outputs, *arguments))
    frames.append(people(common))
    rows = pd.concat(frames, ignore_index=True)
    return rows[rows["part"].str.fullmatch(PARTS)]


def people(common: list[str]) -> pd.DataFrame:
    """BA-> of human captions: the first one of an image, the first two together, ...

    The people are the same, so only the amount of text differs.
    """
    cell = compose.cell([*common, "metric=ba_directional", "captioner=sat"])
    corpus, metric = cell.corpus(), cell.build("metric")
    lines = []
    for count in range(1, 6):
        joined = _join_captions(corpus, count)
        result = run_cell(joined, metric, (), run_id=f"people-{count}")
        lines += [asdict(row) for row in result.rows]
    return pd.DataFrame(lines).assign(study="people")


def _join_captions(corpus: Corpus, count: int) -> Corpus:
    """The images that people described, with their first captions as the captioner's."""
    grouping = corpus.groupings["gender"]
    same = LabelMap("gender", {name: name for name in grouping.names})
    records = [
        Record(r.id, " ".join(r.human[:count]), r.human, dict(r.labels), r.objects)
        for r in corpus
        if len(r.human) >= 5
    ]
    return Corpus.build(
        records,
        dataset=corpus.dataset,
        captioner=f"people, {count} caption{'s' if count > 1 else ''}",
        groups={"gender": (grouping.names, same)},
        trained_on_reference=True,
    )


def publish(rows: pd.DataFrame) -> None:
    """Write tables and figures."""
    write_results(HERE, table_texts(rows))
    mentions_figure(rows, HERE / "mentions.svg")
    agreement_figure(rows, HERE / "agreement.svg")


if __name__ == "__main__":
    publish(rows_of(HERE, run, sys.argv[1:]))
