"""What changes a score: the style of captions, or bias?

Usage: python -m experiments.flatness.study [DATA_ROOT]

With DATA_ROOT (the folder that holds lic/bias_data) everything missing in rows.csv is computed, so
a stopped study resumes. Without it, the tables are made from rows.csv.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.errors import DataError
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.run import compose
from bias_pipeline.run.cell import run_cell
from experiments.flatness.figure import write_figure
from experiments.flatness.speakers import MANNERS, PLANTED, SCENES, People, relabel, sample
from experiments.flatness.tables import write_tables

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows.csv"
N_IMAGES = 3000
# Attackers of single words: pairs of words reveal which captions were rewritten (word pairs are a
# separate line). Three caption positions are enough, and take half the time.
_ATTACK = ("encoder.order=1", "metric.positions=3", "seeds=2")
_LEVEL = ("metric.learning_curve=false",)  # the scores are the same without it
METRICS: Mapping[str, Sequence[str]] = {
    "lic": ("metric=lic", *_LEVEL, *_ATTACK),
    "lic, equal style": ("metric=lic", "alignment=matched", *_LEVEL, *_ATTACK),
    "leakage": ("metric=leakage", *_LEVEL, *_ATTACK),
    "leakage, equal style": ("metric=leakage", "alignment=matched", *_LEVEL, *_ATTACK),
    "lic, word pairs, equal style": (
        "metric=lic", "alignment=matched", *_LEVEL, *_ATTACK[1:], "encoder.order=2",
    ),
    "dbac": ("metric=dbac", *_ATTACK),
    "dbac, equal style": ("metric=dbac", "alignment=matched", *_ATTACK),
    "dpa": ("metric=dpa", "seeds=2"),
    "ba_mals": ("metric=ba_mals",),
    "ba_directional": ("metric=ba_directional",),
    "multi_directional": ("metric=multi_directional",),
    "differential_fairness": ("metric=differential_fairness",),
    "cooccurrence": ("metric=cooccurrence",),
    "gender_error": ("metric=gender_error",),
    "gender_ratio": ("metric=gender_ratio",),
    "group_accuracy": ("metric=group_accuracy",),
}  # fmt: skip
SLOW = ("dbac", "dbac, equal style")  # come last, of fewer speakers
PARTS = (
    *HEADLINES, "named:increase", "captions:increase", "a_to_t:shared", "t_to_a:shared",
    "t_to_a:named",
)  # fmt: skip
REACH = ("matched:reach", "a_to_t:matched:reach", "t_to_a:matched:reach")


def speakers(data: Path) -> Iterator[tuple[str, str, int, Corpus]]:
    """World, style, per cent planted, and the captions."""
    root = f"dataset.root={data / 'lic' / 'bias_data'}"
    cell = compose.cell(["dataset=lic", root, "captioner=sat"])
    attribute = cell.build("attribute")
    chosen = [relabel(record) for record in sample(cell.corpus(), N_IMAGES)]
    people = People(chosen, frozenset(attribute.all_words), attribute.name)
    groups = {attribute.name: (attribute.groups, attribute.labels["lic"])}
    for manner in MANNERS:
        for planted in PLANTED:
            records = list(people.speaking(manner, planted))
            yield (
                "people",
                manner,
                planted,
                Corpus.build(
                    records,
                    dataset="lic",
                    captioner=manner,
                    groups=groups,
                    trained_on_reference=True,
                ),
            )
    for name, dials in SCENES.items():
        dial_words = [f"+dataset.captioners.speaker.{key}={value}" for key, value in dials.items()]
        chosen_dials = dial_words or ["+dataset.captioners.speaker.a_to_t=0"]
        words = [f"dataset.n_images={N_IMAGES}", *chosen_dials, "captioner=speaker"]
        yield "scenes", name, 0, compose.cell(words).corpus()


def run(data: Path, rows: pd.DataFrame) -> pd.DataFrame:
    """All rows; missing ones are computed and stored after each speaker."""
    done = {tuple(key) for key in rows[["world", "speaker", "planted", "metric"]].to_numpy()}
    quick = [name for name in METRICS if name not in SLOW]
    for names in (quick, SLOW):
        for world, manner, planted, corpus in speakers(data):
            if names is SLOW and planted not in (0, 20):
                continue
            lacking = [name for name in names if (world, manner, planted, name) not in done]
            with TemporaryDirectory() as folder:  # attackers of one speaker serve several metrics
                fresh = [
                    {"world": world, "speaker": manner, "planted": planted, "metric": name, **line}
                    for name in lacking
                    for line in _score_rows(name, corpus, Path(folder))
                ]
            if fresh:
                rows = pd.concat([rows, pd.DataFrame(fresh)], ignore_index=True)
                rows.to_csv(ROWS, index=False, float_format="%.6g")
                print(f"{world}: {manner}, {planted} % planted", flush=True)
    return rows


def _score_rows(name: str, corpus: Corpus, folder: Path) -> Iterator[dict[str, object]]:
    cell = compose.cell([*METRICS[name], f"paths.outputs={folder}"])
    try:
        result = run_cell(corpus, cell.build("metric"), cell.seeds, run_id=name)
    except DataError as error:
        print(f"{corpus.captioner}, {name}: {error}", flush=True)
        return
    for row in result.rows:
        if row.part in (*PARTS, *REACH):
            half = (row.ci_high - row.ci_low) / 2
            yield {
                "part": row.part,
                "metric_version": row.metric_version,
                "value": row.value,
                "half_width": half,
                "unit": row.unit,
                "n_images": row.n_images,
            }


def main(arguments: Sequence[str]) -> None:
    """Compute the missing rows, or only make the tables."""
    rows = pd.read_csv(ROWS) if ROWS.is_file() else pd.DataFrame(columns=_COLUMNS)
    if arguments:
        rows = run(Path(arguments[0]), rows)
    write_tables(rows, HERE)
    write_figure(rows, HERE / "flatness.svg")


_COLUMNS = ["world", "speaker", "planted", "metric", "part"]

if __name__ == "__main__":
    main(sys.argv[1:])
