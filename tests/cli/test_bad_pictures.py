"""Pictures, masks and networks that cannot be used, through the door: one sentence, and its code.

And those that look odd and can be used.
"""

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.cli.commands import part, results
from tests.coco_folder import write_folder

N, FIRST = 60, 100
WIDE, HIGH = 40, 30
CELL = (
    *("metric=imagecaptioner2", "encoder.side=32", "encoder.width=4", "encoder.hidden_dim=16"),
    *("trainer.max_epochs=1", "seeds=1", "stats.resamples=20", "logger=csv", "metric.leaks=[]"),
    *("dataset=coco", "captioner=mine", "metric.sides=[model]"),
)
Change = Callable[[Path, dict[str, Any]], object]


def write_photo_words(root: Path, change: Change) -> list[str]:
    """Photos with a person in each, some of which are changed; the keys that name them."""
    write_folder(root / "coco")
    photos = root / "photos"
    photos.mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (N, HIGH, WIDE, 3), np.uint8)
    for number, pixels in enumerate(noise, FIRST):
        Image.fromarray(pixels).save(photos / f"{number}.png")
    ids = range(FIRST, FIRST + N)
    content = {
        "images": [{"id": image_id, "height": HIGH, "width": WIDE} for image_id in ids],
        "categories": [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}],
        "annotations": [
            {"image_id": image_id, "category_id": 1, "bbox": [5, 5, 9, 9]} for image_id in ids
        ],
    }
    change(photos, content)
    (root / "regions.json").write_text(json.dumps(content))
    # Not relative to the folder of a test: a process reads what it is told once.
    places = {"root": "coco", "images": "photos", "regions": "regions.json"}
    return [f"dataset.{key}={root / place}" for key, place in places.items()]


def outline_people(**outline: object) -> Change:
    """All people are outlined, the first one wrongly."""

    def change(_: Path, content: dict[str, Any]) -> None:
        for annotation in content["annotations"]:
            annotation["segmentation"] = [[5, 5, 14, 5, 14, 14, 5, 14]]
        content["annotations"][0]["segmentation"] = outline

    return change


def truncate(photos: Path, _: object) -> None:
    path = photos / f"{FIRST}.png"
    path.write_bytes(path.read_bytes()[:900])


def turn(photos: Path, _: object) -> None:
    """It was stored lying, and is annotated so, and a viewer shows it upright."""
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (WIDE, HIGH)).save(photos / f"{FIRST}.png", exif=exif)


CODED = outline_people(size=[HIGH, WIDE], counts="0h_d0")


@pytest.mark.parametrize(
    ("change", "masking", "message"),
    [
        pytest.param(truncate, "person_box", "100.png: .*; repair or remove it", id="truncated"),
        pytest.param(
            turn, "person_box", "has 30 x 40 pixels, and its annotations are", id="turned"
        ),
        pytest.param(CODED, "person_segment", "100.png: a mask in its annotations", id="coded"),
    ],
)
def test_what_cannot_be_used_is_a_sentence(run, tmp_path, change, masking, message):
    code, output = run(*CELL, *write_photo_words(tmp_path, change), f"image_masking={masking}")
    (line,) = [item for item in output.splitlines() if item.startswith("error")]
    assert code == 3
    assert re.search(message, line), line


def odd(photos: Path, content: dict[str, Any]) -> None:
    """Other kinds of pictures, a box partly and one wholly outside, a crowd, and no person."""
    pixels = np.zeros((HIGH, WIDE), np.uint16)
    for number, picture in enumerate([Image.new("CMYK", (WIDE, HIGH)), Image.fromarray(pixels)]):
        (photos / f"{FIRST + number}.png").unlink()
        picture.save(photos / f"{FIRST + number}.tif")
    annotations = content["annotations"]
    annotations[2]["bbox"], annotations[3]["bbox"] = [-5, 25, 90, 90], [500, 500, 9, 9]
    annotations[4] |= {
        "segmentation": {"size": [HIGH, WIDE], "counts": [0, 600, 600]},
        "iscrowd": 1,
    }
    annotations[5]["category_id"] = 18


def test_odd_pictures_are_used_and_those_without_a_person_are_not(ok, tmp_path):
    words = write_photo_words(tmp_path, odd)
    assert "2 pictures have no box of a person, cannot be masked and are not scored" in ok(
        *CELL, *words, "image_masking=person_box", "dataset.strict=false"
    )
    (path,) = results(tmp_path)
    assert part(path, "model")["coverage"] == pytest.approx(1 - 2 / (N - 3))  # three have no group


def test_broken_pictures_count_as_absent_where_files_need_not_fit(ok, tmp_path):
    words = write_photo_words(tmp_path, truncate)
    output = ok(*CELL, *words, "image_masking=person_box", "dataset.strict=false")
    assert re.search("1 of .* labelled images has a broken picture, such as 100", output)


class Code:
    """Runs when it is read as a pickle is."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("ran"),)


@pytest.mark.parametrize(
    ("files", "code", "message"),
    [
        pytest.param({"model.safetensors": "another"}, 3, "cannot be loaded", id="another"),
        pytest.param({"model.safetensors": "code"}, 3, "cannot be loaded", id="code"),
        pytest.param({"pytorch_model.bin": "code"}, 5, "model.safetensors is absent", id="pickle"),
    ],
)
def test_weights_of_another_network_or_with_code_are_a_sentence(
    ends, tmp_path, files, code, message
):
    timm = pytest.importorskip("timm", reason="timm is absent")
    from safetensors.torch import save

    words = write_photo_words(tmp_path, lambda *_: None)
    net = tmp_path / "net"
    net.mkdir()
    preprocessing = {"input_size": [3, 64, 64], "mean": [0.5] * 3, "std": [0.5] * 3}
    config = {"architecture": "test_resnet", "num_classes": 3, "pretrained_cfg": preprocessing}
    (net / "config.json").write_text(json.dumps(config))
    other = timm.create_model("test_convnext", pretrained=False, num_classes=3)
    contents = {"another": save(other.state_dict()), "code": pickle.dumps(Code())}
    for name, kind in files.items():
        (net / name).write_bytes(contents[kind])
    assert message in ends(
        code, *CELL, *words, "image_masking=person_box", f"encoder.backbone=timm:{net}"
    )
    assert not Path("ran").exists()
