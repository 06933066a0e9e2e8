"""``explain gradcam`` through the door."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.pictures.captioners.test_fitted import write

SCENES = ("dataset=scenes", "dataset.n_images=12")
DRAWN = (
    *("dataset=coco", "dataset.attributes=drawn/attributes.csv", "dataset.images=drawn/images"),
    "dataset.captions=drawn/annotations/captions.json",
    "dataset.instances=drawn/annotations/instances.json",
    "captioner=drawn/captioners/amplifier.json",
)


@pytest.fixture
def model(tmp_path: Path) -> str:
    """The folder of a SAT with random weights."""
    return str(write(tmp_path / "sat", "sat"))


def test_a_row_an_image_and_pictures_of_the_first_maps(model, ok):
    words = ("--model", model, "--out", "maps", "--pictures", "2", "--maps")
    assert "12 pictures, layer seeing (Grad-CAM, 8 x 8)" in ok(
        "explain", "gradcam", *SCENES, *words
    )
    table = pd.read_parquet("maps/attribution.parquet")
    assert len(table) == table["image_id"].nunique() == 12
    assert {"image_id", "word", "attribution_score"} <= set(table.columns)
    assert len({path.name.split("_")[0] for path in Path("maps/maps").iterdir()}) == 2
    maps = pd.read_parquet("maps/maps.parquet")
    assert {len(one) for one in maps["map"]} == {64}
    assert json.loads(Path("maps/settings.json").read_text())["words"] == "gender"


def test_captions_are_those_of_caption(model, run, ok):
    assert run("data", "draw", "--out", "drawn", "--n-images", "6", "--side", "32")[0] == 0
    assert run("caption", "drawn/images", "--model", model, "--out", "written")[0] == 0
    assert run("caption", "--gather", "written", "--no-strict")[0] == 0
    captions = json.loads(Path("written/captions.json").read_text())
    ok("explain", "gradcam", *DRAWN, "--model", model, "--out", "maps")
    table = pd.read_parquet("maps/attribution.parquet").set_index("image_id")["caption"]
    assert {str(row["image_id"]): row["caption"] for row in captions} == table.to_dict()


def test_of_the_data_only_absent_pictures_are_noted(model, ok):
    """Captions of the data are not read, and images of no group are mapped too."""
    ok("data", "draw", "--out", "drawn", "--n-images", "40", "--side", "32")
    next(Path("drawn/images").iterdir()).unlink()
    words = (*DRAWN, "dataset.strict=false", "--model", model, "--out", "maps", "--pictures", "0")
    printed = ok("explain", "gradcam", *words)
    assert "1 of 40 images has no picture to show" in printed
    assert "are not scored" not in printed


@pytest.mark.slow  # two commands with a network
def test_masked_pictures_have_other_maps_and_the_same_masks(run, tmp_path):
    model = str(write(tmp_path / "grit", "grit"))
    for name in ("none", "person_box"):
        words = (f"image_masking={name}", "--model", model, "--out", name)
        assert run("explain", "gradcam", *SCENES, *words)[0] == 0
    plain, masked = (
        pd.read_parquet(f"{name}/attribution.parquet") for name in ("none", "person_box")
    )
    assert plain["uniform_share"].tolist() == masked["uniform_share"].tolist()
    scores, masked_scores = plain["attribution_score"], masked["attribution_score"]
    assert not np.allclose(scores, masked_scores, equal_nan=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--model model.gguf", "a GGUF file is read by a runtime without gradients"),
        (
            "--model x --server http://localhost",
            "a model behind a server gives captions and no gradients",
        ),
    ],
)
def test_captioners_without_gradients_are_refused(ends, tmp_path, words, message):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert message in ends(2, "explain", "gradcam", *words.split(), "--out", "a")
