"""``embed``: photos as vectors of a CLIP, captions of language models too; in many tasks."""

from __future__ import annotations

import zlib
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from bias_pipeline.commands.arguments import Parser
from bias_pipeline.commands.photo_options import check_words
from bias_pipeline.commands.photo_options import parser as photo_parser
from bias_pipeline.datasets.coco_files import model_captions
from bias_pipeline.inference.blocks import BlockStore
from bias_pipeline.inference.gathering import gather, write_embeddings
from bias_pipeline.inference.runner import Model, describe_share, report, size_of
from bias_pipeline.io.terminal import say
from bias_pipeline.models.clip import KINDS, ClipPhotos, ClipTexts
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.models.sentences import KINDS as LANGUAGE
from bias_pipeline.models.sentences import Sentences, pooling_of
from bias_pipeline.vision.photos import find_photos

_ABOUT = "Photos, or captions, as vectors of a model; in any number of tasks"
Vectors = tuple[dict[str, object], Callable[[], Model]]  # what decides them, and what makes them
JOB = "embed"
VERSION = 1  # raised when the same model would give other vectors


def command(words: Sequence[str]) -> int:
    """Embed one task's share, or gather that of all; returns the exit code.

    Raises:
        BiasPipelineError: if something is missing or cannot be read.
    """
    options = options_of(words)
    if options.gather:
        gathered = gather(options, JOB, "embeddings.parquet")
        n_vectors, size = write_embeddings(gathered)
        say(f"{gathered.out}: {n_vectors} vectors of {size} numbers")
    elif options.texts:
        _embed_texts(options)
    else:
        _embed_photos(options)
    return 0


def parser() -> Parser:
    """What it takes."""
    own = photo_parser(JOB, _ABOUT, "Parquet file")
    own.add_argument("--texts", type=Path, help="captions (as of audit) instead of photos")
    own.add_argument(
        "--no-normalize",
        action="store_true",
        help="leave vectors as long as the model makes them (else 1)",
    )
    return own


def options_of(words: Sequence[str]) -> Namespace:
    """The command's words, checked.

    Raises:
        UsageError: if they do not fit together.
    """
    options = parser().parse_args(list(words))
    check_words(options, "folder", "texts")
    return options


def _embed_photos(options: Namespace) -> None:
    photos = find_photos(options.folder)
    model = find_pretrained(options.model, KINDS, revision=options.revision)

    def load() -> Model:
        return ClipPhotos(model, device_of(options.device), normalize=not options.no_normalize)

    store = BlockStore(options.out, _settings(options, "photos", model.files), model.name)
    report(describe_share(photos, size_of, store, load, options), "images", JOB, store)


def _embed_texts(options: Namespace) -> None:
    texts, _, _ = model_captions(options.texts)
    model = find_pretrained(options.model, (*KINDS, *LANGUAGE), revision=options.revision)
    settings, load = (_of_clip if model.kind in KINDS else _of_language)(options, model)
    store = BlockStore(options.out, settings, model.name)
    report(describe_share(texts, _checksum, store, load, options), "texts", JOB, store)


def _of_clip(options: Namespace, model: Pretrained) -> Vectors:
    def load() -> Model:
        return ClipTexts(model, device_of(options.device), normalize=not options.no_normalize)

    return _settings(options, "texts", model.files), load


def _of_language(options: Namespace, model: Pretrained) -> Vectors:
    """A masked or causal model, or one of sentences, pooled as its own files say."""
    pooling = pooling_of(model, None, not options.no_normalize)

    def load() -> Model:
        return Sentences(model, device_of(options.device), pooling)

    return {**_settings(options, "texts", model.files), "pooling": pooling.how}, load


def _settings(options: Namespace, source: str, files: object) -> dict[str, object]:
    return {
        "job": JOB,
        "version": VERSION,
        "source": source,
        "normalize": not options.no_normalize,
        "files": files,
    }


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
