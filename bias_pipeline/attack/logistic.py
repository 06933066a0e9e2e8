"""The convex attacker, a regularised logistic regression that uses no random numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array
from bias_pipeline.attack.encoder import FeatureEncoder, Features, SharedFeatures, named_spec
from bias_pipeline.attack.newton import Matrix, decide, fit
from bias_pipeline.attack.probe import (
    Probe,
    ProbeResult,
    TrainingJob,
    outputs_of,
    probabilities_of,
)
from bias_pipeline.corpus.predictions import LabelledCaptions
from bias_pipeline.declared import Positive

VERSION = 11  # raise it whenever any prediction changes
NUMBERS = 1 << 22  # labels of all items of a call; more would not fit in memory


class ConvexProbe(Probe):
    """Logistic regression on features such as n-grams, which is fitted for each split separately.

    The objective is strictly convex, so predictions depend only on the split. Two groups have one
    sigmoid, more groups have a softmax, and each of T tasks has a sigmoid. The intercept is not
    regularised. ``inverse_penalty`` is C > 0 in ``C * sum of log losses + |w|^2 / 2``. We chose 0.1
    once, by comparing with published LIC_M values.
    """

    quick: ClassVar[bool] = True

    def __init__(
        self, encoder: FeatureEncoder, inverse_penalty: Positive = 0.1, cache: str | None = None
    ) -> None:
        super().__init__(cache)
        self.encoder = encoder
        self.inverse_penalty = inverse_penalty

    @property
    def spec(self) -> Mapping[str, object]:
        return {
            "probe": "convex",
            "version": VERSION,
            "encoder": named_spec(self.encoder),
            "inverse_penalty": self.inverse_penalty,
        }

    def train(self, data: LabelledCaptions, jobs: Sequence[TrainingJob]) -> Iterator[ProbeResult]:
        """Fit attackers together if they share features. Otherwise each is fitted alone."""
        items = self.encoder.read(data)
        outputs = outputs_of(data)
        width = max(1, NUMBERS // max(1, outputs.size))
        for some in (jobs[start : start + width] for start in range(0, len(jobs), width)):
            shared = items.share_features([job.train for job in some])
            if shared is not None:
                yield from self._fit_together(data, outputs, shared, some)
            else:
                yield from (
                    self._fit_alone(data, outputs, items.fit(job.train), job) for job in some
                )

    def _fit_together(
        self,
        data: LabelledCaptions,
        outputs: Float64Array,
        shared: SharedFeatures,
        jobs: Sequence[TrainingJob],
    ) -> Iterator[ProbeResult]:
        ones, shape = np.ones(len(outputs)), (shared.matrix.shape[0], len(jobs))
        counts, truths = np.empty(shape), np.empty((*shape, *outputs.shape[1:]))
        for number, job in enumerate(jobs):
            counts[:, number] = shared.tally(ones[job.train], job.train)
            truths[:, number] = shared.tally(outputs[job.train], job.train)
        weights = self.fit(shared.matrix, counts, truths, shared.known)
        scores = decide(shared.matrix, weights)
        for number, job in enumerate(jobs):
            yield ProbeResult(probabilities_of(scores[shared.rows[job.test], number], data))

    def _fit_alone(
        self, data: LabelledCaptions, outputs: Float64Array, inputs: Features, job: TrainingJob
    ) -> ProbeResult:
        truths = outputs[job.train][:, None]
        weights = self.fit(inputs.matrix(job.train), np.ones((len(truths), 1)), truths)
        return ProbeResult(probabilities_of(decide(inputs.matrix(job.test), weights[:, 0]), data))

    def fit(
        self,
        x: Matrix,
        counts: Float64Array,
        truths: Float64Array,
        known: BoolArray | None = None,
        near: Float64Array | None = None,
    ) -> Float64Array:
        """(F + 1, S, T, K): the weights of S attackers of T tasks. Intercepts come last.

        ``x`` has (N, F) features. ``counts`` (N, S) says how often each item counts for each
        attacker. ``truths`` (N, S, T, K) says how often each output is true for an item; see
        :func:`outputs_of`. ``known`` (F, S) marks the features that each attacker knows; by default
        an attacker knows all. ``near`` (F + 1, 1, 1, K) are weights of one attacker of one task,
        from which all attackers start.
        """
        _, n_attackers, n_tasks, n_outputs = truths.shape
        if n_tasks > 1:
            counts = counts.repeat(n_tasks, axis=1)
            known = None if known is None else known.repeat(n_tasks, axis=1)
        near = None if near is None else near[:, 0]
        truths = truths.reshape(len(truths), -1, n_outputs)
        weights = fit(x, counts, truths, self.inverse_penalty, known, near)
        return weights.reshape(-1, n_attackers, n_tasks, n_outputs)
