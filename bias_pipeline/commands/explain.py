"""What captions show, and where a captioner looked when it wrote them.

Words that give groups away (``analysis words``), words that masking leaves or alignment replaces,
and maps of pictures (``explain gradcam``).
"""

from __future__ import annotations

import json
import math
from argparse import SUPPRESS, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.analysis.added_words import added_words
from bias_pipeline.analysis.caption_words import DELTAS, Likeness, Reach, likeness, reach
from bias_pipeline.array_types import Float64Array
from bias_pipeline.captioners.fitted import KINDS as FITTED
from bias_pipeline.commands.arguments import PROGRAM, Parser, file_of, keys_parser, number
from bias_pipeline.commands.photos import BATCH, Batch
from bias_pipeline.config import compose
from bias_pipeline.config.compose import CellConfig
from bias_pipeline.config.overrides import captioners_in, quoted, sweeps
from bias_pipeline.config.presets import preset
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.declared import Count, NotNegativeCount, Resamples
from bias_pipeline.errors import UsageError, counted
from bias_pipeline.explain.gradients import BASELINES, Gradients
from bias_pipeline.explain.words import DEFAULT, RESAMPLES, words
from bias_pipeline.io.files import check_places, drafted, require_new, write_file
from bias_pipeline.io.terminal import print_out, print_table
from bias_pipeline.metrics.functional.quality import METEOR_ABSENT, has_meteor
from bias_pipeline.models.gguf import ENDING
from bias_pipeline.models.model_location import require_vocabulary
from bias_pipeline.models.pretrained import Pretrained, device_of, find_pretrained
from bias_pipeline.models.sampling import Decoding
from bias_pipeline.report.figures import AXIS, substitution_curves
from bias_pipeline.report.tables import number as decimal
from bias_pipeline.report.tables import percent
from bias_pipeline.report.word_attribution import print_added, print_words, save_words
from bias_pipeline.text.contextual import ENOUGH, ContextualAlignment

if TYPE_CHECKING:
    from bias_pipeline.models.forced_captions import ForcedCaptioner

VERSION = 1  # raise it when the same model would have other maps
NEW_TOKENS = 30
DRAWN = 12
MANIFEST = "settings.json"
_ABOUT = (
    "Grad-CAM of captions: for each picture the captioner writes a caption, and a map shows where "
    "it looked for the word that names a group. The attribution score is the share of the map "
    "outside the people. Writes attribution.parquet (a row an image) and pictures of the first "
    "maps."
)
_PEOPLE = ("all", "largest", "foreground")


def gradcam_parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} explain gradcam",
        usage="%(prog)s --model MODEL --out DIR [key=value ...] [options]",
        description=_ABOUT,
    )
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=value",
        help="dataset=... attribute=... image_masking=... as for run (pictures as they are)",
    )
    parser.add_argument("--model", required=True, help="a captioner, as for caption")
    parser.add_argument("--revision", default="", help="revision of a model on the hub (main)")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument(
        "--words", default="", help="words, separated by commas, instead of the attribute's"
    )
    parser.add_argument(
        "--layer",
        default="auto",
        help="name of a module; attention: the last one with cross-attention; auto: the last "
        "feature map through which all of the picture passes (auto)",
    )
    parser.add_argument(
        "--people", choices=_PEOPLE, default=_PEOPLE[0], help="whose masks count (all)"
    )
    parser.add_argument("--prompt", default="", help="as for caption")
    parser.add_argument(
        "--pictures",
        type=number(NotNegativeCount),
        default=DRAWN,
        help=f"draw the maps of the first N pictures ({DRAWN})",
    )
    parser.add_argument(
        "--maps", action="store_true", help="also write all maps as numbers (maps.parquet)"
    )
    parser.add_argument("--batch", type=number(Batch), default=BATCH, help=f"batch size ({BATCH})")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ... (auto)")
    parser.add_argument("--server", help=SUPPRESS)
    return parser


def gradcam_command(words: Sequence[str]) -> int:
    """Map and write."""
    options = gradcam_parser().parse_intermixed_args(list(words))
    require_new(options.out)
    _require_gradients(options)
    model = find_pretrained(options.model, None, revision=options.revision)
    masked = any(word.partition("=")[0] == "image_masking" for word in options.overrides)
    cell = compose.cell([*options.overrides, *([] if masked else ["image_masking=none"])])
    mask: Any = cell.build("image_masking")
    corpus = mask(cell.corpus())
    captioner = forced_captioner(model, options.device, options.prompt)
    _explain(options, model, captioner, corpus, cell.build("attribute"))
    return 0


def _require_gradients(options: Namespace) -> None:
    """Refuse captioners that give captions alone."""
    if options.server:
        raise UsageError(
            "--server: a model behind a server gives captions and no gradients; name a model on "
            "this machine (--model)"
        )
    folder = Path(options.model)
    if folder.suffix == ENDING or (folder.is_dir() and any(folder.glob(f"*{ENDING}"))):
        raise UsageError(
            f"{options.model}: a GGUF file is read by a runtime without gradients; name the same "
            "model's safetensors"
        )


def forced_captioner(model: Pretrained, device: str, prompt: str = "") -> ForcedCaptioner[Any]:
    """Any captioner of ``caption``, ready to read its captions again with gradients."""
    if model.kind in FITTED:
        from bias_pipeline.captioners.forced import FittedForced

        if prompt:
            raise UsageError(f"{model.name}: a {model.kind} takes no prompt; leave out --prompt")
        return FittedForced(model, device_of(device))
    from bias_pipeline.models.forced_captions import PublishedForced
    from bias_pipeline.models.generation import usual_prompt

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
    from bias_pipeline.explain.attribution import Attribution, ExplainedWords, layer_of
    from bias_pipeline.report.attribution_maps import (
        TABLE,
        describe_attribution,
        write_attribution,
    )

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
    with drafted(options.out) as draft:
        rows = write_attribution(
            draft, how.of(corpus), pictures=options.pictures, with_maps=options.maps
        )
        lines = describe_attribution(rows, chosen)
        (draft / MANIFEST).write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    print_out(f"{options.out / TABLE}: {counted(len(rows), 'pictures')}, layer {layer}")
    lacking = int((~corpus.pictures.present).sum())
    unseen = (
        [counted(lacking, f"of {len(corpus)} images have no picture to show")] if lacking else []
    )
    for line in [*unseen, *lines]:
        print_out(f"  {line}")


def analysis_words_command(arguments: Sequence[str]) -> int:
    """Explain the attackers of one captioner or several; returns the exit code.

    Args:
        arguments: overrides as of ``run``; ``captioner=`` may name several, or ``all``.
    """
    options = analysis_words_parser().parse_intermixed_args(list(arguments))
    how = Gradients(options.baseline, options.steps)
    for cell in _cells(options.overrides):
        corpus, metric = cell.corpus(), cell.build("metric")
        explanation = words(metric, corpus, cell.seeds, options.resamples, how)
        if len(corpus.human):
            concepts = preset({"metric": "descriptions"}).build("metric").concepts
            print_added(added_words(corpus, cell.build("attribute"), concepts), corpus.captioner)
        written = save_words(Path(cell.tree["paths"]["outputs"]), cell.run_id(corpus), explanation)
        print_words(explanation)
        print_out(written)
    return 0


def _cells(overrides: Sequence[str]) -> list[CellConfig]:
    """One cell a captioner."""
    rest = [word for word in overrides if not word.startswith("captioner=")]
    swept = next((word for word in rest if sweeps(word)), None)
    if swept:
        raise UsageError(f"{swept}: this analysis sweeps only over captioners; name one value")
    names = captioners_in(overrides)
    if not names:
        return [compose.cell(rest)]
    if names == ["all"]:
        first = compose.cell(rest)
        names = first.build("dataset").everyone(first.build("attribute"))
    return [compose.cell([*rest, f"captioner={quoted(name)}"]) for name in names]


def analysis_words_parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} analysis words",
        description="Which words the captioner added where it describes people, by group, and "
        "which words give the attribute away",
    )
    parser.add_argument(
        "--resamples",
        type=number(Resamples),
        default=RESAMPLES,
        help=f"bootstrap resamples of the images ({RESAMPLES})",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="as for run")
    network = parser.add_argument_group("integrated gradients, for networks (encoder=lstm ...)")
    help_text = (
        f"{' or '.join(BASELINES)}: the vector that stands for no information ({DEFAULT.baseline})"
    )
    network.add_argument("--baseline", default=DEFAULT.baseline, help=help_text)
    help_text = f"points between the baseline and the caption ({DEFAULT.steps})"
    network.add_argument("--steps", type=number(Count), default=DEFAULT.steps, help=help_text)
    return parser


def analysis_unmasked_words_command(words: list[str]) -> int:
    """Print the table."""
    from bias_pipeline.analysis.caption_words import print_unmasked_words
    from bias_pipeline.config import compose

    cell = compose.cell(words)
    print_unmasked_words(cell.corpus(), cell.build("attribute"), cell.build("masking"))
    return 0


def analysis_unmasked_words_parser() -> Parser:
    """The options and their help."""
    return keys_parser("analysis unmasked_words", "Which words of the attribute masking leaves in.")


def analysis_collocations_command(words: list[str]) -> int:
    """Print the table."""
    from bias_pipeline.analysis.caption_words import print_collocations
    from bias_pipeline.config import compose

    cell = compose.cell(words)
    print_collocations(cell.corpus(), cell.build("attribute"))
    return 0


def analysis_collocations_parser() -> Parser:
    """The options and their help."""
    return keys_parser("analysis collocations", "Which words follow those of the attribute.")


def analysis_alignment_command(arguments: Sequence[str]) -> int:
    """Print what contextual alignment would replace; returns the exit code.

    Args:
        arguments: overrides as of ``run``; ``captioner=`` may name several, or ``all``.
    """
    options = analysis_alignment_parser().parse_intermixed_args(list(arguments))
    check_places(options.figure)
    pairs = [(_masked(cell), _alignment(cell)) for cell in _cells(_contextual(options.overrides))]
    _print_reach([reach(corpus, align) for corpus, align in pairs])
    if options.figure is not None:
        curves = {c.captioner: reach(c, align, AXIS).shares for c, align in pairs}
        write_file(options.figure, _drawn(curves, options.figure.suffix))
        print_out(options.figure)
    if options.meteor and not has_meteor():
        print_out(METEOR_ABSENT)
    elif options.meteor:
        _print_likeness({c.captioner: likeness(c, align, options.meteor) for c, align in pairs})
    print_out(
        f"How well attackers read them (LIC_H, omega_H) needs runs: {PROGRAM} metric=lic,dbac "
        f"alignment=constant,contextual; experiments/alignment has the results of seven captioners"
    )
    return 0


def analysis_alignment_parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} analysis alignment",
        description="How many of people's words have a similar word of the captioner",
    )
    help_text = (
        "score N aligned captions against their originals by METEOR; 60 a second, needs Java (0)"
    )
    parser.add_argument(
        "--meteor", type=number(NotNegativeCount), default=0, metavar="N", help=help_text
    )
    parser.add_argument(
        "--figure",
        type=file_of("figure", ".svg", ".png"),
        metavar="FILE",
        help="draw the shares at every delta (Figure 1 of DBAC's appendix A)",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="as for run")
    return parser


def _contextual(overrides: Sequence[str]) -> list[str]:
    named = any(word.startswith("alignment=") for word in overrides)
    return [*overrides] if named else ["alignment=contextual", *overrides]


def _alignment(cell: CellConfig) -> ContextualAlignment:
    align = cell.build("alignment")
    if not isinstance(align, ContextualAlignment):
        raise UsageError("analysis alignment needs alignment=contextual; leave alignment= out")
    return align


def _masked(cell: CellConfig) -> Corpus:
    """The captions as they reach the alignment."""
    corpus: Corpus = cell.build("masking")(cell.build("text")(cell.corpus()))
    return corpus


def _print_reach(results: Sequence[Reach]) -> None:
    print_out("Share of people's unknown words with a similar word, by cosine distance, per cent")
    header = ["captioner", "words", "running", *(f"{delta:g}" for delta in DELTAS)]
    header.append(f"delta of {ENOUGH:.0%}")
    print_table(header, [_line(result) for result in results], keys=1)


def _line(result: Reach) -> list[str]:
    enough = "none" if math.isinf(result.enough) else decimal(result.enough)
    shares = map(percent, result.shares.tolist())
    return [result.captioner, str(result.words), str(result.running), *shares, enough]


def _drawn(curves: Mapping[str, Float64Array], ending: str) -> bytes:
    figure = substitution_curves(curves, ENOUGH)
    return figure.png() if ending.lower() == ".png" else figure.svg().encode()


def _print_likeness(results: dict[str, Likeness]) -> None:
    print_out("METEOR 1.5, its authors' program, of aligned human captions with their originals")
    lines = [
        [name, str(result.captions), decimal(result.constant), decimal(result.contextual)]
        for name, result in results.items()
    ]
    print_table(["captioner", "captions", "constant", "contextual"], lines, keys=1)
