"""The convex attacker: regularised logistic regression, the same answers every time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np
from scipy import sparse, special

from bias_pipeline.attackers.data import FloatArray, IntArray, Labelled
from bias_pipeline.attackers.probe import Answered, Job, Probe
from bias_pipeline.encoders.ngram import Ngram
from bias_pipeline.errors import UsageError

VERSION = 1  # raise it whenever any answer changes


class ConvexProbe(Probe):
    """Logistic regression on n-gram indicators, one fresh fit a split.

    The objective is strictly convex, so the answers depend on the split alone. K = 2 groups give
    one sigmoid, more a softmax, T tasks one sigmoid each. The intercept is not regularised.

    Args:
        encoder: what the attacker sees.
        inverse_penalty: C of ``C * sum of log losses + |w|^2 / 2``, above 0. 0.1 was chosen once,
            on published LIC_M values, and is ours.
        cache: see :class:`Probe`.

    Raises:
        UsageError: if the penalty is out of its range.
    """

    def __init__(
        self, encoder: Ngram, inverse_penalty: float = 0.1, cache: str | None = None
    ) -> None:
        super().__init__(cache)
        if not inverse_penalty > 0:
            raise UsageError(f"probe.inverse_penalty={inverse_penalty} must be above 0")
        self.encoder = encoder
        self.inverse_penalty = inverse_penalty

    @property
    def spec(self) -> Mapping[str, object]:
        """Encoder, penalty and version."""
        return {
            "probe": "convex",
            "version": VERSION,
            "encoder": asdict(self.encoder),
            "inverse_penalty": self.inverse_penalty,
        }

    def train(self, data: Labelled, jobs: Sequence[Job]) -> Iterator[Answered]:
        """One fit a job."""
        if not jobs:
            return
        index = self.encoder.index(data.captions)
        for job in jobs:
            kept = self.encoder.select(index, job.train)
            x_train = self.encoder.encode(index, job.train, kept)
            x_test = self.encoder.encode(index, job.test, kept)
            yield Answered(self._answer(x_train, data.labels[job.train], x_test, data))

    def _answer(
        self, x: sparse.csr_array, y: IntArray, x_test: sparse.csr_array, data: Labelled
    ) -> FloatArray:
        if data.multi_label:
            columns = [fit_logistic(x, column[:, None], self.inverse_penalty) for column in y.T]
            return np.hstack([special.expit(decide(x_test, w)) for w in columns])
        if data.n_classes == 2:
            p = special.expit(decide(x_test, fit_logistic(x, y[:, None], self.inverse_penalty)))
            return np.hstack([1 - p, p])
        one_hot = np.eye(data.n_classes, dtype=np.int64)[y]
        scores = decide(x_test, fit_logistic(x, one_hot, self.inverse_penalty))
        return np.asarray(special.softmax(scores, axis=1), np.float64)


def decide(x: sparse.csr_array, weights: FloatArray) -> FloatArray:
    """Linear scores (N, K) of indicators (N, F) under weights (F + 1, K), the intercept last."""
    return np.asarray(x @ weights[:-1] + weights[-1], np.float64)


def fit_logistic(
    x: sparse.csr_array, y: IntArray, inverse_penalty: float, start: FloatArray | None = None
) -> FloatArray:
    """Weights of a logistic regression.

    Args:
        x: (N, F) indicators.
        y: (N, 1) 0/1 for one sigmoid, or (N, K) one-hot rows for a softmax.
        inverse_penalty: C, see :class:`ConvexProbe`.
        start: (F + 1, K) weights to begin from, such as those of nearly the same captions; zeros
            if left out. Where it ends does not depend on it but within the tolerance.

    Returns:
        (F + 1, K) weights, the intercept last.

    Example:
        >>> x = sparse.csr_array(np.array([[1.0], [1.0], [0.0], [0.0]]))
        >>> weights = fit_logistic(x, np.array([[1], [1], [0], [0]]), 1.0)
        >>> bool(weights[0, 0] > 0)
        True
    """
    # Measured in units of their own curvature, all weights converge at the same pace.
    n_outputs = y.shape[1]
    frequency = np.append(np.bincount(x.indices, minlength=x.shape[1]), x.shape[0])
    ridge = np.append(np.ones(x.shape[1]), 0.0)
    scale = 1 / np.sqrt(ridge + inverse_penalty * frequency / 4)[:, None]
    transposed = x.T.tocsr()
    loss = _sigmoid_loss if n_outputs == 1 else _softmax_loss

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = flat.reshape(-1, n_outputs) * scale
        value, residual = loss(decide(x, weights), y)
        gradient = np.vstack([transposed @ residual, residual.sum(axis=0, keepdims=True)])
        total = inverse_penalty * value + 0.5 * float((ridge[:, None] * weights**2).sum())
        return total, ((inverse_penalty * gradient + ridge[:, None] * weights) * scale).ravel()

    begin = np.zeros((x.shape[1] + 1) * n_outputs) if start is None else (start / scale).ravel()
    found = minimise(objective, begin)
    return np.asarray(found.reshape(-1, n_outputs) * scale, np.float64)


def minimise(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    *,
    tolerance: float = 1e-4,
    memory: int = 10,
    max_steps: int = 1000,
) -> FloatArray:
    """Minimise a smooth, strictly convex function by L-BFGS (Nocedal and Wright, algorithm 7.5).

    Written out because the bounded solver of SciPy spends most of its time on bounds that are not
    there, in multi-threaded BLAS calls too small to share (measured: 2.6 ms a step against 0.3 ms
    on two busy cores).

    Args:
        objective: point (P,) to value and gradient (P,).
        start: where to begin.
        tolerance: the largest absolute entry of the gradient at which to stop.
        memory: how many steps the curvature is remembered from.
        max_steps: give up improving after that many steps.

    Returns:
        (P,) the minimum.

    Example:
        >>> minimise(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2)).tolist()
        [3.0, 3.0]
    """
    point = start
    value, gradient = objective(point)
    past: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=memory)
    for _ in range(max_steps):
        if np.abs(gradient).max() <= tolerance:
            break
        direction = _quasi_newton(gradient, past)
        slope = float(direction @ gradient)
        step = 1.0 if past else 1.0 / max(1.0, float(np.abs(gradient).max()))
        while True:
            moved = point + step * direction
            next_value, next_gradient = objective(moved)
            if next_value <= value + 1e-4 * step * slope or step < 1e-10:
                break
            step /= 2
        change, bend = moved - point, next_gradient - gradient
        curvature = float(change @ bend)
        if curvature > 0:
            past.append((change, bend, curvature))
        point, value, gradient = moved, next_value, next_gradient
    return point


def _quasi_newton(
    gradient: FloatArray, past: Sequence[tuple[FloatArray, FloatArray, float]]
) -> FloatArray:
    """Descent direction under the curvature seen so far (the two loops of the algorithm)."""
    direction = -gradient
    weights = []
    for change, bend, curvature in reversed(past):
        weight = float(change @ direction) / curvature
        direction = direction - weight * bend
        weights.append(weight)
    if past:
        _, bend, curvature = past[-1]
        direction = direction * (curvature / float(bend @ bend))
    for (change, bend, curvature), weight in zip(past, reversed(weights), strict=True):
        direction = direction + (weight - float(bend @ direction) / curvature) * change
    return direction


def _sigmoid_loss(scores: FloatArray, y: IntArray) -> tuple[float, FloatArray]:
    tail = np.exp(-np.abs(scores))
    value = float((np.log1p(tail) + np.maximum(scores, 0) - scores * y).sum())
    return value, np.where(scores >= 0, 1.0, tail) / (1 + tail) - y


def _softmax_loss(scores: FloatArray, y: IntArray) -> tuple[float, FloatArray]:
    log_p = special.log_softmax(scores, axis=1)
    return -float(log_p[y == 1].sum()), np.exp(log_p) - y
