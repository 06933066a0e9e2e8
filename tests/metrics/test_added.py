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


def test_help_offers_it(package):
    assert "silence" in output_of(package, "--help")


def test_it_is_listed_with_its_paper_its_behaviours_and_a_card(package):
    listed = output_of(package, "metrics")
    assert "Ash 2026, eq. 1" in listed
    assert "silence" in listed.partition("What metrics detect")[2]
    cards = output_of(package, "metrics", "--cards")
    card = cards.partition("## `silence`")[2].partition("\n## ")[0]
    assert "* **needs**: human captions.\n" in card


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


def test_a_report_shows_and_cites_it(package):
    output_of(package, "metric=silence", "dataset.n_images=300", "stats.resamples=20", "logger=csv")
    output_of(package, "report", "--export", "export")
    (headlines,) = (package / "export" / "tables").glob("*headlines.md")
    assert "silence" in headlines.read_text()
    assert "@misc{ash2026," in (package / "export" / "references.bib").read_text()
