"""The bias section of a model card and its evaluations, as the hub's own library reads them."""

import math
from dataclasses import replace

import pytest
import yaml
from huggingface_hub import ModelCard

from bias_pipeline.commands.main import main
from bias_pipeline.errors import DataError
from bias_pipeline.report.page import report_of
from bias_pipeline.report.text_formats import benchmark_file, evaluation_results, model_card
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import ResultStore
from tests.report.test_page import LOWER, directional, result
from tests.report.test_summary import at_equal_speech
from tests.report.test_tables import HOSTILE, row

VALUES = {"value": 0.123, "ci_low": 0.1, "ci_high": 0.15, "p_value": 0.01}


def test_the_hub_reads_name_value_interval_and_settings():
    card = ModelCard(model_card(report_of([result("sat", **VALUES)], {})))
    (number,) = card.data.eval_results or []
    settings = number.metric_args
    assert card.data.model_name == "sat"
    assert (number.metric_type, number.metric_value) == ("lic", 0.123)
    assert (settings["ci_low"], settings["ci_high"], settings["attribute"]) == (0.1, 0.15, "x")
    assert settings["metric_version"] >= 1


def test_every_direction_is_a_result():
    card = ModelCard(model_card(report_of([directional("sat")], {})))
    parts = [one.metric_args["part"] for one in card.data.eval_results or []]
    assert parts == ["a_to_t", "t_to_a"]


def test_a_number_without_an_interval_has_none():
    cell = result("sat", **{**VALUES, "ci_low": math.nan, "ci_high": math.nan})
    card = model_card(report_of([cell], {}))
    assert "ci_low" not in card
    assert "| 12.3 |" in card


def test_a_small_p_is_not_0():
    card = ModelCard(model_card(report_of([result("sat", **{**VALUES, "p_value": 9e-24})], {})))
    (number,) = card.data.eval_results or []
    assert number.metric_args["p_value"] == 9e-24


def test_a_run_whose_numbers_are_all_undefined_has_no_result():
    undefined = [
        row(captioner="sat", metric="gender_ratio", run_id="run-nan", part=part, value=math.nan)
        for part in ("score", "model")
    ]
    cells = [result("sat", **VALUES), Result("run-nan", undefined, {"notes": [], "config": None})]
    card = ModelCard(model_card(report_of(cells, {})))
    assert [one.metric_type for one in card.data.eval_results or []] == ["lic"]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (result("sat", **VALUES), "### Limits"),
        (result("sat", **VALUES), "not how people identify"),
        (result("sat", **VALUES), "hirota2022lic"),
        (
            at_equal_speech("lic", "score", 0.01),
            "What else is known, and what is not:\n\n* Does it leak the group? ",
        ),
    ],
)
def test_a_card_says_what_it_cannot_say(cell, words):
    assert words in model_card(report_of([cell], {}))


@pytest.mark.parametrize("known", [True, False])
def test_a_card_says_only_of_unknown_training_that_it_is_unknown(known):
    cell = result("sat", **VALUES)
    manifest = {**cell.manifest, "corpus": {"trained_on_reference": known}}
    card = model_card(report_of([replace(cell, manifest=manifest)], {}))
    assert ("* A captioner that is not known to be trained" in card) == (not known)


def test_runs_that_differ_in_a_setting_are_told_apart():
    cells = [
        Result(
            f"run-{order}",
            [row(captioner="sat", metric="lic", run_id=f"run-{order}", **VALUES)],
            {"metric": LOWER, "config": {"probe": {"encoder": {"order": order}}}},
            settings={"encoder.order": str(order)},
        )
        for order in (1, 2)
    ]
    text = model_card(report_of(cells, {}))
    numbers = ModelCard(text).data.eval_results or []
    assert [one.metric_args["encoder.order"] for one in numbers] == ["1", "2"]
    assert "encoder.order 2 |" in text


def test_a_card_of_several_captioners_is_refused():
    with pytest.raises(DataError, match=r"these runs are of 2 \(oscar, sat\)"):
        model_card(report_of([result("sat"), result("oscar")], {}))


@pytest.mark.parametrize("name", ["ours", "lic"])
def test_a_metric_is_read_as_its_run_says(name):
    cell = result("sat", **VALUES)
    ours = replace(cell, rows=[replace(cell.rows[0], metric=name)])
    text = model_card(report_of([ours], {}))
    assert (f"| {LOWER['direction']} |" in text, "there is no score" in text) == (True, False)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_breaks_no_card(name):
    card = ModelCard(model_card(report_of([result(name, **VALUES)], {})))
    assert len(card.data.eval_results or []) == 1


def test_the_door_writes_a_card(tmp_path, capsys):
    ResultStore(tmp_path / "runs").save(result("sat", **VALUES))
    path = tmp_path / "card.md"
    assert main(["report", str(tmp_path / "runs"), "--card", str(path)]) == 0
    assert ModelCard.load(path).data.model_name == "sat"
    assert str(path) in capsys.readouterr().out


def test_a_refused_card_leaves_no_page(tmp_path):
    for name in ("sat", "oscar"):
        ResultStore(tmp_path).save(result(name))
    assert main(["report", str(tmp_path), "--card", str(tmp_path / "card.md")]) == 3
    assert not list(tmp_path.glob("*.*"))


def entries_in(text):
    """The entries as the hub's library (2.4.0) reads them; they are the whole file."""
    reason = "huggingface_hub is too old to read evaluation results"
    hub = pytest.importorskip("huggingface_hub._eval_results", reason=reason)
    lines = yaml.safe_load(text)
    entries = hub.parse_eval_result_entries(lines)
    assert hub.eval_result_entries_to_yaml(entries) == lines
    return entries


def test_the_hub_reads_an_evaluation_with_its_interval():
    report = report_of([result("sat", **VALUES)], {})
    (entry,) = entries_in(evaluation_results(report, "me/photos"))
    assert (entry.dataset_id, entry.value) == ("me/photos", 0.123)
    assert entry.task_id.startswith("lic-x-score")
    assert "ci_low=0.1, ci_high=0.15" in entry.notes


def test_evaluations_of_runs_that_differ_have_their_own_tasks():
    text = evaluation_results(report_of([directional("sat")], {}), "me/photos")
    tasks = [entry.task_id for entry in entries_in(text)]
    assert len({*tasks}) == len(tasks) == 2


def test_the_tasks_of_a_benchmark_are_those_that_its_results_name():
    report = report_of([directional("sat")], {})
    benchmark = yaml.safe_load(benchmark_file(report, "me/photos"))
    assert [*benchmark] == ["name", "description", "evaluation_framework", "tasks"]
    entries = entries_in(evaluation_results(report, "me/photos"))
    assert [task["id"] for task in benchmark["tasks"]] == [entry.task_id for entry in entries]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_breaks_no_evaluation(name):
    text = evaluation_results(report_of([result(name, **VALUES)], {}), "me/photos")
    assert len(entries_in(text)) == 1


def test_tasks_of_another_program_are_not_replaced(tmp_path, capsys):
    ResultStore(tmp_path / "runs").save(result("sat", **VALUES))
    (tmp_path / "eval.yaml").write_text("evaluation_framework: inspect-ai")
    card = str(tmp_path / "README.md")
    words = ["report", str(tmp_path / "runs"), "--eval-results", "me/photos", "--card", card]
    assert main(words) == 2
    assert "eval.yaml is of another program" in capsys.readouterr().err
    assert (tmp_path / "eval.yaml").read_text() == "evaluation_framework: inspect-ai"


def test_the_door_writes_evaluations_beside_the_card(tmp_path, capsys):
    ResultStore(tmp_path / "runs").save(result("sat", **VALUES))
    words = ["report", str(tmp_path / "runs"), "--eval-results", "me/photos"]
    assert main(words) == 2
    assert "--card" in capsys.readouterr().err
    assert main([*words, "--card", str(tmp_path / "README.md")]) == 0
    text = (tmp_path / ".eval_results/bias_pipeline.yaml").read_text()
    (entry,) = entries_in(text)
    benchmark = yaml.safe_load((tmp_path / "eval.yaml").read_text())
    assert benchmark["tasks"] == [{"id": entry.task_id}]
    assert main([*words, "--card", str(tmp_path / "README.md")]) == 0  # its own file is replaced
    assert main([*words[:-1], "nowhere", "--card", str(tmp_path / "README.md")]) == 2
