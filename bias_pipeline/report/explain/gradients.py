"""Integrated gradients of a network's log-odds for the words of a caption.

Integrated gradients (Sundararajan, Taly and Yan 2017) follow a straight line of word vectors, from
a caption without information (the baseline) to the caption. Integrated gradients add up the
gradients of the attacker's output on the way. The parts of the words sum to the output for the
caption minus the output for the baseline, except for the error of a sum over ``steps`` points. This
needs PyTorch and captum.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.attack.neural import NeuralProbe
from bias_pipeline.attack.probe import TrainingJob
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.corpus.split import Split
from bias_pipeline.errors import ResourceError, UsageError, did_you_mean
from bias_pipeline.report.explain.linear import Gram, WordFit, votes_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from bias_pipeline.attack.attacker import Attacker
    from bias_pipeline.attack.encoder import Inputs

log = logging.getLogger(__name__)

BASELINES = ("zero", "mean")
TOGETHER = 2048  # how many points are computed at once, of one or several captions
TOLERATED = 0.05  # largest error without a warning, as a share of what words add
ABSENT = "integrated gradients need the package captum (pip install 'bias_pipeline[words]')"


@dataclass(frozen=True)
class Gradients:
    """Settings of integrated gradients."""

    # `zero`: every word has the zero vector, as padding and unknown words have; `mean`: every word
    # has the mean vector of the vocabulary. If the attacker already leans to a group at the
    # baseline, that group's words add less.
    baseline: str = "zero"
    # Points on the way (Gauss-Legendre), at least 1. Recurrent networks need about 20, transformers
    # perhaps several hundred; a warning is printed if there are too few.
    steps: int = 100

    def __post_init__(self) -> None:
        if self.baseline not in BASELINES:
            raise UsageError(
                f"--baseline={self.baseline}: {did_you_mean(self.baseline, BASELINES)}"
            )
        if self.steps < 1:
            raise UsageError(f"--steps={self.steps} must be at least 1")

    def __str__(self) -> str:
        return f"integrated gradients, {self.baseline} baseline, {self.steps} steps"


@dataclass(frozen=True, eq=False)
class Attributed:
    """The values that words add to the log-odds of each group, in some captions."""

    words: list[Float64Array]  # an array (words, n_classes) for each caption
    rest: Float64Array  # (N, n_classes) log-odds of the baseline
    # Mean absolute difference of their sum from the attacker's log-odds, as a share of what words
    # add
    error: float


@dataclass(frozen=True, eq=False)
class NetworkFit(WordFit):
    """A neural attacker whose intercept is its prediction for the baseline."""

    attributed: Attributed  # its distinct test captions
    place: dict[int, int]  # index in `attributed` of each test caption

    def parts(self, row: int) -> tuple[Float64Array, Float64Array]:
        at = self.place[row]
        return self.attributed.words[at], self.attributed.rest[at]


def fits(
    probe: NeuralProbe, data: LabelledCaptions, split: Split, drawn: Float64Array, how: Gradients
) -> NetworkFit:
    """Train an attacker, and compute the value that each word adds in its test captions.

    A word's gain is defined like an n-gram's gain. Its coefficient is the mean over its places in
    test captions. Resamples draw test captions for the same attacker, since training a network on
    each resample would cost too much. ``drawn`` (B, images) says how often each image counts. The
    seeds show how attackers differ. A word that does not occur in a resample keeps its coefficient
    there.
    """
    if probe.world > 1:
        raise UsageError("analysis words trains in one process; set trainer.devices=1")
    _captum()
    train, test = split.select(data.captions.image_rows, data.labels)
    encoder = probe.recipe.encoder
    word_layer(encoder.build(encoder.read(data).fit(train)))  # refuses before anything is trained
    prepared = probe.attacker(data, TrainingJob(split.seed, train, test))
    _, firsts, place = np.unique(
        data.captions.identities[test], return_index=True, return_inverse=True
    )
    attribution = attribute_words(
        prepared.attacker, prepared.inputs, data.captions, test[firsts], how
    )
    if attribution.error > TOLERATED:
        log.warning(
            "%s, seed %d: integrated gradients miss %.0f %% of what words add; raise --steps",
            data.name, split.seed, 100 * attribution.error,
        )  # fmt: skip
    sums = _Contributions(
        data, test, [attribution.words[p] for p in place], attribution.rest[place]
    )
    return NetworkFit(
        table=data.name,
        grams=sums.grams,
        captions=sums.captions,
        numbers=sums.numbers(np.ones((1, len(test))))[0],
        resampled=sums.resample(drawn[:, data.captions.image_rows[test]]),
        data=data,
        test=test,
        attributed=attribution,
        place=dict(zip(test.tolist(), place.tolist(), strict=True)),
    )


def attribute_words(
    attacker: Attacker, inputs: Inputs, captions: Captions, rows: IntArray, how: Gradients
) -> Attributed:
    """The integrated gradients of captions at ``rows`` (N,) of ``captions``."""
    from bias_pipeline.attack.attacker import tensors

    attacker.cpu().eval()
    words: list[Float64Array] = [np.empty(0)] * len(rows)
    rest = np.empty((len(rows), 0))
    missed = added = 0.0
    order = np.argsort(captions.lengths[rows], kind="stable")  # little padding
    at_once = max(TOGETHER // how.steps, 1)
    for at in np.split(order, range(at_once, len(order), at_once)):
        parts, without, whole = _integrate(attacker, **tensors(inputs, rows[at]), how=how)
        rest = rest if rest.size else np.empty((len(rows), without.shape[1]))
        rest[at] = without
        for place, caption_parts, length in zip(at, parts, captions.lengths[rows[at]], strict=True):
            words[place] = caption_parts[:length]
        missed += float(np.abs(parts.sum(axis=1) + without - whole).sum())
        added += float(np.abs(whole - without).sum())
    return Attributed(words, rest, missed / added if added else 0.0)


def _integrate(
    attacker: Attacker, tokens: Tensor, lengths: Tensor, how: Gradients
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """(N, L, n_classes) the values that words add, and (N, n_classes) log-odds of the baseline."""
    import torch

    from bias_pipeline.attack.encoder import N_SPECIAL, PAD

    layer = word_layer(attacker.encoder)
    with torch.no_grad():
        vectors = layer(tokens)
        start = torch.zeros_like(vectors)
        if how.baseline == "mean":
            start = layer.weight[N_SPECIAL:].mean(dim=0) * (tokens != PAD)[..., None]

    def outputs(vectors: Tensor, tokens: Tensor, lengths: Tensor) -> Tensor:
        with _replace_output(layer, vectors):
            logits: Tensor = attacker(tokens=tokens, lengths=lengths)
        return logits

    with torch.no_grad():
        ends = [outputs(v, tokens, lengths).double().numpy() for v in (start, vectors)]
    gradients = _captum()(outputs)
    parts = np.stack(
        [
            gradients.attribute(
                vectors, start, target=k, additional_forward_args=(tokens, lengths),
                n_steps=how.steps,
            ).sum(dim=2).detach().double().numpy()
            for k in range(ends[0].shape[1])
        ],
        axis=2,
    )  # fmt: skip
    return _per_group(parts), _per_group(ends[0]), _per_group(ends[1])


def _per_group(outputs: Float64Array) -> Float64Array:
    """The outputs (..., O) of an attacker as log-odds (..., n_classes); see :func:`votes_of`."""
    flat = votes_of(outputs.reshape(-1, outputs.shape[-1]))
    return flat.reshape(*outputs.shape[:-1], flat.shape[1])


def word_layer(encoder: nn.Module) -> nn.Embedding:
    """The layer that gives words their vectors."""
    from torch import nn

    layers = [module for module in encoder.modules() if isinstance(module, nn.Embedding)]
    if len(layers) != 1:
        raise UsageError(
            f"encoder {type(encoder).__name__} has {len(layers)} layers of word vectors "
            "(torch.nn.Embedding), and integrated gradients need one; choose encoder=lstm, or ngram"
        )
    return layers[0]


@contextmanager
def _replace_output(layer: nn.Module, vectors: Tensor) -> Iterator[None]:
    """Make a layer return the given vectors for any input."""
    handle = layer.register_forward_hook(lambda *_: vectors)
    try:
        yield
    finally:
        handle.remove()


def _captum() -> Callable[..., Any]:
    """Captum's class of integrated gradients."""
    try:
        from captum.attr import IntegratedGradients
    except ImportError as error:
        raise ResourceError(ABSENT) from error
    return IntegratedGradients


class _Contributions:
    """The values that words add in a split's test captions, as tables for weighted sums.

    ``rows`` (M,) are the test captions; ``rest`` (M, n_classes) are the log-odds without any word.
    """

    def __init__(
        self, data: LabelledCaptions, rows: IntArray, words: list[Float64Array], rest: Float64Array
    ) -> None:
        captions = data.captions
        parts = np.concatenate(
            [*words, rest]
        )  # the intercept: the last of the F, once in each caption
        lengths = captions.lengths[rows]
        owner = np.concatenate([np.repeat(np.arange(len(rows)), lengths), np.arange(len(rows))])
        tested = captions.take(rows)
        types = np.concatenate([tested.tokens, np.full(len(rows), len(tested.types))])
        self.grams: list[Gram] = [*((word,) for word in tested.types), ()]
        self.captions = np.append(_caption_counts(captions, tested.types), 0)
        shape = (len(self.grams), len(rows))

        def sum_by_word(values: Float64Array) -> sparse.csr_array:
            return sparse.csr_array((values, (types, owner)), shape=shape)

        truth = data.labels[rows][owner]
        self._gains = sum_by_word(parts[np.arange(len(parts)), truth])
        self._places = sum_by_word(np.ones(len(parts)))
        columns = range(1, 2) if data.n_classes == 2 else range(data.n_classes)
        self._sums = [sum_by_word(parts[:, k]) for k in columns]

    def numbers(self, counts: Float64Array) -> Float64Array:
        """(B, F, 1 + K) gains and coefficients if test captions count ``counts`` (B, M) times.

        The coefficient of an absent word is NaN.
        """
        with np.errstate(invalid="ignore"):
            gains = (self._gains @ counts.T) / counts.sum(axis=1)
            places = self._places @ counts.T
            columns = [gains, *((sums @ counts.T) / places for sums in self._sums)]
        return np.stack(columns, axis=2).transpose(1, 0, 2)

    def resample(self, counts: Float64Array) -> Float64Array:
        """Like :meth:`numbers`, but the number without resampling replaces a NaN."""
        numbers = self.numbers(counts)
        return np.where(np.isnan(numbers), self.numbers(np.ones((1, counts.shape[1]))), numbers)


def _caption_counts(captions: Captions, words: tuple[str, ...]) -> IntArray:
    owner = np.repeat(np.arange(len(captions)), captions.lengths)
    cells = np.unique(owner * np.int64(max(len(captions.types), 1)) + captions.tokens)
    counts = np.bincount(cells % max(len(captions.types), 1), minlength=len(captions.types))
    number = {word: i for i, word in enumerate(captions.types)}
    return counts[[number[word] for word in words]]
