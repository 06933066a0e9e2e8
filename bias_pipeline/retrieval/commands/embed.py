"""``embed``: turns photos or captions into vectors."""

from __future__ import annotations

import zlib
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bias_pipeline.commands.arguments import Parser
from bias_pipeline.commands.photos import check_photo_options, photo_parser
from bias_pipeline.data.coco_files import model_captions
from bias_pipeline.data.photos import find_photos
from bias_pipeline.errors import UsageError, inflect
from bias_pipeline.io.machine import let_threads_sleep
from bias_pipeline.io.terminal import print_out, warn
from bias_pipeline.models.blocks import BlockStore, photo_stamps
from bias_pipeline.models.clip import KINDS as CLIP
from bias_pipeline.models.clip import ClipTexts
from bias_pipeline.models.merge_shards import gather, write_embeddings
from bias_pipeline.models.pretrained import device_of, find_pretrained
from bias_pipeline.models.runner import Model, describe_share, report_progress
from bias_pipeline.models.sentences import KINDS as LANGUAGE
from bias_pipeline.models.sentences import Sentences, pooling_of
from bias_pipeline.retrieval.dual_encoders import BLIP, towers_of
from bias_pipeline.retrieval.dual_encoders import KINDS as DUAL
from bias_pipeline.retrieval.fiber.folder import is_fiber
from bias_pipeline.retrieval.open_clip_folder import is_open_clip

_ABOUT = "Embed photos, or captions, as vectors; the work can be split over parallel jobs"
JOB = "embed"
VERSION = 1  # raise it when the same model would give other vectors


def command(words: Sequence[str]) -> int:
    """Embed the share of one job, or gather the shares of all jobs."""
    options = options_of(words)
    if options.gather:
        gathered = gather(options, JOB, "embeddings.parquet")
        n_vectors, size = write_embeddings(gathered)
        print_out(f"{gathered.out}: {inflect(n_vectors, 'vectors')} of {size} numbers")
    elif options.texts:
        _embed_texts(options)
    else:
        _embed_photos(options)
    return 0


def parser() -> Parser:
    parser = photo_parser(JOB, _ABOUT, "Parquet file")
    parser.add_argument(
        "--texts",
        type=Path,
        help="embed the captions in this file instead of photos; the file has a form that audit "
        "reads",
    )
    parser.add_argument(
        "--no-normalize",
        action="store_true",
        help="do not scale vectors to length 1",
    )
    return parser


def options_of(words: Sequence[str]) -> Namespace:
    options = parser().parse_args(list(words))
    check_photo_options(options, "folder", "texts")
    return options


def _embed_photos(options: Namespace) -> None:
    let_threads_sleep()
    photos = find_photos(options.folder)
    towers = towers_of(options.model, options.revision, options.device)

    def load() -> Model:
        return towers.photos(normalize=not options.no_normalize)

    store = BlockStore(options.out, _vector_settings(options, "photos", towers.spec), towers.name)
    report_progress(
        describe_share(photos, photo_stamps, store, load, options), "images", JOB, store
    )


def _embed_texts(options: Namespace) -> None:
    texts, _, others, *_ = model_captions(options.texts)
    if others:
        name = options.texts
        warn(
            f"{name}: the first caption of each image is embedded, "
            f"{inflect(others, 'others are')} not"
        )
    specification, load = _text_model(options)
    store = BlockStore(
        options.out, _vector_settings(options, "texts", specification), options.model
    )
    report_progress(describe_share(texts, _checksums, store, load, options), "texts", JOB, store)


def _text_model(options: Namespace) -> tuple[Mapping[str, object], Callable[[], Model]]:
    """The settings that decide the vectors of a model, and the function that loads the model."""
    apart = is_fiber(options.model) or is_open_clip(options.model)
    model = None
    if not apart:
        model = find_pretrained(options.model, (*DUAL, *LANGUAGE), revision=options.revision)
    if model is None or model.kind == BLIP:
        towers = towers_of(options.model, options.revision, options.device)
        if options.no_normalize:
            raise UsageError(f"--no-normalize: {towers.name} gives texts of length 1; leave it out")
        return towers.spec, towers.texts
    device, normalize = options.device, not options.no_normalize
    if model.kind in CLIP:
        files = {"files": model.files}
        return files, lambda: ClipTexts(model, device_of(device), normalize=normalize)
    pooling = pooling_of(model, None, normalize)  # as the model's files say
    specification = {"files": model.files, "pooling": pooling.how}
    return specification, lambda: Sentences(model, device_of(device), pooling)


def _vector_settings(
    options: Namespace, source: str, model: Mapping[str, object]
) -> dict[str, object]:
    normalize = not options.no_normalize
    return {"job": JOB, "version": VERSION, "source": source, "normalize": normalize, **model}


def _checksums(texts: Sequence[str]) -> list[int]:
    return [zlib.crc32(text.encode("utf-8", "surrogatepass")) for text in texts]
