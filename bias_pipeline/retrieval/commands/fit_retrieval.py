"""``fit clip`` and ``fit debias``."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bias_pipeline.commands.fit import course, data_facts
from bias_pipeline.errors import NotApplicableError, UsageError, inflect
from bias_pipeline.run.overrides import path_override

if TYPE_CHECKING:
    from bias_pipeline.corpus.corpus import Corpus
    from bias_pipeline.data.regions import Crop


_MINUTES = 5  # between two checkpoints of a CLIP


def clip(options: Namespace) -> str:
    """Train a small CLIP and write it; returns a message on the files."""
    from bias_pipeline.attack.lightning_loop import CheckpointSettings
    from bias_pipeline.retrieval.clip_fitting import VERSION, ClipRecipe, Pairs, fit_clip
    from bias_pipeline.run import compose

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
    captions = corpus.side(options.captions)
    captions_by_image: list[list[str]] = [[] for _ in range(len(corpus))]
    for caption, row in enumerate(captions.image_rows.tolist()):
        captions_by_image[row].append(captions.text(caption))
    pairs = Pairs.read(corpus.pictures, captions_by_image, crop, recipe.side)
    card = {**data_facts(corpus, options), "crop": crop, "pictures": len(pairs.texts)}
    folder = Path(cell.tree["paths"]["cache"]) / "predictions" / "checkpoints"
    survival = CheckpointSettings(str(folder), VERSION, _MINUTES)
    losses = fit_clip(pairs, recipe, options.out, card, cell.tree["trainer"], survival)
    return (
        f"a CLIP of {inflect(len(pairs.texts), 'pictures')}, {course(losses)}; use it with "
        f"encoder=clip {shlex.quote(path_override('encoder.model', options.out))}"
    )


def debias(options: Namespace) -> str:
    """Fit a debiasing and write it; returns a message on the files."""
    from bias_pipeline.retrieval.debias.export import write_debias
    from bias_pipeline.run import compose

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
    dual = metric.debiased_encoder(corpus, split)
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
    """The arrays that debias the prompts of an image generator."""
    from bias_pipeline.retrieval.debias.export import prompt_numbers

    texts, names = metric.encoder.prompts(), metric.names(corpus)
    how, whose = metric.debias, metric.attribute
    return prompt_numbers(options.prompts, texts, how, whose, names, options.seed or 0)
