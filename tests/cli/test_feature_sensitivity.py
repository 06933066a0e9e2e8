"""``analysis feature_sensitivity`` through the door: from photos to a table."""

import json
from pathlib import Path

import pandas as pd
import pytest

from bias_pipeline.studies.commands.analysis import _changed_captions
from tests.cli.commands import Run

DATA = (
    "dataset.attributes=d/attributes.csv", "dataset.captions=d/annotations/captions.json",
    "dataset.instances=d/annotations/instances.json",
)  # fmt: skip
REGIONS = ("--regions", "d/annotations/instances.json")


@pytest.fixture
def model(run: Run, ok) -> str:
    """A SAT that has seen a few scenes once, and 60 scenes in the folder d."""
    assert run("data", "draw", "--out", "d", "--n-images", "60", "--side", "32")[0] == 0
    tiny = ("encoder.side=32", "encoder.width=4", "encoder.hidden_dim=16", "--epochs", "1")
    ok("fit", "sat", "dataset=scenes", "dataset.n_images=60", *tiny, "--out", "m")
    return "m"


@pytest.mark.slow  # fits a captioner that captions three times
def test_pictures_are_changed_captioned_and_scored(ok, model):
    options = ("d/images", "--model", model, *REGIONS, "--out", "f", "--max-new-tokens", "9")
    cheap = ("metric=quality,gender_error", "seeds=1", "stats.resamples=50")
    words = ("analysis", "feature_sensitivity", *options, *DATA, *cheap, "image_masking.blur=0.3")
    output = ok(*words)
    assert {path.stem for path in Path("f/captioners").iterdir()} == {
        "whole", "background", "objects",
    }  # fmt: skip
    assert "blur=0.3" in Path("f/captioners/background.json").read_text()
    table = pd.read_csv("f/feature_sensitivity.csv")
    assert set(table["change"]) == {"background", "objects"}
    assert "steady" in output


@pytest.mark.slow  # fits a captioner
def test_other_settings_give_other_captions_in_the_same_folder(model):
    lengths = []
    for most in ("9", "2"):
        options = ("d/images", "--model", model, *REGIONS, "--max-new-tokens", most, "--limit", "3")
        whole, *_ = _changed_captions(Path("f"), options, [])
        lengths.append(max(len(one["caption"].split()) for one in json.loads(whole.read_text())))
    assert lengths[0] > 2 >= lengths[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "f"], "--regions FILE and --out DIR are needed"),
        ([*REGIONS, "--out", "f", "--crop", "person"], "--crop: this analysis sets it"),
        ([*REGIONS, "--out", "f", "--image-masking", "objects"], "this analysis sets it"),
    ],
)
def test_what_does_not_fit_is_refused(words, message, ends):
    assert message in ends(2, "analysis", "feature_sensitivity", "photos", "--model", "m", *words)
