"""Regularised logistic regressions that share their items, all fitted at once by Newton steps."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray

AnyFloat = npt.NDArray[Any]
Matrix = sparse.csr_array | AnyFloat  # features of words are mostly 0, those of vectors are not
Transposed = sparse.csc_array | AnyFloat

# Of the gradient, every weight measured in units of its own curvature.
TOLERANCE = 5e-6
ROUGH = 1e-3  # where only how much weights vary counts: they end within 0.2 % of their spread
FORCING = 0.1  # the solver of a step stops when the residual is at most this share of the gradient
MAX_STEPS, MAX_PRODUCTS, MAX_HALVINGS = 100, 100, 40
# Frequent features are solved for together: those whose curvature is above this, at most one in so
# many items and so many at all; their common occurrences are counted in so many items.
CURVED, ITEMS_EACH, MOST_FREQUENT, SAMPLED = 1.0, 32, 1024, 1 << 15
SPREAD = 0.1  # how much a usual item bends a loss: the share of training items times p (1 - p)
LEAST_SPREAD = 0.04  # a regression that bends less, as of a rare task, is not preconditioned


def fit(
    x: Matrix,
    counts: Float64Array,
    truths: Float64Array,
    inverse_penalty: float,
    known: BoolArray | None = None,
    near: Float64Array | None = None,
) -> Float64Array:
    """Weights of B logistic regressions that share only their items.

    Minimises ``C * sum of log losses + |w|^2 / 2`` by Newton steps, solved by conjugate gradients
    (Lin, Weng and Keerthi 2008, "Trust region Newton method for large-scale logistic regression",
    with halved steps instead of a trust region), preconditioned. One product with ``x`` serves all
    regressions, and none changes another's digits. Steps are computed in single precision, which is
    several times as fast; values and gradients, which decide when a regression stops, in double.

    Args:
        x: (N, F) features.
        counts: (N, B) how often each item counts in each regression; 0 leaves it out.
        truths: (N, B, K) how often each output is true of it: K = 1 for a sigmoid, else K groups
            under a softmax, which sum to ``counts``.
        inverse_penalty: C, above 0. Intercepts are not regularised; if all labels are the same, an
            intercept has no optimum, and stops when its slope is within the tolerance.
        known: (F, B) features that each regression may use; all if left out.
        near: (F + 1, 1, K) weights of a regression that all resemble, from which they start; they
            stop at a gradient of ``ROUGH``.

    Returns:
        (F + 1, B, K) weights, intercepts last.

    Example:
        >>> x = sparse.csr_array(np.array([[1.0], [0.0]]))
        >>> weights = fit(x, np.full((2, 1), 10.0), np.array([[[9.0]], [[5.0]]]), 1.0)
        >>> bool(weights[0, 0, 0] > 0)
        True
    """
    used: BoolArray = np.asarray(counts.any(axis=1))
    if not sparse.issparse(x) or not used.any():
        used = np.ones(len(used), bool)
    counts, truths = counts[used], truths[used]
    design = _Design(x, inverse_penalty, used)
    fits = _Fits.begin(design, counts, truths, known, near)
    tolerance = TOLERANCE if near is None else ROUGH
    weights = np.zeros((x.shape[1] + 1, *truths.shape[1:]))
    for _ in range(MAX_STEPS):
        gradient = fits.gradient(design)
        going = np.abs(gradient * fits.unit).max(axis=(0, 2)) > tolerance
        if not going.all():
            weights[:, fits.place[0, ~going]] = fits.weights[:, ~going]
            if not going.any():
                return weights
            fits, gradient = fits.of(going), gradient[:, going]
        fits = fits.moved(design, gradient)
    weights[:, fits.place[0]] = fits.weights
    return weights


def decide(x: Matrix, weights: AnyFloat) -> AnyFloat:
    """Linear scores (N, ...) of features (N, F) under weights (F + 1, ...), the intercept last."""
    flat = weights.reshape(len(weights), -1)
    scores = np.asarray(x @ flat[:-1])
    scores += flat[-1]
    return scores.reshape(-1, *weights.shape[1:])


def _times(matrix: Matrix | Transposed, numbers: AnyFloat) -> AnyFloat:
    """(N, F) times (F, ...), (N, ...)."""
    product = matrix @ numbers.reshape(len(numbers), -1)
    return np.asarray(product).reshape(-1, *numbers.shape[1:])


def summed(terms: AnyFloat) -> AnyFloat:
    """(N, ...) to (...), one item after the other.

    NumPy's order of summation depends on the number of columns and on their layout in memory, so
    a regression's last digits would depend on the other regressions.
    """
    terms = np.ascontiguousarray(terms)
    return np.asarray(terms.cumsum(axis=0)[-1] if terms[0].size == 1 else terms.sum(axis=0))


def _inner(a: AnyFloat, b: AnyFloat) -> AnyFloat:
    """(1, B, 1) inner product of each regression's own (F, B, K) and (F, B, K)."""
    return summed(a * b).sum(axis=1, keepdims=True)[None]


def _by_item(a: AnyFloat, b: AnyFloat) -> AnyFloat:
    """(N, B, 1) inner product of each item's outputs; NumPy is slow to sum a few numbers often."""
    return np.einsum("nbk,nbk->nb", a, b)[:, :, None]


def _loss(
    scores: Float64Array, counts: Float64Array, truths: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """(1, B, 1) summed log losses and (N, B, K) predictions."""
    if scores.shape[2] > 1:
        most = scores.max(axis=2, keepdims=True)
        probs = np.exp(scores - most)
        total = _by_item(probs, np.ones_like(probs))
        log_sum = most + np.log(total)
        return _inner(counts, log_sum) - _inner(scores, truths), probs / total
    tail = np.exp(-np.abs(scores))
    log_sum = np.log1p(tail) + np.maximum(scores, 0)
    probs = np.where(scores >= 0, 1.0, tail) / (1 + tail)
    return _inner(counts, log_sum) - _inner(scores, truths), probs


class _Design:
    """The items, prepared once for any number of products with them.

    Attributes:
        x: (N, F + 1) features, and a one for the intercept.
        transposed: (F + 1, N). Of a sparse matrix it is a view: a product then adds to (F, B)
            numbers, which fit into a cache, and reads those of the N items one after the other.
        single: both in single precision.
        ridge: (F + 1, 1, 1) second derivative of the penalty.
        items: (N', F + 1), ``x`` with the items that no regression uses.
    """

    def __init__(self, x: Matrix, inverse_penalty: float, used: BoolArray) -> None:
        self.items = _with_ones(x)
        self.x = x = self.items if used.all() else self.items[used]
        single = _single(x)
        self.transposed = _transposed(x)
        self.single = single, _transposed(single)
        self.inverse_penalty = inverse_penalty
        self.ridge = np.append(np.ones(x.shape[1] - 1), 0.0)[:, None, None]

    @cached_property
    def usual_inverse(self) -> sparse.csr_array:
        """See :func:`usual_inverse`."""
        return usual_inverse(self.items, self.inverse_penalty)


def _with_ones(x: Matrix) -> Matrix:
    ones = np.ones((x.shape[0], 1))
    if isinstance(x, np.ndarray):
        return np.hstack([x, ones])
    return sparse.csr_array(sparse.hstack([x, sparse.csr_array(ones)], format="csr"))


def usual_inverse(x: Matrix, inverse_penalty: float) -> sparse.csr_array:
    """(F, F) about the inverse of a usual regression's second derivatives, but for its scale.

    Conjugate gradients with it need a quarter to a half of the products, but more where outputs are
    rare. The most frequent features are inverted together, by how often each two of them occur in
    one item; each other feature alone. All items count, whichever a regression uses, and the matrix
    is sparse, as NumPy's products with a dense one depend on the number of columns: so no
    regression changes another's digits.
    """
    n_items, n_features = x.shape
    squares = np.asarray((x * x).sum(axis=0), np.float64)
    penalty = 1 / (SPREAD * inverse_penalty)
    most = np.argsort(-squares, kind="stable")[: min(n_items // ITEMS_EACH, MOST_FREQUENT)]
    frequent = np.sort(most[inverse_penalty * squares[most] / 4 > CURVED])
    counted = x[:: max(1, n_items // SAMPLED)][:, frequent]
    together = counted.T @ counted
    block = together if isinstance(together, np.ndarray) else together.toarray()
    block = block * (n_items / counted.shape[0]) + penalty * np.eye(len(frequent))
    others = np.delete(np.arange(n_features), frequent)
    rows = np.concatenate([np.repeat(frequent, len(frequent)), others])
    columns = np.concatenate([np.tile(frequent, len(frequent)), others])
    values = np.concatenate([np.linalg.inv(block).ravel(), 1 / (squares[others] + penalty)])
    places = rows, columns
    return sparse.csr_array((values.astype(np.float32), places), shape=(n_features, n_features))


def _transposed(x: Matrix) -> Transposed:
    return x.T if sparse.issparse(x) else np.ascontiguousarray(x.T)


def _single(x: Matrix) -> Matrix:
    """The same in single precision; a sparse matrix shares its places."""
    if not sparse.issparse(x):
        return x.astype(np.float32)
    return sparse.csr_array((x.data.astype(np.float32), x.indices, x.indptr), shape=x.shape)


@dataclass(frozen=True, eq=False)
class _Fits:
    """State of unfinished regressions; the second axis of all arrays is B."""

    place: IntArray  # (1, B) their indices among all regressions
    counts: Float64Array  # (N, B, 1), see `fit`
    truths: Float64Array  # (N, B, K), see `fit`
    known: Float64Array  # (F + 1, B, 1) 1 for features that may have a weight, else 0
    usual: BoolArray  # (1, B) whether its outputs are frequent enough for the usual inverse
    # (F + 1, B, 1) factors that scale slopes by the largest curvature, so that the tolerance means
    # the same for frequent and rare features
    unit: Float64Array
    weights: Float64Array  # (F + 1, B, K)
    scores: Float64Array  # (N, B, K) linear scores under them
    loss: Float64Array  # (1, B, 1) summed log losses
    probs: Float64Array  # (N, B, K) predictions

    @classmethod
    def begin(
        cls,
        design: _Design,
        counts: Float64Array,
        truths: Float64Array,
        known: BoolArray | None,
        near: Float64Array | None = None,
    ) -> _Fits:
        """The start: no feature has a weight, every output its base rate; or weights near by."""
        n_items, n_fits, n_outputs = truths.shape
        weight = summed(counts)
        squares = ((design.x * design.x).T @ counts)[:, :, None]
        unit = 1 / np.sqrt(design.ridge + design.inverse_penalty * squares / 4)
        usable = np.ones((len(squares), n_fits, 1))
        if known is not None:
            usable[:-1] = known[:, :, None]
        base = (summed(truths) + 0.5) / (weight[:, None] + 0.5 * max(2, n_outputs))  # (B, K)
        spread = (weight[:, None] * base * (1 - base)).max(axis=1) / design.items.shape[0]
        weights = np.zeros((len(squares), n_fits, n_outputs))
        weights[-1] = np.log(base) - (np.log1p(-base) if n_outputs == 1 else 0)
        scores = np.tile(weights[-1], (n_items, 1, 1))
        if near is not None:
            weights = np.repeat(near, n_fits, axis=1)
            scores = np.repeat(_times(design.x, near), n_fits, axis=1)
        counts = counts[:, :, None]
        place = np.arange(n_fits)[None]
        parts = place, counts, truths, usable, spread[None] > LEAST_SPREAD, unit, weights, scores
        return cls(*parts, *_loss(scores, counts, truths))

    def of(self, which: BoolArray) -> _Fits:
        """Some of the regressions."""
        return _Fits(*(getattr(self, field.name)[:, which] for field in fields(self)))

    def gradient(self, design: _Design) -> Float64Array:
        """(F + 1, B, K) slopes of the objective."""
        slopes = _times(design.transposed, self.counts * self.probs - self.truths)
        slopes *= design.inverse_penalty
        slopes += design.ridge * self.weights
        slopes *= self.known
        return slopes

    def moved(self, design: _Design, gradient: Float64Array) -> _Fits:
        """The state after one Newton step, halved until the objective falls (Armijo's rule)."""
        way = _System.of_fits(self, design).solve(-gradient.astype(np.float32)).astype(np.float64)
        along = _times(design.x, way)
        slope, pull = _inner(gradient, way), _inner(design.ridge * self.weights, way)
        bend = _inner(design.ridge * way, way)
        rounding = 1e-12 * design.inverse_penalty * self.loss
        size = np.ones_like(slope)
        for _ in range(MAX_HALVINGS):
            scores = self.scores + size * along
            loss, probs = _loss(scores, self.counts, self.truths)
            penalties = size * pull + size**2 * bend / 2
            change = design.inverse_penalty * (loss - self.loss) + penalties
            high = change > 1e-4 * size * slope + rounding
            if not high.any():
                break
            size = np.where(high, size / 2, size)
        weights = self.weights + size * way
        return replace(self, weights=weights, scores=scores, loss=loss, probs=probs)


@dataclass(frozen=True, eq=False)
class _System:
    """The second derivatives of B objectives, in single precision, as maps of (F + 1, B, K)."""

    design: _Design  # the items
    known: AnyFloat  # (F + 1, B, 1), see `_Fits`
    usual: BoolArray  # (1, B), see `_Fits`
    weight: AnyFloat  # (N, B, 1) how much each item's loss counts
    probs: AnyFloat  # (N, B, K) predictions

    @classmethod
    def of_fits(cls, fits: _Fits, design: _Design) -> _System:
        """The system of regressions at their current weights."""
        parts = fits.known, design.inverse_penalty * fits.counts, fits.probs
        known, weight, probs = (part.astype(np.float32) for part in parts)
        return cls(design, known, fits.usual, weight, probs)

    def of(self, which: BoolArray) -> _System:
        """The system of some of the regressions."""
        parts = (self.known, self.usual, self.weight, self.probs)
        return _System(self.design, *(part[:, which] for part in parts))

    @cached_property
    def bends(self) -> AnyFloat:
        """(N, B, K) second derivative of an item's loss by each single output."""
        one = self.probs.shape[2] == 1
        return self.weight * self.probs * ((1 - self.probs) if one else 1)

    def times(self, way: AnyFloat) -> AnyFloat:
        """The product of the second derivatives with a direction."""
        moved = _times(self.design.single[0], way)
        if moved.shape[2] > 1:
            moved -= _by_item(self.probs, moved)
        moved *= self.bends
        slopes = _times(self.design.single[1], moved)
        slopes *= self.known
        slopes += self.design.ridge.astype(np.float32) * way
        return slopes

    def solve(self, right: AnyFloat) -> AnyFloat:
        """Conjugate gradients from 0; each system stops when its own residual is small."""
        solution, place = np.zeros_like(right), np.arange(right.shape[1])
        system, part, residual = self, np.zeros_like(right), right.copy()
        way = turned = self.turned(residual)
        size = _inner(residual, turned)
        small = FORCING**2 * size
        for _ in range(MAX_PRODUCTS):
            product = system.times(way)
            step = size / np.maximum(_inner(way, product), np.finfo(np.float32).tiny)
            part += step * way
            product *= step
            residual -= product
            turned = system.turned(residual)
            size, before = _inner(residual, turned), size
            going = (size > small)[0, :, 0]
            if not going.all():
                solution[:, place[~going]] = part[:, ~going]
                if not going.any():
                    return solution
                system, place = system.of(going), place[going]
                part, residual, way, turned, size, before, small = (
                    a[:, going] for a in (part, residual, way, turned, size, before, small)
                )
            way = turned + way * (size / before)
        solution[:, place] = part
        return solution

    def turned(self, residual: AnyFloat) -> AnyFloat:
        """Residuals of usual regressions times the usual inverse: all weights then move alike."""
        usual = self.usual[0]
        if not usual.any():
            return residual.copy()
        if usual.all():
            return _times(self.design.usual_inverse, residual) * self.known
        directions = residual.copy()
        inverted = _times(self.design.usual_inverse, residual[:, usual])
        directions[:, usual] = inverted * self.known[:, usual]
        return directions
