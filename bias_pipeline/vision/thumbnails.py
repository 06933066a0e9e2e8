"""Thumbnails for reports: of one size, and never large."""

from __future__ import annotations

import base64
import binascii
import io
import re
from typing import TYPE_CHECKING

from bias_pipeline.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image

SIDE = 64  # pixels
MOST_SIGNS = 12_000  # of one; noise of this size comes to some 7,000
_QUALITY = 80
_GROUND = "white"
_SIGNS = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def thumbnail(picture: Image) -> str:
    """A picture within a square of :data:`SIDE` pixels, as a JPEG in base64.

    Args:
        picture: of any size; metadata is left out.

    Example:
        >>> from PIL import Image
        >>> read_thumbnail(thumbnail(Image.new("RGB", (300, 200), "red"))).size
        (64, 64)
    """
    from PIL import Image

    small = picture.convert("RGB")
    small.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS)
    square = Image.new("RGB", (SIDE, SIDE), _GROUND)
    square.paste(small, ((SIDE - small.width) // 2, (SIDE - small.height) // 2))
    content = io.BytesIO()
    square.save(content, "JPEG", quality=_QUALITY)
    return base64.b64encode(content.getvalue()).decode("ascii")


def read_thumbnail(text: str) -> Image:
    """The picture that :func:`thumbnail` wrote.

    Raises:
        DataError: if it is anything else.

    Example:
        >>> read_thumbnail("<script>")
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.DataError: no JPEG of 64 x 64 pixels
    """
    from PIL import Image

    try:
        if len(text) > MOST_SIGNS or not _SIGNS.fullmatch(text):
            raise ValueError
        image = Image.open(io.BytesIO(base64.b64decode(text, validate=True)), formats=["JPEG"])
        if image.size != (SIDE, SIDE):
            raise ValueError
        return image.convert("RGB")
    except (OSError, SyntaxError, ValueError, binascii.Error) as error:
        raise DataError(f"no JPEG of {SIDE} x {SIDE} pixels") from error
