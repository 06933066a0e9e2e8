"""``explain gradcam``: shows where a captioner looked when it wrote a caption."""

from __future__ import annotations

import json
from argparse import SUPPRESS, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.commands.photos import BATCH, Batch
from bias_pipeline.declared import NotNegativeCount
from bias_pipeline.errors import UsageError, inflect
from bias_pipeline.io.files import draft_of, require_new
from bias_pipeline.io.terminal import print_out
from bias_pipeline.models.model_location import require_vocabulary
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.pictures.captioners.fitted import KINDS as FITTED
from bias_pipeline.run import compose

if TYPE_CHECKING:
    from bias_pipeline.pictures.forced_captions import ForcedCaptioner

VERSION = 1  # raise it when the same model would have other maps
NEW_TOKENS = 30
DRAWN = 12
MANIFEST = "settings.json"
GGUF = ".gguf"
_ABOUT = (
    "Grad-CAM of captions: the captioner captions each picture, and a map shows where the "
    "captioner looked when it wrote the word that names a group. The attribution score is the "
    "share of the map that lies outside people. The command writes attribution.parquet (a row for "
    "each image) and pictures of the first maps."
)
_PEOPLE = ("all", "largest", "foreground")


def gradcam_parser() -> Parser:
    parser = Parser(
        f"{PROGRAM} explain gradcam",
        usage="%(prog)s --model MODEL --out DIR [key=value ...] [options]",
        description=_ABOUT,
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=value",
        help="settings as for run: dataset=... attribute=... image_masking=... (default: pictures "
        "without masks)",
    )
    parser.add_argument("--model", required=True, help="a captioner, as for caption")
    parser.add_argument(
        "--revision", default="", help="revision of a model on the hub (default: main)"
    )
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument(
        "--words",
        default="",
        help="words to explain, separated by commas, instead of the attribute's words",
    )
    parser.add_argument(
        "--layer",
        default="auto",
        help="the layer to explain: the name of a module, attention (the last module with "
        "cross-attention) or auto (the last feature map that the whole picture passes "
        "through) (default: auto)",
    )
    parser.add_argument(
        "--people",
        choices=_PEOPLE,
        default=_PEOPLE[0],
        help="the people with whom the map is compared: all people, the largest person, or "
        "people in the foreground (default: all)",
    )
    parser.add_argument("--prompt", default="", help="as for caption")
    parser.add_argument(
        "--pictures",
        type=number(NotNegativeCount),
        default=DRAWN,
        help=f"draw the maps of the first N pictures (default: {DRAWN})",
    )
    parser.add_argument(
        "--maps", action="store_true", help="also write all maps as numbers (maps.parquet)"
    )
    parser.add_argument(
        "--batch", type=number(Batch), default=BATCH, help=f"batch size (default: {BATCH})"
    )
    parser.add_argument(
        "--device", default="auto", help="the device: auto, cpu, cuda, cuda:1, ... (default: auto)"
    )
    parser.add_argument("--server", help=SUPPRESS)
    return parser


def gradcam_command(words: Sequence[str]) -> int:
    options = gradcam_parser().parse_intermixed_args(list(words))
    require_new(options.out)
    if options.server:
        raise UsageError(
            "--server: a model behind a server gives captions and no gradients; name a model on "
            "this machine (--model)"
        )
    folder = Path(options.model)
    if folder.suffix == GGUF or (folder.is_dir() and any(folder.glob(f"*{GGUF}"))):
        raise UsageError(
            f"{options.model}: a GGUF file is read by a runtime without gradients; name the same "
            "model's safetensors"
        )
    model = find_pretrained(options.model, None, revision=options.revision)
    masked = any(word.partition("=")[0] == "image_masking" for word in options.overrides)
    cell = compose.cell([*options.overrides, *([] if masked else ["image_masking=none"])])
    mask: Any = cell.build("image_masking")
    corpus = mask(cell.corpus())
    captioner = forced_captioner(model, options.device, options.prompt)
    _explain(options, model, captioner, corpus, cell.build("attribute"))
    return 0


def forced_captioner(model: Pretrained, device: str, prompt: str = "") -> ForcedCaptioner[Any]:
    """A captioner of any kind that ``caption`` takes, prepared to read captions with gradients."""
    if model.kind in FITTED:
        from bias_pipeline.pictures.forced_captions import FittedForced

        if prompt:
            raise UsageError(f"{model.name}: a {model.kind} takes no prompt; leave out --prompt")
        return FittedForced(model, device_of(device))
    from bias_pipeline.models.generation import usual_prompt
    from bias_pipeline.pictures.forced_captions import PublishedForced

    require_vocabulary(model.folder, model.files)
    decoding = Decoding(prompt=prompt or usual_prompt(model.kind), max_new_tokens=NEW_TOKENS)
    return PublishedForced(model, device_of(device), decoding)


def _explain(
    options: Namespace,
    model: Pretrained,
    captioner: ForcedCaptioner[Any],
    corpus: Any,
    attribute: Any,
) -> None:
    from bias_pipeline.pictures.gradcam.attribution import (
        Attribution,
        ExplainedWords,
        describe_attribution,
        layer_of,
        write_attribution,
    )
    from bias_pipeline.report.example_pictures import TABLE

    chosen = [word.strip() for word in options.words.split(",") if word.strip()]
    layer = layer_of(captioner, corpus, options.layer)
    how = Attribution(
        captioner, layer, ExplainedWords(attribute, chosen), options.people, options.batch
    )
    settings = {
        "version": VERSION,
        "model": {"name": model.name, "files": dict(model.files)},
        "layer": str(layer),
        "words": chosen or attribute.name,
        "people": options.people,
        "dataset": corpus.dataset,
        "edits": [dict(edit.spec) for edit in corpus.pictures.edits],
        "digest": corpus.digest,
    }
    with draft_of(options.out) as draft:
        rows = write_attribution(
            draft, how.explain(corpus), pictures=options.pictures, with_maps=options.maps
        )
        lines = describe_attribution(rows, chosen)
        (draft / MANIFEST).write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    print_out(f"{options.out / TABLE}: {inflect(len(rows), 'pictures')}, layer {layer}")
    lacking = int((~corpus.pictures.present).sum())
    unseen = (
        [inflect(lacking, f"of {len(corpus)} images have no picture to show")] if lacking else []
    )
    for line in [*unseen, *lines]:
        print_out(f"  {line}")
