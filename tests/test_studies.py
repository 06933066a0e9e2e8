"""What the studies of ``experiments/`` share."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from bias_pipeline.catalogue.registry import infos
from bias_pipeline.config import compose
from experiments.study import attempted, beyond_chance, rank_agreement
from tests.corpora import REPOSITORY

STUDIES = REPOSITORY / "experiments"
SMALL = ["dataset.n_images=60", "attribute=race", "metric=gender_error,cooccurrence", "logger=csv"]


def test_a_sweep_goes_on_without_the_cells_that_the_data_do_not_permit(tmp_path: Path) -> None:
    rows, refused = attempted("both", tmp_path, *SMALL)
    assert set(rows["metric"]) == {"gender_error"}
    assert refused["metric"].tolist() == ["cooccurrence"]
    assert "nothing can be said of whom it names" in refused["reason"].iloc[0]


def test_a_sweep_that_fails_for_another_reason_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        attempted("both", tmp_path, *SMALL, "captioner=absent,faithful")


def test_rank_agreement_is_corrected_for_the_number_of_pairs() -> None:
    table = pd.DataFrame({"one": range(7), "two": range(7), "three": [3, 1, 6, 0, 5, 2, 4]})
    found = rank_agreement(table)
    assert found.loc["one and two", "Kendall"] == 1
    assert found.loc["one and two", "p (Holm)"] == pytest.approx(3 * found.loc["one and two", "p"])
    assert list(beyond_chance(found).index) == ["one and two"]


def headlines(study: str) -> pd.Series:
    """Value by metric, part and captioner, for gender and the default settings."""
    rows = pd.read_csv(STUDIES / study / "rows.csv", keep_default_na=False, na_values=[""])
    own = rows[(rows["attribute"] == "gender") & rows["part"].isin(["score", "a_to_t", "t_to_a"])]
    if "study" in own:
        own = own[own["study"].isin(["gender", "attackers", "dbac", "dpa", "counting"])]
    return own.set_index(["metric", "part", "captioner"])["value"]


@pytest.mark.parametrize("study", ["lic_reproduction", "metric_comparison"])
def test_studies_of_the_same_cells_have_the_same_numbers(study: str) -> None:
    """Within what another version of the attackers may round off."""
    both = pd.concat([headlines("leaderboard"), headlines(study)], axis=1, join="inner")
    assert len(both) >= 7
    assert both.iloc[:, 0].tolist() == pytest.approx(both.iloc[:, 1].tolist(), abs=1e-5)


@pytest.mark.parametrize("metric", ["lic", "dbac"])
def test_a_metric_is_called_consistent_by_what_was_measured(metric: str) -> None:
    rows = pd.read_csv(STUDIES / "encoder_sensitivity" / "rows.csv")
    own = rows[(rows["attackers"] == "words and MiniLM") & (rows["metric"] == metric)]
    own = own[own["part"].str.endswith(":spearman")]
    means = own.groupby(["attribute", "part"])["value"].mean()
    assert infos()[metric].consistent == (means >= 0.9).all()


INTERVAL = re.compile(r"[-+]?\d+(?:\.\d+)? \[[-+]?\d+(?:\.\d+)?, [-+]?\d+(?:\.\d+)?\]")


@pytest.mark.parametrize("study", sorted(path.name for path in STUDIES.iterdir() if path.is_dir()))
def test_intervals_in_prose_stand_in_the_tables(study: str) -> None:
    prose, tables = "", ""
    for page in (STUDIES / study).glob("*.md"):
        if page.name == "README.md":
            prose = " ".join(page.read_text().split())
        else:
            tables += page.read_text()
    assert set(INTERVAL.findall(prose)) <= set(INTERVAL.findall(tables))


COMMANDS = {
    "age/rows.csv": "experiments.age.reproduce DATA",
    "dbac_readings/contextual_rows.csv": "experiments.dbac_readings.contextual DATA",
    "dbac_readings/rows.csv": "experiments.dbac_readings.reproduce DATA",
    "dbac_readings/support.csv": "experiments.dbac_readings.support DATA",
    "encoder_sensitivity/debiased_rows.csv": "experiments.encoder_sensitivity.debiased DATA OUT",
    "encoder_sensitivity/rows.csv": "experiments.encoder_sensitivity.reproduce DATA",
    "gender_score/context_rows.csv": "experiments.gender_score.contexts DATA OUTPUTS",
    "gender_score/rows.csv": "experiments.gender_score.reproduce DATA",
    "gender_score/whole_rows.csv": "experiments.gender_score.whole DATA OUTPUTS sat",
    "imagecaptioner2/annotated_rows.csv": "experiments.imagecaptioner2.annotated DATA",
    "imagecaptioner2/dial_rows.csv": "experiments.imagecaptioner2.dials OUTPUTS",
    "imagecaptioner2/prompt_rows.csv": "experiments.imagecaptioner2.prompts OUTPUTS",
    "imagecaptioner2/real_rows.csv": "experiments.imagecaptioner2.real DATA",
    "imagecaptioner2/rows.csv": "experiments.imagecaptioner2.reproduce OUTPUTS",
    "imagecaptioner2/self_rows.csv": "experiments.imagecaptioner2.self_assessment OUTPUTS",
    "inference/rows.csv": "experiments.inference.reproduce DATA 60",
    "language_bias/rows.csv": "experiments.language_bias.reproduce DATA",
    "leaderboard/rows.csv": "experiments.leaderboard.reproduce DATA",
    "lic_reproduction/lstm_rows.csv": "experiments.lic_reproduction.lstm DATA",
    "lic_reproduction/rows.csv": "experiments.lic_reproduction.reproduce DATA",
    "metric_comparison/rows.csv": "experiments.metric_comparison.reproduce DATA",
    "null_coverage/counting.csv": "experiments.null_coverage.counting 40",
    "null_coverage/groups.csv": "experiments.null_coverage.further groups 40",
    "null_coverage/pairs.csv": "experiments.null_coverage.further pairs 25",
    "null_coverage/pictures.csv": "experiments.null_coverage.pictures 40",
    "null_coverage/retrieval.csv": "experiments.null_coverage.retrieval 60",
    "null_coverage/rows.csv": "experiments.null_coverage.reproduce 100",
    "vl_bias/readings.csv": "experiments.vl_bias.readings OUTPUTS",
    "vl_bias/rows.csv": "experiments.vl_bias.reproduce OUTPUTS",
}


@pytest.mark.parametrize("path", COMMANDS)
def test_rows_are_of_todays_metrics(path: str) -> None:
    rows = pd.read_csv(STUDIES / path)
    made = {
        (str(name).split(",")[0], int(version))
        for name, version in zip(rows["metric"], rows["metric_version"], strict=True)
    }
    today = {(name, _version(name)) for name, _ in made}
    assert made == today, f"python -m {COMMANDS[path]}"


def _version(metric: str) -> int:
    return compose.cell([f"metric={metric}"]).build("metric").info.version


def test_no_file_of_rows_is_forgotten() -> None:
    written = {
        str(path.relative_to(STUDIES))
        for path in STUDIES.glob("*/*.csv")
        if {"metric", "ci_low"} <= set(pd.read_csv(path, nrows=1).columns)
    }
    assert written <= set(COMMANDS)
