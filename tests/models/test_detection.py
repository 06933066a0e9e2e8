"""Detectors beside what the library reads of the same output, and what cannot be used."""

import json
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from pycocotools import mask as coco

from bias_pipeline.corpus.object_names import CATEGORIES, coco_number, coco_numbers
from bias_pipeline.errors import DataError, ResourceError
from bias_pipeline.models import detection
from bias_pipeline.models.detection import Detector, detector
from bias_pipeline.models.pretrained import find_pretrained
from bias_pipeline.models.recognition import TorchvisionDetector
from bias_pipeline.models.torchvision import make_importable
from tests.corpora import REPOSITORY
from tests.models.test_oldest import OLDEST
from tests.photo_folder import write_photos
from tests.tiny_detectors import KINDS, NUMBERS, random_torchvision, write_detector

CPU = torch.device("cpu")
BOXES = [kind for kind in KINDS if kind != "mask2former"]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return sorted(write_photos(tmp_path_factory.mktemp("photos"), 4).iterdir())


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A detector of random weights of each kind."""
    root = tmp_path_factory.mktemp("detectors")
    return cache(lambda kind: write_detector(root / kind, kind))


def open_detector(folder: Path, min_score: float = 0.05) -> Detector:
    return detector(find_pretrained(str(folder), detection.KINDS), min_score, CPU)


def detect(detector: Detector, photos: list[Path]) -> list[list[dict[str, Any]]]:
    return list(map(json.loads, detector.describe([detector.read(path) for path in photos])))


@cache
def library(folder: Path) -> tuple[Any, Any]:
    """Its processor and its network."""
    import transformers

    kind = "ObjectDetection" if folder.name != "mask2former" else "UniversalSegmentation"
    network: Any = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(folder).eval()
    return transformers.AutoImageProcessor.from_pretrained(folder, backend="pil"), network


def of_the_library(folder: Path, path: Path) -> tuple[Any, Any, tuple[int, int]]:
    """The library's processor, its network's output, and a photo's height and width."""
    process, network = library(folder)
    with Image.open(path) as file:
        photo = file.convert("RGB")
    with torch.inference_mode():
        output = network(process(images=photo, return_tensors="pt")["pixel_values"])
    return process, output, (photo.height, photo.width)


@pytest.mark.parametrize("kind", BOXES)
def test_boxes_are_where_the_library_finds_them(kind, folder_of, photos):
    folder = folder_of(kind)
    n_expected = 0
    for path, ours in zip(photos, detect(open_detector(folder), photos), strict=True):
        process, output, size = of_the_library(folder, path)
        (theirs,) = process.post_process_object_detection(
            output, threshold=0.05, target_sizes=[size]
        )
        limits = torch.tensor([size[1], size[0], size[1], size[0]])
        left, top, right, bottom = theirs["boxes"].clamp(min=0).minimum(limits).T
        boxes = torch.stack([left, top, right - left, bottom - top], 1).tolist()
        labels, scores = theirs["labels"].tolist(), theirs["scores"].tolist()
        expected = [
            (NUMBERS[label], score, box)
            for label, score, box in zip(labels, scores, boxes, strict=True)
            if NUMBERS[label] is not None
        ]
        n_expected += len(expected)
        # Of RT-DETR the library takes no more than there are queries.
        assert len(ours) == len(expected) or (kind == "rt_detr" and len(ours) > len(expected))
        for number, score, box in expected:
            assert any(
                one["category_id"] == number
                and one["score"] == pytest.approx(score, abs=1e-4)
                and one["bbox"] == pytest.approx(box, abs=0.02)
                for one in ours
            )
    assert n_expected


def test_masks_are_those_of_the_paper_s_instance_inference(folder_of, photos):
    """A query's score times its mask's own certainty; masks by the sign of scaled logits."""
    folder = folder_of("mask2former")
    for path, item in zip(photos, detect(open_detector(folder), photos), strict=True):
        _, output, size = of_the_library(folder, path)
        sure = output.class_queries_logits[0].softmax(-1)[:, :-1]
        logits = torch.nn.functional.interpolate(output.masks_queries_logits, size, mode="bilinear")
        expected = []
        for query, mask in enumerate(logits[0]):
            inside = mask.sigmoid()[mask > 0].mean().item() if (mask > 0).any() else 0.0
            for label, score in enumerate(sure[query].tolist()):
                if NUMBERS[label] is not None and score * inside >= 0.05:
                    area = int((mask > 0).sum())
                    expected.append((round(score * inside, 4), NUMBERS[label], area))
        lines = [
            (round(o["score"], 4), o["category_id"], int(coco.area(o["segmentation"])))
            for o in item
        ]
        assert expected
        np.testing.assert_allclose(sorted(lines), sorted(expected), rtol=0, atol=2e-4)


def test_masks_and_boxes_are_of_the_picture_s_own_size(folder_of, photos):
    detections = detect(open_detector(folder_of("mask2former")), photos)
    for path, result in zip(photos, detections, strict=True):
        with Image.open(path) as photo:
            width, height = photo.size
        for message in result:
            assert message["segmentation"]["size"] == [height, width]
            assert message["bbox"] == coco.toBbox(message["segmentation"]).tolist()


@pytest.mark.parametrize("kind", ["detr", "mask2former"])
def test_pictures_of_one_shape_are_seen_together_as_alone(kind, folder_of, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (3, 4, 5, 3), np.uint8)
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    for path, pixels in zip(paths, noise, strict=True):
        Image.fromarray(pixels).resize((40, 30)).save(path)
    detector = open_detector(folder_of(kind))
    for path, together in zip(paths, detect(detector, paths), strict=True):
        (alone,) = detect(detector, [path])
        scores = [one["score"] for one in alone]
        assert [one["score"] for one in together] == pytest.approx(scores, abs=2e-5)


@pytest.mark.parametrize("kind", ["detr", "rt_detr", "mask2former"])
def test_less_certain_ones_are_left_out(kind, folder_of, photos):
    folder = folder_of(kind)
    every = detect(open_detector(folder, 0.01), photos)
    scores = np.sort([one["score"] for result in every for one in result])
    widest = int(np.diff(scores).argmax())
    middle = float(scores[widest : widest + 2].mean())
    certain = [[one for one in result if one["score"] >= middle] for result in every]
    assert detect(open_detector(folder, middle), photos) == certain


# --- label spaces


def test_each_of_coco_s_names_is_its_own_number():
    numbers = [category.id for category in CATEGORIES.values()]
    assert [coco_number(name) for name in CATEGORIES] == numbers


@pytest.mark.parametrize(
    ("label", "number"),
    [("motorbike", 4), ("aeroplane", 5), ("tvmonitor", 72), ("Potted_Plant", 64), ("Woman", 1)],
)
def test_other_spellings_are_the_same_category(label, number):
    assert coco_number(label) == number


@pytest.mark.parametrize("label", ["N/A", "LABEL_1", "bat", "mouse pad", "wall-other-merged", ""])
def test_what_coco_does_not_have_has_no_number(label):
    assert coco_number(label) is None


def test_spaces_of_80_and_of_91_labels_agree():
    """Their numbers differ from the twelfth category on; their names do not."""
    by_number = {category.id: name for name, category in CATEGORIES.items()}
    wide = [by_number.get(number, "N/A") for number in range(91)]
    narrow = coco_numbers(list(CATEGORIES), "m")
    assert [n for n in coco_numbers(wide, "m") if n is not None] == narrow


def test_a_model_that_knows_no_people_is_refused(tmp_path):
    folder = write_detector(tmp_path, "detr", ("table", "kite", "dog"))
    with pytest.raises(DataError, match=r"none of its 3 labels \('table', 'kite', .* is 'person'"):
        open_detector(folder)


# --- what cannot be loaded


def test_a_backbone_s_weights_are_not_fetched(tmp_path):
    """Published DETRs ask for them although they hold them."""
    folder = write_detector(tmp_path, "detr")
    path = folder / "config.json"
    settings = {**json.loads(path.read_text()), "use_pretrained_backbone": True}
    path.write_text(json.dumps(settings))
    assert open_detector(folder).numbers == list(NUMBERS)


def test_weights_that_are_no_numbers_are_told(folder_of, photos):
    detector = open_detector(folder_of("detr"))
    with torch.no_grad():
        for weight in detector._network.parameters():
            weight.fill_(float("nan"))
    with pytest.raises(DataError, match="its weights are broken"):
        detect(detector, photos[:1])


LOOK = """\
import json, sys
from pathlib import Path
import torch, transformers
from bias_pipeline.models.detection import KINDS, detector
from bias_pipeline.models.pretrained import find_pretrained
from tests.tiny_detectors import write_detector
torch.set_num_threads(1)
folder = Path(sys.argv[2])
if not folder.exists():
    write_detector(folder, sys.argv[1])
own = detector(find_pretrained(str(folder), KINDS), 0.05, torch.device("cpu"))
found = own.describe([own.read(Path(path)) for path in sys.argv[4:]])
Path(sys.argv[3]).write_text(json.dumps([transformers.__version__, found]))
"""


@pytest.mark.skipif(not OLDEST.is_dir(), reason="`make oldest` installs it and runs this")
@pytest.mark.parametrize("kind", KINDS)
def test_both_majors_of_transformers_find_the_same(kind, tmp_path, photos):
    """Written by the older, as published ones are."""
    folder, message = tmp_path / "model", tmp_path / "found.json"
    path = os.pathsep.join([str(REPOSITORY), str(OLDEST)])
    command = [sys.executable, "-c", LOOK, kind, str(folder), str(message), *map(str, photos)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=True)
    version, result = json.loads(message.read_text())
    assert version.startswith("4.")
    for item, other in zip(
        detect(open_detector(folder), photos), map(json.loads, result), strict=True
    ):
        assert [o["category_id"] for o in item] == [o["category_id"] for o in other]
        for a, b in zip(item, other, strict=True):
            assert a["score"] == pytest.approx(b["score"], abs=1e-4)
            assert a["bbox"] == pytest.approx(b["bbox"], abs=0.05)


# --- torchvision


Save = Callable[..., Path]


@pytest.fixture
def save(monkeypatch: pytest.MonkeyPatch) -> Save:
    """Writes a file of random weights, changed."""

    def write(path: Path, change: Any = dict, n_classes: int = 91) -> Path:
        torch.save(change(random_torchvision(monkeypatch, n_classes).state_dict()), path)
        return path

    return write


@pytest.mark.slow
def test_torchvision_s_weights_find_what_torchvision_finds(tmp_path, photos, save, monkeypatch):
    path, net = save(tmp_path / "net.pth"), random_torchvision(monkeypatch)
    net.roi_heads.score_thresh = 0.011
    ours = TorchvisionDetector(path, 0.011, CPU)  # which has torchvision compile nothing
    with Image.open(photos[0]) as photo:
        pixels = torch.from_numpy(np.asarray(photo.convert("RGB")).copy())
    with torch.inference_mode():
        (theirs,) = net.eval()([pixels.permute(2, 0, 1) / 255])
    known = {category.id for category in CATEGORIES.values()}
    labels, scores = theirs["labels"].tolist(), theirs["scores"].tolist()
    expected = [score for score, n in zip(scores, labels, strict=True) if n in known]
    (boxes,) = detect(ours, photos[:1])
    assert expected
    assert len(boxes) == len(expected)
    assert boxes[0]["score"] == pytest.approx(max(expected), abs=1e-5)


FORMER = (
    (r"rpn\.head\.conv\.0\.0\.", "rpn.head.conv."),
    (r"(fpn\.(?:inner|layer)_blocks\.\d)\.0\.", r"\1."),
    (r"mask_head\.(\d)\.0\.", lambda match: f"mask_head.mask_fcn{int(match[1]) + 1}."),
)


def in_names_of_2019(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """As torchvision's published weights of COCO are."""
    renamed = {}
    for name, value in weights.items():
        for present, former in FORMER:
            name = re.sub(present, former, name)
        renamed[name] = value
    return renamed


@pytest.mark.parametrize("kind", ["fasterrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn"])
def test_weights_in_the_names_of_2019_are_read(tmp_path, kind):
    make_importable()
    module = pytest.importorskip("torchvision.models.detection", reason="torchvision is absent")
    with torch.device("meta"):  # drawing random weights would take a second
        net = module.__dict__[kind](weights=None, weights_backbone=None, num_classes=91)
    weights = {
        name: (torch.arange(value.numel()) + float(k)).reshape(value.shape)
        for k, (name, value) in enumerate(net.state_dict().items())
    }
    former = in_names_of_2019(weights)
    for name in ("rpn.head.conv.weight", "backbone.fpn.inner_blocks.0.weight"):
        assert name in former
    assert ("roi_heads.mask_head.mask_fcn1.weight" in former) == ("mask" in kind)
    torch.save(former, tmp_path / "net.pth")
    state = TorchvisionDetector(tmp_path / "net.pth", 0.1, CPU)._network.state_dict()
    assert all(torch.equal(state[name], value) for name, value in weights.items())


class Code:
    """Runs when it is read as a pickle is."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("ran",)


def test_other_files_are_refused_in_a_sentence(tmp_path, save, capsys):
    path = tmp_path / "net.pth"

    def check_refusal(message: str, error: type[Exception] = DataError) -> None:
        with pytest.raises(error, match=message):
            TorchvisionDetector(path, 0.1, CPU)

    check_refusal("no such file; fetch torchvision's weights", ResourceError)
    save(path, n_classes=3)
    check_refusal("3 classes without names")
    save(path, lambda present: {k: v for k, v in present.items() if "rpn" not in k})
    check_refusal("does not match any of fasterrcnn_resnet50_fpn, ")
    save(path, lambda present: {"model": present})
    check_refusal("cls_score.bias' is absent")
    path.write_bytes(path.read_bytes()[:1000])
    check_refusal("cut short")
    path.write_bytes(pickle.dumps(Code()))
    check_refusal(r"not a file of weights|could run code")
    assert "ran" not in capsys.readouterr().out
