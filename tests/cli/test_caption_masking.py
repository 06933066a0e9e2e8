"""``caption --image-masking`` and ``--crop``: captions of photos as attackers see them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.corpus.pictures import Pictures, Region
from bias_pipeline.datasets.coco_files import model_captions
from bias_pipeline.datasets.columns import Layout
from bias_pipeline.vision.masking import ImageMasking
from bias_pipeline.vision.people import crop_person
from bias_pipeline.vision.photos import drawn, photo_size
from tests.chat_stub import completion, picture_of, serving
from tests.cli.commands import Run
from tests.photo_folder import write_photos

N_PHOTOS = 12
NOBODY = 5  # a photo of a dog alone
OPTIONS = ("--out", "out", "--max-new-tokens", "12", "--threads", "1")
Shoot = Callable[..., tuple[int, str]]


def region(category: str, left: float, top: float, size: tuple[int, int]) -> Region:
    """An outlined square of 12 pixels a side."""
    outline = (left, top, left + 12, top, left + 12, top + 12, left, top + 12)
    return Region(category, (left, top, 12, 12), size, (outline,))


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), N_PHOTOS)


@pytest.fixture(scope="module")
def regions(photos: Path) -> dict[str, tuple[Region, ...]]:
    """A person and a dog in each photo but one, in different places."""
    known = {}
    for number in range(1, N_PHOTOS + 1):
        high, wide = photo_size(photos / f"{number}.png")
        person = region("person", 2 + number, 3, (high, wide))
        dog = region("dog", 20, 5 + number % 9, (high, wide))
        known[str(number)] = (dog,) if number == NOBODY else (person, dog)
    return known


@pytest.fixture(scope="module")
def instances(
    regions: dict[str, tuple[Region, ...]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The same as a file of COCO's."""
    path = tmp_path_factory.mktemp("regions") / "instances.json"
    path.write_text(json.dumps(coco_of(regions)))
    return path


def coco_of(regions: dict[str, tuple[Region, ...]]) -> dict[str, Any]:
    """COCO's instances."""
    sizes = {image: listed[0].size for image, listed in regions.items()}
    numbers = {"person": 1, "dog": 18}
    return {
        "images": [{"id": int(i), "height": h, "width": w} for i, (h, w) in sizes.items()],
        "categories": [{"id": number, "name": name} for name, number in numbers.items()],
        "annotations": [
            {
                "image_id": int(image),
                "category_id": numbers[one.category],
                "bbox": list(one.box),
                "segmentation": [list(points) for points in one.polygons],
            }
            for image, listed in regions.items()
            for one in listed
        ],
    }


@pytest.fixture
def shoot(run: Run, blip: Path, photos: Path) -> Shoot:
    """Captions a folder of photos into ``out``."""

    def command(*words: str, folder: Path = photos) -> tuple[int, str]:
        return run("caption", str(folder), "--model", str(blip), *OPTIONS, *words)

    return command


def captions(run: Run, *words: str) -> dict[int, str]:
    code, printed = run("caption", "--gather", "out", "--no-strict", *words)
    assert code == 0, printed
    return {row["image_id"]: row["caption"] for row in json.loads(written().read_text())}


def written() -> Path:
    return Path("out", "captions.json")


def captions_of_arrays(shoot: Shoot, run: Run, arrays: dict[str, Any]) -> dict[int, str]:
    """Captions of pictures that a test has made."""
    folder = Path("made")
    folder.mkdir()
    for name, pixels in arrays.items():
        Image.fromarray(pixels).save(folder / f"{name}.png")
    before = {path.name for path in Path("out").iterdir()}
    shoot(folder=folder)
    (store,) = ({path.name for path in Path("out").iterdir()} - before) - {"captions.json"}
    return captions(run, "--run", store)


@pytest.mark.parametrize(
    ("words", "masking"),
    [
        (("--image-masking", "person_segment"), ImageMasking()),
        (("image_masking=person_box",), ImageMasking(person="box")),
        (("--image-masking", "objects"), ImageMasking(person="none", objects=True)),
        (
            ("--image-masking=person_part", "image_masking.fill=mean", "image_masking.grow=2"),
            ImageMasking(person="part", fill="mean", grow=2),
        ),
    ],
)
def test_captions_are_those_of_pictures_masked_as_for_attackers(
    words,
    masking,
    shoot,
    run,
    photos,
    instances,
    regions,
):
    code, printed = shoot(*words, "--regions", str(instances))
    assert code == 0, printed
    masked = captions(run)
    pictures = {
        image: Pictures((photos / f"{image}.png",), (regions[image],)).edited(masking)
        for image in map(str, masked)
    }
    arrays = {image: drawn(one, 0, 0).pixels for image, one in pictures.items()}
    assert captions_of_arrays(shoot, run, arrays) == masked


def test_a_crop_is_the_largest_person_as_retrieval_crops(
    shoot,
    run,
    photos,
    instances,
    regions,
):
    shoot("--crop", "person", "--regions", str(instances))
    cropped = captions(run)
    pictures = {
        image: Pictures((photos / f"{image}.png",), (regions[image],))
        for image in map(str, cropped)
    }
    arrays = {image: np.asarray(crop_person(one, 0, "person")) for image, one in pictures.items()}
    assert captions_of_arrays(shoot, run, arrays) == cropped


def test_masking_changes_captions(shoot, run, instances):
    """Else the tests above would say nothing."""
    shoot()
    whole = captions(run)
    shoot("--image-masking", "person_box", "--regions", str(instances), "--out", "masked")
    run("caption", "--gather", "masked", "--no-strict", "--to", "out/captions.json")
    masked = {row["image_id"]: row["caption"] for row in json.loads(written().read_text())}
    assert sum(masked[image] != whole[image] for image in masked) > len(masked) / 2


def test_a_photo_without_people_is_left_out_with_the_reason(shoot, run, instances):
    shoot("--image-masking", "person_segment", "--regions", str(instances))
    assert set(range(1, N_PHOTOS + 1)) - captions(run).keys() == {NOBODY}
    assert "it has no outline of a person" in Path("out", "missing.csv").read_text()


def test_shares_write_what_one_task_writes(shoot, run, instances):
    words = ("--image-masking", "person_box", "--regions", str(instances))
    shoot(*words)
    alone = captions(run)
    for number in range(3):
        shoot(*words, "--shard", f"{number}/3", "--out", "shares")
    run("caption", "--gather", "shares", "--no-strict", "--to", "out/captions.json")
    assert {row["image_id"]: row["caption"] for row in json.loads(written().read_text())} == alone


def test_a_second_start_does_nothing(shoot, instances):
    """Not even for the photo without people."""
    words = ("--image-masking", "person_box", "--regions", str(instances))
    shoot(*words)
    code, printed = shoot(*words)
    assert (code, " images/s" in printed) == (0, False), printed


@pytest.mark.parametrize(
    "other",
    [
        ("--image-masking", "person_segment", "image_masking.fill=blur"),
        ("--crop", "person"),
        ("--image-masking", "none"),
    ],
)
def test_other_maskings_are_never_mixed(other, shoot, run, instances):
    shoot("--image-masking", "person_segment", "--regions", str(instances))
    shoot(*other, "--regions", str(instances))
    code, printed = run("caption", "--gather", "out")
    assert (code, "2 runs that must not be mixed" in printed) == (3, True)
    assert "image_masking='person=segment'" in printed


def test_other_regions_are_other_photos(shoot, run, instances, regions):
    Path("fewer.json").write_text(json.dumps(coco_of({"1": regions["1"], "2": regions["2"]})))
    for path in (str(instances), "fewer.json"):
        shoot("--image-masking", "person_box", "--regions", path)
    code, printed = run("caption", "--gather", "out")
    assert (code, "2 runs that must not be mixed" in printed) == (3, True)


def test_the_masking_stands_in_the_file_and_is_noted_where_it_is_read(shoot, run, instances):
    words = ("--image-masking", "person_part", "image_masking.target=foreground")
    shoot(*words, "--regions", str(instances))
    captions(run)
    layout = Layout()
    model_captions(written(), None, layout)
    assert layout.notes() == [
        "captions.json: decoding: greedy, at most 12 tokens, "
        "image_masking: person=part target=foreground"
    ]


def test_whole_photos_have_no_note(shoot, run):
    shoot()
    captions(run)
    assert "image_masking" not in written().read_text()


def test_the_note_outlives_conversion(shoot, run, instances):
    shoot("--crop", "person", "--regions", str(instances))
    captions(run)
    assert run("data", "convert", str(written()), "--out", "tables")[0] == 0
    layout = Layout()
    model_captions(Path("tables", "captions.parquet"), None, layout)
    assert "image_masking: crop=person" in layout.notes()[0]


def is_grey_within(picture: Image.Image) -> bool:
    """Whether the person in photo 1 is painted over, up to what a JPEG changes."""
    inner = np.asarray(picture)[5:13, 5:13].astype(float)
    return bool(np.abs(inner - 127).max() < 12)


def test_a_server_gets_the_masked_photo(run, photos, instances):
    with serving(lambda _: completion("a dog")) as stub:
        options = ("--server", stub.url, "--model", "qwen", "--out", "out", "--limit", "1")
        masking = ("--image-masking", "person_box", "--regions", str(instances))
        code, printed = run("caption", str(photos), *options, *masking)
    assert code == 0, printed
    (body,) = stub.requests
    assert is_grey_within(picture_of(body))


def test_a_batch_has_the_masked_photo(run, photos, instances):
    options = ("--server", "http://localhost:1/v1", "--model", "qwen", "--out", "out")
    masking = ("--image-masking", "person_box", "--regions", str(instances))
    code, printed = run("caption", str(photos), *options, *masking, "--to-batch", "ask.jsonl")
    assert code == 0, printed
    requests = [json.loads(line) for line in Path("ask.jsonl").read_text().splitlines()]
    (first,) = (request for request in requests if request["custom_id"] == "1")
    assert is_grey_within(picture_of(first["body"]))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--image-masking", "person_box"), 2, "need --regions FILE"),
        (("--crop", "person"), 2, "need --regions FILE"),
        (("--regions", "REGIONS"), 2, "no photo is masked"),
        (("image_masking.fill=blur",), 2, "no photo is masked"),
        (("--image-masking", "objects", "image_masking=objects"), 2, "give one of the two"),
        (("--image-masking", "nobody", "--regions", "REGIONS"), 2, "nobody"),
        (
            ("--image-masking", "objects", "image_masking.fill=red", "--regions", "REGIONS"),
            2,
            "image_masking.fill",
        ),
        (("--image-masking", "objects,person_box", "--regions", "REGIONS"), 2, "image_masking"),
        (("--image-masking", "objects", "--regions", "no.json"), 5, "no.json"),
        (("--image-masking", "objects", "--regions", "OTHER"), 3, "of none of the photos"),
    ],
)
def test_words_that_do_not_fit(
    words,
    code,
    message,
    shoot,
    instances,
    regions,
):
    Path("other.json").write_text(json.dumps(coco_of({"77": regions["1"]})))
    named = {"REGIONS": str(instances), "OTHER": "other.json"}
    outcome, printed = shoot(*(named.get(word, word) for word in words))
    assert (outcome, message in printed) == (code, True), printed
    assert "Traceback" not in printed


def test_annotations_of_a_picture_of_another_shape_leave_the_photo_out(shoot, run, regions):
    wrong = region("person", 0, 0, (300, 40))
    Path("wrong.json").write_text(json.dumps(coco_of({**regions, "3": (wrong,)})))
    code, _ = shoot("--image-masking", "person_box", "--regions", "wrong.json")
    assert code == 0
    assert 3 not in captions(run)
    assert "another shape" in Path("out", "missing.csv").read_text()
