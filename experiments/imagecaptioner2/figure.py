"""The figure of docs/pictures.md: scenes as they are drawn, and under each masking.

Usage: python -m experiments.imagecaptioner2.figure
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from bias_pipeline.corpus.pictures import Drawn
from bias_pipeline.datasets.scenes.pixels.drawing import SceneDrawing
from bias_pipeline.datasets.scenes.world import generate
from bias_pipeline.vision.masking import ImageMasking, Silhouette

SIDE, GAP, N_SCENES = 128, 6, 6
OUT = Path(__file__).resolve().parents[2] / "docs" / "images" / "scenes.png"

ROWS = (
    None,
    ImageMasking(),
    ImageMasking("box"),
    ImageMasking("part"),
    ImageMasking(objects=True),
    ImageMasking(fill="blur"),
    Silhouette(ImageMasking()),
)


def main() -> None:
    """One column a scene, one row a masking."""
    drawn = [SceneDrawing(image, "gender").draw(SIDE) for image in generate(N_SCENES, 3).images]
    lines = [[_shown(edit, own) for own in drawn] for edit in ROWS]
    sheet = np.vstack([np.hstack([_framed(own) for own in line]) for line in lines])
    Image.fromarray(sheet).save(OUT, optimize=True)


def _shown(edit: ImageMasking | Silhouette | None, drawn: Drawn) -> np.ndarray:
    return drawn.pixels if edit is None else edit.apply(drawn)


def _framed(pixels: np.ndarray) -> np.ndarray:
    return np.pad(pixels, ((0, GAP), (0, GAP), (0, 0)), constant_values=255)


if __name__ == "__main__":
    main()
