"""``caption --image-masking`` and ``--crop``: captions of photos as attackers see them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.corpus.pictures import Pictures, Region
from bias_pipeline.data.coco_files import model_captions
from bias_pipeline.data.columns import Layout
from bias_pipeline.data.image_masking import ImageMasking
from bias_pipeline.data.photos import draw_picture, photo_size
from bias_pipeline.data.regions import crop_person
from tests.chat_stub import completion, picture_of, serving
from tests.photo_folder import write_photos

N_PHOTOS = 6
NOBODY = 5  # a photo of a dog alone
OPTIONS = ("--out", "out", "--max-new-tokens", "12", "--threads", "1")
WRITTEN = Path("out", "captions.json")


def region(category: str, left: float, top: float, size: tuple[int, int]) -> Region:
    """An outlined square of 12 pixels a side."""
    outline = (left, top, left + 12, top, left + 12, top + 12, left, top + 12)
    return Region(category, (left, top, 12, 12), size, (outline,))


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos"), N_PHOTOS)


@pytest.fixture(scope="module")
def regions(photos) -> dict[str, tuple[Region, ...]]:
    """A person and a dog in each photo but one, in different places."""
    known = {}
    for number in range(1, N_PHOTOS + 1):
        size = photo_size(photos / f"{number}.png")
        dog = region("dog", 20, 5 + number % 9, size)
        person = region("person", 2 + number, 3, size)
        known[str(number)] = (dog,) if number == NOBODY else (person, dog)
    return known


def write_coco(path: Path, regions: Mapping[str, tuple[Region, ...]]) -> str:
    """The regions as a file of COCO's; returns its name."""
    sizes = {image: listed[0].size for image, listed in regions.items()}
    numbers = {"person": 1, "dog": 18}
    annotations = [
        {
            "image_id": int(image),
            "category_id": numbers[one.category],
            "bbox": list(one.box),
            "segmentation": [list(points) for points in one.polygons],
        }
        for image, listed in regions.items()
        for one in listed
    ]
    content = {
        "images": [{"id": int(i), "height": h, "width": w} for i, (h, w) in sizes.items()],
        "categories": [{"id": number, "name": name} for name, number in numbers.items()],
        "annotations": annotations,
    }
    path.write_text(json.dumps(content))
    return str(path)


@pytest.fixture(scope="module")
def instances(regions, tmp_path_factory) -> str:
    return write_coco(tmp_path_factory.mktemp("regions") / "instances.json", regions)


@pytest.fixture
def shoot(ends, blip, photos) -> Callable[..., str]:
    """Captions a folder of photos into ``out``; returns what was printed."""

    def command(*words: str, folder: Path = photos, code: int = 0) -> str:
        return ends(code, "caption", str(folder), "--model", str(blip), *OPTIONS, *words)

    return command


@pytest.fixture
def shoot_masked(shoot, instances) -> Callable[..., str]:
    """The same, masked."""
    return lambda *words, **more: shoot(*words, "--regions", instances, **more)


@pytest.fixture
def captions(ok) -> Callable[..., dict[int, str]]:
    """Image to caption, of what was gathered."""

    def command(*words: str, out: str = "out") -> dict[int, str]:
        ok("caption", "--gather", out, "--no-strict", *words, "--to", str(WRITTEN))
        return {row["image_id"]: row["caption"] for row in json.loads(WRITTEN.read_text())}

    return command


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--image-masking", "person_segment"), ImageMasking()),
        (("image_masking=person_box",), ImageMasking(person="box")),
        (("--image-masking", "objects"), ImageMasking(person="none", objects=True)),
        (
            ("--image-masking=person_part", "image_masking.fill=mean", "image_masking.grow=2"),
            ImageMasking(person="part", fill="mean", grow=2),
        ),
        (("--crop", "person"), None),  # the largest person, as retrieval crops
    ],
)
def test_captions_are_those_of_pictures_as_attackers_see_them(
    words, shown, shoot, shoot_masked, captions, photos, regions
):
    shoot_masked(*words)
    expected = captions()
    before = {path.name for path in Path("out").iterdir()}
    Path("made").mkdir()
    for image in map(str, expected):
        one = Pictures((photos / f"{image}.png",), (regions[image],))
        pixels = (
            draw_picture(one.with_edit(shown), 0, 0).pixels
            if shown
            else crop_person(one, 0, "person")
        )
        Image.fromarray(np.asarray(pixels)).save(f"made/{image}.png")
    shoot(folder=Path("made"))
    (store,) = {path.name for path in Path("out").iterdir()} - before
    assert captions("--run", store) == expected


def test_masking_changes_captions(shoot, shoot_masked, captions):
    """Else the tests above would say nothing."""
    shoot()
    whole = captions()
    shoot_masked("--image-masking", "person_box", "--out", "masked")
    others = captions(out="masked")
    assert sum(others[image] != whole[image] for image in others) > len(others) / 2


def test_a_photo_without_people_is_left_out_with_the_reason(shoot_masked, captions):
    shoot_masked("--image-masking", "person_segment")
    assert set(range(1, N_PHOTOS + 1)) - captions().keys() == {NOBODY}
    assert "it has no outline of a person" in Path("out", "missing.csv").read_text()


def test_annotations_of_a_picture_of_another_shape_leave_the_photo_out(shoot, captions, regions):
    wrong = {**regions, "3": (region("person", 0, 0, (300, 40)),)}
    shoot("--image-masking", "person_box", "--regions", write_coco(Path("wrong.json"), wrong))
    assert 3 not in captions()
    assert "another shape" in Path("out", "missing.csv").read_text()


def test_shares_write_what_one_task_writes(shoot_masked, captions):
    shoot_masked("--image-masking", "person_box")
    alone = captions()
    for number in range(3):
        shoot_masked("--image-masking", "person_box", "--shard", f"{number}/3", "--out", "shares")
    assert captions(out="shares") == alone


def test_a_second_start_does_nothing(shoot_masked):
    """Not even for the photo without people."""
    shoot_masked("--image-masking", "person_box")
    assert " images/s" not in shoot_masked("--image-masking", "person_box")


@pytest.mark.parametrize(
    "other",
    [
        ("--image-masking", "person_segment", "image_masking.fill=blur"),
        ("--crop", "person"),
        ("--image-masking", "none"),
    ],
)
def test_other_maskings_are_never_mixed(other, shoot_masked, ends):
    shoot_masked("--image-masking", "person_segment")
    shoot_masked(*other)
    printed = ends(3, "caption", "--gather", "out")
    assert "2 runs that must not be mixed" in printed
    assert "image_masking='person=segment'" in printed


def test_other_regions_are_other_photos(shoot, shoot_masked, ends, regions):
    fewer = write_coco(Path("fewer.json"), {"1": regions["1"], "2": regions["2"]})
    shoot_masked("--image-masking", "person_box")
    shoot("--image-masking", "person_box", "--regions", fewer)
    assert "2 runs that must not be mixed" in ends(3, "caption", "--gather", "out")


def notes_of(path: Path) -> list[str]:
    """What is told of a file of captions when it is read."""
    layout = Layout()
    model_captions(path, None, layout)
    return layout.notes()


def test_the_masking_stands_in_the_file_and_is_noted_where_it_is_read(shoot_masked, captions):
    shoot_masked("--image-masking", "person_part", "image_masking.target=foreground")
    captions()
    assert notes_of(WRITTEN) == [
        "captions.json: decoding: greedy, at most 12 tokens, "
        "image_masking: person=part target=foreground"
    ]


def test_whole_photos_have_no_note(shoot, captions):
    shoot()
    captions()
    assert "image_masking" not in WRITTEN.read_text()


def test_the_note_outlives_conversion(shoot_masked, captions, ok):
    shoot_masked("--crop", "person")
    captions()
    ok("data", "convert", str(WRITTEN), "--out", "tables")
    assert "image_masking: crop=person" in notes_of(Path("tables", "captions.parquet"))[0]


@pytest.mark.parametrize("batch", [False, True], ids=["a server", "a batch"])
def test_who_is_elsewhere_gets_the_masked_photo(ok, photos, instances, batch):
    with serving(lambda _: completion("a dog")) as stub:
        options = ("--server", stub.url, "--model", "qwen", "--out", "out", "--limit", "1")
        masking = ("--image-masking", "person_box", "--regions", instances)
        to_batch = ("--to-batch", "ask.jsonl") if batch else ()
        ok("caption", str(photos), *options, *masking, *to_batch)
    lines = Path("ask.jsonl").read_text().splitlines() if batch else []
    (body,) = [json.loads(line)["body"] for line in lines] if batch else stub.requests
    inner = np.asarray(picture_of(body))[5:13, 5:13].astype(float)
    assert np.abs(inner - 127).max() < 12  # painted over, up to what a JPEG changes


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--image-masking person_box", 2, "need --regions FILE"),
        ("--crop person", 2, "need --regions FILE"),
        ("--regions REGIONS", 2, "no photo is masked"),
        ("image_masking.fill=blur", 2, "no photo is masked"),
        ("--image-masking objects image_masking=objects", 2, "give one of the two"),
        ("--image-masking nobody --regions REGIONS", 2, "nobody"),
        (
            "--image-masking objects image_masking.fill=red --regions REGIONS",
            2,
            "image_masking.fill",
        ),
        ("--image-masking objects,person_box --regions REGIONS", 2, "image_masking"),
        ("--image-masking objects --regions no.json", 5, "no.json"),
        ("--image-masking objects --regions other.json", 3, "has no regions of the photos"),
        ("--image-masking some_objects --regions people.json", 3, "people.json: no thing beside"),
    ],
)
def test_words_that_do_not_fit(words, code, message, shoot, instances, regions):
    write_coco(Path("other.json"), {"77": regions["1"]})
    write_coco(Path("people.json"), {"1": (region("person", 5, 5, (40, 40)),)})
    assert message in shoot(*words.replace("REGIONS", instances).split(), code=code)
