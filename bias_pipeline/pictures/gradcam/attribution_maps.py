"""Maps of a captioner's words: a table, pictures and sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bias_pipeline.array_types import Float64Array
from bias_pipeline.corpus.pictures import Pixels
from bias_pipeline.errors import DataError, counted
from bias_pipeline.pictures.gradcam.attribution import Explained
from bias_pipeline.report.example_pictures import PICTURES, TABLE, drawing_name
from bias_pipeline.stats.bootstrap import quantile

MAPS = "maps.parquet"
_SIDE = 256  # pixels of a drawn map's shorter side
_HOT = np.array([255.0, 60.0, 0.0])
_LEVEL = 0.95


def attribution_row(one: Explained) -> dict[str, Any]:
    """The line of a picture, for the first of its words."""
    first = one.words[0]
    return {
        "image_id": one.image_id,
        "caption": one.caption,
        "word": first.word or None,
        "attribution_score": first.shares.mass,
        "pixel_share": first.shares.pixels,
        "uniform_share": first.shares.uniform,
    }


def map_rows(one: Explained) -> Iterator[dict[str, Any]]:
    """A line for each word of a picture, with its map row by row."""
    for number, word in enumerate(one.words):
        yield {
            "image_id": one.image_id,
            "number": number,
            "word": word.word or None,
            "attribution_score": word.shares.mass,
            "height": word.heatmap.shape[0],
            "width": word.heatmap.shape[1],
            "map": word.heatmap.ravel().tolist(),
        }


def write_attribution(
    folder: Path, explained: Iterable[Explained], *, pictures: int, with_maps: bool
) -> list[dict[str, Any]]:
    """Write the table of all pictures, and their maps; returns the table's lines."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    maps: list[dict[str, Any]] = []
    for number, one in enumerate(explained):
        rows.append(attribution_row(one))
        if with_maps:
            maps += map_rows(one)
        if number < pictures:
            draw_maps(folder / PICTURES, one)
    pd.DataFrame(rows).to_parquet(folder / TABLE, index=False)
    if with_maps:
        pd.DataFrame(maps).to_parquet(folder / MAPS, index=False)
    return rows


def draw_maps(folder: Path, one: Explained) -> None:
    """A PNG file for each word: the picture, and the same with the map over it."""
    from PIL import Image

    folder.mkdir(exist_ok=True)
    for number, word in enumerate(one.words):
        name = drawing_name(one.image_id, number, word.word)
        Image.fromarray(overlay(one.pixels, word.heatmap)).save(folder / name)


def overlay(pixels: Pixels, heatmap: Float64Array) -> Pixels:
    """(H', 2 W', 3) a picture (H, W, 3) in grey beside itself, coloured by a map; for looking."""
    from PIL import Image

    photo = Image.fromarray(pixels)
    scale = max(_SIDE / min(photo.size), 1.0)
    size = (round(photo.width * scale), round(photo.height * scale))
    large = np.asarray(photo.resize(size, Image.Resampling.NEAREST), np.float64)
    top = float(np.nanmax(heatmap, initial=0.0))
    strength = np.nan_to_num(heatmap / top) if top > 0 else np.zeros_like(heatmap)
    shown = Image.fromarray((255 * strength).astype(np.uint8)).resize(
        size, Image.Resampling.NEAREST
    )
    share = 0.8 * np.asarray(shown, np.float64)[..., None] / 255
    grey = np.repeat(large.mean(axis=2, keepdims=True), 3, axis=2)
    return np.hstack([large, (1 - share) * grey + share * _HOT]).round().astype(np.uint8)


def describe_attribution(rows: Sequence[Mapping[str, Any]], words: Sequence[str]) -> list[str]:
    """The mean score with its interval over pictures, and what has none."""
    scores = np.array([row["attribution_score"] for row in rows], np.float64)
    uniform = np.array([row["uniform_share"] for row in rows], np.float64)
    known = np.isfinite(scores)
    if not known.any():
        raise DataError(
            "no picture has a score: "
            + ("none has an outline of a person with something beside it; name a file that has "
               "outlines (dataset.regions=FILE)" if np.isnan(uniform).all() else
               "every map is zero or not of numbers; choose another layer (--layer)")
        )  # fmt: skip
    mean, low, high = _interval(scores[known])
    lines = [
        f"attribution score {mean:.3f} [{low:.3f}, {high:.3f}], mean of "
        f"{counted(known.sum(), 'pictures')}; "
        f"a uniform map would have {uniform[known].mean():.3f}"
    ]
    silent = sum(row["word"] is None for row in rows)
    counts = {
        "captions have none of the words; their maps are of the step where these were likeliest":
            silent,
        "pictures have no outline of a person, or nothing beside one, and no score":
            int(np.isnan(uniform).sum()),
        "maps are zero everywhere, or not of numbers, and have no score":
            int((~known & np.isfinite(uniform)).sum()),
    }  # fmt: skip
    lines += [f"{count} of {len(rows)} {what}" for what, count in counts.items() if count]
    used = {row["word"] for row in rows}
    lines += [f"{word!r} is the first word in no caption" for word in words if word not in used]
    return lines


def _interval(scores: Float64Array) -> tuple[float, float, float]:
    """Mean of N pictures with an interval of Student's t."""
    mean = float(scores.mean())
    if len(scores) < 2:
        return mean, math.nan, math.nan
    half = quantile(_LEVEL, len(scores) - 1) * float(scores.std(ddof=1)) / math.sqrt(len(scores))
    return mean, mean - half, mean + half
