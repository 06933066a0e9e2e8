"""The step for workflows: its file, and its script on real files."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.corpora import REPOSITORY
from tests.test_release import check_schema

STEP = REPOSITORY / ".github/actions/bias-gate/action.yml"
ACTION: dict[str, Any] = yaml.safe_load(STEP.read_text("utf-8"))
LABELS = {i: ("male", "female")[i % 2] for i in range(200)}


def test_the_step_fits_the_schema_of_actions():
    assert check_schema("vendor.github-actions", STEP) == ""


def test_every_input_reaches_the_script():
    values = ACTION["runs"]["steps"][1]["env"].values()
    assert set(values) == {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}


def write(path: Path, n_wrong: int) -> str:
    right = {i: "a man" if label == "male" else "a woman" for i, label in LABELS.items()}
    captions = {i: "a man" if i < n_wrong else text for i, text in right.items()}
    rows = [{"image_id": i, "caption": text} for i, text in captions.items()]
    path.write_text(json.dumps(rows))
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["labels.csv", "labels (of l'été, 2026).csv"])
def test_a_captioner_that_is_less_fair_fails(tmp_path, name):
    labels = tmp_path / name
    labels.write_text("id,gender\n" + "".join(f"{i},{label}\n" for i, label in LABELS.items()))
    variables = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "CAPTIONS": write(tmp_path / "new.json", n_wrong=80),
        "BASELINE": "baseline.json",
        "LABELS": str(labels),
        "PEOPLE": "",
        "METRIC": "gender_error",
        "MARGIN": "",
        "SETTINGS": "",
    }
    audit = [sys.executable, "-m", "bias_pipeline", "audit", write(tmp_path / "old.json", 0)]
    audit += ["--attributes", str(labels), "--json", "baseline.json"]
    subprocess.run(audit, cwd=tmp_path, env=variables, check=True, capture_output=True)
    script = ["bash", "-e", "-c", ACTION["runs"]["steps"][1]["run"]]
    done = subprocess.run(
        script, cwd=tmp_path, env=variables, check=False, capture_output=True, text=True
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "<failure" in (tmp_path / "fairness.xml").read_text()
