"""``--image-masking`` and ``--crop``: photos without people or things, or people alone."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path

from bias_pipeline.commands.arguments import Parser
from bias_pipeline.config import compose
from bias_pipeline.datasets.columns import MASKED
from bias_pipeline.datasets.picture_files import regions_by_id
from bias_pipeline.datasets.tables import check_file
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.io.digests import digest_of
from bias_pipeline.vision.masking import VERSION, ImageMasking, MaskedPhotos

_GROUP = "image_masking"


def add_masking_options(parser: Parser) -> None:
    """The options of masked photos."""
    group = parser.add_argument_group(
        f"photos without people or things; settings follow as {_GROUP}.KEY=VALUE"
    )
    group.add_argument(
        "--image-masking",
        metavar="NAME",
        help="paint over, as for attackers: person_segment, person_box, person_part, objects, "
        f"person_objects, background, some_objects (nothing); {_GROUP}=NAME is the same",
    )
    group.add_argument(
        "--crop", choices=("person",), help="show the box of the largest person, nothing else"
    )
    group.add_argument(
        "--regions",
        type=Path,
        metavar="FILE",
        help="where people and things are: COCO's instances, or what data detect --gather wrote",
    )


def without_settings(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Words that are options, and those that set the masking.

    Example:
        >>> without_settings(["photos/", "image_masking=objects", "image_masking.fill=blur"])
        (['photos/'], ['image_masking=objects', 'image_masking.fill=blur'])
    """
    options: list[str] = []
    settings: list[str] = []
    for word in words:
        key = word.partition("=")[0] if "=" in word else ""
        (settings if key.partition(".")[0] == _GROUP else options).append(word)
    return options, settings


def masking_of(options: Namespace, settings: Sequence[str]) -> ImageMasking | None:
    """What is painted over; None if photos are shown whole.

    Raises:
        UsageError: if the words do not fit together.
    """
    if not (options.image_masking or settings or options.crop or options.regions):
        return None
    named = [word for word in settings if word.startswith(f"{_GROUP}=")]
    if named and options.image_masking:
        raise UsageError(f"{named[0]} and --image-masking are the same; give one of the two")
    if options.image_masking or not named:
        settings = [f"{_GROUP}={options.image_masking or 'none'}", *settings]
    masking: ImageMasking = compose.cell(settings).build(_GROUP)
    shows_all = masking.idle and not options.crop
    if shows_all and not named and not options.image_masking and (options.regions or settings[1:]):
        raise UsageError(
            "no photo is masked: name what is painted over with --image-masking, or give --crop"
        )
    if not shows_all and options.regions is None:
        raise UsageError(
            "--image-masking and --crop need --regions FILE: COCO's instances, or what data detect "
            "--gather wrote"
        )
    return None if shows_all else masking


def masked_photos(options: Namespace, photos: Iterable[str]) -> MaskedPhotos | None:
    """What reads photos masked; None if they are shown whole.

    Args:
        options: with ``masking``, ``regions`` and ``crop``.
        photos: the images of the folder.

    Raises:
        BiasPipelineError: if the file of regions is absent, broken, or of other photos.
    """
    if options.masking is None:
        return None
    regions = regions_by_id(check_file(options.regions, "--regions"))
    if regions.keys().isdisjoint(photos):
        raise DataError(
            f"{options.regions}: holds regions of none of the photos in {options.folder}; name the "
            "file of these photos"
        )
    return MaskedPhotos(regions, options.masking, options.crop or "none")


def masking_settings(masked: MaskedPhotos | None, options: Namespace) -> dict[str, object]:
    """What decides how photos are seen; nothing if they are shown whole."""
    if masked is None:
        return {}
    return {MASKED: str(masked), "masked": VERSION, "regions": digest_of(options.regions)}
