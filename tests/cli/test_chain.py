"""The chain from pictures to scores, with a captioner of random weights."""

import json
from pathlib import Path

import pytest

from bias_pipeline.scenes.captioners import CAPTIONERS
from bias_pipeline.scenes.dataset import write_drawn
from bias_pipeline.scenes.world import generate
from experiments.chain.study import build, naming_of, run_once
from tests.pictures.captioners.test_fitted import write


def draw_chain(folder: Path) -> Path:
    captioners = {name: CAPTIONERS[name] for name in ("faithful", "stereotyper")}
    write_drawn(generate(n_images=60, seed=0), folder, captioners, 32)
    return folder


def test_captions_that_name_the_right_gender_are_counted(tmp_path):
    folder = draw_chain(tmp_path / "scenes")
    faithful = naming_of(folder, folder / "captioners" / "faithful.json")
    assert faithful.rightly == faithful.naming > 30
    path = folder / "captioners" / "all_men.json"
    captions = json.loads((folder / "captioners" / "faithful.json").read_text())
    path.write_text(json.dumps([{**row, "caption": "a man"} for row in captions]))
    men = naming_of(folder, path)
    assert men.naming == men.images
    assert 0 < men.rightly < men.images


def test_a_command_that_fails_has_said_why_and_leaves_no_folder(tmp_path, capfd):
    with pytest.raises(SystemExit) as ended:
        run_once(tmp_path / "images", "data", "draw", "--out", str(tmp_path), "--n-images", "none")
    assert ended.value.code == 2
    assert "'none' must be a whole number" in capfd.readouterr().err


@pytest.mark.slow
def test_the_chain_writes_what_its_experiment_scores(ok, tmp_path, monkeypatch):
    shown = ("--n-images", "60", "--side", "32")
    monkeypatch.setattr("experiments.chain.study.SHOWN", shown)
    folder = tmp_path / "chain"
    build(folder, write(tmp_path / "sat", "sat"))
    assert "chain" in ok("experiment=chain", f"dataset.root={folder}", "metric=gender_error")
