"""Attackers and splits of scikit-learn: logistic regression on words and word pairs."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Halves = tuple[IntArray, IntArray]

PENALTY = 0.1  # C of the logistic regression
MIN_COUNT = 2  # in how many training captions a word or pair must stand
SEED = 20_260


class Attacked:
    """N captions, lists of words, that attackers read."""

    def __init__(self, captions: Sequence[Sequence[str]]) -> None:
        self.x = CountVectorizer(analyzer=_words_and_pairs, binary=True).fit_transform(captions)

    def predict(self, labels: IntArray, train: IntArray, test: IntArray) -> FloatArray:
        """(M,) probability of class 1 on M test captions, by a fresh attacker of (N,) labels.

        It knows the words of the captions that it learns from, and no others.
        """
        if len(np.unique(labels[train])) == 1:  # an object that the captioner never names
            return np.full(len(test), float(labels[train][0]))
        known = np.flatnonzero(self.x[train].sum(axis=0) >= MIN_COUNT)
        attacker = LogisticRegression(C=PENALTY, tol=1e-5, max_iter=10_000)
        attacker.fit(self.x[train][:, known], labels[train])
        return attacker.predict_proba(self.x[test][:, known])[:, 1]


def halves(labels: IntArray, n_splits: int, test_share: float) -> list[Halves]:
    """Training and test images, the same share of both groups tested."""
    drawn = StratifiedShuffleSplit(n_splits, test_size=test_share, random_state=SEED)
    return list(drawn.split(labels, labels))


def even_halves(labels: IntArray, n_splits: int, test_share: float) -> Iterator[Halves]:
    """The same with as many images of either group: the larger one is cut anew for every split."""
    generator = np.random.default_rng(SEED)
    smallest = np.bincount(labels).min()
    groups = [np.flatnonzero(labels == k) for k in np.unique(labels)]
    for number in range(n_splits):
        rows = np.concatenate([generator.choice(g, smallest, replace=False) for g in groups])
        drawn = StratifiedShuffleSplit(1, test_size=test_share, random_state=SEED + number)
        train, test = next(drawn.split(rows, labels[rows]))
        yield rows[train], rows[test]


def _words_and_pairs(words: Sequence[str]) -> list[str]:
    pairs = [f"{a}\t{b}" for a, b in pairwise(words)]
    return [*words, *pairs]
