"""Which metrics detect bias that is only in the language: C1 to C4 of DBAC, section 5.1.

Usage: python -m experiments.language_bias.study [DATA_ROOT [OUTPUTS]]

With DATA_ROOT everything is computed and rows.csv and shares.csv are written; without it, the
tables are made from those that are there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.run import compose
from experiments.study import (
    HOLD_OUT,
    HOLD_OUT_TASKS,
    cell,
    markdown,
    rows_of,
    sweep,
    write_results,
)

HERE = Path(__file__).resolve().parent
SHARES = HERE / "shares.csv"
LEVELS = {"0.6": "C1", "0.7": "C2", "0.8": "C3", "0.9": "C4"}
# Metric to the part of human captions, and its value without bias.
PARTS = {
    "lic": ("human", "LIC, confidence of right guesses"),
    "leakage": ("human", "accuracy"),
    "dbac": ("a_to_t:quality:human", "DBAC A→T, attacker's quality"),
    "dpa": ("a_to_t:quality:human", "DPA A→T, attacker's quality"),
    "ba_directional": ("a_to_t", "BA→ A→T"),
    "ba_mals": ("score", "BA (MALS)"),
    "cooccurrence": ("human", "skew of objects"),
    "differential_fairness": ("human", "differential fairness"),
    "gender_distance": ("human", "bias ratio of objects (GloVe)"),
    "gender_score": ("human", "first group's share of GS"),
}
# Attackers of captions and of tasks test the images of the papers' splits.
SWEEPS = (
    (("lic", "leakage"), HOLD_OUT),
    (("dbac", "dpa"), HOLD_OUT_TASKS),
    ([name for name in PARTS if name not in ("lic", "leakage", "dbac", "dpa")], ()),
)
# DBAC, Table 3: omega_H, LIC_H, BA_H, DPA_H; the last two are 0.50 without bias.
PUBLISHED = {
    "C1": (0.64, 0.65, 0.50, 0.50),
    "C2": (0.73, 0.60, 0.50, 0.50),
    "C3": (0.80, 0.60, 0.50, 0.50),
    "C4": (0.89, 0.72, 0.50, 0.50),
}
PRINTED = ["omega_H A→T", "LIC_H", "BA_H A→T", "DPA_H A→T"]


ON_SCENES = ", scenes"
DIALLED = "dials"
# Captioners that differ from people in one setting each, see docs/data.md.
DIALS = {
    "plain": "a_to_t:0",
    "a_to_t_half": "a_to_t:0.5",
    "a_to_t_all": "a_to_t:1",
    "t_to_a_half": "t_to_a:0.5",
    "t_to_a_all": "t_to_a:1",
    "fewer_words": "vocabulary:0.2",
    "shorter": "length:0.3",
    "fewer_objects": "mention_rate:0.5",
    "neutral": "gender_word_rate:0.5",
}
# Parts of language metrics to their names in the table.
OF_DIALS = {
    "gender_score": {
        "score": "Gender Score",
        "estimate": "estimate",
        "lm": "language model alone",
        "similarity": "similarity alone",
        "lm:own_bias": "language model's own bias",
    },
    "gender_distance": {"score": "bias ratio of objects", "cooccurrence": "co-occurrence"},
}


def run(data: Path, outputs: Path) -> pd.DataFrame:
    """People's numbers by every metric on every level; and language metrics by setting."""
    rows = pd.concat(
        [
            sweep(
                f"{name}{which}",
                outputs,
                *words,
                f"dataset.imbalance={level}",
                "metric=" + ",".join(metrics),
                *split,
                "seeds=10",
                "logger=csv",
            )
            for metrics, split in SWEEPS
            for which, words in _corpora(data).items()
            for level, name in LEVELS.items()
        ]
    )
    wanted = [(metric, part) for metric, (part, _) in PARTS.items()]
    planted = rows[[pair in wanted for pair in zip(rows["metric"], rows["part"], strict=True)]]
    return pd.concat([planted, _by_dial(outputs)])


def _corpora(data: Path) -> dict[str, tuple[str, ...]]:
    return {
        "": ("experiment=language_bias", f"dataset.of.root={data / 'lic' / 'bias_data'}"),
        ON_SCENES: ("experiment=language_bias_scenes",),
    }


def shares(data: Path) -> pd.Series:
    """BA_H of every level: counted here, since it is not one of our metrics."""
    by_study = {
        f"{name}{which}": _share(compose.cell([*words, f"dataset.imbalance={level}"]).corpus())
        for which, words in _corpora(data).items()
        for level, name in LEVELS.items()
    }
    return pd.Series(by_study, name="share").rename_axis("study")


def _share(corpus: Corpus) -> float:
    """The share of a task's captions by people that are of the likelier group; mean over tasks.

    A task's probability in a group is the share of the group's captions with it (A→T).
    """
    group = corpus.groupings["gender"].codes
    tasks = sorted(set().union(*corpus.objects or ()))
    named = np.array([[task in item for task in tasks] for item in corpus.objects or ()])
    likely = np.array([named[group == item].mean(axis=0) for item in range(2)])
    return float((likely.max(axis=0) / likely.sum(axis=0)).mean())


def _by_dial(outputs: Path) -> pd.DataFrame:
    """Language metrics of captioners that differ in one setting each."""
    captioners = [f"+dataset.captioners.{name}={{{dial}}}" for name, dial in DIALS.items()]
    rows = pd.concat(
        [
            sweep(
                DIALLED,
                outputs,
                "dataset=scenes",
                f"dataset.n_images={n_images}",
                *captioners,
                "captioner=" + ",".join(DIALS),
                f"metric={metric}",
                "logger=csv",
            )
            for metric, n_images in (("gender_distance", 4000), ("gender_score", 500))
        ]
    )
    wanted = [(metric, part) for metric, item in OF_DIALS.items() for part in item]
    return rows[[item in wanted for item in zip(rows["metric"], rows["part"], strict=True)]]


def _levels(rows: pd.DataFrame, counted: pd.Series, which: str) -> str:
    lines = {}
    for metric, (part, title) in PARTS.items():
        scores = rows[(rows["metric"] == metric) & (rows["part"] == part)].set_index("study")
        lines[f"`{metric}`: {title}"] = {
            level: cell(scores.loc[f"{level}{which}"]) for level in LEVELS.values()
        }
    lines["BA_H A→T: share of the likelier group (0.50: no bias)"] = {
        level: f"{counted[f'{level}{which}']:.2f}" for level in LEVELS.values()
    }
    return markdown(pd.DataFrame(lines).T.rename_axis("human captions"))


def _dials(rows: pd.DataFrame) -> str:
    selected = rows[rows["study"] == DIALLED]
    lines = {
        f"{name} ({dial.replace(':', ' ')})": {
            f"`{metric}`: {title}": cell(line.iloc[0])
            for metric, parts in OF_DIALS.items()
            for part, title in parts.items()
            if len(
                line := selected[
                    (selected["captioner"] == name)
                    & (selected["metric"] == metric)
                    & (selected["part"] == part)
                ]
            )
        }
        for name, dial in DIALS.items()
    }
    return markdown(pd.DataFrame(lines).T.rename_axis("captioner"))


def main(arguments: list[str]) -> None:
    rows = rows_of(HERE, run, arguments)
    if arguments:
        shares(Path(arguments[0])).to_csv(SHARES)
    counted = pd.read_csv(SHARES, index_col="study")["share"]
    printed = pd.DataFrame(PUBLISHED, index=PRINTED).rename_axis("DBAC, Table 3")
    write_results(
        HERE,
        {
            "Every metric on C1 to C4 of real captions (per cent; 95 % intervals)": _levels(
                rows, counted, ""
            ),
            "The same where nothing but the verb is planted": _levels(rows, counted, ON_SCENES),
            "As printed": markdown(printed),
            "Language metrics by setting, compared with people": _dials(rows),
        },
    )


if __name__ == "__main__":
    main(sys.argv[1:])
