"""``report wandb --workspace``: what would be sent, held against the library's own classes."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bias_pipeline.commands.main import main
from bias_pipeline.io import machine
from bias_pipeline.results.rows import Result
from bias_pipeline.results.store import ResultStore
from bias_pipeline.run import workspace
from tests.report.test_tables import row
from tests.run.test_loggers import result

lacking = importlib.util.find_spec("wandb_workspaces") is None
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic V1 style")  # the library's own
needs_library = pytest.mark.skipif(lacking, reason="pip install 'bias_pipeline[track]'")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ResultStore(tmp_path).save(result("one"))
    return tmp_path


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def spec(headlines: list[str]) -> dict[str, Any]:
    """What the server would get."""
    view = workspace.build_workspace("team", "project", headlines)._to_model()
    text = view.spec.model_dump_json(by_alias=True, exclude_none=True)
    return dict(json.loads(text)["section"])


def panels(headlines: list[str]) -> dict[str, list[dict[str, Any]]]:
    sections = spec(headlines)["panelBankConfig"]["sections"]
    return {section["name"]: section["panels"] for section in sections}


def test_headlines_are_those_that_runs_have():
    headline = row(part="t_to_a")
    one = Result("a", [headline, replace(headline, part="group:a")], {})
    assert workspace.headlines_of([one, Result("b", [row()], {})]) == ["score", "t_to_a"]


@needs_library
def test_every_headline_is_a_bar_chart_and_intervals_stand_beside_their_values():
    sections = panels(["score", "a_to_t"])
    charts = sections["Headlines by study and captioner"]
    assert {item["viewType"] for item in charts} == {"Bar Chart"}
    assert [item["config"]["metrics"] for item in charts] == [["score"], ["a_to_t"]]
    interval = ["score/ci_low", "score", "score/ci_high"]
    assert sections["Intervals"][0]["config"]["metrics"] == interval


def test_runs_are_grouped_by_settings_that_differ():
    one, two = row(), replace(row(), masking="none")
    results = [Result("a", [one], {}), Result("b", [two], {})]
    assert workspace.differing_settings(results) == ["masking"]


@needs_library
def test_directions_are_drawn_against_each_other():
    (panel,) = panels(["a_to_t", "t_to_a"])["Directions"]
    axes = (panel["config"]["xAxis"], panel["config"]["yAxis"])
    assert (panel["viewType"], axes) == ("Scatter Plot", ("summary:a_to_t", "summary:t_to_a"))


@needs_library
def test_one_direction_is_no_plane():
    assert "Directions" not in panels(["score", "a_to_t"])


@needs_library
def test_runs_are_grouped_by_study_and_captioner_and_more_shown_than_ten():
    asked_for = spec(["score"])
    assert asked_for["runSets"][0]["grouping"] == [
        {"section": "run", "name": "group"},
        {"section": "config", "name": "captioner.value"},
    ]
    assert asked_for["settings"]["maxRuns"] == 100


def test_another_project_has_another_workspace():
    assert workspace.view_name("team", "one") != workspace.view_name("team", "two")


class Server:
    """What the library talks to: it keeps views by name."""

    app_url = "https://x.invalid"

    def __init__(self) -> None:
        self.views: dict[str, dict[str, str]] = {}
        self._service_api = self

    def execute_graphql(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        if "mutation" not in query:
            view = self.views.get(variables["viewName"])
            return {"project": {"allViews": {"edges": [{"node": view}] if view else []}}}
        name = variables["name"]
        identity = variables.get("id", f"id-{len(self.views)}")
        # A view without an id is a new one, whatever its name.
        key = name if "id" in variables or name not in self.views else f"{name}-again"
        self.views[key] = {
            "id": identity,
            "name": name,
            "displayName": variables["displayName"],
            "spec": variables["spec"],
        }
        return {"upsertView": {"view": self.views[key]}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    import wandb

    stand_in = Server()
    monkeypatch.setattr(wandb, "Api", lambda: stand_in)
    return stand_in


@needs_library
def test_a_second_call_renews_the_workspace_of_the_first(server):
    first = workspace.save(workspace.build_workspace("team", "project", ["score"]))
    second = workspace.save(workspace.build_workspace("team", "project", ["a_to_t"]))
    name = workspace.view_name("team", "project").removeprefix("nw-").removesuffix("-v")
    assert first == second == f"https://x.invalid/team/project?nw={name}"
    (view,) = server.views.values()
    assert '"a_to_t"' in view["spec"]


# --- through the door


@needs_library
def test_a_server_that_hangs_at_the_workspace_is_left(monkeypatch):
    monkeypatch.setattr(workspace, "reachable_server", lambda: "http://x")
    with pytest.raises(workspace.ResourceError, match=r"within 0\.01 s"):
        workspace.save_workspace([], timeout_s=0.01)


@needs_library
def test_a_refusal_is_told_with_its_reason(monkeypatch):
    monkeypatch.setattr(workspace, "reachable_server", lambda: "http://x")
    monkeypatch.setattr(workspace.sys, "executable", "/bin/false")
    with pytest.raises(workspace.ResourceError, match="refused the workspace: no reason given"):
        workspace.save_workspace([])


def test_a_workspace_is_not_offline(folder):
    assert main(["report", "wandb", str(folder), "--workspace", "--mode", "offline"]) == 2


def test_the_lacking_library_is_named_before_anything_is_sent(folder, monkeypatch, capsys):
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    assert main(["report", "wandb", str(folder), "--workspace"]) == 5
    assert "bias_pipeline[track]" in capsys.readouterr().err
