"""Reads and writes weights of images: how often captions are drawn while a captioner learns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.data.tables import check_file, open_rows
from bias_pipeline.errors import DataError
from bias_pipeline.io.files import replace_file

IMAGE, WEIGHT = "image", "weight"


def read_weights(path: Path, corpus: Corpus) -> Float64Array:
    """(N,) the weight of each image of a corpus, which is 1 if the file does not list the image."""
    rows = open_rows(check_file(path, "--weights"), what="a table with image, weight")
    rows.require(IMAGE, WEIGHT)
    place = {image: row for row, image in enumerate(corpus.ids)}
    weights = np.full(len(corpus), np.nan)
    for number, row in rows.items:
        image = rows.id(number, row, IMAGE)
        if image not in place:
            rows.refuse(
                number,
                f"image {image} is not in dataset {corpus.dataset!r}; write the weights for the "
                "data set of the fit",
            )
        if not np.isnan(weights[place[image]]):
            rows.refuse(number, f"image {image} has two weights; keep one")
        cell = rows.value(number, row, WEIGHT)
        weight = _number(cell)
        if not (math.isfinite(weight) and weight >= 0):
            written = "absent" if cell is None else cell
            rows.refuse(
                number,
                f"{WEIGHT} of image {image} is {written}; give a number from 0 on (0: never)",
            )
        weights[place[image]] = weight
    return np.nan_to_num(weights, nan=1.0)


def _number(cell: object) -> float:
    """A cell as a number, or NaN if the cell is not a number."""
    try:
        return float(str(cell))
    except ValueError:
        return math.nan


def caption_shares(weights: Float64Array, captions: Captions) -> Float64Array:
    """(C,) the probability of drawing each caption, in proportion to the weights (N,) of images.

    Example:
        >>> captions = Captions.from_texts(["a dog", "a cat", "a cow"], np.array([0, 0, 1]))
        >>> caption_shares(np.array([1.0, 2.0]), captions).tolist()
        [0.25, 0.25, 0.5]
    """
    shares: Float64Array = weights[captions.image_rows]
    if not shares.sum():
        raise DataError(
            "--weights: every image with a caption has weight 0; give at least one a greater weight"
        )
    return shares / shares.sum()


def write_weights(path: Path, weights: Mapping[str, float]) -> None:
    """Write the table that ``fit --weights`` reads."""
    from io import BytesIO

    import pandas as pd

    content = BytesIO()
    table = pd.DataFrame({IMAGE: list(weights), WEIGHT: list(weights.values())})
    table.to_parquet(content, index=False)
    replace_file(path, content.getvalue())
