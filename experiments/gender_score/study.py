"""The Gender Score of seven published captioners and of people, and what it depends on.

Usage: python -m experiments.gender_score.study [DATA_ROOT [OUTPUTS]]

With DATA_ROOT everything is computed and rows.csv is written; without it, the tables are made from
the rows.csv that is there. Scored texts are stored under OUTPUTS, so a stopped study resumes.
Needs the extra ``offline-models``, and all-mpnet-base-v2 in the hub's cache.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from experiments.study import HERE as STUDIES
from experiments.study import (
    cell,
    lic_data,
    markdown,
    part,
    rank_agreement,
    rows_of,
    sweep,
    write_results,
)

HERE = Path(__file__).resolve().parent
CAPTIONERS = ("nic", "sat", "fc", "att2in", "transformer", "oscar_xe", "nic_plus")
LIMIT = 1000  # labelled images; whole.py scores all, some minutes a captioner
VARIANTS = {
    "as published": "metric.lm_term=arithmetic",
    "geometric": "metric.lm_term=geometric",
}
# Whose cosines; on fewer images, since the second is four times as slow.
FEWER = 300
ENCODERS = {
    "MiniLM": "sentence-transformers/all-MiniLM-L6-v2",
    "MPNet": "sentence-transformers/all-mpnet-base-v2",
}
PARTS = {
    "model": "first group's share of GS",
    "human": "share of GS, people",
    "score": "difference",
    "estimate:model": "estimated as men",
    "estimate:human": "estimated as men, people",
    "lm:own_bias": "language model's own bias",
}
FACTORS = {
    "model": "both",
    "lm:model": "language model alone",
    "similarity:model": "similarity alone",
    "estimate:model": "estimate, both",
    "estimate_lm:model": "estimate, language model alone",
    "estimate_similarity:model": "estimate, similarity alone",
    "lm:own_bias": "language model's own bias",
}


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """The rows of every variant, and of co-occurrence."""
    whole = (*lic_data(data), "captioner=" + ",".join(CAPTIONERS), "logger=csv")
    words = (f"limit={LIMIT}", *whole)
    frames = [
        sweep(name, outputs, "metric=gender_score", setting, *words)
        for name, setting in VARIANTS.items()
    ]
    frames += by_encoder(outputs, *whole)
    frames.append(sweep("distance", outputs, "metric=gender_distance", *words))
    encoder = "metric.sentence_encoder=sentence-transformers/all-MiniLM-L6-v2"
    frames.append(sweep("distance, MiniLM", outputs, "metric=gender_distance", encoder, *words))
    rows = pd.concat(frames)
    wanted = [
        *PARTS,
        *FACTORS,
        "estimate",
        "gs:male",
        "gs:female",
        "gs:male:human",
        "gs:female:human",
    ]
    return rows[rows["part"].isin(wanted)]


def by_encoder(outputs: Path, *words: str) -> list[pd.DataFrame]:
    """The score by every sentence encoder, on fewer images."""
    return [
        sweep(
            f"{name}, {FEWER} images",
            outputs,
            "metric=gender_score",
            f"metric.sentence_encoder={model}",
            f"limit={FEWER}",
            *words,
        )
        for name, model in ENCODERS.items()
    ]


def _table(rows: pd.DataFrame, study: str, parts: dict[str, str]) -> str:
    selected = rows[rows["study"] == study]
    lines = {
        captioner: {
            title: cell(line.iloc[0])
            for name, title in parts.items()
            if len(
                line := selected[(selected["captioner"] == captioner) & (selected["part"] == name)]
            )
        }
        for captioner in CAPTIONERS
    }
    return markdown(pd.DataFrame(lines).T.rename_axis("captioner"))


def ranks(rows: pd.DataFrame, study: str) -> pd.DataFrame:
    """Captioners by each number; the other metrics are from the leaderboard, on all images."""
    other = pd.read_csv(STUDIES / "leaderboard" / "rows.csv", keep_default_na=False)
    other = other[other["attribute"] == "gender"]
    names = {
        "gender error": ("gender_error", "score"),
        "gender ratio": ("gender_ratio", "score"),
        "DBAC T→A": ("dbac", "t_to_a"),
        "LIC": ("lic", "score"),
    }
    table = pd.DataFrame(
        {
            "Gender Score": part(rows, study, "score"),
            "estimate": part(rows, study, "estimate"),
            **{
                title: other[(other["metric"] == metric) & (other["part"] == name)].set_index(
                    "captioner"
                )["value"]
                for title, (metric, name) in names.items()
            },
        }
    )
    return rank_agreement(table.loc[[name for name in CAPTIONERS if name in table.index]].dropna())


def _encoders(rows: pd.DataFrame) -> str:
    columns = {
        f"{title}, {name}": part(rows, f"{name}, {FEWER} images", name_of_part)
        for name_of_part, title in (
            *(("model", "share of GS"), ("human", "people"), ("score", "difference")),
            ("estimate:model", "estimated as men"),
        )
        for name in ENCODERS
    }
    return markdown(pd.DataFrame(columns).reindex(list(CAPTIONERS)).rename_axis("captioner"))


def _variants(rows: pd.DataFrame) -> str:
    shares = pd.DataFrame({name: part(rows, name, "model") for name in VARIANTS})
    return markdown(shares.reindex(list(CAPTIONERS)).rename_axis("captioner"))


def main(arguments: list[str]) -> None:
    rows = rows_of(HERE, run, arguments)
    distances = {"model": "the captioner", "human": "people", "score": "difference"}
    write_results(
        HERE,
        {
            f"Like the paper's Table 5, on {LIMIT} labelled images (per cent; 95 % intervals)": (
                _table(rows, "as published", PARTS)
            ),
            "What each factor adds: share of men": _table(rows, "as published", FACTORS),
            "First group's share of GS by how probabilities are pooled (per cent)": (
                _variants(rows)
            ),
            f"By sentence encoder, on {FEWER} labelled images (per cent)": _encoders(rows),
            "Agreement in rank": markdown(ranks(rows, "as published")),
            "Bias ratio of objects, GloVe": _table(rows, "distance", distances),
            "Bias ratio of objects, MiniLM": _table(rows, "distance, MiniLM", distances),
        },
    )


if __name__ == "__main__":
    main(sys.argv[1:])
