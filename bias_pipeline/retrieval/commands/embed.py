"""``embed``: photos, or captions, as vectors."""

from __future__ import annotations

import zlib
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bias_pipeline.commands.arguments import Parser
from bias_pipeline.commands.photos import check_photo_options, photo_parser
from bias_pipeline.data.coco_files import model_captions
from bias_pipeline.data.photos import find_photos
from bias_pipeline.errors import UsageError, counted
from bias_pipeline.io.terminal import print_out, warn
from bias_pipeline.models.blocks import BlockStore, photo_stamps
from bias_pipeline.models.clip import KINDS as CLIP
from bias_pipeline.models.clip import ClipTexts
from bias_pipeline.models.merge_shards import gather, write_embeddings
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.models.runner import Model, describe_share, report_progress
from bias_pipeline.models.sentences import KINDS as LANGUAGE
from bias_pipeline.models.sentences import Sentences, pooling_of
from bias_pipeline.retrieval.dual_encoders import BLIP, towers_of
from bias_pipeline.retrieval.dual_encoders import KINDS as DUAL
from bias_pipeline.retrieval.fiber.folder import is_fiber
from bias_pipeline.retrieval.open_clip_folder import is_open_clip

_ABOUT = "Embed photos, or captions, as vectors; the work can be split over parallel jobs"
Vectors = tuple[
    dict[str, object], Callable[[], Model]
]  # the settings that decide them, and a function that loads their model
JOB = "embed"
VERSION = 1  # raise it when the same model would give other vectors


def command(words: Sequence[str]) -> int:
    """Embed one task's share, or gather all shares."""
    options = options_of(words)
    if options.gather:
        gathered = gather(options, JOB, "embeddings.parquet")
        n_vectors, size = write_embeddings(gathered)
        print_out(f"{gathered.out}: {counted(n_vectors, 'vectors')} of {size} numbers")
    elif options.texts:
        _embed_texts(options)
    else:
        _embed_photos(options)
    return 0


def parser() -> Parser:
    parser = photo_parser(JOB, _ABOUT, "Parquet file")
    parser.add_argument(
        "--texts", type=Path, help="embed captions (a file, as for audit) instead of photos"
    )
    parser.add_argument(
        "--no-normalize",
        action="store_true",
        help="do not scale vectors to length 1",
    )
    return parser


def options_of(words: Sequence[str]) -> Namespace:
    """The command's words, checked."""
    options = parser().parse_args(list(words))
    check_photo_options(options, "folder", "texts")
    return options


def _embed_photos(options: Namespace) -> None:
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
            f"{counted(others, 'others are')} not"
        )
    settings, load = _of_texts(options)
    store = BlockStore(options.out, settings, options.model)
    report_progress(describe_share(texts, _checksums, store, load, options), "texts", JOB, store)


def _of_texts(options: Namespace) -> Vectors:
    """Settings and loader of a CLIP, another model of pictures and texts, or a language model."""
    if is_fiber(options.model) or is_open_clip(options.model):
        return _of_dual(options)
    kinds = (*DUAL, *LANGUAGE)
    model = find_pretrained(options.model, kinds, revision=options.revision)
    if model.kind == BLIP:
        return _of_dual(options)
    return (_of_clip if model.kind in CLIP else _of_language)(options, model)


def _of_dual(options: Namespace) -> Vectors:
    towers = towers_of(options.model, options.revision, options.device)
    if options.no_normalize:
        raise UsageError(f"--no-normalize: {towers.name} gives texts of length 1; leave it out")
    return _vector_settings(options, "texts", towers.spec), towers.texts


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
    options_of_vectors = {"source": source, "normalize": not options.no_normalize}
    return {"job": JOB, "version": VERSION, **options_of_vectors, **model}


def _checksums(texts: Sequence[str]) -> list[int]:
    return [zlib.crc32(text.encode("utf-8", "surrogatepass")) for text in texts]
