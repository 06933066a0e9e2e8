"""``fit sat`` and ``fit grit``: train a captioner."""

from __future__ import annotations

import shlex
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bias_pipeline.commands.fit import course, data_facts
from bias_pipeline.errors import UsageError, inflect
from bias_pipeline.pictures.fitting.mitigation import Equalizer, EqualizerWeights
from bias_pipeline.run.overrides import path_override

if TYPE_CHECKING:
    from bias_pipeline.run.compose import Cell


GROUNDING, TUNED = "encoder.grounding=", "fit.tune_backbone="


def captioner(options: Namespace) -> str:
    from bias_pipeline.data.image_weights import caption_shares, read_weights
    from bias_pipeline.io.digests import digest_of
    from bias_pipeline.pictures.fitting.captioner import Lesson, fit_captioner

    if options.crop:
        raise UsageError(
            "--crop is an option of fit clip only; a captioner sees whole pictures, as in caption"
        )
    options.grounding = _grounding(options)
    tuned = _tuned_blocks(options)
    cell = _cell_of_captioner(options)
    text: Any = cell.build("text")
    corpus = text(cell.corpus())
    recipe = cell.build("probe").recipe
    seed = options.seed or 0
    lesson = Lesson.of_corpus(
        options.kind, recipe, corpus, options.captions, seed, options.grounding
    )
    lesson = replace(lesson, tuned=tuned)
    card = {**data_facts(corpus, options), "captions": len(lesson.captions)}
    if options.weights is not None:
        shares = caption_shares(read_weights(options.weights, corpus), lesson.captions)
        lesson = replace(lesson, shares=shares)
        card["weights of images, SHA-256 of the file"] = digest_of(options.weights)
    if options.equalizer:
        given = {"confusion": options.confusion_weight, "confident": options.confident_weight}
        weights = EqualizerWeights(
            **{key: value for key, value in given.items() if value is not None}
        )
        attribute, masking = cell.build("attribute"), cell.build("image_masking")
        equalizer = Equalizer.of_corpus(weights, attribute, corpus, masking)
        lesson = replace(lesson, equalizer=equalizer)
        card["equalizer"] = equalizer.spec
    losses = fit_captioner(lesson, options.out, card, each_epoch=options.each_epoch)
    return (
        f"a captioner of {inflect(len(lesson.captions), 'captions')}, {course(losses)}; use it "
        f"with caption --model {shlex.quote(str(options.out))}, or encoder=hf "
        f"{shlex.quote(path_override('encoder.model', options.out))}"
    )


def _grounding(options: Namespace) -> str | None:
    """The attribute in ``encoder.grounding``; replaces this override by ``attribute=``."""
    words = [word for word in options.overrides if word.startswith(GROUNDING)]
    if not words:
        return None
    (*_, given) = (word.removeprefix(GROUNDING) for word in words)
    if given != "emotion" or options.kind != "sat":
        raise UsageError(
            f"{words[-1]}: only fit sat can be grounded, and only in emotion "
            "(encoder.grounding=emotion); leave it out"
        )
    options.overrides = [word for word in options.overrides if word not in words]
    options.overrides.insert(0, f"attribute={given}")
    return given


def _tuned_blocks(options: Namespace) -> int:
    """The number in ``fit.tune_backbone``, or 0; the function removes this override."""
    words = [word for word in options.overrides if word.startswith(TUNED)]
    options.overrides = [word for word in options.overrides if word not in words]
    given = words[-1].removeprefix(TUNED) if words else "0"
    if not given.isdecimal():
        raise UsageError(f"{words[-1]}: must be a number of blocks, such as {TUNED}1")
    return int(given)


def _cell_of_captioner(options: Namespace) -> Cell:
    """The configuration of the attacker of this kind, with its sizes and its training."""
    from bias_pipeline.run import compose

    for word in options.overrides:
        if word.partition("=")[0] in ("encoder", "metric"):
            raise UsageError(f"{word}: fit {options.kind} already sets it; leave it out")
    counts = {"trainer.max_epochs": options.epochs, "attacker.batch_size": options.batch_size}
    given = [f"{key}={value}" for key, value in counts.items() if value is not None]
    kind = ["metric=imagecaptioner2", f"encoder={options.kind}"]
    return compose.cell([*kind, *options.overrides, *given])
