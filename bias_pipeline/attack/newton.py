"""Fits regularised logistic regressions that share their items, all at once, by Newton steps."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import lapack

from bias_pipeline.array_types import BoolArray, Float32Array, Float64Array, IntArray

AnyFloat = npt.NDArray[Any]
Matrix = sparse.csr_array | AnyFloat  # features of words are mostly 0, features of vectors are not

TOGETHER = 64  # outputs in one batch: more would not fit the processor's cache
NUMBERS = 1 << 21  # of all items in one batch: the solver's dozen arrays of them fit in memory
WIDTH = 4  # a batch has a multiple of so many columns: 12 are multiplied as fast as 9
# The largest slope at the end, with every weight in units of its own curvature. With 5e-6 no
# score of LIC or DBAC moves by more than 1e-4, and an attacker takes 1.3 to 1.4 times as long.
TOLERANCE = 1e-3
FORCING = 0.1  # the solver of a step stops when the residual is at most this share of the gradient
MAX_STEPS, MAX_PRODUCTS, MAX_HALVINGS = 100, 100, 40
# Frequent features are solved for together: one for each ITEMS_EACH items, at most MOST_FREQUENT.
# How often they occur together is counted in SAMPLED items; a product takes COLUMNS columns at
# once.
ITEMS_EACH, MOST_FREQUENT, SAMPLED, COLUMNS = 32, 512, 1 << 14, 16
TINY = np.finfo(np.float32).tiny
ROUNDING = 1e-6  # of a loss in single precision
BLOCK = 1024  # items whose losses are computed at once


def fit(
    x: Matrix,
    counts: Float64Array,
    truths: Float64Array,
    inverse_penalty: float,
    known: BoolArray | None = None,
    near: Float64Array | None = None,
) -> Float64Array:
    """(F + 1, B, K): the weights of B logistic regressions on the same items. Intercepts come last.

    Minimises ``C * sum of log losses + |w|^2 / 2`` by Newton steps, which preconditioned conjugate
    gradients solve (Lin, Weng and Keerthi 2008, "Trust region Newton method for large-scale
    logistic regression", but with halved steps instead of a trust region). One product with ``x``
    serves all regressions, and no regression changes the digits of another. Steps are computed in
    single precision, which is several times as fast. Slopes decide when a regression stops; they
    are summed in double precision.

    ``x`` has (N, F) features. ``counts`` (N, B) says how often each item counts in each regression;
    0 leaves the item out. ``truths`` (N, B, K) says how often each output is true for an item. A
    sigmoid has K = 1. For a softmax over K groups, ``truths`` sum to ``counts``. ``known`` (F, B)
    marks the features that each regression may use; by default it may use all. All regressions
    start from ``near`` (F + 1, 1, K), the weights of a similar regression.

    Example:
        >>> x = sparse.csr_array(np.array([[1.0], [0.0]]))
        >>> weights = fit(x, np.full((2, 1), 10.0), np.array([[[9.0]], [[5.0]]]), 1.0)
        >>> bool(weights[0, 0, 0] > 0)
        True
    """
    n_items, n_fits, n_outputs = truths.shape
    items = DesignMatrix(x, inverse_penalty)
    weights = np.zeros((x.shape[1] + 1, n_fits, n_outputs))
    levels, usable = _levels(counts, truths), np.ones((x.shape[1] + 1, n_fits), np.float32)
    if known is not None:
        usable[:-1] = known
    usable = usable[items.order]
    near = None if near is None else near[items.order]
    together = min(TOGETHER, max(n_outputs, NUMBERS // max(1, n_items)))
    n_batches = -(-n_fits * n_outputs // together)
    for columns in np.array_split(np.argsort(levels, kind="stable"), n_batches):
        padded = columns[np.minimum(np.arange(_width(len(columns))), len(columns) - 1)]
        some = counts.take(padded, axis=1), truths.take(padded, axis=1)
        used: BoolArray = np.asarray(some[0].any(axis=1))
        if not used.all() and used.any() and sparse.issparse(x):
            design = _Design.from_features(items, items.x[used])
            some = some[0][used], some[1][used]
        else:
            design = _Design.from_features(items, items.x)
        fits = _Fits.start(design, *some, levels[padded], usable[:, padded], near)
        ended = fits.converged_weights(design)
        weights[:, columns] = ended[:, : len(columns)]
    return weights[np.argsort(items.order)]


def _levels(counts: Float64Array, truths: Float64Array) -> IntArray:
    """(B,): for each regression, the n for which 4^-n is nearest to the loss's mean curvature."""
    weight = sum_items(counts)[:, None]
    share = sum_items(truths) / np.maximum(weight, 1)
    curvature = (weight * share * (1 - share)).max(axis=1) / max(1, len(counts))
    return np.rint(-np.log(np.maximum(curvature, 1e-6)) / np.log(4)).astype(np.int64)


def _width(n_fits: int) -> int:
    return n_fits if n_fits < 2 else -(-n_fits // WIDTH) * WIDTH


def _remaining(going: BoolArray) -> IntArray | None:
    """Unfinished regressions, filled up with finished ones; None if no regression is finished."""
    width = _width(int(going.sum()))
    first = np.argsort(~going, kind="stable")[:width]
    return None if width == len(going) else np.sort(first)


def decide(x: Matrix, weights: AnyFloat) -> AnyFloat:
    """Linear scores (N, ...) of (N, F) features under (F + 1, ...) weights with intercepts last."""
    flat = weights.reshape(len(weights), -1)
    scores = np.asarray(x @ flat[:-1])
    scores += flat[-1]
    return scores.reshape(-1, *weights.shape[1:])


def _times(matrix: Matrix | sparse.csc_array, numbers: AnyFloat) -> AnyFloat:
    """(N, ...): the product of (N, F) and (F, ...)."""
    product = matrix @ numbers.reshape(len(numbers), -1)
    return np.asarray(product).reshape(-1, *numbers.shape[1:])


def sum_items(terms: AnyFloat) -> AnyFloat:
    """Sum (N, ...) terms over items to (...), adding one item after the other.

    NumPy's order of summation depends on the number of columns and on their layout in memory. So
    with NumPy's sum, the last digits of a regression would depend on the other regressions.
    """
    terms = np.ascontiguousarray(terms)
    return np.asarray(terms.cumsum(axis=0)[-1] if terms[0].size == 1 else terms.sum(axis=0))


def _inner(a: AnyFloat, b: AnyFloat) -> AnyFloat:
    """(1, B, 1): the inner product of two (F, B, K) arrays per regression; see ``sum_items``."""
    n_items, n_fits, n_outputs = a.shape
    if n_items and n_fits * n_outputs == 1:
        return sum_items(a * b)[None]
    flat = (n_items, n_fits * n_outputs)  # -1 cannot be inferred where there is no item
    sums = np.einsum("nc,nc->c", a.reshape(flat), b.reshape(flat))
    return np.asarray(sums.reshape(n_fits, n_outputs).sum(axis=1)[None, :, None])


def _by_item(a: AnyFloat, b: AnyFloat) -> AnyFloat:
    """(N, B, 1): the inner product of each item's outputs; NumPy is slow at many small sums."""
    return np.einsum("nbk,nbk->nb", a, b)[:, :, None]


def _loss(
    scores: Float32Array, counts: Float32Array, truths: Float32Array
) -> tuple[Float64Array, Float32Array]:
    """The summed log losses, (1, B, 1), and the predictions, (N, B, K)."""
    loss, probs = np.zeros((1, scores.shape[1], 1)), np.empty_like(scores)
    for start in range(0, len(scores), BLOCK):
        rows = slice(start, start + BLOCK)
        log_sum, probs[rows] = _log_sum(scores[rows])
        loss += _inner(counts[rows], log_sum) - _inner(scores[rows], truths[rows])
    return loss, probs


def _log_sum(scores: Float32Array) -> tuple[Float32Array, Float32Array]:
    """Logarithms of the predictions' denominators, (N, B, 1), and predictions, (N, B, K)."""
    if scores.shape[2] > 1:
        most = scores.max(axis=2, keepdims=True)
        probs = np.exp(scores - most)
        total = _by_item(probs, np.ones_like(probs))
        return most + np.log(total), probs / total
    tail = np.exp(-np.abs(scores))
    total = 1 + tail
    probs = np.where(scores >= 0, np.float32(1), tail) / total
    return np.log(total) + np.maximum(scores, 0), np.asarray(probs, np.float32)


class DesignMatrix:
    """(N, F + 1) features of all regressions' items, the M most frequent last, then ones; and C."""

    def __init__(self, x: Matrix, inverse_penalty: float) -> None:
        whole = _with_ones(x)
        squares = np.asarray(_squares(whole).sum(axis=0), np.float64)
        self.n_frequent = min(1 + x.shape[0] // ITEMS_EACH, MOST_FREQUENT, len(squares))
        ascending = np.append(np.argsort(squares[:-1], kind="stable"), len(squares) - 1)
        rare, frequent = np.split(ascending, [-self.n_frequent])
        self.order = np.concatenate([np.sort(rare), np.sort(frequent)])  # (F + 1,) of ``x``
        self.squares = squares[self.order]
        self.x = _of_features(whole, self.order)
        self.inverse_penalty = inverse_penalty
        self._inverses: dict[int, UsualInverse] = {}

    @cached_property
    def occurrences(self) -> AnyFloat:
        """(M, M) sums of products of the frequent features, estimated from a sample of items."""
        n_items, n_features = self.x.shape
        frequent = np.arange(n_features - self.n_frequent, n_features)
        some = _of_features(self.x[:: max(1, n_items // SAMPLED)], frequent)
        products = some.T @ some
        dense = products if isinstance(products, np.ndarray) else products.toarray()
        dense *= n_items / max(1, some.shape[0])
        return dense.astype(np.float32)

    def usual_inverse(self, level: int) -> UsualInverse:
        """The :class:`UsualInverse` of a level that ``_levels`` returns."""
        if level not in self._inverses:
            penalty = np.float32(4.0 ** (level + 1) / self.inverse_penalty)
            alone = (1 / (self.squares + penalty)).astype(np.float32)[:, None, None]
            block = self.occurrences + penalty * np.eye(self.n_frequent, dtype=np.float32)
            self._inverses[level] = UsualInverse(_invert(block), alone)
        return self._inverses[level]


def _with_ones(x: Matrix) -> Matrix:
    ones = np.ones((x.shape[0], 1))
    if isinstance(x, np.ndarray):
        return np.hstack([x, ones])
    return sparse.csr_array(sparse.hstack([x, sparse.csr_array(ones)], format="csr"))


def _squares(x: Matrix) -> Matrix:
    """The square of each number, which SciPy would compute more slowly."""
    if isinstance(x, np.ndarray):
        return x * x
    return sparse.csr_array((x.data * x.data, x.indices, x.indptr), shape=x.shape)


def _of_features(x: Matrix, chosen: IntArray) -> Matrix:
    """Some columns, in any order; faster than SciPy, which searches each row."""
    if isinstance(x, np.ndarray):
        return x[:, chosen]
    place = np.full(x.shape[1], -1, x.indices.dtype)
    place[chosen] = np.arange(len(chosen))
    columns = place[x.indices]
    remaining = columns >= 0
    ends = np.append(0, np.cumsum(remaining))[x.indptr]
    return sparse.csr_array(
        (x.data[remaining], columns[remaining], ends), shape=(x.shape[0], len(chosen))
    )


def _invert(block: AnyFloat) -> AnyFloat:
    """(M, M): the inverse of a positive definite matrix."""
    root, _ = lapack.spotrf(block, lower=True)
    lower = np.tril(lapack.spotri(root, lower=True)[0])
    return np.ascontiguousarray(lower + np.tril(lower, -1).T)


@dataclass(frozen=True, eq=False)
class UsualInverse:
    """An approximate inverse of the second derivatives of a typical regression, up to a factor.

    With this inverse, conjugate gradients need only a quarter to two thirds of the products. The
    most frequent features are inverted together, from counts of items in which two of these
    features occur. Each other feature is inverted alone. All items count, even items that a
    regression does not use, so that regressions of one level share the inverse.
    """

    block: AnyFloat  # (M, M) the inverse of the last features, which are the most frequent
    alone: AnyFloat  # (F, 1, 1) inverses of the other features

    def times(self, residual: AnyFloat) -> AnyFloat:
        """(F, B, K): the residuals times the inverse, a few columns at a time."""
        directions = residual * self.alone
        part, inverted = (
            a[-len(self.block) :].reshape(len(self.block), -1) for a in (residual, directions)
        )
        width = part.shape[1]
        padded = np.pad(part, ((0, 0), (0, -width % COLUMNS)))
        for start in range(0, width, COLUMNS):
            product = self.block @ padded[:, start : start + COLUMNS]
            inverted[:, start : start + COLUMNS] = product[:, : width - start]
        return directions


@dataclass(frozen=True, eq=False)
class _Design:
    """The items of a batch of regressions, prepared once for many products."""

    items: DesignMatrix
    x: Matrix  # (N, F + 1)
    # (F + 1, N), a view if the matrix is sparse: a product then adds to (F, B) numbers, which fit
    # into a cache, and reads the numbers of the N items one after the other.
    transposed: Matrix | sparse.csc_array
    single: tuple[Matrix, Matrix | sparse.csc_array]  # both in single precision

    @classmethod
    def from_features(cls, items: DesignMatrix, x: Matrix) -> _Design:
        """The design of items that have the features ``x``."""
        single = _to_single_precision(x)
        return cls(items, x, _transpose(x), (single, _transpose(single)))


def _transpose(x: Matrix) -> Matrix | sparse.csc_array:
    return x.T if sparse.issparse(x) else np.ascontiguousarray(x.T)


def _to_single_precision(x: Matrix) -> Matrix:
    if isinstance(x, np.ndarray):
        return x.astype(np.float32)
    return sparse.csr_array((x.data.astype(np.float32), x.indices, x.indptr), shape=x.shape)


@dataclass(frozen=True, eq=False)
class _Fits:
    """The state of a batch of regressions. The second axis of all arrays is B."""

    place: IntArray  # (1, B) their indices in the batch
    going: BoolArray  # (1, B) whether they are unfinished; the others only fill the arrays
    levels: IntArray  # (1, B) how small their curvature is, see `_levels`
    counts: Float32Array  # (N, B, 1), see `fit`
    truths: Float32Array  # (N, B, K), see `fit`
    known: AnyFloat  # (F + 1, B, 1) 1 for features that may have a weight, else 0
    # (F + 1, B, 1) factors that scale slopes by the largest curvature, so that the tolerance means
    # the same for frequent and rare features
    unit: Float64Array
    weights: Float64Array  # (F + 1, B, K)
    scores: Float32Array  # (N, B, K) linear scores under them
    loss: Float64Array  # (1, B, 1) summed log losses
    probs: Float32Array  # (N, B, K) predictions

    @classmethod
    def start(
        cls,
        design: _Design,
        counts: Float64Array,
        truths: Float64Array,
        levels: IntArray,
        known: AnyFloat,
        near: Float64Array | None,
    ) -> _Fits:
        """Start from the base rates without weights on features, or from the weights ``near``."""
        n_items, n_fits, n_outputs = truths.shape
        squares = np.asarray(_squares(design.x).T @ counts)[:, :, None]
        penalty = np.append(np.ones(len(squares) - 1), 0.0)[:, None, None]
        unit = 1 / np.sqrt(penalty + design.items.inverse_penalty * squares / 4)
        weight = sum_items(counts)[:, None] + 0.5 * max(2, n_outputs)
        base = (sum_items(truths) + 0.5) / weight  # (B, K)
        weights = np.zeros((len(squares), n_fits, n_outputs))
        weights[-1] = np.log(base) - (np.log1p(-base) if n_outputs == 1 else 0)
        scores = np.tile(weights[-1].astype(np.float32), (n_items, 1, 1))
        if near is not None:
            weights = np.repeat(near, n_fits, axis=1)
            scores = np.repeat(_times(design.x, near).astype(np.float32), n_fits, axis=1)
        place, going = np.arange(n_fits)[None], np.ones((1, n_fits), bool)
        some = counts[:, :, None].astype(np.float32), truths.astype(np.float32)
        parts = place, going, levels[None], *some, known[:, :, None], unit, weights, scores
        return cls(*parts, *_loss(scores, *some))

    def converged_weights(self, design: _Design) -> Float64Array:
        """(F + 1, B, K): weights at which all slopes are within the tolerance."""
        fits, weights = self, self.weights.copy()
        for _ in range(MAX_STEPS):
            gradient = fits.gradient(design)
            ended = fits.going[0] & (np.abs(gradient * fits.unit).max(axis=(0, 2)) <= TOLERANCE)
            weights[:, fits.place[0, ended]] = fits.weights[:, ended]
            fits.going[0, ended] = False
            if not fits.going.any():
                return weights
            some = _remaining(fits.going[0])
            if some is not None:
                fits, gradient = fits.take(some), gradient.take(some, axis=1)
            fits = fits.newton_step(design, gradient)
        weights[:, fits.place[0, fits.going[0]]] = fits.weights[:, fits.going[0]]
        return weights

    def take(self, which: IntArray) -> _Fits:
        return _Fits(*(getattr(self, field.name).take(which, axis=1) for field in fields(self)))

    def gradient(self, design: _Design) -> Float64Array:
        """(F + 1, B, K): the slopes of the objective."""
        errors = self.counts * self.probs
        errors -= self.truths
        slopes = _times(design.transposed, errors.astype(np.float64))
        slopes *= design.items.inverse_penalty
        slopes[:-1] += self.weights[:-1]
        slopes *= self.known
        return slopes

    def newton_step(self, design: _Design, gradient: Float64Array) -> _Fits:
        """The state after one Newton step, halved until the objective falls (Armijo's rule)."""
        inverse_penalty = design.items.inverse_penalty
        downhill = -gradient.astype(np.float32)
        step = _System.of_fits(self, design).solve(downhill, self.going[0])
        along, direction = _times(design.single[0], step), step.astype(np.float64)
        slope = _inner(gradient, direction)
        weights, ahead = self.weights[:-1], direction[:-1]
        linear, quadratic = _inner(weights, ahead), _inner(ahead, ahead)  # of the penalty
        rounding, size = ROUNDING * inverse_penalty * self.loss, np.ones_like(slope)
        for _ in range(MAX_HALVINGS):
            scores = self.scores + along
            loss, probs = _loss(scores, self.counts, self.truths)
            change = inverse_penalty * (loss - self.loss) + size * linear + size**2 * quadratic / 2
            too_high = (change > 1e-4 * size * slope + rounding) & self.going[:, :, None]
            if not too_high.any():
                break
            size = np.where(too_high, size / 2, size)
            along = np.where(too_high, along / 2, along)
        weights = self.weights + size * direction
        return replace(self, weights=weights, scores=scores, loss=loss, probs=probs)


@dataclass(frozen=True, eq=False)
class _System:
    """The second derivatives of B objectives in single precision, as maps on (F + 1, B, K)."""

    design: _Design  # the items
    known: AnyFloat  # (F + 1, B, 1), see `_Fits`
    levels: IntArray  # (1, B), see `_Fits`
    probs: AnyFloat  # (N, B, K) predictions
    curvatures: AnyFloat  # (N, B, K) second derivative of an item's loss by each single output

    @classmethod
    def of_fits(cls, fits: _Fits, design: _Design) -> _System:
        curvatures = fits.counts * fits.probs
        curvatures *= np.float32(design.items.inverse_penalty)
        if fits.probs.shape[2] == 1:
            curvatures *= 1 - fits.probs
        return cls(design, fits.known, fits.levels, fits.probs, curvatures)

    def take(self, which: IntArray) -> _System:
        parts = (self.known, self.levels, self.probs, self.curvatures)
        return _System(self.design, *(part.take(which, axis=1) for part in parts))

    def times(self, direction: AnyFloat) -> AnyFloat:
        """The product of the second derivatives with a direction."""
        moved = _times(self.design.single[0], direction)
        if moved.shape[2] > 1:
            moved -= _by_item(self.probs, moved)
        moved *= self.curvatures
        slopes = _times(self.design.single[1], moved)
        slopes[:-1] += direction[:-1]
        slopes *= self.known
        return slopes

    def solve(self, right: AnyFloat, going: BoolArray) -> AnyFloat:
        """Run conjugate gradients from 0. Each system stops when its own residual is small."""
        solution, place = np.zeros_like(right), np.arange(right.shape[1])
        system, part, residual = self, np.zeros_like(right), right
        direction = self.precondition(residual)
        size = _inner(residual, direction)
        small = FORCING**2 * size
        for _ in range(MAX_PRODUCTS):
            product = system.times(direction)
            step = size / np.maximum(_inner(direction, product), TINY)
            part += step * direction
            product *= step
            residual -= product
            inverted = system.precondition(residual)
            size, before = _inner(residual, inverted), size
            ended = going & (size <= small)[0, :, 0]
            solution[:, place[ended]] = part[:, ended]
            going = going & ~ended
            if not going.any():
                return solution
            some = _remaining(going)
            if some is not None:
                system, place, going = system.take(some), place[some], going[some]
                part, residual, direction, inverted, size, before, small = (
                    a.take(some, axis=1)
                    for a in (part, residual, direction, inverted, size, before, small)
                )
            direction *= size / np.maximum(before, TINY)
            direction += inverted
        solution[:, place[going]] = part[:, going]
        return solution

    def precondition(self, residual: AnyFloat) -> AnyFloat:
        """The residuals times the :class:`UsualInverse` of each regression's level."""
        levels, starts = np.unique(self.levels, return_index=True)
        inverses = map(self.design.items.usual_inverse, levels)
        pairs = zip(inverses, np.split(residual, starts[1:], axis=1), strict=True)
        directions = np.concatenate([inverse.times(part) for inverse, part in pairs], axis=1)
        directions *= self.known
        return directions
