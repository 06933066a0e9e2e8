"""LIC at equal style: people say each word as often as the captioner does.

For each position of human captions and each word: if more captions of that position have the
word than captions of the captioner, it is taken out of random ones; if fewer, it is put into random
ones of images for which another person said it, more likely where more did. Attackers read single
words, five folds are tested in turn, and the score is the mean over groups of each group's mean.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from bias_pipeline.corpus.corpus import Record
from tests.witness.attackers import MIN_COUNT, PENALTY, SEED, IntArray
from tests.witness.lic import group_of, is_labelled, words_without_names

FOLDS = 5
MASK = "<gender>"


def score(images: Sequence[Record], positions: int, repetitions: int) -> float:
    """LIC at equal style of the images that the captioner and five people describe."""
    used = [i for i in images if is_labelled(i) and i.model and len(i.human) >= 2]
    groups = group_of(used)
    model = [words_without_names(image.model) for image in used]
    people = [[words_without_names(text) for text in image.human] for image in used]
    read = [attack(model, groups, repetitions)]
    read += [
        attack(match_words(model, people, position), groups, repetitions)
        for position in range(positions)
    ]
    return read[0] - float(np.mean(read[1:]))


def match_words(
    model: Sequence[Sequence[str]], people: Sequence[Sequence[Sequence[str]]], position: int
) -> list[list[str]]:
    """Human captions of a position, changed word by word."""
    random = np.random.default_rng([SEED, position])
    captions = [set(texts[position]) for texts in people]
    others = [
        Counter(word for k, text in enumerate(texts) if k != position for word in set(text))
        for texts in people
    ]
    wanted = Counter(word for words in model for word in set(words))
    present = Counter(word for words in captions for word in words)
    for word in sorted((wanted.keys() | present.keys()) - {MASK}):
        holders = [i for i, words in enumerate(captions) if word in words]
        surplus = len(holders) - wanted[word]
        if surplus > 0:
            for i in random.choice(holders, surplus, replace=False):
                captions[i].discard(word)
        elif surplus < 0:
            lacking = [
                i for i, other in enumerate(others) if other[word] and word not in captions[i]
            ]
            weights = np.array([others[i][word] for i in lacking], float)
            size = min(-surplus, len(lacking))
            if size:
                chosen = random.choice(lacking, size, replace=False, p=weights / weights.sum())
                for i in chosen:
                    captions[i].add(word)
    return [sorted(words) for words in captions]


def attack(captions: Sequence[Sequence[str]], groups: IntArray, repetitions: int) -> float:
    """The mean over groups of what attackers score on captions that they have not seen."""
    x = CountVectorizer(analyzer=list, binary=True).fit_transform(captions)
    scores = []
    for repetition in range(repetitions):
        random = np.random.default_rng([SEED, repetition])
        scored = np.zeros(len(groups))
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED + repetition)
        for rest, test in folds.split(groups, groups):
            smallest = np.bincount(groups[rest]).min()
            train = np.concatenate(
                [random.choice(rest[groups[rest] == k], smallest, replace=False) for k in (0, 1)]
            )
            known = np.flatnonzero(np.asarray(x[train].sum(axis=0)).ravel() >= MIN_COUNT)
            attacker = LogisticRegression(C=PENALTY, tol=1e-5, max_iter=10_000)
            attacker.fit(x[train][:, known], groups[train])
            second = attacker.predict_proba(x[test][:, known])[:, 1]
            right = (second >= 0.5) == (groups[test] == 1)
            scored[test] = np.where(right, np.maximum(second, 1 - second), 0.0)
        scores.append(np.mean([scored[groups == k].mean() for k in (0, 1)]))
    return float(np.mean(scores))
