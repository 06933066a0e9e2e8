"""The convex attacker: regularised logistic regression, the same answers every time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from scipy import sparse, special

from bias_pipeline.attackers.probe import Answered, Job, Probe
from bias_pipeline.corpus.predictions import FloatArray, IntArray, Labelled
from bias_pipeline.declared import Positive
from bias_pipeline.encoders.base import FeatureEncoder, Features, named_spec
from bias_pipeline.errors import UsageError

Matrix = sparse.csr_array | FloatArray  # numbers of words are mostly 0, those of vectors are not

VERSION = 2  # raise it whenever any answer changes


class ConvexProbe(Probe):
    """Logistic regression on features such as n-gram indicators, one fresh fit a split.

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
        self, encoder: FeatureEncoder, inverse_penalty: Positive = 0.1, cache: str | None = None
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
            "encoder": named_spec(self.encoder),
            "inverse_penalty": self.inverse_penalty,
        }

    def train(self, data: Labelled, jobs: Sequence[Job]) -> Iterator[Answered]:
        """One fit a job."""
        if not jobs:
            return
        items = self.encoder.read(data)
        for job in jobs:
            inputs: Features = items.fit(job.train)
            x_train, x_test = inputs.matrix(job.train), inputs.matrix(job.test)
            yield Answered(self._answer(x_train, data.labels[job.train], x_test, data))

    def _answer(self, x: Matrix, y: IntArray, x_test: Matrix, data: Labelled) -> FloatArray:
        design = Design(x, self.inverse_penalty)
        if data.multi_label:
            columns = [design.fit(column[:, None]) for column in y.T]
            return np.hstack([special.expit(decide(x_test, w)) for w in columns])
        if data.n_classes == 2:
            p = special.expit(decide(x_test, design.fit(y[:, None])))
            return np.hstack([1 - p, p])
        one_hot = np.eye(data.n_classes, dtype=np.int64)[y]
        scores = decide(x_test, design.fit(one_hot))
        return np.asarray(special.softmax(scores, axis=1), np.float64)


def decide(x: Matrix, weights: FloatArray) -> FloatArray:
    """Linear scores (N, K) of features (N, F) under weights (F + 1, K), the intercept last."""
    return np.asarray(x @ weights[:-1] + weights[-1], np.float64)


class Design:
    """The captions that logistic regressions are fitted to, prepared once for any number of them.

    Args:
        x: (N, F) features.
        inverse_penalty: C, see :class:`ConvexProbe`.

    Example:
        >>> x = sparse.csr_array(np.array([[1.0], [1.0], [0.0], [0.0]]))
        >>> weights = Design(x, 1.0).fit(np.array([[1], [1], [0], [0]]))
        >>> bool(weights[0, 0] > 0)
        True
    """

    def __init__(self, x: Matrix, inverse_penalty: float) -> None:
        self.x = x
        self.transposed = x.T.tocsr() if sparse.issparse(x) else x.T
        self.inverse_penalty = inverse_penalty
        squares = np.append((x * x).sum(axis=0), x.shape[0])
        self.ridge = np.append(np.ones(x.shape[1]), 0.0)[:, None]
        # Measured in units of their own curvature, all weights converge at the same pace.
        self.scale = 1 / np.sqrt(self.ridge + inverse_penalty * squares[:, None] / 4)

    def fit(self, y: IntArray, start: FloatArray | None = None) -> FloatArray:
        """Weights of a logistic regression.

        Args:
            y: (N, 1) 0/1 for one sigmoid, or (N, K) one-hot rows for a softmax.
            start: (F + 1, K) weights to begin from, such as those of nearly the same captions;
                zeros if left out. Where it ends does not depend on it but within the tolerance.

        Returns:
            (F + 1, K) weights, the intercept last.
        """
        n_outputs = y.shape[1]
        loss = _sigmoid_loss if n_outputs == 1 else _softmax_loss

        def objective(flat: FloatArray) -> tuple[float, FloatArray]:
            weights = flat.reshape(-1, n_outputs) * self.scale
            value, residual = loss(decide(self.x, weights), y)
            gradient = np.vstack([self.transposed @ residual, residual.sum(axis=0, keepdims=True)])
            total = self.inverse_penalty * value + 0.5 * float((self.ridge * weights**2).sum())
            slopes = (self.inverse_penalty * gradient + self.ridge * weights) * self.scale
            return total, slopes.ravel()

        begin = np.zeros(len(self.scale) * n_outputs) if start is None else start / self.scale
        found = minimise(objective, begin.ravel())
        return np.asarray(found.reshape(-1, n_outputs) * self.scale, np.float64)


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
        slope = _dot(direction, gradient)
        step = 1.0 if past else 1.0 / max(1.0, float(np.abs(gradient).max()))
        while True:
            moved = point + step * direction
            next_value, next_gradient = objective(moved)
            if next_value <= value + 1e-4 * step * slope or step < 1e-10:
                break
            step /= 2
        change, bend = moved - point, next_gradient - gradient
        curvature = _dot(change, bend)
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
        weight = _dot(change, direction) / curvature
        direction -= weight * bend
        weights.append(weight)
    if past:
        _, bend, curvature = past[-1]
        direction *= curvature / _dot(bend, bend)
    for (change, bend, curvature), weight in zip(past, reversed(weights), strict=True):
        direction += (weight - _dot(bend, direction) / curvature) * change
    return direction


def _dot(a: FloatArray, b: FloatArray) -> float:
    """The inner product, on this thread.

    BLAS shares one of more than 10,000 terms among threads, which on busy cores wait for each other
    longer than the product takes: a fit took eight times as long.
    """
    return float(np.einsum("i,i->", a, b))


def _sigmoid_loss(scores: FloatArray, y: IntArray) -> tuple[float, FloatArray]:
    tail = np.exp(-np.abs(scores))
    value = float((np.log1p(tail) + np.maximum(scores, 0) - scores * y).sum())
    return value, np.where(scores >= 0, 1.0, tail) / (1 + tail) - y


def _softmax_loss(scores: FloatArray, y: IntArray) -> tuple[float, FloatArray]:
    log_p = special.log_softmax(scores, axis=1)
    return -float(log_p[y == 1].sum()), np.exp(log_p) - y
