"""The options that commands on photos share: ``caption``, ``embed``, ``data detect``.

Photos may be shown without people or things (``--image-masking``), or cropped to a person
(``--crop``).
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Annotated

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.data.columns import MASKED, Layout
from bias_pipeline.data.image_masking import VERSION, ImageMasking, MaskedPhotos
from bias_pipeline.data.image_numbers import of_photos
from bias_pipeline.data.picture_files import regions_by_id
from bias_pipeline.data.tables import check_file
from bias_pipeline.declared import Range
from bias_pipeline.errors import DataError, UsageError
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.machine import n_threads
from bias_pipeline.run import compose

Batch = Annotated[int, Range(low=1, high=65_536)]


BATCH = 32


Threads = Annotated[int, Range(low=1, high=1024)]


def photo_parser(command: str, description: str | None, noun: str) -> Parser:
    parser = Parser(f"{PROGRAM} {command}", description=description)
    parser.add_argument(
        "folder", type=Path, nargs="?", help="folder with photos; photos in subfolders are ignored"
    )
    parser.add_argument(
        "--model", help="the model: a folder with safetensors, or a name on the hub"
    )
    parser.add_argument(
        "--revision", default="", help="revision of a model on the hub (default: main)"
    )
    parser.add_argument(
        "--out", type=Path, help="folder for unfinished results; parallel jobs may share it"
    )
    parser.add_argument(
        "--shard",
        default="",
        metavar="K/N",
        help="divide the photos into N shares and process only share K, counted from 0 (default: "
        "the share of the job in a Slurm array, otherwise 0/1)",
    )
    parser.add_argument(
        "--batch", type=number(Batch), default=BATCH, help=f"batch size (default: {BATCH})"
    )
    parser.add_argument(
        "--threads",
        type=number(Threads),
        default=n_threads(),
        help="number of threads for computing, and also for reading files (default: "
        "OMP_NUM_THREADS, else the cores that Slurm gives the job, else all cores)",
    )
    parser.add_argument(
        "--device", default="auto", help="the device: auto, cpu, cuda, cuda:1, ... (default: auto)"
    )
    parser.add_argument(
        "--gather",
        type=Path,
        metavar="OUT",
        help=f"write the finished results in OUT to one {noun}",
    )
    parser.add_argument("--to", type=Path, metavar="FILE", help=f"the {noun} that --gather writes")
    parser.add_argument(
        "--run", default="", help="with --gather: the run to gather, if OUT has several runs"
    )
    parser.add_argument(
        "--no-strict",
        action="store_true",
        help="with --gather: write the result even if photos are missing",
    )
    return parser


def check_photo_options(options: Namespace, *sources: str) -> None:
    """Refuse options on photos that contradict each other."""
    given = [name for name in sources if getattr(options, name) is not None]
    if options.gather:
        if given or options.model or options.out:
            raise UsageError("--gather OUT takes neither another source nor --model or --out")
        return
    gathers = [name for name in ("to", "run", "no_strict") if getattr(options, name)]
    if gathers:
        raise UsageError(
            f"--{gathers[0].replace('_', '-')} belongs to --gather OUT, a later command; leave "
            "it out here"
        )
    if len(given) != 1:
        raise UsageError(f"name one source: {' or '.join(map(_flag, sources))}; or --gather OUT")
    for name in ("model", "out"):
        if getattr(options, name) is None:
            raise UsageError(f"--{name} is missing; see --help")


def _flag(name: str) -> str:
    return "FOLDER" if name == "folder" else f"--{name}"


_GROUP = "image_masking"


def add_masking_options(parser: Parser) -> None:
    group = parser.add_argument_group(
        f"photos without people or things; settings follow as {_GROUP}.KEY=VALUE"
    )
    group.add_argument(
        "--image-masking",
        metavar="NAME",
        help="what to hide in the photos: person_segment, person_box, person_part, objects, "
        f"person_objects, background or some_objects (default: nothing); {_GROUP}=NAME is the "
        "same",
    )
    group.add_argument(
        "--crop", choices=("person",), help="crop each photo to the box of the largest person"
    )
    group.add_argument(
        "--regions",
        type=Path,
        metavar="FILE",
        help="file with the places of people and things in photos: COCO's instances, or the "
        "output of data detect --gather",
    )


def without_settings(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """The words that are options, and the words that set the masking, apart.

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
    """The masking that paints over parts of photos, or None if photos are shown whole."""
    if not (options.image_masking or settings or options.crop or options.regions):
        return None
    named = [word for word in settings if word.startswith(f"{_GROUP}=")]
    if named and options.image_masking:
        raise UsageError(f"{named[0]} and --image-masking are the same; give one of the two")
    if options.image_masking or not named:
        settings = [f"{_GROUP}={options.image_masking or 'none'}", *settings]
    masking: ImageMasking = compose.cell(settings).build(_GROUP)
    shows_all = masking.changes_nothing and not options.crop
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


def masked_photos(options: Namespace, photos: Collection[str]) -> MaskedPhotos | None:
    """The reader that masks photos, or None if photos are shown whole."""
    if options.masking is None:
        return None
    layout = Layout()
    read = regions_by_id(check_file(options.regions, "--regions"), layout)
    regions = of_photos(options.regions, read, photos, layout)
    if regions.keys().isdisjoint(photos):
        raise DataError(
            f"{options.regions} has no regions of the photos in {options.folder}; give the file "
            "of these photos"
        )
    options.masking.check_things(regions.values(), str(options.regions))
    return MaskedPhotos(regions, options.masking, options.crop or "none")


JOINED = 2  # raise this number when other regions are assigned to photos


def masking_settings(masked: MaskedPhotos | None, options: Namespace) -> dict[str, object]:
    """The settings that decide how photos are masked; empty if photos are shown whole."""
    if masked is None:
        return {}
    version = f"{VERSION} {JOINED}"
    return {MASKED: str(masked), "masked": version, "regions": digest_of(options.regions)}
