"""How much LIC and DBAC depend on the attacker, on real captioners: our own runs.

Usage: python -m experiments.encoder_sensitivity.study [DATA_ROOT [OUTPUTS]]

With DATA_ROOT the sweeps are run, and after each rows.csv is written from all that is finished, so
a stopped study keeps its results and resumes. Without it, RESULTS.md is made from the rows that
are there. MPNet must be at DATA_ROOT/models.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from bias_pipeline.report.page import finished_runs
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.stats.bootstrap import Interval
from bias_pipeline.studies.attacker_agreement import (
    OVER,
    Sensitivity,
    Variants,
    agreements,
    reduction,
    sensitivity,
    variants,
)
from experiments.encoder_sensitivity.tables import AGREEMENTS, tables
from experiments.study import (
    HOLD_OUT,
    HOLD_OUT_TASKS,
    attempt,
    lic_data,
    read_rows,
    write_results,
)

Line = dict[str, object]

HERE = Path(__file__).resolve().parent
# One human caption an image and three seeds: networks that embed and learn are slow on a processor.
CHEAPER = ("seeds=3", "metric.positions=1", "logger=csv")
THREE = "captioner=sat,transformer,oscar"
ALL = "captioner=all"
SCRATCH = ("lstm", "rnn", "transformer1", "bilstm", "birnn", "transformer5")
# Which attackers are compared with each other.
FAMILIES = {
    "words and MiniLM": ("ngram", "minilm", "minilm mlp3"),
    "words and MiniLM, one head": ("ngram", "minilm mlp3"),
    "from scratch": tuple(f"{name} mlp3" for name in SCRATCH),
    "words, MiniLM, from scratch": ("ngram", *(f"{n} mlp3" for n in ("minilm", *SCRATCH))),
    "pre-trained": ("minilm mlp3", "mpnet mlp3"),
}
PARTS = ("score", "model:paired", "human:paired", "a_to_t", "t_to_a")
COLUMNS = [
    "attackers", "attribute", "metric", "metric_version", "part", "captioner", "value", "ci_low",
    "ci_high",
]  # fmt: skip
FEWEST = 3  # captioners of a setting, without which it is not told
MPNET = "models/all-mpnet-base-v2"


def plan(data: Path) -> Iterator[list[str]]:
    """The overrides of every sweep."""
    for attribute in ("gender", "race"):
        for metric in ("lic", "dbac"):
            split = HOLD_OUT if metric == "lic" else HOLD_OUT_TASKS
            words = [ALL, f"attribute={attribute}", f"metric={metric}", *split]
            yield [*words, "encoder=ngram"]
            yield [*words, "encoder=minilm"]
            yield [*words, "encoder=minilm", "probe=convex"]
    for encoder in SCRATCH:
        for attribute in ("gender", "race"):
            words = [f"attribute={attribute}", f"encoder={encoder}"]
            yield [ALL, "metric=lic", *HOLD_OUT, *words]
            yield [THREE, "metric=dbac", *HOLD_OUT_TASKS, *words]
    model = f"encoder.model={data / MPNET}"
    yield [ALL, "attribute=gender", "metric=lic", *HOLD_OUT, "encoder=mpnet", model]


def run(data: Path, outputs: Path) -> None:
    """Run every sweep, and store the finished rows after each."""
    common = [*CHEAPER, *lic_data(data)]
    for words in plan(data):
        attempt(" ".join(words), outputs, *words, *common)
        collect(outputs)


def collect(outputs: Path) -> None:
    """Write rows.csv from the finished runs of a folder: scores, and the analyses of them."""
    results, draws = finished_runs(outputs)
    lines = [line for result in results for line in _scores(result)]
    for family, of_family in _families(results).items():
        ran = {_attacker(result.rows[0]) for result in of_family}
        complete = [
            one for one in variants(of_family, draws, OVER) if len(one.variants) == len(ran)
        ]
        lines += [
            {"attackers": family, **line}
            for scores in complete
            for line in _analyse(scores, complete)
        ]
    rows = pd.DataFrame(lines).dropna(subset="value")
    versions = {row.metric: row.metric_version for result in results for row in result.rows}
    rows["metric_version"] = rows["metric"].map(versions)
    rows = rows[COLUMNS]
    setting = ["attackers", "attribute", "metric", "part"]
    compared = rows.groupby(setting)["captioner"].transform("size") >= FEWEST
    rows = rows[compared | ~rows["part"].isin(PARTS)]
    rows.to_csv(HERE / "rows.csv", index=False, float_format="%.5g")


def _families(results: Sequence[Result]) -> dict[str, list[Result]]:
    """The runs of each family; a family with the same attackers as an earlier one is left out."""
    families: dict[frozenset[str], tuple[str, list[Result]]] = {}
    for family, attackers in FAMILIES.items():
        of_family = [result for result in results if _attacker(result.rows[0]) in attackers]
        there = frozenset(_attacker(result.rows[0]) for result in of_family)
        families.setdefault(there, (family, of_family))
    return dict(families.values())


def _scores(result: Result) -> Iterator[Line]:
    """The headlines and sides of a run."""
    for row in result.rows:
        if row.part in PARTS:
            numbers = Interval(row.value, row.ci_low, row.ci_high)
            line = _line(row.attribute, row.metric, row.part, row.captioner, numbers)
            yield {"attackers": _attacker(row), **line}


def _attacker(row: Row) -> str:
    return " ".join(filter(None, (row.encoder, row.head)))


def _analyse(scores: Variants, others: Sequence[Variants]) -> Iterator[Line]:
    """Coefficients, reductions against LIC under the same attackers, agreements."""
    metric, _, direction = scores.setting.headline.partition(" ")
    keys = (scores.setting.attribute, metric, direction or "score")
    yield from _sensitivity(keys, "coefficient", sensitivity(scores))
    for other in others:
        alike = scores.setting.rivals(other.setting) and other.setting.headline == "lic"
        if alike and set(scores.variants) == set(other.variants):
            yield from _sensitivity(keys, "reduction", reduction(scores, other))
    for agreement in agreements(scores):
        for what in AGREEMENTS:
            yield _line(
                *keys[:2],
                f"{keys[2]}:{what}",
                f"{agreement.first}, {agreement.second}",
                getattr(agreement, what),
            )


def _sensitivity(keys: tuple[str, str, str], what: str, result: Sensitivity) -> Iterator[Line]:
    for captioner, number in {**result.per_captioner, "mean": result.mean}.items():
        yield _line(*keys[:2], f"{keys[2]}:{what}", captioner, number)


def _line(attribute: str, metric: str, part: str, captioner: str, interval: Interval) -> Line:
    numbers = {"value": interval.value, "ci_low": interval.low, "ci_high": interval.high}
    keys = {"attribute": attribute, "metric": metric, "part": part, "captioner": captioner}
    return {**keys, **numbers}


def main(arguments: Sequence[str]) -> None:
    if arguments:
        default = f"outputs/{HERE.name}"
        run(Path(arguments[0]), Path(arguments[1] if len(arguments) > 1 else default))
    write_results(HERE, tables(read_rows(HERE / "rows.csv")))


if __name__ == "__main__":
    main(sys.argv[1:])
