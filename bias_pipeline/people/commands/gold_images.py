"""Draws the photos that raters label so that a machine's labels can be corrected."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from bias_pipeline.commands.labels import machine_labelled
from bias_pipeline.corpus.image_ids import short_id
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.io.terminal import print_out
from bias_pipeline.metrics.counting.gold_plan import CaptionedImages, draw_images

_NEEDED = ("folder", "attribute", "machine", "captions")


def check_gold_size(options: Namespace) -> None:
    """Refuse options that contradict a draw of gold images."""
    if options.gold_size is None:
        if options.machine:
            raise UsageError("--machine goes with --gold-size N")
        return
    if not all(getattr(options, name) for name in _NEEDED):
        raise UsageError(
            "--gold-size needs a folder of photos, --attribute NAME, --machine LABELS and "
            "--captions FILE"
        )
    if options.limit or options.mask_captions:
        raise UsageError(
            "--gold-size draws the photos and shows no captions; leave --limit and "
            "--mask-captions out"
        )


def drawn_photos(options: Namespace, photos: Mapping[str, Path]) -> dict[str, float]:
    """The chance of being drawn, by drawn image; in half of the images caption and label differ."""
    here = machine_labelled(options)
    corpus = here.corpus()
    shown = {short_id(image) for image in photos}
    there = [
        row for row, image in enumerate(corpus.ids) if image in shown or short_id(image) in shown
    ]
    if not there:
        raise DataError(
            f"{options.machine} and {options.captions} are of none of the photos in "
            f"{options.folder}; name images as the photos are named"
        )
    if len(there) < len(corpus):
        raise DataError(
            f"{options.folder} has {len(there)} of the {len(corpus)} images of "
            f"{options.machine}; give a folder with all of them, or labels of these only, since "
            "a draw from a part says nothing about the others"
        )
    images = CaptionedImages.from_corpus(corpus, here.build("metric"))
    rows, chances = draw_images(images, corpus.keys, options.gold_size)
    apart = set(images.rows[images.apart].tolist())
    n_apart = sum(row in apart for row in rows.tolist())
    n_other = len(images.rows) - len(apart)
    print_out(
        f"{len(rows)} photos are drawn: {n_apart} of {len(apart)} for which machine labels and "
        f"captions disagree, {len(rows) - n_apart} of {n_other} others; captions are not shown"
    )
    return {
        short_id(corpus.ids[row]): float(chance)
        for row, chance in zip(rows.tolist(), chances.tolist(), strict=True)
    }
