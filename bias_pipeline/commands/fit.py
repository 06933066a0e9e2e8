"""``fit``: a small CLIP or a captioner, fitted to the pictures and captions of a data set."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.config.overrides import path_override
from bias_pipeline.declared import Count, NotNegative, Seed
from bias_pipeline.errors import NotApplicableError, UsageError, counted
from bias_pipeline.fitting.mitigation import Equalizer, EqualizerWeights
from bias_pipeline.io.terminal import print_out

if TYPE_CHECKING:
    from bias_pipeline.config.compose import CellConfig
    from bias_pipeline.corpus.corpus import Corpus
    from bias_pipeline.learning.loop import CheckpointSettings
    from bias_pipeline.vision.people import Crop

_MINUTES = 5  # between two checkpoints of a CLIP
_GROUNDING = "encoder.grounding="
CLIP, DEBIAS = "clip", "debias"
KINDS = (CLIP, "sat", "grit", DEBIAS)
_ABOUT = (
    "Fit a small CLIP, or a captioner (sat, grit), to a data set's pictures and captions. The "
    "folder it writes is for encoder.model; a captioner's also for caption --model. Sizes and "
    "training of a captioner are settings of the encoder (encoder.hidden_dim=256, "
    "attacker.lr=0.001); trainer=ddp and its settings are Lightning's. encoder.grounding=emotion "
    "grounds the captions of a sat in their emotions (dataset=artemis, or scenes with "
    "dataset.world=affect). debias fits a debiasing of a model (encoder.model=..., debias=...), "
    "as numbers that anybody with the model can apply."
)


def parser() -> Parser:
    """The options and their help."""
    parser = Parser(
        f"{PROGRAM} fit",
        usage="%(prog)s clip|sat|grit|debias --out DIR [key=value ...] [options]",
        description=_ABOUT,
    )
    parser.add_argument("kind", choices=KINDS, help="what to fit")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="dataset=... as for run")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument(
        "--captions",
        choices=["human", "model"],
        default="human",
        help="fit to people's captions, or to those of captioner=... (human)",
    )
    parser.add_argument(
        "--crop",
        choices=["person", "none"],
        help="what a CLIP sees: the largest person, if the data set has boxes of people, or the "
        "whole picture (person)",
    )
    parser.add_argument(
        "--prompts",
        choices=["outputs", "states"],
        help="with debias: let load_debias.py also debias prompts of a generator with the same "
        "text "
        "model, by the edit of CLIP's outputs, or by one fitted to the states of tokens",
    )
    _add_captioner_options(parser)
    for name, kind, about in (
        (
            "epochs",
            Count,
            "passes over the pictures (15; captioners: trainer.max_epochs)",
        ),
        ("batch-size", Count, "pictures of a batch (128; captioners: attacker.batch_size)"),
        ("seed", Seed, "of weights and batches, or of the split (0)"),
    ):
        parser.add_argument(f"--{name}", type=number(kind), help=about)
    return parser


def _add_captioner_options(parser: Parser) -> None:
    group = parser.add_argument_group("captioners (sat, grit)")
    group.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="draw captions in proportion to their image's weight: a table with image, weight, as "
        "analysis rebalance writes it; images that are not in it have weight 1",
    )
    group.add_argument(
        "--each-epoch",
        action="store_true",
        help="also write the captioner after every epoch: OUT/epochs/01, ...",
    )
    usual = EqualizerWeights()
    group.add_argument(
        "--equalizer",
        action="store_true",
        help="name a group by the person, not the scene: the two losses of Hendricks et al. 2018, "
        "for attribute=gender, with people hidden by image_masking=",
    )
    group.add_argument(
        "--confusion-weight",
        type=number(NotNegative),
        metavar="WEIGHT",
        help=f"of the loss with people hidden ({usual.confusion:g})",
    )
    group.add_argument(
        "--confident-weight",
        type=number(NotNegative),
        metavar="WEIGHT",
        help=f"of the loss of whole pictures ({usual.confident:g})",
    )


def command(words: Sequence[str]) -> int:
    """Fit and write."""
    from bias_pipeline.io.files import require_new

    options = parser().parse_intermixed_args(list(words))
    require_new(options.out)
    if options.prompts and options.kind != DEBIAS:
        raise UsageError("--prompts is an option of fit debias only; leave it out")
    _check_captioner_options(options)
    fit = {CLIP: _clip, DEBIAS: _debias}.get(options.kind, _captioner)
    print_out(f"{options.out}: {fit(options)}")
    return 0


def _check_captioner_options(options: Namespace) -> None:
    """Refuse options of captioners that do not fit the others."""
    keys = ("weights", "each_epoch", "equalizer", "confusion_weight", "confident_weight")
    values = {key: getattr(options, key) for key in keys}
    given = [key for key, value in values.items() if value is not None and value is not False]
    if given and options.kind in (CLIP, DEBIAS):
        flag = given[0].replace("_", "-")
        raise UsageError(f"--{flag} is an option of fit sat and fit grit only; leave it out")
    losses = [key for key in given if key.endswith("_weight")]
    if losses and not options.equalizer:
        raise UsageError(f"--{losses[0].replace('_', '-')} belongs to --equalizer; give that too")


def _clip(options: Namespace) -> str:
    from bias_pipeline.config import compose
    from bias_pipeline.models.clip_fitting import ClipRecipe, Pairs, fit_clip

    if any(word.startswith("trainer.max_epochs=") for word in options.overrides):
        raise UsageError("trainer.max_epochs is for captioners; use --epochs for a CLIP")
    cell = compose.cell(options.overrides)
    corpus = cell.corpus()
    if corpus.pictures is None:
        raise NotApplicableError(
            f"dataset {corpus.dataset!r} has no pictures; set dataset.images=DIR"
        )
    given = {key: getattr(options, key) for key in ("epochs", "batch_size", "seed")}
    recipe = ClipRecipe(**{key: value for key, value in given.items() if value is not None})
    crop: Crop = options.crop or "person"
    pairs = Pairs.of(corpus.pictures, _texts(corpus, options.captions), crop, recipe.side)
    card = {**_data_facts(corpus, options), "crop": crop, "pictures": len(pairs.texts)}
    losses = fit_clip(pairs, recipe, options.out, card, *_course_of(cell))
    return (
        f"a CLIP of {counted(len(pairs.texts), 'pictures')}, {_course(losses)}; use it with "
        f"encoder=clip {shlex.quote(path_override('encoder.model', options.out))}"
    )


def _course_of(cell: CellConfig) -> tuple[Mapping[str, Any], CheckpointSettings]:
    """Lightning's flags, and where checkpoints are written."""
    from bias_pipeline.learning.loop import CheckpointSettings
    from bias_pipeline.models.clip_fitting import VERSION

    folder = Path(cell.tree["paths"]["cache"]) / "predictions" / "checkpoints"
    return cell.tree["trainer"], CheckpointSettings(str(folder), VERSION, _MINUTES)


def _captioner(options: Namespace) -> str:
    from bias_pipeline.fitting.captioner import Lesson, fit_captioner
    from bias_pipeline.fitting.mitigation import caption_shares, read_weights
    from bias_pipeline.io.digests import digest_of

    if options.crop:
        raise UsageError(
            "--crop is an option of fit clip only; a captioner sees whole pictures, as in caption"
        )
    options.grounding = _grounding(options)
    cell = _cell_of_captioner(options)
    text: Any = cell.build("text")
    corpus = text(cell.corpus())
    recipe = cell.build("probe").recipe
    seed = options.seed or 0
    lesson = Lesson.of(options.kind, recipe, corpus, options.captions, seed, options.grounding)
    card = {**_data_facts(corpus, options), "captions": len(lesson.captions)}
    if options.weights is not None:
        shares = caption_shares(read_weights(options.weights, corpus), lesson.captions)
        lesson = replace(lesson, shares=shares)
        card["weights of images, SHA-256 of the file"] = digest_of(options.weights)
    if options.equalizer:
        equalizer = _equalizer(options, cell, corpus)
        lesson = replace(lesson, equalizer=equalizer)
        card["equalizer"] = equalizer.spec
    losses = fit_captioner(lesson, options.out, card, each_epoch=options.each_epoch)
    return (
        f"a captioner of {counted(len(lesson.captions), 'captions')}, {_course(losses)}; use it "
        f"with caption --model {shlex.quote(str(options.out))}, or encoder=hf "
        f"{shlex.quote(path_override('encoder.model', options.out))}"
    )


def _equalizer(options: Namespace, cell: CellConfig, corpus: Corpus) -> Equalizer:
    """The losses of ``--equalizer``; their weights are as given, else the usual ones."""
    given = {"confusion": options.confusion_weight, "confident": options.confident_weight}
    weights = EqualizerWeights(**{key: value for key, value in given.items() if value is not None})
    attribute, masking = cell.build("attribute"), cell.build("image_masking")
    return Equalizer.of(weights, attribute, corpus, masking)


def _grounding(options: Namespace) -> str | None:
    """The attribute of ``encoder.grounding``, whose word is taken out; its labels are read."""
    words = [word for word in options.overrides if word.startswith(_GROUNDING)]
    if not words:
        return None
    (*_, given) = (word.removeprefix(_GROUNDING) for word in words)
    if given != "emotion" or options.kind != "sat":
        raise UsageError(
            f"{words[-1]}: only fit sat can be grounded, and only in emotion "
            "(encoder.grounding=emotion); leave it out"
        )
    options.overrides = [word for word in options.overrides if word not in words]
    options.overrides.insert(0, f"attribute={given}")
    return given


def _debias(options: Namespace) -> str:
    from bias_pipeline.config import compose
    from bias_pipeline.debias.export import write_debias

    if options.epochs or options.batch_size or options.crop or options.captions == "model":
        raise UsageError(
            "--epochs, --batch-size, --crop and --captions are not options of fit debias; leave "
            "them out"
        )
    cell = compose.cell(["metric=retrieval_fairness", *options.overrides])
    cell.require()
    metric: Any = cell.build("metric")
    corpus = cell.corpus()
    split, *_ = metric.draw_splits(corpus, [options.seed or 0])  # the first fold, if it has folds
    dual = metric.debiased(corpus, split)
    prompts = _prompts(options, metric, corpus) if options.prompts else None
    card = {
        "data": corpus.dataset,
        "images": len(split.train),
        "digest": corpus.digest,
        "attribute": metric.attribute.name,
        "edit of images": dict(dual.images.spec),
        "edit of texts": dict(dual.texts.spec),
        **({"prompts": options.prompts} if prompts else {}),
    }
    write_debias(dual, options.out, card, prompts)
    return f"{cell.choices['debias']} of {len(split.train)} images; load_debias.py there applies it"


def _prompts(options: Namespace, metric: Any, corpus: Corpus) -> Mapping[str, Any]:
    """The numbers that debias a generator's prompts."""
    from bias_pipeline.debias.export import prompt_numbers

    texts, names = metric.encoder.prompts(), metric.names(corpus)
    how, whose = metric.debias, metric.attribute
    return prompt_numbers(options.prompts, texts, how, whose, names, options.seed or 0)


def _cell_of_captioner(options: Namespace) -> CellConfig:
    """The configuration of an attacker of this kind; it has the sizes and the training."""
    from bias_pipeline.config import compose

    for word in options.overrides:
        if word.partition("=")[0] in ("encoder", "metric"):
            raise UsageError(f"{word}: fit {options.kind} already sets it; leave it out")
    counts = {"trainer.max_epochs": options.epochs, "attacker.batch_size": options.batch_size}
    given = [f"{key}={value}" for key, value in counts.items() if value is not None]
    kind = ["metric=imagecaptioner2", f"encoder={options.kind}"]
    return compose.cell([*kind, *options.overrides, *given])


def _data_facts(corpus: Corpus, options: Namespace) -> dict[str, object]:
    """The entries of a model card on the data."""
    return {
        "data": corpus.dataset,
        "whose": options.captions,
        **({"captioner": corpus.captioner} if options.captions == "model" else {}),
        "digest": corpus.digest,
    }


def _course(losses: Sequence[float]) -> str:
    return f"loss {losses[0]:.2f} to {losses[-1]:.2f}"


def _texts(corpus: Corpus, side: str) -> list[list[str]]:
    """The captions of each image."""
    captions = corpus.side(side)
    captions_by_image: list[list[str]] = [[] for _ in range(len(corpus))]
    for caption, row in enumerate(captions.image_rows.tolist()):
        captions_by_image[row].append(captions.text(caption))
    return captions_by_image
