"""Masks that would take all memory, or end the process: refused with the file's name."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bias_pipeline.corpus.pictures import Region
from bias_pipeline.data.picture_files import regions_by_id
from bias_pipeline.data.regions import box_of_runs, outline_mask
from bias_pipeline.errors import DataError


def outline(n_points: int) -> Region:
    """One that runs through the picture to and fro."""
    points = np.random.default_rng(0).random(2 * n_points) * 640
    return Region("person", (0, 0, 640, 640), (640, 640), polygons=(tuple(points.tolist()),))


@pytest.mark.parametrize("n_points", [20_000, 200_000])
def test_an_outline_that_is_too_long_is_refused(n_points):
    with pytest.raises(ValueError, match="longer than 1,000,000 pixels"):
        outline_mask(outline(n_points), 640, 640)


def test_a_fine_outline_of_many_points_is_drawn():
    turns = np.linspace(0, 2 * np.pi, 20_000)
    points = np.stack([320 + 100 * np.cos(turns), 320 + 100 * np.sin(turns)], 1).ravel()
    circle = Region("person", (0, 0, 1, 1), (640, 640), polygons=(tuple(points.tolist()),))
    assert outline_mask(circle, 640, 640).sum() == pytest.approx(np.pi * 100**2, rel=0.01)


def read(folder: Path, segmentation: Any) -> None:
    path = folder / "seen.json"
    row = {"image_id": 7, "category_id": 1, "score": 0.9, "segmentation": segmentation}
    path.write_text(json.dumps([row]))
    regions_by_id(path)


@pytest.mark.parametrize(
    "segmentation",
    [
        {"size": [2**17, 2**16], "counts": [2**33]},
        {"size": [2**17, 2**16], "counts": [2**32, 2**32]},
        {"size": [4, 4], "counts": "o" * 40},
        {"size": [4, 4], "counts": "PPPP"},
    ],
)
def test_run_lengths_that_no_mask_has_are_refused(tmp_path, segmentation):
    with pytest.raises(DataError, match=r"seen\.json"):
        read(tmp_path, segmentation)


def test_the_box_of_run_lengths_is_that_of_coco_s_tools():
    from pycocotools import mask as coco

    generator = np.random.default_rng(0)
    for _ in range(300):
        height, width = generator.integers(1, 9, 2)
        pixels = (generator.random((height, width)) < 0.3).astype(np.uint8)
        coded: Any = coco.encode(np.asfortranarray(pixels))
        wanted = coco.toBbox(coded).tolist()
        items = box_of_runs(coded["counts"], int(height), int(width)) or (0, 0, 0, 0)
        assert list(items) == wanted
