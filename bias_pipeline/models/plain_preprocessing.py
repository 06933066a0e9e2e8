"""Does the usual preprocessing of transformers, equal in every bit but cheaper.

The library turns a photo into numbers and then scales the numbers. Here Pillow scales the photo. A
table from the library has the network's input for each of the 256 values of a channel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

    from bias_pipeline.array_types import Float32Array

# The steps that a processor must not replace by steps of its own
_STEPS = (
    "preprocess", "_preprocess", "_preprocess_image_like_inputs", "_prepare_image_like_inputs",
    "_prepare_images_structure", "process_image", "convert_to_rgb", "resize", "center_crop",
    "rescale", "normalize",
)  # fmt: skip
_OPTIONS = {"return_tensors"}
_SIZES = ({"height", "width"}, {"shortest_edge"})
_TRIED = ((61, 47), (35, 90))  # sizes of the photos that are tried


def quicken(processor: Any) -> None:
    """Replace a processor's ``preprocess`` if it contains only the library's usual steps.

    A processor with its own steps, or with other results on photos of noise, is not changed.
    """
    from PIL import Image

    if not _is_plain(processor):
        return
    usual, quick = processor.preprocess, PlainPreprocessing(processor)
    draw = np.random.default_rng(0).integers
    photos = [Image.fromarray(draw(0, 256, (*size, 3), np.uint8)) for size in _TRIED]
    made = [[way(photo, return_tensors="np") for way in (usual, quick)] for photo in photos]
    if all(np.array_equal(one["pixel_values"], two["pixel_values"]) for one, two in made):
        processor.preprocess = quick


def _is_plain(processor: Any) -> bool:
    """Whether all steps belong to the library, scale a photo and do not pad it."""
    kind = type(processor)
    backend = next((one for one in kind.__mro__ if one.__name__ == "PilBackend"), None)
    return (
        backend is not None  # it is absent before version 5
        and all(getattr(kind, step) is getattr(backend, step) for step in _STEPS)
        and bool(processor.do_resize)
        and not processor.do_pad
        and isinstance(processor.resample, int)
        and {name for name, side in dict(processor.size).items() if side} in _SIZES
    )


class PlainPreprocessing:
    """Scales, crops and normalises a single RGB photo; the library handles all other input."""

    def __init__(self, processor: Any) -> None:
        from PIL import Image

        self._processor, self._usual = processor, processor.preprocess
        greys = np.repeat(np.arange(256, dtype=np.uint8), 3).reshape(16, 16, 3)
        numbers = self._usual(
            Image.fromarray(greys), do_resize=False, do_center_crop=False, return_tensors="np"
        )
        self._table = np.ascontiguousarray(numbers["pixel_values"][0].reshape(3, 256))

    def __call__(self, images: Any, *others: Any, **options: Any) -> Any:
        from PIL.Image import Image
        from transformers import BatchFeature

        plain = isinstance(images, Image) and images.mode == "RGB"
        if not plain or "transparency" in images.info or others or options.keys() - _OPTIONS:
            return self._usual(images, *others, **options)
        numbers = {"pixel_values": [self._numbers(images)]}
        return BatchFeature(numbers, tensor_type=options.get("return_tensors"))

    def _numbers(self, photo: Image) -> Float32Array:
        """(3, H, W) the network's input."""
        pixels = np.asarray(self._cut(photo.resize(self._size(photo), self._processor.resample)))
        numbers = np.empty((3, *pixels.shape[:2]), self._table.dtype)
        for channel, values in enumerate(self._table):
            np.take(values, pixels[..., channel], out=numbers[channel], mode="clip")
        return numbers

    def _size(self, photo: Image) -> tuple[int, int]:
        """The width and the height that a photo is scaled to."""
        wanted = self._processor.size
        if not wanted.shortest_edge:
            return wanted.width, wanted.height
        short, long = sorted(photo.size)
        sides = wanted.shortest_edge, int(wanted.shortest_edge * long / short)
        return sides if photo.width <= photo.height else sides[::-1]

    def _cut(self, photo: Image) -> Image:
        """The middle of a photo; pixels outside the photo are black."""
        if not self._processor.do_center_crop:
            return photo
        width, height = self._processor.crop_size.width, self._processor.crop_size.height
        left, top = (photo.width - width) // 2, (photo.height - height) // 2
        return photo.crop((left, top, left + width, top + height))
