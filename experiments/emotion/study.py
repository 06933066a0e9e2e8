"""Emotion: do scores follow planted affect, and what does ImageCaptioner2's Table 7 show here?

Usage: python -m experiments.emotion.study [OUTPUTS]

With OUTPUTS every sweep is run whose rows are not in rows.csv, so a stopped study resumes, and
facts.csv and surviving.csv are written; without it, the tables and the figure are made from those
that are there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from experiments.emotion.speakers import GREEDY, SIDE, SPEAKERS, facts, make, read_as_artemis
from experiments.emotion.surviving import surviving_words
from experiments.study import (
    cell,
    markdown,
    printed_table,
    pyplot,
    read_rows,
    save_figure,
    sweep,
    write_results,
)

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows.csv"
AFFECT = {
    "dampener": -0.6,
    "faithful": 0.0,
    "affect_1": 0.1,
    "affect_2": 0.2,
    "affect_3": 0.3,
    "affect_4": 0.4,
    "amplifier": 0.5,
}
FURTHER = {name: dial for name, dial in AFFECT.items() if name.startswith("affect_")}
OTHERS = ("terse", "talkative", "neutral_speaker")  # they speak otherwise, without planted affect
PLANTED = {"LIC": "alignment=none", "LIC at equal style": "alignment=matched"}
COMMON = ("stats.resamples=1000", "logger=csv", "processes=1")
TABLE7 = {
    "LIC, n-grams": ("experiment=imagecaptioner2_table7_lic", "encoder=ngram"),
    "ImageCaptioner2, SAT": (
        *("experiment=imagecaptioner2_table7", f"encoder.side={SIDE}", "encoder.width=8"),
        *("trainer.max_epochs=10", "metric.leaks=[masked]"),
    ),
    "LIC, LSTM": ("experiment=imagecaptioner2_table7_lic", "encoder=lstm"),
    "LIC, transformer": ("experiment=imagecaptioner2_table7_lic", "encoder=transformer1"),
    "LIC, MiniLM fine-tuned": (
        *("experiment=imagecaptioner2_table7_lic", "encoder=bert", "encoder.pooling=mean"),
        *("encoder.model=sentence-transformers/all-MiniLM-L6-v2", "metric.positions=1"),
    ),
    "ImageCaptioner2, GRIT": (
        *("experiment=imagecaptioner2_table7", "encoder=grit", "encoder.he=true"),
        "metric.leaks=[masked]",
    ),
}
SEEDS = {"LIC, n-grams": 4}  # 2 for networks, whose training takes most of the time
# These take longest: only the speakers that write the likeliest words, one caption of people.
SLOW = ("LIC, MiniLM fine-tuned", "ImageCaptioner2, GRIT")
PRINTED = {"sat": "sat", "eg_img2emo": "eg_sat_img2emo", "eg_voting": "eg_sat_voting"}
NAMES = {"sat": "SAT", "eg_img2emo": "EG-SAT, Img2Emo", "eg_voting": "EG-SAT, voting*"}
NAMES |= {f"{name}_drawn": f"{shown}, drawn" for name, shown in NAMES.items()}
PARTS = {"M": "model:paired", "D": "human:paired", "Amp.": "score"}
REPORTED = (*PARTS.values(), "leak:masked", "matched:reach")


def run(outputs: Path) -> None:
    """Run every sweep that has no rows, and store the rows of each as it ends."""
    make(outputs)
    for name, overrides in {**planted_sweeps(), **table7_sweeps(outputs / "test")}.items():
        known = [read_rows(ROWS)] if ROWS.is_file() else []
        if known and name in set(known[0]["study"]):
            continue
        rows = sweep(name, outputs, *overrides, *COMMON)
        if name in TABLE7:
            rows["balance"] = balance(outputs, rows)
        reported = rows[rows["part"].isin(REPORTED)]
        pd.concat([*known, reported]).to_csv(ROWS, index=False, float_format="%.6g")


def planted_sweeps() -> dict[str, list[str]]:
    """Name to overrides: captioners of known affect."""
    dials = [f"+dataset.captioners.{name}.affect={dial}" for name, dial in FURTHER.items()]
    world = ("dataset=scenes", "dataset.world=affect", "attribute=emotion", "dataset.n_images=2000")
    captioners = f"captioner={','.join([*AFFECT, *OTHERS])}"
    everyone = ("metric=lic", "encoder=ngram", *world, captioners, *dials, "seeds=2")
    return {name: [*everyone, alignment] for name, alignment in PLANTED.items()}


def table7_sweeps(world: Path) -> dict[str, list[str]]:
    """Name to overrides: Table 7 on a drawn world."""
    read = (*read_as_artemis(world), "dataset.split=null", "dataset.cleaning=null")
    sweeps = {}
    for name, words in TABLE7.items():
        speakers = GREEDY if name in SLOW else SPEAKERS
        given = (f"captioner={','.join(speakers)}", f"seeds={SEEDS.get(name, 2)}")
        sweeps[name] = [*words, *read, *given]
    return sweeps


def balance(outputs: Path, rows: pd.DataFrame) -> str:
    """The note of a run on chance and on the images of each group."""
    result = json.loads((outputs / rows["run_id"].iloc[0] / "result.json").read_text())
    return next(note for note in result["manifest"]["notes"] if "a uniform guess" in note)


def planted_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Every planted captioner under LIC, as it is and at equal style."""
    scores = rows[rows["study"].isin(PLANTED) & (rows["part"] == "score")]
    wide = scores.assign(cell=[cell(line) for _, line in scores.iterrows()]).pivot_table(
        index="captioner", columns="study", values="cell", aggfunc="first"
    )
    table = wide.reindex([*AFFECT, *OTHERS])[list(PLANTED)]
    table.insert(0, "planted affect", pd.Series(AFFECT))
    return table


def table7(rows: pd.DataFrame) -> pd.DataFrame:
    """Our Table 7: speakers in rows; M, D and Amp. of every attacker in columns."""
    columns = {}
    for study in TABLE7:
        for title, part in PARTS.items():
            selected = rows[(rows["study"] == study) & (rows["part"] == part)]
            cells = [cell(line) for _, line in selected.iterrows()]
            columns[f"{study}: {title}"] = pd.Series(cells, selected["captioner"])
    return pd.DataFrame(columns).reindex(list(SPEAKERS)).rename(NAMES).rename_axis("speaker")


def table7_as_printed() -> pd.DataFrame:
    """The paper's Table 7, in per cent."""
    columns = {}
    for version in ("V1", "V2"):
        for metric, title in (("LIC", "LIC"), ("OURS", "ImageCaptioner2")):
            values = printed_table("imagecaptioner2", "7", f"{metric}_{version}")
            for name, column in (("M", "m"), ("D", "d"), ("Amp.", "amp")):
                columns[f"{version} {title}: {name}"] = values[column]
    table = pd.DataFrame(columns).reindex(list(PRINTED.values()))
    return table.rename({PRINTED[name]: NAMES[name] for name in PRINTED}).rename_axis("speaker")


def chance_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Chance and the images of each group after balancing, by attacker."""
    noted = rows[rows["study"].isin(TABLE7)].groupby("study", sort=False)["balance"].first()
    return noted.to_frame("after balancing").rename_axis("attacker")


def habit_table(known: pd.DataFrame) -> pd.DataFrame:
    """What :func:`experiments.emotion.speakers.facts` counts."""
    table = known.set_index("captioner")
    shares = table.columns.drop("different captions")
    table[shares] *= 100
    table["different captions"] = table["different captions"].map("{:.0f}".format)
    return table.rename(NAMES).replace("nan", "–")


def figure(rows: pd.DataFrame) -> None:
    """Scores against planted affect, with intervals."""
    plt = pyplot("emotion")
    fig, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for name, marker in zip(PLANTED, "os", strict=True):
        scores = rows[(rows["study"] == name) & (rows["part"] == "score")].set_index("captioner")
        scores = scores.reindex(list(AFFECT))
        middle, low, high = (100 * scores[key] for key in ("value", "ci_low", "ci_high"))
        axes.errorbar(
            list(AFFECT.values()), middle, [middle - low, high - middle], marker=marker, label=name
        )
    axes.axhline(0, color="gray", linewidth=0.8)
    axes.set_xlabel("planted affect")
    axes.set_ylabel("score (points)")
    axes.legend()
    save_figure(fig, HERE / "affect.svg")


def write(rows: pd.DataFrame, known: pd.DataFrame, words: pd.DataFrame) -> None:
    """Write the tables and the figure."""
    tables: Mapping[str, str] = {
        "Planted affect (per cent)": markdown(planted_table(rows)),
        "Table 7 on the affective world (per cent)": markdown(table7(rows))
        + "\n\\* It is told the label that attackers guess.\n",
        "Chance, and images of each group": markdown(chance_table(rows)),
        "How speakers and people write (per cent, but for the number of captions)": markdown(
            habit_table(known), 1
        ),
        "Words of people that still tell the emotion, by which factor": markdown(words),
        "Table 7 as it is printed (per cent)": markdown(table7_as_printed()),
    }
    write_results(HERE, tables)
    figure(rows)


def main(arguments: list[str]) -> None:
    if arguments:
        outputs = Path(arguments[0]).resolve()
        run(outputs)
        facts(outputs).to_csv(HERE / "facts.csv", index=False, float_format="%.6g")
        surviving_words().to_csv(HERE / "surviving.csv")
    words = read_rows(HERE / "surviving.csv").set_index("emotion")
    write(read_rows(ROWS), read_rows(HERE / "facts.csv"), words)


if __name__ == "__main__":
    main(sys.argv[1:])
