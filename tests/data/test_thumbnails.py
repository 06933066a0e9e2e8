"""Small pictures: of one size, never large, and nothing else is taken for one."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from bias_pipeline.data.photos import MOST_SIGNS, SIDE, read_thumbnail, thumbnail
from bias_pipeline.errors import DataError

NOISE = np.random.default_rng(0).integers(0, 256, (300, 400, 3), np.uint8)


def encode_picture(kind: str, side: int = SIDE) -> str:
    content = io.BytesIO()
    Image.fromarray(NOISE[:side, :side]).save(content, kind)
    return base64.b64encode(content.getvalue()).decode()


@pytest.mark.parametrize("shape", [(300, 400), (1, 400), (300, 1), (SIDE, SIDE), (3, 3)])
def test_every_picture_is_small(shape):
    printed_thumbnail = thumbnail(Image.fromarray(NOISE[: shape[0], : shape[1]]))
    assert len(printed_thumbnail) < MOST_SIGNS
    assert read_thumbnail(printed_thumbnail).size == (SIDE, SIDE)


def test_the_same_picture_is_the_same_text():
    assert thumbnail(Image.fromarray(NOISE)) == thumbnail(Image.fromarray(NOISE.copy()))


def test_its_colours_stay():
    asarray = np.asarray(read_thumbnail(thumbnail(Image.new("RGB", (90, 90), (200, 30, 60)))))
    np.testing.assert_allclose(asarray.mean(axis=(0, 1)), (200, 30, 60), atol=3)


@pytest.mark.parametrize(
    "text",
    [
        encode_picture("PNG"),
        encode_picture("JPEG", 65),
        encode_picture("JPEG")[:200],
        encode_picture("JPEG") + '"onerror="x',
        base64.b64encode(b"<svg onload=x>").decode(),
        "",
        "/9j/" * MOST_SIGNS,
    ],
    ids=["png", "larger", "cut", "markup", "svg", "nothing", "long"],
)
def test_nothing_else_is_one(text):
    with pytest.raises(DataError, match="no JPEG of 64 x 64"):
        read_thumbnail(text)
