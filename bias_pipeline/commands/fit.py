"""``fit``: trains a small CLIP or a captioner on the pictures and captions of a data set."""

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
_FITS = {  # what is fitted, to the wing's function that fits it and returns what to print
    CLIP: "bias_pipeline.retrieval.commands.fit_retrieval.clip",
    "sat": "bias_pipeline.pictures.commands.fit_captioner.captioner",
    "grit": "bias_pipeline.pictures.commands.fit_captioner.captioner",
    DEBIAS: "bias_pipeline.retrieval.commands.fit_retrieval.debias",
}
_ABOUT = (
    "Fit a small CLIP, or a captioner (sat, grit), to a data set's pictures and captions. "
    "The written folder can be an encoder.model; the folder of a captioner can also be the --model "
    "of caption. encoder.KEY sets the size of a captioner (encoder.hidden_dim=256), and "
    "attacker.KEY sets its training (attacker.lr=0.001). Settings of trainer are passed to "
    "Lightning (trainer=ddp). With encoder.grounding=emotion, a sat is told which emotion a "
    "caption expresses (dataset=artemis, or scenes with dataset.world=affect). debias fits a "
    "debiasing of a model (encoder.model=..., debias=...), and writes numbers that anybody with "
    "the model can apply."
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
        help="train on human captions, or on the captions of captioner=... (default: human)",
    )
    parser.add_argument(
        "--crop",
        choices=["person", "none"],
        help="the part of a picture that CLIP sees: person (the largest person, if the data set "
        "has boxes of people) or none (the whole picture) (default: person)",
    )
    parser.add_argument(
        "--prompts",
        choices=["outputs", "states"],
        help="with debias: also write files with which load_debias.py debiases the "
        "prompts of a generator that has the same text model. With --prompts "
        "outputs, the edit of CLIP's outputs is applied to tokens. With "
        "--prompts states, an edit is fitted to the states of tokens",
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
            "pictures in a batch (default: 128; captioners: attacker.batch_size)",
        ),
        ("seed", Seed, "seed of the weights and batches; for debias, of the split (default: 0)"),
    ):
        parser.add_argument(f"--{name}", type=number(kind), help=about)
    return parser


def _add_captioner_options(parser: Parser) -> None:
    group = parser.add_argument_group("captioners (sat, grit)")
    group.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="table with the columns image and weight, written by the command 'analysis "
        "rebalance'; training draws captions in proportion to the weight of their image. "
        "Images that are not in the table have weight 1",
    )
    group.add_argument(
        "--each-epoch",
        action="store_true",
        help="also write the captioner after every epoch, as OUT/epochs/01, ...",
    )
    group.add_argument(
        "--equalizer",
        action="store_true",
        help="train a captioner to name a group by the person and not by the scene; this adds the "
        "two losses of Hendricks et al. 2018 (attribute=gender; image_masking= hides the "
        "people)",
    )
    group.add_argument(
        "--confusion-weight",
        type=number(NotNegative),
        metavar="WEIGHT",
        help="weight of the loss on pictures whose people are hidden (default: 10)",
    )
    group.add_argument(
        "--confident-weight",
        type=number(NotNegative),
        metavar="WEIGHT",
        help="weight of the loss on whole pictures (default: 1)",
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
    """Refuse options that do not fit together, or that this kind of captioner does not have."""
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
    """The entries of a model card that describe the data."""
    return {
        "data": corpus.dataset,
        "whose": options.captions,
        **({"captioner": corpus.captioner} if options.captions == "model" else {}),
        "digest": corpus.digest,
    }


def course(losses: Sequence[float]) -> str:
    """A phrase with the first and the last loss of a training."""
    return f"loss {losses[0]:.2f} to {losses[-1]:.2f}"
