"""What the studies of ``experiments/`` share."""

import math
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bias_pipeline.metrics.catalogue import infos
from bias_pipeline.stats import bootstrap
from experiments.anonymous.study import answers
from experiments.flatness import study as flatness
from experiments.flatness import tables as flatness_tables
from experiments.inference import seeds
from experiments.power import guide
from experiments.power import study as power
from experiments.power import tables as power_tables
from experiments.study import attempt, beyond_chance, is_of_today, rank_agreement
from tests.corpora import REPOSITORY

STUDIES = REPOSITORY / "experiments"
SMALL = ["dataset.n_images=60", "attribute=race", "metric=gender_error,cooccurrence", "logger=csv"]


def test_a_sweep_goes_on_without_the_cells_that_the_data_do_not_permit(tmp_path):
    rows, refused = attempt("both", tmp_path, *SMALL)
    assert set(rows["metric"]) == {"gender_error"}
    assert refused["metric"].tolist() == ["cooccurrence"]
    assert "no object is named with one group in" in refused["reason"].iloc[0]


def test_a_sweep_that_fails_for_another_reason_is_no_result(tmp_path):
    with pytest.raises(subprocess.CalledProcessError):
        attempt("both", tmp_path, *SMALL, "captioner=absent,faithful")


def test_rank_agreement_is_corrected_for_the_number_of_pairs():
    table = pd.DataFrame({"one": range(7), "two": range(7), "three": [3, 1, 6, 0, 5, 2, 4]})
    result = rank_agreement(table)
    pair = result.loc["one and two"]
    assert (pair["Kendall"], pair["p (Holm)"]) == (1, pytest.approx(3 * pair["p"]))
    assert list(beyond_chance(result).index) == ["one and two"]


def headlines(study: str) -> pd.Series:
    """Value by metric, part and captioner, for gender and the default settings."""
    rows = pd.read_csv(STUDIES / study / "rows.csv", keep_default_na=False, na_values=[""])
    rows = rows[(rows["attribute"] == "gender") & rows["part"].isin(["score", "a_to_t", "t_to_a"])]
    if "study" in rows:
        rows = rows[rows["study"].isin(["gender", "attackers", "dbac", "dpa", "counting"])]
    return rows.set_index(["metric", "part", "captioner"])["value"]


@pytest.mark.parametrize("study", ["lic_reproduction", "metric_comparison"])
def test_studies_of_the_same_cells_have_the_same_numbers(study):
    """Within what another version of the attackers may round off."""
    both = pd.concat([headlines("leaderboard"), headlines(study)], axis=1, join="inner")
    assert len(both) >= 7
    assert both.iloc[:, 0].tolist() == pytest.approx(both.iloc[:, 1].tolist(), abs=1e-5)


@pytest.mark.parametrize("metric", ["lic", "dbac"])
def test_a_metric_is_called_consistent_by_what_was_measured(metric):
    rows = pd.read_csv(STUDIES / "encoder_sensitivity" / "rows.csv")
    row = rows[(rows["attackers"] == "words and MiniLM") & (rows["metric"] == metric)]
    row = row[row["part"].str.endswith(":spearman")]
    means = row.groupby(["attribute", "part"])["value"].mean()
    assert infos()[metric].consistent == (means >= 0.9).all()


NO_STUDIES = {"published", "sweeps"}
LINE = re.compile(r"^\| \[(\w+)\]\(\1/README\.md\) \| .+\? \| .+\. \|$", re.MULTILINE)


def test_the_index_has_a_question_and_a_result_for_every_study():
    listed = LINE.findall((STUDIES / "README.md").read_text(encoding="utf-8"))
    folders = {path.parent.name for path in STUDIES.glob("*/*") if path.suffix in (".md", ".py")}
    assert sorted(listed) == sorted(folders - NO_STUDIES)


def test_every_program_of_a_study_is_in_its_readme():
    for path in sorted(STUDIES.glob("*/**/*.py")):
        if "__main__" in path.read_text("utf-8"):
            module = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
            readme = (path.parent / "README.md").read_text("utf-8")
            assert module.removesuffix(".__main__") in readme


INTERVAL = re.compile(r"[-+]?\d+(?:\.\d+)? \[[-+]?\d+(?:\.\d+)?, [-+]?\d+(?:\.\d+)?\]")


FOLDERS = sorted(str(page.parent.relative_to(STUDIES)) for page in STUDIES.glob("*/**/README.md"))


@pytest.mark.parametrize("study", FOLDERS)
def test_intervals_in_prose_stand_in_the_tables(study):
    pages = {page.name: page.read_text() for page in (STUDIES / study).glob("*.md")}
    prose = " ".join(pages.pop("README.md").split())
    assert set(INTERVAL.findall(prose)) <= set(INTERVAL.findall("".join(pages.values())))


COMMANDS = {
    "photos/fairer_rows.csv": "experiments.photos.fairer DATA",
    "photos/masked_rows.csv": "experiments.photos.masked DATA",
    "photos/rows.csv": "experiments.photos.study DATA",
    "flatness/draws.csv": "experiments.flatness.draws DATA",
    "flatness/rows.csv": "experiments.flatness.study DATA",
    "age/rows.csv": "experiments.age.study DATA",
    "anonymous/rows.csv": "experiments.anonymous.study OUTPUTS DATA",
    "assumed_group/rows.csv": "experiments.assumed_group.study DATA",
    "benchmark/rows.csv": "experiments.benchmark.study DATA",
    "chain/rows.csv": "experiments.chain --rows OUTPUTS",
    "dbac_readings/authors_rows.csv": "experiments.dbac_readings.authors DATA",
    "dbac_readings/contextual_rows.csv": "experiments.dbac_readings.contextual DATA",
    "dbac_readings/rows.csv": "experiments.dbac_readings.study DATA",
    "dbac_readings/support.csv": "experiments.dbac_readings.support DATA",
    "equal_speech/forms.csv": "experiments.equal_speech.forms DATA",
    "equal_speech/rows.csv": "experiments.equal_speech.study DATA",
    "emotion/rows.csv": "experiments.emotion.study OUTPUTS",
    "encoder_sensitivity/debiased_rows.csv": "experiments.encoder_sensitivity.debiased DATA OUT",
    "encoder_sensitivity/other_machine_rows.csv": "experiments.encoder_sensitivity.presets DATA",
    "encoder_sensitivity/preset_rows.csv": "experiments.encoder_sensitivity.presets DATA",
    "encoder_sensitivity/rows.csv": "experiments.encoder_sensitivity.study DATA",
    "feature_sensitivity/rows.csv": "experiments.feature_sensitivity --out DIR",
    "gender_score/context_rows.csv": "experiments.gender_score.contexts DATA OUTPUTS",
    "gender_score/rows.csv": "experiments.gender_score.study DATA",
    "gender_score/single_rows.csv": "experiments.gender_score.single DATA OUTPUTS",
    "gender_score/whole_rows.csv": "experiments.gender_score.whole DATA OUTPUTS sat",
    "imagecaptioner2/annotated_rows.csv": "experiments.imagecaptioner2.annotated DATA",
    "imagecaptioner2/dial_rows.csv": "experiments.imagecaptioner2.dials OUTPUTS",
    "imagecaptioner2/prompt_rows.csv": "experiments.imagecaptioner2.prompts OUTPUTS",
    "imagecaptioner2/real_rows.csv": "experiments.imagecaptioner2.real DATA",
    "imagecaptioner2/rows.csv": "experiments.imagecaptioner2.study OUTPUTS",
    "imagecaptioner2/self_rows.csv": "experiments.imagecaptioner2.self_assessment OUTPUTS",
    "inference/estimators.csv": "experiments.inference.estimators DATA",
    "inference/rows.csv": "experiments.inference.study DATA",
    "language_bias/rows.csv": "experiments.language_bias.study DATA",
    "language_bias/table3_rows.csv": "experiments.language_bias.table3 DATA OUTPUTS",
    "leaderboard/rows.csv": "experiments.leaderboard.study DATA",
    "lic_reproduction/lstm_rows.csv": "experiments.lic_reproduction.lstm DATA",
    "lic_reproduction/rows.csv": "experiments.lic_reproduction.study DATA",
    "long_captions/rows.csv": "experiments.long_captions.study OUTPUTS",
    "metric_comparison/rows.csv": "experiments.metric_comparison.study DATA",
    "null_coverage/counting.csv": "experiments.null_coverage.counting 40",
    "null_coverage/groups.csv": "experiments.null_coverage.further groups 40",
    "null_coverage/pairs.csv": "experiments.null_coverage.further pairs 25",
    "null_coverage/pictures.csv": "experiments.null_coverage.pictures 40",
    "null_coverage/retrieval.csv": "experiments.null_coverage.retrieval 60",
    "null_coverage/rows.csv": "experiments.null_coverage.study 100",
    "power/rows.csv": "experiments.power.study DATA",
    "progressive_masking/real_rows.csv": "experiments.progressive_masking --real DATA",
    "progressive_masking/rows.csv": "experiments.progressive_masking --out DIR --model DIR/model",
    "rebalance/rows.csv": "experiments.rebalance --out DIR --equalizer",
    "vl_bias/readings.csv": "experiments.vl_bias.readings OUTPUTS",
    "vl_bias/rows.csv": "experiments.vl_bias.study OUTPUTS",
}


@pytest.mark.parametrize("path", COMMANDS)
def test_rows_are_of_todays_metrics(path):
    rows = pd.read_csv(STUDIES / path)
    names = rows["metric"].astype(str).str.split(",").str[0]
    made = set(zip(names, rows["metric_version"], strict=True))
    earlier = {(name, version) for name, version in made if not is_of_today(name, version)}
    assert earlier == set(), f"python -m {COMMANDS[path]}"


def test_the_study_of_few_seeds_has_p_as_results_have_it():
    n_seeds, spread, nan = 3, 2.0, math.nan
    random = np.random.default_rng([n_seeds, round(10 * spread)])
    draws = spread * random.normal(size=(50, n_seeds))
    lines = []
    for scores, shift in zip(draws, random.normal(size=50), strict=True):
        error, freedom = bootstrap.combined_error(float(scores.std(ddof=1)), 1.0, n_seeds)
        value = float(scores.mean() + shift)
        numbers = (value, nan, 1.0, nan, nan, nan, n_seeds, value)
        lines.append(
            bootstrap.two_sided_p(bootstrap.Estimate(*numbers, error=error, freedom=freedom))
        )
    assert seeds.p_values(n_seeds, spread, 50) == pytest.approx(lines)


def test_no_file_of_rows_is_forgotten():
    written = {
        str(path.relative_to(STUDIES))
        for path in STUDIES.glob("*/*.csv")
        if {"metric", "ci_low"} <= set(pd.read_csv(path, nrows=1).columns)
    }
    assert written <= set(COMMANDS)


def test_the_package_ships_what_the_study_of_power_measured():
    shipped = REPOSITORY / "bias_pipeline" / "report" / "power.csv"
    assert shipped.read_text() == power_tables.shipped_text(power.current_rows())


def test_the_package_ships_what_the_study_of_flatness_measured():
    shipped = REPOSITORY / "bias_pipeline" / "report" / "flatness.csv"
    assert shipped.read_text() == flatness_tables.shipped_text(pd.read_csv(flatness.ROWS))


def test_the_package_ships_what_the_study_of_features_measured():
    shipped = REPOSITORY / "bias_pipeline" / "studies" / "features.csv"
    assert shipped.read_text() == (STUDIES / "feature_sensitivity" / "rows.csv").read_text()


def test_the_page_that_advises_on_metrics_is_that_of_the_figures():
    written = power.DOCS.read_text(encoding="utf-8")
    assert written == guide.page(written), "run: python -m experiments.power.study"


def test_a_study_of_power_that_was_stopped_goes_on(tmp_path, monkeypatch):
    planned = list(power.planned_trials())
    done = power.current_rows()
    assert {trial.design for trial in planned} == set(done["design"])
    monkeypatch.setattr(power, "planned_trials", lambda: iter(planned[:1]))
    monkeypatch.setattr(power.designs, "corpus", lambda *_: pytest.fail("computed anew"))
    done.to_csv(tmp_path / "rows.csv", index=False, na_rep="nan")
    power.go_on(tmp_path, math.inf, tmp_path / "rows.csv")


def test_simulated_raters_err_as_often_as_planned_and_either_way():
    codes = np.tile([-1, 0, 1], 3000)  # no group, men, women
    votes = answers(codes, 2, 0.3, np.random.default_rng(0))
    for code, right in ((-1, "Unsure"), (0, "male"), (1, "female")):
        rows = np.flatnonzero(codes == code).tolist()
        given = pd.Series([value for row in rows for value in votes[str(row)].values()])
        shares = given.value_counts(normalize=True)
        assert shares[right] == pytest.approx(0.7, abs=0.02)
        assert shares.drop(right).tolist() == pytest.approx([0.15, 0.15], abs=0.02)


def test_a_script_without_options_shows_its_usage_and_does_nothing():
    command = [sys.executable, "-m", "experiments.notebook", "--help"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Run a notebook in this process")
