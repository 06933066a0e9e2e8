"""Masks of regions: outlines against a hand-drawn truth, boxes, scaling, and broken run lengths."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pycocotools import mask as coco

from bias_pipeline.corpus.pictures import Region
from bias_pipeline.data.regions import (
    box_mask,
    box_of_runs,
    grow_mask,
    outline_mask,
    region_mask,
    union,
)

MASKS = arrays.arrays(bool, arrays.array_shapes(min_dims=2, max_dims=2, max_side=12))


def region_of_mask(mask: np.ndarray) -> Region:
    counts = coco.encode(np.asfortranarray(mask, np.uint8))["counts"]
    height, width = mask.shape
    return Region("person", (0, 0, width, height), (height, width), counts=counts)


@given(MASKS)
def test_run_lengths_give_the_mask_they_were_made_of(mask):
    assert (outline_mask(region_of_mask(mask), *mask.shape) == mask).all()


@given(MASKS)
def test_a_mask_twice_as_large_has_each_pixel_four_times(mask):
    height, width = mask.shape
    result = outline_mask(region_of_mask(mask), 2 * height, 2 * width)
    assert (result == mask.repeat(2, axis=0).repeat(2, axis=1)).all()


SQUARE = (2, 2, 6, 2, 6, 6, 2, 6)


def test_a_polygon_is_filled():
    mask = outline_mask(Region("person", (2, 2, 4, 4), (10, 10), polygons=(SQUARE,)), 10, 10)
    assert mask[2:6, 2:6].all()
    assert mask.sum() == 16


def test_a_polygon_is_scaled_with_its_picture():
    wide = Region("person", (2, 2, 4, 4), (10, 20), polygons=(SQUARE,))
    assert outline_mask(wide, 10, 10)[2:6, 1:3].all()


@pytest.mark.parametrize(
    ("size", "polygon", "message"),
    [
        # It would be walked point by point, for as much memory as it is long.
        ((10, 10), (0, 0, 1e9, 0, 1e9, 1e9), "far beyond the picture"),
        ((10**9, 10**9), (0, 0, 4, 0, 4, 4), "more than"),
    ],
)
def test_a_polygon_beyond_memory_is_refused(size, polygon, message):
    far = Region("person", (0, 0, 4, 4), size, polygons=(polygon,))
    with pytest.raises(ValueError, match=message):
        outline_mask(far, 10, 10)


def test_an_outline_thinner_than_a_pixel_is_its_box():
    thin = Region("person", (2.1, 2, 0.2, 4), (10, 10), polygons=((2.1, 2, 2.3, 2, 2.2, 6),))
    assert np.argwhere(region_mask(thin, 10, 10)).tolist() == [[row, 2] for row in range(2, 6)]


@given(MASKS, st.integers(1, 20), st.integers(1, 20))
def test_a_scaled_mask_has_all_that_lies_in_each_pixel(mask, height, width):
    """Brute force: pixel by pixel, whether any masked one overlaps it."""
    rows, columns = mask.shape
    expected = [
        [
            mask[
                row * rows // height : -(-(row + 1) * rows // height),
                column * columns // width : -(-(column + 1) * columns // width),
            ].any()
            for column in range(width)
        ]
        for row in range(height)
    ]
    assert outline_mask(region_of_mask(mask), height, width).tolist() == expected


@given(MASKS, st.data())
def test_run_lengths_of_another_size_are_refused(mask, data):
    """COCO's own reader would write beyond the mask."""
    height = data.draw(st.integers(1, 20).filter(lambda n: n != mask.shape[0]))
    wrong = Region(
        "person", (0, 0, 1, 1), (height, mask.shape[1]), counts=region_of_mask(mask).counts
    )
    with pytest.raises(ValueError, match="run lengths do not fill"):
        outline_mask(wrong, height, mask.shape[1])
    with pytest.raises(ValueError, match="run lengths do not fill"):
        box_of_runs(region_of_mask(mask).counts, height, mask.shape[1])


@given(st.binary(min_size=1, max_size=30))
def test_any_bytes_as_run_lengths_are_a_mask_or_refused(counts):
    wrong = Region("person", (0, 0, 1, 1), (7, 5), counts=counts)
    with contextlib.suppress(ValueError):
        assert outline_mask(wrong, 7, 5).shape == (7, 5)


@pytest.mark.parametrize("box", [(-5, -5, 100, 100), (-50, 2, 10, 10), (90, 90, 5, 5)])
def test_a_box_outside_is_cut_at_the_edge(box):
    left, top, width, height = box
    mask = box_mask(Region("person", (left, top, width, height), (10, 10)), 10, 10)
    assert mask.all() == (box[0] == -5)
    assert mask.any() == (box[0] == -5)


def test_growing_takes_in_all_neighbours():
    mask = np.zeros((5, 5), bool)
    mask[2, 2] = True
    assert grow_mask(mask, 1).sum() == 9


def test_nothing_together_is_nothing():
    assert not union([], 2, 3).any()
