"""Photos are found by their names, read the same way, or refused with the reason."""

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.data import photos
from bias_pipeline.data.photos import (
    UnreadableError,
    fault_of,
    find_photos,
    image_id,
    photo_size,
    read_photo,
)
from bias_pipeline.errors import DataError, ResourceError

RED, WHITE = (255, 0, 0), (255, 255, 255)


def save_photo(path: Path, image: Image.Image, **options: Any) -> Path:
    image.save(path, **options)
    return path


# --- finding


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("000000000139.jpg", "139"),
        ("139.PNG", "139"),
        ("COCO_train2014_000000000009.jpg", "9"),
        ("COCO_9.jpg", "COCO_9"),
        ("a042.webp", "a042"),
        ("two.parts.jpg", "two.parts"),
    ],
)
def test_a_name_is_an_id(name, identifier):
    assert image_id(name) == identifier


def test_other_files_are_passed_over(tmp_path):
    for name in ("1.jpg", "2.JPEG", ".3.jpg", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "4.jpg").mkdir()
    assert find_photos(tmp_path) == {"1": tmp_path / "1.jpg", "2": tmp_path / "2.JPEG"}


def test_a_link_to_nowhere_is_a_photo_that_cannot_be_read(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "1.jpg").symlink_to("folder")
    (tmp_path / "2.jpg").symlink_to("nowhere")
    assert find_photos(tmp_path) == {"2": tmp_path / "2.jpg"}
    assert fault_of(tmp_path / "2.jpg") == "a link to nowhere, which is absent"
    with pytest.raises(UnreadableError, match=r"^a link to nowhere"):
        read_photo(tmp_path / "2.jpg")


@pytest.mark.parametrize("names", [("7.jpg", "7.png"), ("007.jpg", "7.jpg")])
def test_two_files_of_one_image_are_refused_with_both_names(names, tmp_path):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=f"{names[0]} and {names[1]} are both image 7"):
        find_photos(tmp_path)


def test_a_name_may_have_any_blank(tmp_path):
    """As macOS calls pictures of its screen; files of captions may have an ordinary one."""
    path = save_photo(tmp_path / "Screenshot at 3.45\u202fPM.png", Image.new("L", (8, 8)))
    assert find_photos(tmp_path) == {"Screenshot at 3.45 PM": path}


def test_a_name_that_is_no_text_is_refused(tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9.jpg")).touch()
    with pytest.raises(DataError, match="cannot be an image id; rename it"):
        find_photos(tmp_path)


@pytest.mark.parametrize(("name", "message"), [("", "no photos in it"), ("absent", "No such file")])
def test_a_folder_without_photos_is_refused(tmp_path, name, message):
    with pytest.raises(ResourceError, match=message):
        find_photos(tmp_path / name)


# --- reading


@pytest.mark.parametrize(
    ("mode", "colour", "suffix", "recorded"),
    [
        ("L", 90, ".png", (90, 90, 90)),
        ("1", 1, ".png", WHITE),
        ("LA", (90, 255), ".png", (90, 90, 90)),
        ("RGBA", (*RED, 255), ".png", RED),
        ("RGBA", (*RED, 0), ".png", WHITE),
        ("I;16", 257 * 90, ".png", (90, 90, 90)),
        ("P", 0, ".gif", (0, 0, 0)),
        ("RGB", RED, ".bmp", RED),
        ("CMYK", (0, 255, 255, 0), ".tif", RED),
    ],
)
def test_any_kind_of_picture_is_rgb(mode, colour, suffix, recorded, tmp_path):
    path = save_photo(tmp_path / f"x{suffix}", Image.new(mode, (8, 8), colour))
    photo = read_photo(path)
    assert (photo.mode, photo.getpixel((3, 3))) == ("RGB", recorded)


def test_a_cmyk_jpeg_is_rgb(tmp_path):
    path = save_photo(tmp_path / "x.jpg", Image.new("CMYK", (8, 8), (0, 255, 255, 0)))
    assert np.allclose(read_photo(path).getpixel((3, 3)), RED, atol=3)


def test_transparency_of_a_palette_is_white(tmp_path):
    path = save_photo(tmp_path / "x.png", Image.new("P", (8, 8), 0), transparency=0)
    assert read_photo(path).getpixel((3, 3)) == WHITE


@pytest.mark.parametrize("turn", range(1, 9))
def test_a_photo_is_upright(turn, tmp_path):
    """All eight ways a camera may have lain: the red corner comes out at the upper left."""
    upright = Image.new("RGB", (24, 16))
    upright.paste(RED, (0, 0, 8, 8))
    undone = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # Pillow's numbers of the inverse turns
    stored = upright if turn == 1 else upright.transpose(Image.Transpose(undone[turn]))
    exif = Image.Exif()
    exif[0x0112] = turn
    path = save_photo(tmp_path / "x.png", stored, exif=exif)
    assert np.array_equal(np.asarray(read_photo(path)), np.asarray(upright))


@pytest.mark.parametrize("ending", ["jpg", "png", "tif"])
@pytest.mark.parametrize("turn", [*range(1, 9), 9])
def test_a_size_is_that_of_the_upright_photo(turn, ending, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = turn
    path = save_photo(tmp_path / f"x.{ending}", Image.new("RGB", (24, 16)), exif=exif)
    photo = read_photo(path)
    assert photo_size(path) == (photo.height, photo.width)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
@pytest.mark.parametrize("ending", ["jpg", "png", "webp"])
@pytest.mark.parametrize("exif", [b"MM\0*\0\0\0\x08garbage", b"garbage", b"II*\0"])
def test_broken_orientation_does_not_cost_the_photo(exif, ending, tmp_path):
    path = save_photo(tmp_path / f"x.{ending}", Image.new("RGB", (8, 6)), exif=b"Exif\0\0" + exif)
    assert (read_photo(path).size, photo_size(path)) == ((8, 6), (6, 8))


def jpeg() -> bytes:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)
    content = io.BytesIO()
    Image.fromarray(noise).save(content, "JPEG")
    return content.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"hello", "not a picture in a known format"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture in a known format"),
        (jpeg()[:900], "truncated"),
        (jpeg()[:30], "."),
    ],
)
def test_a_broken_file_has_a_reason(content, reason, tmp_path):
    path = tmp_path / "x.jpg"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=reason) as refused:
        read_photo(path)
    assert refused.value.lasting


def test_a_file_that_has_gone_may_come_back(tmp_path):
    with pytest.raises(UnreadableError, match="No such file") as refused:
        read_photo(tmp_path / "x.jpg")
    assert not refused.value.lasting


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("mode", "size", "message"),
    [
        ("1", (13_500, 13_500), "more than 89,478,485 pixels"),
        ("1", (10_000, 10_000), "more than 89,478,485 pixels"),  # of which Pillow but warns
        ("1", (3000, 1), "times as long as wide"),  # at a model's height as wide as memory
        ("I", (4, 4), "of 32 bits a channel"),  # numbers of unknown brightness
        ("F", (4, 4), "of 32 bits a channel"),
    ],
)
def test_a_picture_that_cannot_be_used_is_refused(mode, size, message, tmp_path):
    path = save_photo(tmp_path / f"x.{'png' if mode == '1' else 'tif'}", Image.new(mode, size))
    with pytest.raises(UnreadableError, match=message):
        read_photo(path)


def test_a_photo_below_the_threshold_of_pillow_may_be_too_large_too(tmp_path, monkeypatch):
    monkeypatch.setattr(photos, "MAX_PIXELS", 63)
    with pytest.raises(UnreadableError, match="more than 63 pixels"):
        read_photo(save_photo(tmp_path / "x.png", Image.new("1", (8, 8))))


def test_sixteen_bits_become_eight_in_any_format(tmp_path):
    Image.fromarray(np.full((4, 4), 257 * 90, np.uint16)).save(tmp_path / "1.png")
    assert np.asarray(read_photo(tmp_path / "1.png")).tolist() == [[[90] * 3] * 4] * 4


def test_sixteen_bits_of_another_machine_become_eight(tmp_path):
    shades = np.full((4, 4), 257 * 90, ">u2")
    Image.frombytes("I;16B", (4, 4), shades.tobytes()).save(tmp_path / "1.tif")
    assert np.asarray(read_photo(tmp_path / "1.tif")).tolist() == [[[90] * 3] * 4] * 4


@pytest.mark.parametrize("ending", ["jpg", "png", "bmp"])
def test_a_sound_photo_has_no_fault(ending, tmp_path):
    path = tmp_path / f"1.{ending}"
    Image.new("RGB", (40, 30)).save(path)
    assert fault_of(path) is None


@pytest.mark.parametrize("ending", ["jpg", "png", "bmp"])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 0.9])
def test_a_photo_that_is_cut_off_has_a_fault(share, ending, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    path = tmp_path / f"1.{ending}"
    Image.fromarray(noise).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    assert fault_of(path)
