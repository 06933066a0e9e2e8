"""Experiments that are sweeps: their files say over what (``sweep:``)."""

from argparse import Namespace
from pathlib import Path

import pytest

from bias_pipeline.errors import UsageError
from bias_pipeline.run import compose, launch
from bias_pipeline.run.launch import expand
from bias_pipeline.run.overrides import options_of


def expand_sweep(*words: str) -> list[str]:
    return expand(options_of(list(words)))


def test_an_experiment_sweeps_over_what_its_file_says():
    assert expand_sweep("experiment=chain", "dataset.root=x") == [
        "experiment=chain",
        "dataset.root=x",
        "metric=lic,dbac,gender_error,imagecaptioner2",
        "alignment=constant,matched",
    ]


def test_the_command_line_comes_first():
    words = expand_sweep("experiment=chain", "metric=lic", "alignment=none")
    assert words == ["experiment=chain", "metric=lic", "alignment=none"]


@pytest.mark.parametrize("words", [["metric=lic"], ["experiment=relic_gender"]])
def test_other_commands_stay_as_they_are(words):
    assert expand_sweep(*words) == words


def of_folder(folder: Path, text: str) -> list[str]:
    (folder / "experiment").mkdir()
    (folder / "experiment" / "mine.yaml").write_text(text)
    return expand_sweep("--config-dir", str(folder), "experiment=mine")


def test_an_experiment_of_ones_own_folder_may_be_a_sweep(tmp_path):
    text = "# @package _global_\nsweep: {metric: 'lic,dpa'}\n"
    assert of_folder(tmp_path, text) == ["experiment=mine", "metric=lic,dpa"]


def test_a_sweep_maps_keys_to_values(tmp_path):
    with pytest.raises(UsageError, match=r"mine\.yaml: sweep='lic' must map keys to values"):
        of_folder(tmp_path, "sweep: lic\n")


def test_a_sweep_does_not_enter_a_runs_identity():
    cell = compose.cell(["experiment=chain", "dataset.root=x", "metric=lic"])
    assert "sweep" not in cell.used
    assert cell.tree["dataset"]["images"] == "x/images"


@pytest.mark.parametrize("metric", ["lic", "dpa", "ba_directional", "dbac"])
def test_every_metric_of_the_table_composes(metric):
    words = ["experiment=dbac_table4", "dataset.root=x", f"metric={metric}"]
    cell = compose.cell([*words, "attribute=race_unsure", "captioner=box"])
    cell.build("metric")
    assert cell.tree["image_masking"]["target"] == "foreground"


def test_race_is_scored_by_labels_with_the_papers_settings():
    words = ["experiment=dbac_table4", "dataset.root=x", "metric=dbac", "metric.prior=labels"]
    tree = compose.cell([*words, "attribute=race_unsure"]).tree
    assert tree["metric"]["prior"] == "labels"
    assert (tree["alignment"]["delta"], tree["alignment"]["vectors"]) == (0.4, "glove")


@pytest.mark.parametrize("choice", ["alignment=none", "split=crossfit", "metric=dbac"])
def test_keys_of_an_experiment_that_another_choice_lacks_are_left_out(choice):
    cell = compose.cell(["experiment=relic_gender", "dataset.root=x", choice])
    group, _, name = choice.partition("=")
    assert cell.choices[group] == name


def test_keys_of_an_experiment_that_another_choice_has_stay():
    words = ["experiment=relic_age", "dataset.root=x", "alignment=contextual"]
    alignment = compose.cell(words).tree["alignment"]
    assert {"keep", "vocabulary"} <= alignment.keys()  # the file of contextual names only one


def test_a_key_of_the_command_that_the_choice_lacks_is_refused():
    words = ["experiment=relic_gender", "alignment=none", "alignment.vocabulary=published"]
    with pytest.raises(UsageError, match="vocabulary is unknown for alignment=none"):
        compose.cell(words)


def test_a_wrong_key_for_the_experiment_s_own_choice_is_refused(tmp_path):
    (tmp_path / "experiment").mkdir()
    text = "# @package _global_\ndefaults: [override /alignment: none]\nalignment: {typo: 1}\n"
    (tmp_path / "experiment" / "mine.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"alignment\.typo is unknown"):
        compose.cell(["--config-dir", str(tmp_path), "experiment=mine"])


def test_all_captioners_of_data_sets_that_have_others_are_refused(monkeypatch):
    names = {"dataset=scenes": ["faithful"], "dataset=coco": ["sat", "nic"]}
    monkeypatch.setattr(launch, "_captioners_of", lambda words, _: names[words[-1]])
    with pytest.raises(UsageError, match="dataset=coco has the captioners sat, nic, dataset=scen"):
        launch._all_captioners(["seeds=1", "dataset=scenes,coco"], Namespace())
