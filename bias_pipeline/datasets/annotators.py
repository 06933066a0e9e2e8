"""Several annotators: the majority's label, and how far they agree."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

TIE = "no majority"


def majority(votes: Iterable[tuple[str, float]]) -> str:
    """The label with the greatest sum of weights, None for a tie.

    Args:
        votes: label and weight of each annotator.

    Example:
        >>> majority([("Male", 1), ("Male", 1), ("Female", 1)])
        'Male'
        >>> majority([("Male", 1), ("Female", 1)])
        'no majority'
    """
    sums: defaultdict[str, float] = defaultdict(float)
    for label, weight in votes:
        sums[label] += weight
    most = max(sums.values())
    winners = [label for label, total in sums.items() if math.isclose(total, most)]
    return winners[0] if len(winners) == 1 else TIE


def agreement(ballots: Sequence[Sequence[str]]) -> float:
    """Fleiss' kappa: agreement beyond chance, 1 if all agree, 0 if no more than by chance.

    kappa = (P - Q) / (1 - Q), where P is the mean over images of the share of agreeing pairs of
    annotators, and Q the sum of squared label frequencies (Fleiss, Measuring Nominal Scale
    Agreement Among Many Raters, 1971). Images may have different numbers of annotators, as in
    Fleiss, Levin and Paik (2003), chapter 18; those with fewer than two are left out. With two
    annotators it is Scott's pi.

    Args:
        ballots: for each image the labels given to it.

    Returns:
        NaN if no image has two annotators, or if there is a single label (chance is then certain).

    Example:
        >>> agreement([["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]])
        0.0
    """
    counts = [Counter(votes) for votes in ballots if len(votes) > 1]
    if not counts:
        return math.nan
    pairs = [
        sum(n * (n - 1) for n in votes.values()) / (votes.total() * (votes.total() - 1))
        for votes in counts
    ]
    whole = Counter[str]()
    for votes in counts:
        whole.update(votes)
    chance = sum((n / whole.total()) ** 2 for n in whole.values())
    observed = sum(pairs) / len(pairs)
    return (observed - chance) / (1 - chance) if chance < 1 else math.nan
