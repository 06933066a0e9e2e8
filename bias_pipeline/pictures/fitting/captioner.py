"""``fit sat|grit``: trains a captioner on a data set's pictures and captions.

The attacker of the same name has the same network; here the network learns the next word instead of
the group.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bias_pipeline.array_types import Float32Array, Float64Array, IntArray
from bias_pipeline.attack.lightning_loop import Share, run_together, world_size
from bias_pipeline.attack.recipe import Recipe
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.errors import DataError, NotApplicableError, UsageError
from bias_pipeline.io.files import draft_of
from bias_pipeline.io.hashing import derived_seed
from bias_pipeline.pictures.captioners.backbones import (
    Backbone,
    BackboneInputs,
    PublishedBackbone,
)
from bias_pipeline.pictures.captioners.decoding import END
from bias_pipeline.pictures.captioners.fitted import VERSION, Fitted, side_of
from bias_pipeline.pictures.captioners.grit import Grit
from bias_pipeline.pictures.captioners.prompt import N_SPECIAL, PAD, START, UNKNOWN
from bias_pipeline.pictures.captioners.sat import Sat
from bias_pipeline.pictures.fitting.mitigation import Equalizer, HiddenInputs

if TYPE_CHECKING:
    from pytorch_lightning import Callback
    from torch import Tensor

    from bias_pipeline.pictures.fitting.learning import CaptionLearner

EPOCHS = "epochs"
FEWEST = 2  # the fewest captions in which a word of the vocabulary occurs


def vocabulary_of(captions: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The words that occur in two captions or more, by frequency and then in alphabetical order.

    Example:
        >>> vocabulary_of([["a", "red", "dog"], ["a", "dog"], ["a", "cat", "cat"]])
        ('a', 'dog')
    """
    counts = Counter(word for words in captions for word in set(words))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(word for word, count in ranked if count >= FEWEST)


@dataclass(frozen=True, eq=False)
class CaptionInputs:
    # N captions as numbers of words, without start and end tokens
    numbers: Sequence[Sequence[int]]
    images: IntArray  # (N,) the picture that each caption describes
    visual: BackboneInputs  # the visual inputs
    # (N, K) the vector of each caption's group; None without grounding
    groups: Float32Array | None = None
    hidden: HiddenInputs | None = None  # the pictures with people hidden, None without an equalizer

    @classmethod
    def of_words(
        cls,
        captions: Sequence[Sequence[str]],
        images: IntArray,
        vocabulary: Mapping[str, int],
        visual: BackboneInputs,
        groups: Float32Array | None = None,
        hidden: HiddenInputs | None = None,
    ) -> CaptionInputs:
        """Captions as inputs; words outside the vocabulary become the unknown word."""
        numbers = [[vocabulary.get(word, UNKNOWN) for word in words] for words in captions]
        return cls(numbers, images, visual, groups, hidden)

    def counts(self, n_words: int) -> IntArray:
        """(W,) the number of times that each of W words occurs, with an end token per caption.

        Example:
            >>> CaptionInputs([[5, 4, 5]], np.array([0]), None).counts(6)
            array([0, 0, 0, 1, 1, 2])
        """
        written = [END] * len(self.numbers) + [n for caption in self.numbers for n in caption]
        return np.bincount(written, minlength=n_words)

    @cached_property
    def lengths(self) -> IntArray:
        return np.array([len(caption) for caption in self.numbers], np.int64)

    def batch(self, rows: IntArray) -> Mapping[str, npt.NDArray[Any]]:
        """``tokens`` (B, L) with start, end and padding; ``group`` (B, K); and the pictures."""
        lines = [[START, *self.numbers[row], END] for row in np.asarray(rows).tolist()]
        tokens = np.full((len(lines), max(map(len, lines))), PAD, np.int64)
        for line, caption in zip(tokens, lines, strict=True):
            line[: len(caption)] = caption
        grounding = {} if self.groups is None else {"group": self.groups[rows]}
        images = self.images[rows]
        hidden = {} if self.hidden is None else self.hidden.batch(images)
        return {"tokens": tokens, **grounding, **hidden, **self.visual.batch(images)}


_CARD = """# A small {name}

Fitted by `bias_pipeline fit {kind}`. It knows the words and pictures it was fitted to and nothing
else. `bias_pipeline caption PHOTOS --model FOLDER` has it describe photos, and
`metric=imagecaptioner2 encoder=hf encoder.model=FOLDER` judge captions.

```json
{facts}
```
"""


@dataclass(frozen=True, eq=False)
class Lesson:
    kind: str  # `sat` or `grit`
    recipe: Recipe  # of an attacker of that kind; its head is ignored
    captions: Captions  # N captions with at least one word and a picture
    images: LabelledCaptions  # the pictures, by the rows that captions name
    seed: int  # of weights, dropout and batches
    # The emotions in which captions are grounded, and (N,) the emotion of each caption; None
    # without grounding
    grounding: tuple[tuple[str, ...], IntArray] | None = None
    # (N,) the probability of each caption in N draws an epoch; None: an epoch has each caption once
    shares: Float64Array | None = None
    equalizer: Equalizer | None = None  # the further losses of an equalizer; None without it
    tuned: int = 0  # the number of last blocks of a published vision network that learn too

    @classmethod
    def of_corpus(
        cls,
        kind: str,
        recipe: Recipe,
        corpus: Corpus,
        side: str,
        seed: int,
        grounding: str | None = None,
    ) -> Lesson:
        if corpus.pictures is None:
            raise NotApplicableError(
                f"dataset {corpus.dataset!r} has no pictures here; set dataset.images=DIR"
            )
        captions = corpus.side(side)
        fit = corpus.pictures.present[captions.image_rows] & (captions.lengths > 0)
        if grounding is not None:
            fit &= corpus.groupings[grounding].labelled[captions.image_rows]
        captions = captions.take(np.flatnonzero(fit))
        if not len(captions):
            also = "" if grounding is None else f" and an image with a label of {grounding}"
            raise DataError(
                f"no caption has both words and a picture{also}, which a captioner needs"
            )
        rows = np.unique(captions.image_rows)
        first = captions.take(np.searchsorted(captions.image_rows, rows))
        none = np.zeros(len(rows), np.int64)
        images = LabelledCaptions(side, first, none, 1, pictures=corpus.pictures.take(rows))
        grounded = None
        if grounding is not None:
            groups = corpus.groupings[grounding]
            grounded = (groups.names, groups.codes[captions.image_rows])
        return cls(kind, recipe, captions, images, seed, grounded)

    @property
    def encoder(self) -> Sat | Grit:
        assert isinstance(self.recipe.encoder, Sat | Grit)
        return self.recipe.encoder

    @property
    def backbone(self) -> Backbone:
        """The backbone with which the captioner sees."""
        visual = self.encoder.visual
        if not self.tuned:
            return visual
        if not isinstance(visual, PublishedBackbone):
            raise UsageError(
                f"fit.tune_backbone={self.tuned} is for a published vision network "
                "(encoder.backbone=efficientnet_lite0); all other backbones learn as a whole"
            )
        return replace(visual, tuned=self.tuned)

    @property
    def words(self) -> list[list[str]]:
        return [self.captions.words(row) for row in range(len(self.captions))]

    @property
    def key(self) -> str:
        """SHA-256 (hex) of everything that decides the weights."""
        spec = json.dumps(self.recipe.spec, sort_keys=True)
        image_digest = self.backbone.digest(self.images)
        text = f"{VERSION} {self.kind} {spec} {self.captions.digest} {image_digest} {self.seed}"
        if self.grounding is not None:
            names, codes = self.grounding
            text += f" {names} {hashlib.sha256(codes.astype('<i8').tobytes()).hexdigest()}"
        if self.shares is not None:
            text += f" {hashlib.sha256(self.shares.astype('<f8').tobytes()).hexdigest()}"
        if self.tuned:
            text += f" tuned {self.tuned}"
        if self.equalizer is not None:
            words = [sorted(group_words) for group_words in self.equalizer.words]
            text += f" {sorted(self.equalizer.spec.items())} {words}"
        return hashlib.sha256(text.encode()).hexdigest()


def fit_captioner(
    lesson: Lesson, folder: Path, provenance: Mapping[str, object], *, each_epoch: bool = False
) -> Sequence[float]:
    """Fit a captioner and write its folder, completely or not at all.

    With several devices, each device has one process; batches are the same as with one device.
    """
    side_of(lesson.encoder)
    with draft_of(folder) as draft:
        if lesson.backbone.cache is not None:
            lesson.backbone.read(lesson.images)  # read once, before there are several processes
        epochs = draft / EPOCHS if each_epoch else None
        world = world_size(lesson.recipe.trainer)
        return run_together(world, _fit_into, lesson, draft, epochs, provenance)


def _fit_into(
    lesson: Lesson,
    draft: Path,
    epochs: Path | None,
    provenance: Mapping[str, object],
    share: Share,
) -> Sequence[float]:
    import torch

    from bias_pipeline.attack.attacker import LengthBatches, SharedBatches
    from bias_pipeline.attack.training import fit
    from bias_pipeline.pictures.fitting.learning import fit_guess
    from bias_pipeline.pictures.vision.net import learnt_weights

    recipe, words = lesson.recipe, lesson.words
    torch.set_num_threads(1)
    torch.manual_seed(lesson.seed)
    emotions, groups = ((), None) if lesson.grounding is None else lesson.grounding
    fitted = Fitted(lesson.kind, lesson.encoder, vocabulary_of(words), emotions, lesson.tuned)
    visual = lesson.backbone.read(lesson.images)
    rows = np.unique(lesson.captions.image_rows, return_inverse=True)[1]
    vectors = None if groups is None else np.eye(len(emotions), dtype=np.float32)[groups]
    hidden = None
    if lesson.equalizer is not None:
        hidden = lesson.equalizer.inputs(lesson.backbone, lesson.images)
    inputs: Any = CaptionInputs.of_words(words, rows, fitted.vocabulary, visual, vectors, hidden)
    network = fitted.seeing_network(fitted.backbone()) if lesson.tuned else fitted.network(visual)
    counts = inputs.counts(len(fitted.vocabulary) + N_SPECIAL)
    learner = _learner(lesson, fitted, network, counts)
    order, nothing = np.arange(len(words)), torch.zeros(len(words))
    batches: Any = LengthBatches(
        inputs, order, nothing, recipe.batch_size, lesson.seed, shares=lesson.shares
    )
    if share.world > 1:
        batches = SharedBatches(batches, share)
        torch.manual_seed(derived_seed("dropout", lesson.seed, share.rank))
    callbacks: list[Callback]
    if epochs is None:
        survival = recipe.survival  # checkpoints from which a killed training continues
        callbacks = [] if survival is None else [survival.checkpoint(lesson.key, batches)]
    else:
        from bias_pipeline.pictures.fitting.learning import EachEpoch

        def write(epoch: int, weights: dict[str, Tensor]) -> None:
            place = epochs / f"{epoch:02d}"
            place.mkdir(parents=True)
            fitted.save(place, weights, _card(lesson.kind, {**provenance, "epoch": epoch}))

        callbacks = [EachEpoch(write)]
    fit(learner, batches, recipe, callbacks)
    losses = learner.losses
    if share.rank == 0:
        facts = {
            **provenance,
            "recipe": recipe.spec,
            "words": len(fitted.words),
            "seed": lesson.seed,
        }
        if groups is not None:
            facts["emotions guessed right, of the training captions"] = round(
                fit_guess(learner.network, visual, rows, groups), 4
            )
        card = _card(lesson.kind, {**facts, "loss of each epoch": losses})
        fitted.save(draft, learnt_weights(learner.network), card)
    return losses


def _learner(lesson: Lesson, fitted: Fitted, network: Any, counts: IntArray) -> CaptionLearner:
    from bias_pipeline.pictures.fitting.learning import CaptionLearner, EqualizedLearner

    lesson.encoder.begin_to_write(network, counts.tolist())
    moves = (lesson.recipe.optimizer, lesson.recipe.schedule)
    if lesson.equalizer is None:
        return CaptionLearner(network, *moves)
    members = lesson.equalizer.members(fitted.vocabulary, len(counts))
    return EqualizedLearner(network, *moves, lesson.equalizer.weights, members)


def _card(kind: str, facts: Mapping[str, object]) -> str:
    text = json.dumps(facts, indent=1, default=str)
    return _CARD.format(name=kind.upper(), kind=kind, facts=text)
