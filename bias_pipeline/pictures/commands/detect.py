"""``data detect``: finds people and things in a folder of photos, so that they can be masked."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from bias_pipeline.commands.arguments import Parser, number
from bias_pipeline.commands.photos import check_photo_options, photo_parser
from bias_pipeline.data.photos import find_photos
from bias_pipeline.declared import Range
from bias_pipeline.errors import UsageError
from bias_pipeline.io.digests import digest_of
from bias_pipeline.io.terminal import print_out
from bias_pipeline.models.blocks import BlockStore, photo_stamps
from bias_pipeline.models.detection import KINDS, detector
from bias_pipeline.models.merge_shards import gather, write_detections
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.models.recognition import SUFFIXES, TorchvisionDetector, check_weights
from bias_pipeline.models.runner import Model, describe_share, report_progress
from bias_pipeline.models.timm_networks import is_timm
from bias_pipeline.run.overrides import path_override

MinScore = Annotated[float, Range(above=0, below=1)]
_ABOUT = (
    "Find people and things in photos with a DETR, RT-DETR, YOLOS or Mask2Former of "
    "transformers, or with torchvision's Mask or Faster R-CNN (then --model is its .pth file); "
    "dataset.regions reads the result"
)
JOB = "data detect"
VERSION = 1  # raise it when the same model would find something else


def data_detect_command(words: Sequence[str]) -> int:
    options = data_detect_options_of(words)
    if options.gather:
        gathered = gather(options, JOB, "detections.json")
        detections, empty = write_detections(gathered)
        nothing = f"; nothing in {empty} images, which cannot be masked" if empty else ""
        print_out(f"{gathered.out}: {detections} people and things{nothing}; read by")
        print_out(f"  {shlex.quote(path_override('dataset.regions', gathered.out))}")
    else:
        _detect(options)
    return 0


def data_detect_parser() -> Parser:
    parser = photo_parser(JOB, _ABOUT, "JSON file")
    parser.add_argument(
        "--min-score",
        type=number(MinScore),
        default=0.1,
        help="write only detections with at least this score (default: 0.1); masking uses only "
        "detections with at least image_masking.min_score",
    )
    return parser


def data_detect_options_of(words: Sequence[str]) -> Namespace:
    options = data_detect_parser().parse_args(list(words))
    check_photo_options(options, "folder")
    return options


def _detect(options: Namespace) -> None:
    photos, path = find_photos(options.folder), Path(options.model).expanduser()
    model: Pretrained | None = None
    if is_timm(options.model):
        raise UsageError(
            f"--model {options.model}: a classifier says what a picture shows and not where, "
            "so nothing can be masked; metric.context takes classifiers"
        )
    if path.suffix in SUFFIXES:
        files: Mapping[str, str] = {"weights": digest_of(check_weights(path))}
    else:
        model = find_pretrained(options.model, KINDS, revision=options.revision)
        files = model.files

    def load() -> Model:
        device = device_of(options.device)
        if model is None:
            return TorchvisionDetector(path, options.min_score, device)
        return detector(model, options.min_score, device)

    settings = {"job": JOB, "version": VERSION, "min_score": options.min_score, "files": files}
    store = BlockStore(options.out, settings, options.model)
    tally = describe_share(photos, photo_stamps, store, load, options)
    report_progress(tally, "images", JOB, store)
