"""Pictures as arrays: what is read, edits made, and what cannot be."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.corpus.pictures import Pictures, Region
from bias_pipeline.data.image_masking import ImageMasking
from bias_pipeline.data.photos import pixel_table, read_pixels
from bias_pipeline.data.regions import box_mask, outline_mask
from bias_pipeline.errors import DataError, ResourceError


def photo(path: Path, size: tuple[int, int] = (40, 20), mode: str = "RGB") -> Path:
    Image.new(mode, size, 200 if mode != "RGB" else (200, 100, 50)).save(path)
    return path


def test_a_photo_is_squeezed_into_a_square(tmp_path):
    pixels = read_pixels(Pictures((photo(tmp_path / "1.png"),)), 0, 32)
    assert pixels.shape == (32, 32, 3)
    assert (pixels == (200, 100, 50)).all()


@pytest.mark.parametrize("mode", ["L", "CMYK", "I;16", "1", "P"])
def test_photos_of_other_modes_have_three_channels(tmp_path, mode):
    ending = "tiff" if mode in ("CMYK", "I;16") else "png"
    built_photo = photo(tmp_path / f"1.{ending}", mode=mode)
    assert read_pixels(Pictures((built_photo,)), 0, 32).shape == (32, 32, 3)


@pytest.mark.parametrize("size", [(20, 40), (0, 0)], ids=["of its size", "of no size"])
def test_masks_follow_the_photo_when_it_is_scaled(tmp_path, size):
    """On their edge the paint and the ground around it mix."""
    left = Region("person", (0, 0, 20, 20), size)
    pictures = Pictures((photo(tmp_path / "1.png"),), ((left,),)).with_edit(ImageMasking("box"))
    pixels = read_pixels(pictures, 0, 32)
    assert (pixels[:, :14] == 127).all()
    assert (pixels[:, 18:] == (200, 100, 50)).all()


@pytest.mark.parametrize("side", [7, 32, 64])
@pytest.mark.parametrize("scale", [0.5, 1, 2])
@pytest.mark.parametrize("masking", ["box", "segment"])
def test_nothing_of_a_masked_person_is_left_in_a_squeezed_photo(tmp_path, masking, scale, side):
    """Whatever colours they have, and whatever the size of the annotated picture."""
    rng = np.random.default_rng(0)
    lines = []
    outline = (11.3, 7.8, 60.2, 12.1, 47.9, 65.5, 20.0, 55.0)
    person = Region(
        "person",
        (scale * 11.3, scale * 7.8, scale * 48.9, scale * 57.7),
        (int(scale * 90), int(scale * 120)),
        polygons=(tuple(scale * value for value in outline),),
    )
    shape = person if masking == "box" else replace(person, size=(90, 120), polygons=(outline,))
    hidden = (box_mask if masking == "box" else outline_mask)(shape, 90, 120)
    ground = rng.integers(0, 256, (90, 120, 3), np.uint8)
    for number in range(2):
        ground[hidden] = rng.integers(0, 256, (hidden.sum(), 3))
        Image.fromarray(ground).save(tmp_path / f"{number}.png")
        pictures = Pictures((tmp_path / f"{number}.png",), ((person,),))
        lines.append(read_pixels(pictures.with_edit(ImageMasking(masking)), 0, side))
    assert (lines[0] == lines[1]).all()


@pytest.mark.parametrize(
    ("region", "masking", "message"),
    [
        (
            Region("person", (0, 0, 20, 20), (40, 20)),
            "box",
            "annotations are of another shape, 20 x 40",
        ),
        (
            Region("person", (0, 0, 1, 1), (20, 40), counts=b"1"),
            "segment",
            "a mask in its annotations",
        ),
    ],
    ids=["another shape", "broken"],
)
def test_annotations_that_do_not_fit_are_refused(tmp_path, region, masking, message):
    pictures = Pictures((photo(tmp_path / "1.png"),), ((region,),)).with_edit(ImageMasking(masking))
    with pytest.raises(DataError, match=rf"1\.png: .*{message}"):
        read_pixels(pictures, 0, 32)


def test_masks_are_of_the_photo_as_it_is_seen(tmp_path):
    """Stored lying, 40 x 20, and seen upright, 20 x 40, as its annotations say."""
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (40, 20), (200, 100, 50)).save(tmp_path / "1.png", exif=exif)
    upper = Region("person", (0, 0, 20, 20), (40, 20))
    pictures = Pictures((tmp_path / "1.png",), ((upper,),)).with_edit(ImageMasking("box"))
    pixels = read_pixels(pictures, 0, 32)
    assert (pixels[:14] == 127).all()
    assert (pixels[18:] != 127).all()


def test_a_broken_photo_is_named(tmp_path):
    path = photo(tmp_path / "1.png")
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DataError, match=r"1\.png: .*; repair or remove it"):
        read_pixels(Pictures((path,)), 0, 32)


def test_kept_pictures_are_read_once(tmp_path):
    path = photo(tmp_path / "1.png")
    pictures, cache = Pictures((path,)), str(tmp_path / "cache")
    first = np.array(pixel_table(pictures, 32, cache))
    path.unlink()
    assert (pixel_table(pictures, 32, cache) == first).all()


def test_a_cache_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ResourceError, match="cannot store pictures"):
        pixel_table(Pictures((photo(tmp_path / "1.png"),)), 32, str(tmp_path / "file"))
