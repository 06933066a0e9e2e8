"""``fit``: a small CLIP or a captioner, fitted to the pictures and captions of a data set."""

from __future__ import annotations

import importlib
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Count, NotNegative, Seed
from bias_pipeline.errors import UsageError
from bias_pipeline.io.terminal import print_out

if TYPE_CHECKING:
    from bias_pipeline.corpus.corpus import Corpus

CLIP, DEBIAS = "clip", "debias"
_FITS = {  # what is fitted, and the function of a wing that fits and says what was written
    CLIP: "bias_pipeline.retrieval.commands.fit_retrieval.clip",
    "sat": "bias_pipeline.pictures.commands.fit_captioner.captioner",
    "grit": "bias_pipeline.pictures.commands.fit_captioner.captioner",
    DEBIAS: "bias_pipeline.retrieval.commands.fit_retrieval.debias",
}
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
    parser = Parser(
        f"{PROGRAM} fit",
        usage="%(prog)s clip|sat|grit|debias --out DIR [key=value ...] [options]",
        description=_ABOUT,
    )
    parser.add_argument("kind", choices=[*_FITS], help="what to fit")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="dataset=... as for run")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument(
        "--captions",
        choices=["human", "model"],
        default="human",
        help="fit to human captions, or to the captions of captioner=... (default: human)",
    )
    parser.add_argument(
        "--crop",
        choices=["person", "none"],
        help="what a CLIP sees: the largest person, if the data set has boxes of people, or the "
        "whole picture (default: person)",
    )
    parser.add_argument(
        "--prompts",
        choices=["outputs", "states"],
        help="with debias: let load_debias.py also debias prompts of a generator with the same "
        "text "
        "model, by the edit of CLIP's outputs, or by an edit fitted to the states of tokens",
    )
    _add_captioner_options(parser)
    for name, kind, about in (
        (
            "epochs",
            Count,
            "passes over the pictures (default: 15; captioners: trainer.max_epochs)",
        ),
        (
            "batch-size",
            Count,
            "pictures of a batch (default: 128; captioners: attacker.batch_size)",
        ),
        ("seed", Seed, "seed of weights and batches, or of the split (default: 0)"),
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
        help="weight of the loss with people hidden (default: 10)",
    )
    group.add_argument(
        "--confident-weight",
        type=number(NotNegative),
        metavar="WEIGHT",
        help="weight of the loss of whole pictures (default: 1)",
    )


def command(words: Sequence[str]) -> int:
    from bias_pipeline.io.files import require_new

    options = parser().parse_intermixed_args(list(words))
    require_new(options.out)
    if options.prompts and options.kind != DEBIAS:
        raise UsageError("--prompts is an option of fit debias only; leave it out")
    _check_captioner_options(options)
    module, _, name = _FITS[options.kind].rpartition(".")
    print_out(f"{options.out}: {getattr(importlib.import_module(module), name)(options)}")
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


def data_facts(corpus: Corpus, options: Namespace) -> dict[str, object]:
    """The entries of a model card on the data."""
    return {
        "data": corpus.dataset,
        "whose": options.captions,
        **({"captioner": corpus.captioner} if options.captions == "model" else {}),
        "digest": corpus.digest,
    }


def course(losses: Sequence[float]) -> str:
    """The first and the last loss."""
    return f"loss {losses[0]:.2f} to {losses[-1]:.2f}"
