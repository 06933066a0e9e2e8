"""``report wandb --workspace``: a Weights & Biases workspace that compares the runs of a project.

Runs are grouped by study, by captioner, and by each setting in :data:`GROUPED` that differs between
runs. A study is a metric, an attribute and a data set, as in W&B's logger. The workspace's name on
the server depends only on entity, project and title. So a second call finds the first call's
workspace and replaces its panels.

W&B's library finds a workspace only by its address. So this module sets two private fields of the
library's workspace (``_internal_name``, ``_internal_id``), which a test checks.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bias_pipeline.errors import ResourceError, UsageError
from bias_pipeline.io.machine import WORKSPACES
from bias_pipeline.metrics.base import HEADLINES
from bias_pipeline.metrics.value_names import DIRECTIONS
from bias_pipeline.results.rows import Result
from bias_pipeline.run.loggers import run_apart
from bias_pipeline.run.push import reachable_server

if TYPE_CHECKING:
    from wandb_workspaces.workspaces import Workspace

TITLE = "bias_pipeline: captioners"
SAVE_S = 30.0  # how long a server that answers may take
MOST_BARS = 100  # in a chart, over all studies and captioners; W&B's default is ten


GROUPED = ("encoder", "head", "masking", "alignment", "scoring", "seeds")


def differing_settings(results: Sequence[Result]) -> list[str]:
    """The settings in :data:`GROUPED` in which runs of one metric differ."""
    values: dict[tuple[str, str], set[object]] = {}
    for result in results:
        row = result.rows[0]
        for name in GROUPED:
            values.setdefault((name, row.metric), set()).add(getattr(row, name))
    return [n for n in GROUPED if any(len(v) > 1 for (name, _), v in values.items() if name == n)]


def headlines_of(results: Sequence[Result]) -> list[str]:
    parts = {row.part for result in results for row in result.rows}
    return [part for part in HEADLINES if part in parts]


def save_workspace(
    results: Sequence[Result],
    *,
    project: str = "bias_pipeline",
    entity: str | None = None,
    timeout_s: float = SAVE_S,
) -> str:
    """Create a project's workspace, or replace the panels of an existing workspace."""
    server = reachable_server()
    order = {
        "entity": entity,
        "project": project,
        "headlines": headlines_of(results),
        "settings": differing_settings(results),
    }
    try:
        done = run_apart("workspace", "save_from_stdin", order, timeout_s)
    except subprocess.TimeoutExpired as error:
        raise ResourceError(
            f"the W&B server at {server} did not accept the workspace within {timeout_s:g} s; "
            "runs are sent, run the same command again"
        ) from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ResourceError(f"the W&B server at {server} refused the workspace: {reason}")
    return done.stdout.strip().splitlines()[-1]


def require_server(mode: str) -> None:
    """Check that a workspace can be saved, before anything is sent."""
    if mode not in ("", "online"):
        raise UsageError(f"--mode {mode}: a workspace needs a server; leave out --workspace")
    WORKSPACES.require()


def save_from_stdin() -> None:
    """Save the workspace described on standard input; print its address."""
    import wandb

    order = json.load(sys.stdin)
    entity = str(order["entity"] or wandb.Api().default_entity)
    print(save(build_workspace(entity, order["project"], order["headlines"], order["settings"])))


def build_workspace(
    entity: str, project: str, headlines: Sequence[str], settings: Sequence[str] = ()
) -> Workspace:
    """The workspace as the library's object; the function sends nothing."""
    from wandb_workspaces import workspaces as ws

    columns = [f"summary:{key}" for part in headlines for key in _with_interval(part)]
    workspace = ws.Workspace(
        entity=entity,
        project=project,
        name=TITLE,
        sections=_sections(headlines),
        settings=ws.WorkspaceSettings(max_runs=MOST_BARS),
        runset_settings=ws.RunsetSettings(
            groupby=[ws.Metric("Group"), *map(ws.Config, ("captioner", *settings))],
            pinned_columns=["config:captioner.value", "summary:answer", *columns],
        ),
    )
    workspace._internal_name = view_name(entity, project)
    return workspace


def _sections(headlines: Sequence[str]) -> list[Any]:
    """The sections on values, values with intervals, directions, and settings that differ."""
    from wandb_workspaces import workspaces as ws
    from wandb_workspaces.reports import v2 as wr

    values = [_bars(part, [part]) for part in headlines]
    intervals = [_bars(f"{part}, interval", _with_interval(part)) for part in headlines]
    sections = [
        ws.Section(name="Headlines by study and captioner", panels=values, is_open=True),
        ws.Section(name="Intervals", panels=intervals, is_open=True),
    ]
    if set(DIRECTIONS) <= set(headlines):
        across, up = (wr.SummaryMetric(part) for part in DIRECTIONS)
        plane = wr.ScatterPlot(title="Attribute to task, task to attribute", x=across, y=up)
        sections.append(ws.Section(name="Directions", panels=[plane], is_open=True))
    comparer = wr.RunComparer(diff_only="split")
    sections.append(ws.Section(name="What differs between runs", panels=[comparer]))
    return sections


def _bars(title: str, keys: Sequence[str]) -> Any:
    from wandb_workspaces.reports import v2 as wr

    return wr.BarPlot(
        title=title,
        metrics=list(keys),
        max_runs_to_show=MOST_BARS,
        max_bars_to_show=MOST_BARS,
    )


def _with_interval(part: str) -> list[str]:
    return [f"{part}/ci_low", part, f"{part}/ci_high"]


def view_name(entity: str, project: str) -> str:
    """The name of the workspace on the server, which depends only on entity and project.

    Example:
        >>> view_name("team", "bias_pipeline")
        'nw-a91c82ff65d-v'
    """
    place = hashlib.sha256(f"{entity}\n{project}\n{TITLE}".encode()).hexdigest()
    return f"nw-{place[:11]}-v"


def save(workspace: Workspace) -> str:
    """Send a workspace, which replaces a workspace of its name; returns its address."""
    from wandb_workspaces.workspaces import internal

    name = workspace._internal_name
    try:
        workspace._internal_id = internal.View.from_name(
            workspace.entity, workspace.project, name
        ).id
    except ValueError:  # the library raises this if no such workspace exists
        workspace._internal_id = ""
    workspace.save()
    return str(workspace.url)
