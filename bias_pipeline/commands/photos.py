"""Commands on photos: ``embed``, ``data detect``, and the options that they share with ``caption``.

Photos may be shown without people or things, or people alone (``--image-masking``, ``--crop``).
"""

from __future__ import annotations

import shlex
import zlib
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.config import compose
from bias_pipeline.config.overrides import path_override
from bias_pipeline.datasets.coco_files import model_captions
from bias_pipeline.datasets.columns import MASKED, Layout
from bias_pipeline.datasets.image_numbers import of_photos
from bias_pipeline.datasets.picture_files import regions_by_id
from bias_pipeline.datasets.tables import check_file
from bias_pipeline.declared import Range
from bias_pipeline.errors import DataError, UsageError, counted
from bias_pipeline.inference.blocks import BlockStore
from bias_pipeline.inference.dual_encoders import JUDGING, PhotoFiles, PlainTexts, towers_of
from bias_pipeline.inference.dual_encoders import KINDS as DUAL
from bias_pipeline.inference.merge_shards import gather, write_detections, write_embeddings
from bias_pipeline.inference.runner import Model, describe_share, report_progress
from bias_pipeline.inference.shards import photo_stamps
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.machine import n_threads
from bias_pipeline.io.terminal import print_out, warn
from bias_pipeline.models.clip import KINDS as CLIP
from bias_pipeline.models.clip import ClipTexts
from bias_pipeline.models.detection import KINDS, detector
from bias_pipeline.models.fiber.folder import is_fiber
from bias_pipeline.models.open_clip_folder import is_open_clip
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.models.recognition import SUFFIXES, TorchvisionDetector, check_weights
from bias_pipeline.models.sentences import KINDS as LANGUAGE
from bias_pipeline.models.sentences import Sentences, pooling_of
from bias_pipeline.vision.masking import VERSION, ImageMasking, MaskedPhotos
from bias_pipeline.vision.photos import find_photos

Batch = Annotated[int, Range(low=1, high=65_536)]


BATCH = 32


Threads = Annotated[int, Range(low=1, high=1024)]


def photo_parser(command: str, description: str | None, noun: str) -> Parser:
    """The options that commands on photos share, and their help."""
    parser = Parser(f"{PROGRAM} {command}", description=description)
    parser.add_argument(
        "folder", type=Path, nargs="?", help="folder of photos; folders inside it are ignored"
    )
    parser.add_argument("--model", help="a folder, or a name on the hub, with safetensors")
    parser.add_argument("--revision", default="", help="revision of a model on the hub (main)")
    parser.add_argument(
        "--out", type=Path, help="folder of unfinished results; parallel jobs may share it"
    )
    parser.add_argument(
        "--shard",
        default="",
        metavar="K/N",
        help="do share K of N, counted from 0 (in a Slurm array its own share, else 0/1)",
    )
    parser.add_argument("--batch", type=number(Batch), default=BATCH, help=f"batch size ({BATCH})")
    parser.add_argument(
        "--threads",
        type=number(Threads),
        default=n_threads(),
        help="threads that compute, and as many that read files (OMP_NUM_THREADS, or what Slurm "
        "gives the job, or all cores)",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ... (auto)")
    parser.add_argument(
        "--gather", type=Path, metavar="OUT", help=f"write what is finished in OUT as one {noun}"
    )
    parser.add_argument("--to", type=Path, metavar="FILE", help=f"the {noun} that --gather writes")
    parser.add_argument("--run", default="", help="with --gather: which run, if OUT has several")
    parser.add_argument(
        "--no-strict", action="store_true", help="gather even if photos are missing"
    )
    return parser


def check_photo_options(options: Namespace, *sources: str) -> None:
    """Refuse options on photos that do not fit together.

    Args:
        options: as parsed.
        sources: the options of which exactly one must be given.

    Raises:
        UsageError: naming what is absent or too much.
    """
    given = [name for name in sources if getattr(options, name) is not None]
    if options.gather:
        if given or options.model or options.out:
            raise UsageError("--gather OUT takes neither another source nor --model or --out")
        return
    gathers = [name for name in ("to", "run", "no_strict") if getattr(options, name)]
    if gathers:
        raise UsageError(
            f"--{gathers[0].replace('_', '-')} belongs to --gather OUT, which comes after; leave it"
            " out here"
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
    """The options of masked photos."""
    group = parser.add_argument_group(
        f"photos without people or things; settings follow as {_GROUP}.KEY=VALUE"
    )
    group.add_argument(
        "--image-masking",
        metavar="NAME",
        help="hide in the photos: person_segment, person_box, person_part, objects, "
        f"person_objects, background, some_objects (nothing); {_GROUP}=NAME is the same",
    )
    group.add_argument("--crop", choices=("person",), help="crop to the box of the largest person")
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


def masked_photos(options: Namespace, photos: Collection[str]) -> MaskedPhotos | None:
    """What reads photos masked; None if they are shown whole.

    Raises:
        BiasPipelineError: if the file of regions is absent, broken, of other photos, or lacks what
            is to be hidden.
    """
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


JOINED = 2  # raise it when other regions would belong to a photo


def masking_settings(masked: MaskedPhotos | None, options: Namespace) -> dict[str, object]:
    """What decides how photos are seen; nothing if they are shown whole."""
    if masked is None:
        return {}
    version = f"{VERSION} {JOINED}"
    return {MASKED: str(masked), "masked": version, "regions": digest_of(options.regions)}


_EMBED_ABOUT = "Embed photos, or captions, as vectors; the work can be split over parallel jobs"
Vectors = tuple[
    dict[str, object], Callable[[], Model]
]  # the settings that decide them, and a function that loads their model
EMBED_JOB = "embed"
EMBED_VERSION = 1  # raise it when the same model would give other vectors


def embed_command(words: Sequence[str]) -> int:
    """Embed one task's share, or gather all shares."""
    options = embed_options(words)
    if options.gather:
        gathered = gather(options, EMBED_JOB, "embeddings.parquet")
        n_vectors, size = write_embeddings(gathered)
        print_out(f"{gathered.out}: {counted(n_vectors, 'vectors')} of {size} numbers")
    elif options.texts:
        _embed_texts(options)
    else:
        _embed_photos(options)
    return 0


def embed_parser() -> Parser:
    """The options and their help."""
    parser = photo_parser(EMBED_JOB, _EMBED_ABOUT, "Parquet file")
    parser.add_argument(
        "--texts", type=Path, help="embed captions (a file, as for audit) instead of photos"
    )
    parser.add_argument(
        "--no-normalize",
        action="store_true",
        help="do not scale vectors to length 1",
    )
    return parser


def embed_options(words: Sequence[str]) -> Namespace:
    """The command's words, checked."""
    options = embed_parser().parse_args(list(words))
    check_photo_options(options, "folder", "texts")
    return options


def _embed_photos(options: Namespace) -> None:
    photos = find_photos(options.folder)
    towers = towers_of(options.model, options.revision, options.device)

    def load() -> Model:
        return PhotoFiles(towers.photos(normalize=not options.no_normalize))

    store = BlockStore(options.out, _vector_settings(options, "photos", towers.spec), towers.name)
    report_progress(
        describe_share(photos, photo_stamps, store, load, options), "images", EMBED_JOB, store
    )


def _embed_texts(options: Namespace) -> None:
    texts, _, others, *_ = model_captions(options.texts)
    if others:
        name = options.texts
        warn(
            f"{name}: the first caption of each image is embedded, "
            f"{counted(others, 'others are')} not"
        )
    settings, load = _of_texts(options)
    store = BlockStore(options.out, settings, options.model)
    report_progress(
        describe_share(texts, _checksums, store, load, options), "texts", EMBED_JOB, store
    )


def _of_texts(options: Namespace) -> Vectors:
    """Settings and loader of a CLIP, another model of pictures and texts, or a language model."""
    if is_fiber(options.model) or is_open_clip(options.model):
        return _of_dual(options)
    kinds = (*DUAL, *LANGUAGE)
    model = find_pretrained(options.model, kinds, revision=options.revision)
    if model.kind in JUDGING:
        return _of_dual(options)
    return (_of_clip if model.kind in CLIP else _of_language)(options, model)


def _of_dual(options: Namespace) -> Vectors:
    towers = towers_of(options.model, options.revision, options.device)
    if options.no_normalize:
        raise UsageError(f"--no-normalize: {towers.name} gives texts of length 1; leave it out")
    return _vector_settings(options, "texts", towers.spec), lambda: PlainTexts(towers.texts())


def _of_clip(options: Namespace, model: Pretrained) -> Vectors:
    def load() -> Model:
        return ClipTexts(model, device_of(options.device), normalize=not options.no_normalize)

    return _vector_settings(options, "texts", {"files": model.files}), load


def _of_language(options: Namespace, model: Pretrained) -> Vectors:
    """Settings and loader of a language model, pooled as its own files say."""
    pooling = pooling_of(model, None, not options.no_normalize)

    def load() -> Model:
        return Sentences(model, device_of(options.device), pooling)

    specification = {"files": model.files, "pooling": pooling.how}
    return _vector_settings(options, "texts", specification), load


def _vector_settings(
    options: Namespace, source: str, model: Mapping[str, object]
) -> dict[str, object]:
    """All settings that decide the vectors."""
    options_of_vectors = {"source": source, "normalize": not options.no_normalize}
    return {"job": EMBED_JOB, "version": EMBED_VERSION, **options_of_vectors, **model}


def _checksums(texts: Sequence[str]) -> list[int]:
    return [zlib.crc32(text.encode("utf-8", "surrogatepass")) for text in texts]


MinScore = Annotated[float, Range(above=0, below=1)]


_DETECT_ABOUT = (
    "Find people and things in photos with a DETR, RT-DETR, YOLOS or Mask2Former of "
    "transformers, or with torchvision's Mask or Faster R-CNN (then --model is its .pth file); "
    "dataset.regions reads the result"
)


DETECT_JOB = "data detect"


DETECT_VERSION = 1  # raise it when the same model would find something else


def data_detect_command(words: Sequence[str]) -> int:
    """Look at one task's share, or gather all shares."""
    options = detect_options(words)
    if options.gather:
        gathered = gather(options, DETECT_JOB, "detections.json")
        detections, empty = write_detections(gathered)
        nothing = f"; nothing in {empty} images, which cannot be masked" if empty else ""
        print_out(f"{gathered.out}: {detections} people and things{nothing}; read by")
        print_out(f"  {shlex.quote(path_override('dataset.regions', gathered.out))}")
    else:
        _detect(options)
    return 0


def data_detect_parser() -> Parser:
    """The options and their help."""
    parser = photo_parser(DETECT_JOB, _DETECT_ABOUT, "JSON file")
    parser.add_argument(
        "--min-score",
        type=number(MinScore),
        default=0.1,
        help="write only detections with at least this score (0.1); image_masking.min_score may "
        "ask for more",
    )
    return parser


def detect_options(words: Sequence[str]) -> Namespace:
    """The command's words, checked."""
    options = data_detect_parser().parse_args(list(words))
    check_photo_options(options, "folder")
    return options


def _detect(options: Namespace) -> None:
    photos = find_photos(options.folder)
    files, load = _detect_named(options)
    settings = {
        "job": DETECT_JOB,
        "version": DETECT_VERSION,
        "min_score": options.min_score,
        "files": files,
    }
    store = BlockStore(options.out, settings, options.model)
    report_progress(
        describe_share(photos, photo_stamps, store, load, options), "images", DETECT_JOB, store
    )


def _detect_named(options: Namespace) -> tuple[Mapping[str, str], Callable[[], Model]]:
    """Digests of the model's files, and a function that loads the model."""
    path = Path(options.model).expanduser()
    if path.suffix in SUFFIXES:
        files = {"weights": digest_of(check_weights(path))}
        return files, lambda: TorchvisionDetector(
            path, options.min_score, device_of(options.device)
        )
    model = find_pretrained(options.model, KINDS, revision=options.revision)
    return model.files, lambda: detector(model, options.min_score, device_of(options.device))
