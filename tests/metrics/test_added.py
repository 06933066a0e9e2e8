"""A metric of one Python file and one YAML, those of CONTRIBUTING.md, is known everywhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_scenes
from bias_pipeline.scenes.world import generate
from tests.documents import copy_package, recipes

pytestmark = pytest.mark.slow

FILES = ("bias_pipeline/metrics/silence.py", "conf/metric/silence.yaml")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of ours with the two files and nothing else."""
    folder = tmp_path_factory.mktemp("added")
    copy_package(folder)
    for name in FILES:
        (folder / name).write_text(recipes()[name])
    return folder


def output_of(package: Path, *words: str) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "bias_pipeline", *words]
    environment = {**os.environ, "PYTHONPATH": str(package), "COLUMNS": "200"}
    return subprocess.run(
        command, cwd=package, env=environment, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope="module")
def metrics_output(package: Path) -> str:
    """What ``metrics`` prints."""
    return output_of(package, "metrics")


@pytest.fixture(scope="module")
def export_folder(package: Path) -> Path:
    """The export of a report on its result."""
    output_of(package, "metric=silence", "dataset.n_images=300", "stats.resamples=20", "logger=csv")
    output_of(package, "report", "--export", "export")
    return package / "export"


def test_help_offers_it(package):
    assert "silence" in output_of(package, "--help")


def test_it_is_listed(metrics_output):
    assert "Ash 2026, eq. 1" in metrics_output


def test_the_table_of_behaviours_has_it(metrics_output):
    assert "silence" in metrics_output.partition("What metrics detect")[2]


def test_it_has_a_card(package):
    card = (
        output_of(package, "metrics", "--cards").partition("## `silence`")[2].partition("\n## ")[0]
    )
    assert "| needs | human captions |" in card


def test_an_audit_runs_it(package):
    write_scenes(generate(n_images=80), package / "scenes", {"terse": CAPTIONERS["terse"]})
    files = (
        "--attributes",
        "scenes/attributes.csv",
        "--captions",
        "scenes/annotations/captions.json",
    )
    plan = output_of(package, "audit", "scenes/captioners/terse.json", *files, "--dry-run")
    assert "silence" in plan


def test_a_report_shows_it(export_folder):
    (headlines,) = (export_folder / "tables").glob("*headlines.md")
    assert "silence" in headlines.read_text()


def test_a_report_cites_it(export_folder):
    assert "@misc{ash2026," in (export_folder / "references.bib").read_text()
