"""Networks that say what pictures show, beside what the library makes of the same weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from bias_pipeline.errors import DataError
from bias_pipeline.io.machine import EFFICIENTNET
from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.models.recognition import (
    KINDS,
    MOST_LABELS,
    Recognizer,
    find_network,
    recognizer,
)
from bias_pipeline.models.timm_networks import find_network_of_timm
from bias_pipeline.models.timm_networks import timm as timm_library
from tests.corpora import DATA
from tests.photo_folder import write_photos
from tests.pictures.captioners.test_timm_backbone import network as write_timm
from tests.tiny_models import write_clip, write_detector, write_resnet

CPU = torch.device("cpu")
NAMES = ("dog", "kite", "car")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return sorted(write_photos(tmp_path_factory.mktemp("photos"), 5).iterdir())


def open_recognizer(folder: Path) -> Recognizer:
    return recognizer(find_pretrained(str(folder), KINDS), NAMES, CPU)


def recognize(recognizer: Recognizer, photos: list[Path]) -> list[dict[str, float]]:
    return [
        dict(json.loads(description))
        for description in recognizer.describe([recognizer.read(path) for path in photos])
    ]


def process_photo(folder: Path, path: Path) -> Any:
    from transformers import AutoImageProcessor

    process = AutoImageProcessor.from_pretrained(folder, backend="pil")
    return process(images=Image.open(path).convert("RGB"), return_tensors="pt")


def test_a_classifier_is_as_sure_as_the_librarys(tmp_path, photos):
    from transformers import ResNetForImageClassification

    folder = write_resnet(tmp_path)
    network: Any = ResNetForImageClassification.from_pretrained(folder).eval()
    for path, item in zip(photos, recognize(open_recognizer(folder), photos), strict=True):
        with torch.inference_mode():
            logits = network(process_photo(folder, path)["pixel_values"]).logits[0]
        expected = dict(
            zip(["dog", "kite", "sports ball", "person"], logits.softmax(-1).tolist(), strict=False)
        )
        assert item == pytest.approx(expected, rel=1e-5)


def test_a_classifier_of_timm_is_as_sure_as_its_library(tmp_path, photos):
    names = ["dog", "kite", "sports_ball"]
    prepared = {"input_size": [3, 64, 64], "mean": [0.5] * 3, "std": [0.4] * 3, "crop_pct": 0.9}
    folder = write_timm(tmp_path, pretrained_cfg=prepared, label_names=names)
    network, transform = (
        find_network_of_timm(f"timm:{folder}").build(),
        timm_library().data.create_transform(
            (3, 64, 64), interpolation="bicubic", mean=[0.5] * 3, std=[0.4] * 3, crop_pct=0.9
        ),
    )
    classifier = find_network(f"timm:{folder}").load([], CPU)
    for path, item in zip(photos, recognize(classifier, photos), strict=True):
        with torch.inference_mode():
            shown = transform(Image.open(path).convert("RGB"))
            likely = network(shown[None])[0].softmax(-1).tolist()
        wanted = dict(zip(["dog", "kite", "sports ball"], likely, strict=True))
        assert item == pytest.approx(wanted, abs=2e-3)


@pytest.mark.real
def test_the_package_of_lite0_knows_what_is_on_a_photo():
    """A photo of a woman on skis."""
    pytest.importorskip(EFFICIENTNET.modules[0], reason="the extra offline-vision is not installed")
    photo = DATA / "photos" / "images" / "000000000785.jpg"
    if not photo.is_file():
        pytest.skip(f"{photo} is absent")
    (labels,) = recognize(find_network("efficientnet_lite0").load([], CPU), [photo])
    assert next(iter(labels)) == "ski"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "does not name its 3 classes"),
        ({"pretrained_cfg": {"crop_pct": 0}}, "crop_pct is 0"),
        ({"pretrained_cfg": {"interpolation": "nearest"}}, "interpolation is 'nearest'"),
        ({"pretrained_cfg": {"crop_mode": "squash"}}, "crop_mode is 'squash'"),
        ({"label_names": {"0": "dog"}}, "label_names"),
    ],
)
def test_a_classifier_of_timm_that_cannot_be_used_is_refused(more, message, tmp_path):
    with pytest.raises(DataError, match=message):
        find_network(f"timm:{write_timm(tmp_path, **more)}").load([], CPU)


def test_the_surest_category_stands_first(tmp_path, photos):
    (description,) = (item := open_recognizer(write_resnet(tmp_path))).describe(
        [item.read(photos[0])]
    )
    confidences = [confidence for _, confidence in json.loads(description)]
    assert confidences == sorted(confidences, reverse=True)
    assert "" not in recognize(open_recognizer(write_resnet(tmp_path)), photos[:1])[0]


def test_clip_is_as_sure_of_names_as_the_librarys(tmp_path, photos):
    from transformers import AutoTokenizer, CLIPModel

    folder = write_clip(tmp_path)
    network: Any = CLIPModel.from_pretrained(folder).eval()
    tokens = AutoTokenizer.from_pretrained(folder)(
        [f"a photo of a {name}" for name in NAMES],
        padding=True,
        truncation=True,
        max_length=24,
        return_tensors="pt",
    )
    for path, item in zip(photos, recognize(open_recognizer(folder), photos), strict=True):
        with torch.inference_mode():
            logits = network(**tokens, **process_photo(folder, path)).logits_per_image[0]
        expected = dict(zip(NAMES, logits.softmax(-1).tolist(), strict=True))
        assert item == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", ["yolos", "conditional_detr"])
def test_a_detectors_label_is_as_sure_as_its_surest_box(kind, tmp_path, photos):
    import transformers

    folder = write_detector(tmp_path, kind)
    network: Any = transformers.AutoModelForObjectDetection.from_pretrained(folder).eval()
    process: Any = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    if kind == "conditional_detr":  # its own reading of logits; written for DETR's preprocessing
        process = transformers.ConditionalDetrImageProcessor()
    for path, item in zip(photos, recognize(open_recognizer(folder), photos), strict=True):
        with torch.inference_mode():
            output = network(process_photo(folder, path)["pixel_values"])
        (boxes,) = process.post_process_object_detection(output, threshold=0.0)
        for box, label in zip(boxes["scores"].tolist(), boxes["labels"].tolist(), strict=True):
            name = ["dog", "kite", "sports ball", "person", None][label]
            assert name is None or item[name] >= box - 1e-6
        best = int(boxes["scores"].argmax())
        name = ["dog", "kite", "sports ball", "person", None][int(boxes["labels"][best])]
        assert name is None or item[name] == pytest.approx(float(boxes["scores"][best]), rel=1e-4)


def test_only_the_surest_labels_are_kept(tmp_path, photos):
    class Many(Recognizer):
        names = tuple(map(str, range(2 * MOST_LABELS)))

        def read(self, path: Path) -> Any: ...

        def confidences(self, photos: Any) -> Any:
            return np.linspace(0, 1, 2 * MOST_LABELS, dtype=np.float32)[None]

    (description,) = Many().describe([])
    assert [label for label, _ in json.loads(description)] == list(
        map(str, range(2 * MOST_LABELS))
    )[: -MOST_LABELS - 1 : -1]


def write_broken(folder: Path) -> Path:
    from transformers import ResNetForImageClassification

    write_resnet(folder)
    network: Any = ResNetForImageClassification.from_pretrained(folder)
    with torch.no_grad():
        network.classifier[1].bias.fill_(float("nan"))
    network.save_pretrained(folder)
    return folder


def backbone(folder: Path) -> Path:
    from transformers import ResNetModel

    write_resnet(folder)
    network: Any = ResNetModel.from_pretrained(folder)
    network.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("write", "message"),
    [(write_broken, "its weights are broken"), (backbone, "weights are missing")],
)
def test_what_cannot_tell_is_refused(write, message, tmp_path, photos):
    with pytest.raises(DataError, match=message):
        recognize(open_recognizer(write(tmp_path)), photos)
