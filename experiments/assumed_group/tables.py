"""The tables of the study, from its rows."""

from __future__ import annotations

import pandas as pd
from scipy import stats

from bias_pipeline.stats.compare import pearson
from experiments.study import cell, markdown, printed_table

NUMBERS = {
    "names one group, %": "model",
    "people, %": "human",
    "less people's": "score",
    "names several, %": "both",
    "men, %": "group:male",
    "women, %": "group:female",
}
RATIOS = {
    "men per woman": "ratio",
    "people's": "ratio:human",
    "where gender is labelled": "ratio:labelled",
}
RACE = {
    "names one group, %": "model",
    "people, %": "human",
    "less people's": "score",
    "names several, %": "both",
}


def part(rows: pd.DataFrame, study: str, attribute: str, name: str, metric: str) -> pd.DataFrame:
    """The rows of one part, by captioner."""
    chosen = (rows["study"] == study) & (rows["attribute"] == attribute) & (rows["part"] == name)
    return rows[chosen & (rows["metric"] == metric)].set_index("captioner")


def table(rows: pd.DataFrame, study: str, attribute: str, parts: dict[str, str]) -> pd.DataFrame:
    """Captioners by parts of ``assumed_group``, with the number of images behind them."""
    lines_by_title = {
        title: part(rows, study, attribute, name, "assumed_group") for title, name in parts.items()
    }
    columns = {title: lines.apply(cell, axis=1) for title, lines in lines_by_title.items()}
    if "less people's" in lines_by_title:
        score = lines_by_title["less people's"]
        letters = score["letters"].fillna("")
        columns["less people's"] = columns["less people's"] + " " + letters
        columns["images"] = lines_by_title["names one group, %"]["n_images"].map(str)
        columns["with human captions"] = score["n_images"].map(str)
    return pd.DataFrame(columns).rename_axis(attribute)


def values(rows: pd.DataFrame) -> pd.DataFrame:
    """The numbers to compare with people's judgement of captions, by captioner."""
    by_part = {
        name: part(rows, "common", "gender", name, "assumed_group")["value"]
        for name in ("model", "both")
    }
    printed = printed_table("imagecaptioner2", "5", "")
    hirota = printed_table("imagecaptioner2", "3", "")
    return pd.DataFrame(
        {
            "names one group": by_part["model"],
            "names one group or several": by_part["model"] + by_part["both"],
            "less people's": part(rows, "common", "gender", "score", "assumed_group")["value"],
            "gender error (here, all images)": part(rows, "all", "gender", "score", "gender_error")[
                "value"
            ],
            "LIC, printed of COCO": hirota["lic"],
            "ImageCaptioner2, printed of COCO": hirota["ours"],
            "LIC, printed of AnonymousBench": printed["lic"],
            "ImageCaptioner2, printed of AnonymousBench": printed["ours"],
            "people's judgement": printed["gt"],
        }
    ).loc[by_part["model"].index]


def agreement(rows: pd.DataFrame) -> pd.DataFrame:
    """Pearson's correlation of each with people's judgement, its interval, and Spearman's."""
    table = values(rows)
    people = table.pop("people's judgement")
    lines = {}
    for name, column in table.items():
        linear = pearson(column.tolist(), people.tolist())
        lines[name] = {
            "Pearson": f"{linear.value:.2f} [{linear.ci_low:.2f}, {linear.ci_high:.2f}]",
            "Spearman": f"{stats.spearmanr(column, people).statistic:.2f}",
        }
    return pd.DataFrame(lines).T.rename_axis(f"with people's judgement, {len(people)} captioners")


def table_texts(rows: pd.DataFrame) -> dict[str, str]:
    """Title to table, as Markdown."""
    tables = {
        "Gender, on the images that all seven describe": table(rows, "common", "gender", NUMBERS),
        "Gender, men per woman, on these images": table(rows, "common", "gender", RATIOS),
        "Gender, on all images that each describes": table(rows, "all", "gender", NUMBERS),
        "Race, on the images that all seven describe": table(rows, "common", "race", RACE),
        "Agreement with people's judgements of captions": agreement(rows),
    }
    return {title: markdown(frame) for title, frame in tables.items()}
