"""``fit``: a small CLIP or a captioner, fitted to the pictures and captions of a data set."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Count, Seed
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.io.terminal import say

if TYPE_CHECKING:
    from bias_pipeline.config.compose import Cell
    from bias_pipeline.corpus.corpus import Corpus
    from bias_pipeline.learning.loop import Survival
    from bias_pipeline.vision.people import Crop

_MINUTES = 5  # between two checkpoints of a CLIP
CLIP, DEBIAS = "clip", "debias"
KINDS = (CLIP, "sat", "grit", DEBIAS)
_ABOUT = (
    "A small CLIP, or a captioner (sat, grit), of a data set's pictures and captions, as a folder "
    "for encoder.model and, of a captioner, for caption --model. Sizes and training of a captioner "
    "are settings of the encoder (encoder.hidden_dim=256, attacker.lr=0.001); trainer=ddp and its "
    "settings are Lightning's. debias: that of a model (encoder.model=..., debias=...), as numbers "
    "that anybody who has the model can apply."
)


def parser() -> Parser:
    """What it takes."""
    own = Parser(
        f"{PROGRAM} fit",
        usage="%(prog)s clip|sat|grit|debias --out DIR [key=value ...] [options]",
        description=_ABOUT,
    )
    own.add_argument("kind", choices=KINDS, help="what is fitted")
    own.add_argument("overrides", nargs="*", metavar="key=value", help="dataset=... as of run")
    own.add_argument("--out", type=Path, required=True, help="a new folder")
    own.add_argument(
        "--captions",
        choices=["human", "model"],
        default="human",
        help="whose: people's, or those of captioner=... (human)",
    )
    own.add_argument(
        "--crop",
        choices=["person", "none"],
        help="what a CLIP sees: the largest person, where the data set says where people are, or "
        "all (person)",
    )
    own.add_argument(
        "--prompts",
        choices=["outputs", "states"],
        help="of debias: have load_debias.py debias the prompts of a generator with the same text "
        "model too, by the edit of CLIP's outputs, or by one that is fitted to the states of "
        "tokens",
    )
    for name, kind, about in (
        (
            "epochs",
            Count,
            "times that each picture is seen (15; captioners: trainer.max_epochs)",
        ),
        ("batch-size", Count, "pictures of a batch (128; captioners: attacker.batch_size)"),
        ("seed", Seed, "of weights and batches, or of the split (0)"),
    ):
        own.add_argument(f"--{name}", type=number(kind), help=about)
    return own


def command(words: Sequence[str]) -> int:
    """Fit and write; returns the exit code.

    Raises:
        BiasPipelineError: if the data do not permit it, or the folder cannot be written.
    """
    from bias_pipeline.io.new_folder import require_new

    options = parser().parse_intermixed_args(list(words))
    require_new(options.out)
    if options.prompts and options.kind != DEBIAS:
        raise UsageError("--prompts is of fit debias")
    fit = {CLIP: _clip, DEBIAS: _debias}.get(options.kind, _captioner)
    say(f"{options.out}: {fit(options)}")
    return 0


def _clip(options: Namespace) -> str:
    from bias_pipeline.config import compose
    from bias_pipeline.models.clip_fitting import ClipRecipe, Pairs, fit_clip

    if any(word.startswith("trainer.max_epochs=") for word in options.overrides):
        raise UsageError("trainer.max_epochs is of captioners; a CLIP takes --epochs")
    cell = compose.cell(options.overrides)
    corpus = cell.corpus()
    if corpus.pictures is None:
        raise NotApplicableError(
            f"dataset {corpus.dataset!r} has no pictures here; set dataset.images=DIR"
        )
    given = {key: getattr(options, key) for key in ("epochs", "batch_size", "seed")}
    recipe = ClipRecipe(**{key: own for key, own in given.items() if own is not None})
    crop: Crop = options.crop or "person"
    pairs = Pairs.of(corpus.pictures, _texts(corpus, options.captions), crop, recipe.side)
    told = {**_told(corpus, options), "crop": crop, "pictures": len(pairs.texts)}
    losses = fit_clip(pairs, recipe, options.out, told, *_course_of(cell))
    return (
        f"a CLIP of {len(pairs.texts)} pictures, {_course(losses)}; encoder=clip "
        f"encoder.model={options.out} takes it"
    )


def _course_of(cell: Cell) -> tuple[Mapping[str, Any], Survival]:
    """Lightning's flags, and where checkpoints lie."""
    from bias_pipeline.learning.loop import Survival
    from bias_pipeline.models.clip_fitting import VERSION

    folder = Path(cell.tree["paths"]["cache"]) / "predictions" / "checkpoints"
    return cell.tree["trainer"], Survival(str(folder), VERSION, _MINUTES)


def _captioner(options: Namespace) -> str:
    from bias_pipeline.fitting.captioner import Lesson, fit_captioner

    if options.crop:
        raise UsageError("--crop is of fit clip; a captioner sees whole pictures, as caption does")
    cell = _cell_of_captioner(options)
    text: Any = cell.build("text")
    corpus = text(cell.corpus())
    recipe = cell.build("probe").recipe
    lesson = Lesson.of(options.kind, recipe, corpus, options.captions, options.seed or 0)
    told = {**_told(corpus, options), "captions": len(lesson.captions)}
    losses = fit_captioner(lesson, options.out, told)
    return (
        f"a captioner of {len(lesson.captions)} captions, {_course(losses)}; caption --model "
        f"{options.out}, or encoder=hf encoder.model={options.out}, takes it"
    )


def _debias(options: Namespace) -> str:
    from bias_pipeline.config import compose
    from bias_pipeline.debias.export import write_debias

    if options.epochs or options.batch_size or options.crop:
        raise UsageError("--epochs, --batch-size and --crop are of what is trained; leave them out")
    cell = compose.cell(["metric=retrieval_fairness", *options.overrides])
    cell.require()
    metric: Any = cell.build("metric")
    corpus = cell.corpus()
    (split,) = metric.draw_splits(corpus, [options.seed or 0])
    dual = metric.debiased(corpus, split)
    prompts = _prompts(options, metric, corpus) if options.prompts else None
    told = {
        "data": corpus.dataset,
        "images": len(split.train),
        "digest": corpus.digest,
        "attribute": metric.attribute.name,
        "edit of images": dict(dual.images.spec),
        "edit of texts": dict(dual.texts.spec),
        **({"prompts": options.prompts} if prompts else {}),
    }
    write_debias(dual, options.out, told, prompts)
    return f"{cell.choices['debias']} of {len(split.train)} images; load_debias.py there applies it"


def _prompts(options: Namespace, metric: Any, corpus: Corpus) -> Mapping[str, Any]:
    """What debiases the prompts of a generator."""
    from bias_pipeline.debias.prompts import prompt_numbers

    texts, names = metric.encoder.prompts(), metric.names(corpus)
    how, whose = metric.debias, metric.attribute
    return prompt_numbers(options.prompts, texts, how, whose, names, options.seed or 0)


def _cell_of_captioner(options: Namespace) -> Cell:
    """The configuration of an attacker of this kind, from which sizes and training are taken."""
    from bias_pipeline.config import compose

    for word in options.overrides:
        if word.partition("=")[0] in ("encoder", "metric"):
            raise UsageError(f"{word}: fit {options.kind} says which it is; leave it out")
    counts = {"trainer.max_epochs": options.epochs, "attacker.batch_size": options.batch_size}
    given = [f"{key}={own}" for key, own in counts.items() if own is not None]
    kind = ["metric=imagecaptioner2", f"encoder={options.kind}"]
    return compose.cell([*kind, *options.overrides, *given])


def _told(corpus: Corpus, options: Namespace) -> dict[str, object]:
    """What a card says of the data."""
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
    found: list[list[str]] = [[] for _ in range(len(corpus))]
    for caption, row in enumerate(captions.image_rows.tolist()):
        found[row].append(captions.text(caption))
    return found
