"""``fit clip``: a small CLIP fitted to the pictures and captions of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.commands.arguments import PROGRAM, Parser, number
from bias_pipeline.declared import Count, Seed
from bias_pipeline.errors import NotApplicableError
from bias_pipeline.io.terminal import say

if TYPE_CHECKING:
    from bias_pipeline.corpus.corpus import Corpus

_ABOUT = "A small CLIP of a data set's pictures and captions, as a folder for encoder.model"


def parser() -> Parser:
    """What it takes."""
    from bias_pipeline.models.clip_fitting import ClipRecipe

    usual = ClipRecipe()
    own = Parser(
        f"{PROGRAM} fit",
        usage="%(prog)s clip --out DIR [key=value ...] [options]",
        description=_ABOUT,
    )
    own.add_argument("kind", choices=["clip"], help="what is fitted")
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
        default="person",
        help="the largest person, where the data set says where people are, or all (person)",
    )
    for name, kind, about in (
        ("epochs", Count, "times that each picture is seen"),
        ("batch-size", Count, "pictures among which a caption is sought"),
        ("seed", Seed, "of weights, batches and captions"),
    ):
        default = getattr(usual, name.replace("-", "_"))
        own.add_argument(
            f"--{name}", type=number(kind), default=default, help=f"{about} ({default})"
        )
    return own


def command(words: Sequence[str]) -> int:
    """Fit and write; returns the exit code.

    Raises:
        BiasPipelineError: if the data do not permit it, or the folder cannot be written.
    """
    from bias_pipeline.config import compose
    from bias_pipeline.models.clip_fitting import ClipRecipe, Pairs, fit_clip, new_folder

    options = parser().parse_args(list(words))
    new_folder(options.out)
    corpus = compose.cell(options.overrides).corpus()
    recipe = ClipRecipe(epochs=options.epochs, batch_size=options.batch_size, seed=options.seed)
    if corpus.pictures is None:
        raise NotApplicableError(
            f"dataset {corpus.dataset!r} has no pictures here; set dataset.images=DIR"
        )
    texts = _texts(corpus, options.captions)
    pairs = Pairs.of(corpus.pictures, texts, options.crop, recipe.side)
    told = {
        "data": corpus.dataset,
        "captions": options.captions,
        **({"captioner": corpus.captioner} if options.captions == "model" else {}),
        "crop": options.crop,
        "pictures": len(pairs.texts),
        "digest": corpus.digest,
    }
    losses = fit_clip(pairs, recipe, options.out, told)
    say(
        f"{options.out}: a CLIP of {len(pairs.texts)} pictures, loss {losses[0]:.2f} to "
        f"{losses[-1]:.2f}; encoder=clip encoder.model={options.out} takes it"
    )
    return 0


def _texts(corpus: Corpus, side: str) -> list[list[str]]:
    """The captions of each image."""
    captions = corpus.side(side)
    found: list[list[str]] = [[] for _ in range(len(corpus))]
    for caption, row in enumerate(captions.image_rows.tolist()):
        found[row].append(captions.text(caption))
    return found
