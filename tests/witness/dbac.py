"""DBAC: how much more do captions tie groups and objects together than people's do?

For a pair of a given value g and another one o, omega = Q P(o) / P(g) on either side, and
DBAC = (omega_M - omega_H) / (omega_M + omega_H + 1e-8) (eq. 5-8).

A→T: given is the image's group, the other an object that captions name; Q = 1 / mean cross-entropy
of attackers that guess the group, over test captions of the pair. T→A: given is an object in the
image, the other a group that captions name; Q = 1 / mean binary cross-entropy of that object's
attacker, over all test captions. P(given) is a share of images, P(other) a share of the side's
captions. People's Q is the mean over the positions of their captions.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bias_pipeline.corpus.corpus import Record
from tests.witness import lists
from tests.witness.attackers import Attacked, FloatArray, IntArray, halves
from tests.witness.lic import group_of, is_labelled, words_without_names
from tests.witness.words import Words, align, cut, vocabulary

TEST_SHARE = 0.2
EPSILON = 1e-8
SMALLEST_ENTROPY = 0.01
EXCLUDED = "person"
OTHERS = "other tasks"

Values = Sequence[Collection[str]]  # of N images or captions
Pair = tuple[str, str]  # the given value, the other one
Scores = Mapping[Pair, float]


@dataclass(frozen=True)
class Side:
    """One side's captions of N images, position by position."""

    words: Sequence[Sequence[Words]]  # that attackers read; of people's perhaps not all positions
    named: Sequence[Values]  # the other variable's, by each caption

    def shares(self) -> dict[str, float]:
        """P(other): the share of captions that name each value."""
        return shares(values for position in self.named for values in position)

    def shares_of_pairs(self, given: Values) -> dict[Pair, float]:
        """In how many captions of a position, on average, each pair is."""
        pairs = Counter(
            (g, o)
            for position in self.named
            for values, others in zip(given, position, strict=True)
            for g in values
            for o in others
        )
        return {pair: n / len(self.named) for pair, n in pairs.items()}


@dataclass(frozen=True)
class Direction:
    """All of one direction but its attackers."""

    images: Sequence[Record]  # those that both sides describe
    given: Values
    sides: Mapping[str, Side]  # model and human
    pairs: Sequence[Pair]  # those that are scored

    def scores(self, qualities: Mapping[str, Scores]) -> dict[Pair, float]:
        """DBAC of every pair of which both sides have test captions.

        What a side never names needs none: its omega is 0.
        """
        given = shares(self.given)
        others = {name: side.shares() for name, side in self.sides.items()}
        scores_of_pairs = {}
        for pair in self.pairs:
            named = {name: quality_of.get(pair[1], 0.0) for name, quality_of in others.items()}
            if all(pair in qualities[name] for name, share in named.items() if share > 0):
                omega = {
                    name: qualities[name].get(pair, 0.0) * share / given[pair[0]]
                    for name, share in named.items()
                }
                total = omega["model"] + omega["human"] + EPSILON
                scores_of_pairs[pair] = (omega["model"] - omega["human"]) / total
        return scores_of_pairs

    def weights(self) -> dict[Pair, float]:
        """How many of human captions hold each pair."""
        return self.sides["human"].shares_of_pairs(self.given)


def merge_rare(values: Mapping[str, float], least: float, rare: str) -> Callable[[Values], Values]:
    """What becomes of values by their shares: rare ones are one value together, or dropped."""
    frequent = {value for value, share in values.items() if share >= least}

    def rewrite(values_of_image: Collection[str]) -> set[str]:
        merged = {OTHERS} if rare == "merge" and set(values_of_image) - frequent else set()
        return (set(values_of_image) & frequent) | merged

    return lambda each: [rewrite(values_of_image) for values_of_image in each]


def mean_of_pairs(scores: Scores, weights: Scores | None = None) -> float:
    """The mean of the pairs' DBAC, by weight if there are weights."""
    by = {pair: 1.0 if weights is None else weights[pair] for pair in scores}
    return sum(scores[pair] * by[pair] for pair in scores) / sum(by.values())


def a_to_t(images: Sequence[Record], least: float, rare: str, positions: int) -> Direction:
    """From groups to the objects that captions name, those of a least share of human captions.

    Rarer objects are one together (``merge``) or left out (``drop``). Attackers read so many
    positions of human captions; priors rest on all.
    """
    used = [image for image in images if is_described(image)]
    given = [[image.labels["gender"]] for image in used]
    raw = sides_of(images, used, words_without_names, objects_named, positions)
    tasks = merge_rare(raw["human"].shares(), least, rare)
    sides = {
        name: Side(side.words, [tasks(each) for each in side.named]) for name, side in raw.items()
    }
    return Direction(used, given, sides, sorted(sides["human"].shares_of_pairs(given)))


def t_to_a(images: Sequence[Record], least: float, rare: str, positions: int) -> Direction:
    """From objects in the image to the groups that captions name; see :func:`a_to_t`.

    The share is one of images for objects, of human captions for groups.
    """
    used = [image for image in images if is_described(image) and image.objects]
    task_sets = [set(image.objects or ()) - {EXCLUDED} for image in used]
    given = merge_rare(shares(task_sets), least, rare)(task_sets)
    sides = sides_of(images, used, without_objects, lists.groups().names_in, positions)
    groups = {name for name, share in sides["human"].shares().items() if share >= least}
    pairs = sorted(pair for pair in sides["human"].shares_of_pairs(given) if pair[1] in groups)
    return Direction(used, given, sides, pairs)


def sides_of(
    images: Sequence[Record],
    used: Sequence[Record],
    hide: Callable[[str], Words],
    name: Callable[[str], Collection[str]],
    positions: int,
) -> dict[str, Side]:
    """Both sides; people's words that the captioner never writes are hidden too."""
    known = vocabulary(hide(image.model) for image in images if image.model)
    people = zip(*(image.human for image in used), strict=True)
    captions = {
        "model": [[image.model or "" for image in used]],
        "human": [list(position) for position in people],
    }
    return {
        side: Side(
            words=[
                [align(hide(caption), known) for caption in texts_of_position]
                for texts_of_position in texts[:positions]
            ],
            named=[[name(caption) for caption in texts_of_position] for texts_of_position in texts],
        )
        for side, texts in captions.items()
    }


def group_qualities(direction: Direction, n_splits: int) -> Iterator[dict[str, Scores]]:
    """A→T: side to the quality of its attackers on each pair, split by split."""
    groups = group_of(direction.images)
    attacked = attackers(direction)
    for train, test in halves(groups, n_splits, TEST_SHARE):
        qualities = {}
        for name, side in direction.sides.items():
            by_pair: dict[Pair, list[float]] = defaultdict(list)
            for captions, named in zip(attacked[name], side.named, strict=False):
                loss = cross_entropy(captions.predict(groups, train, test), groups[test])
                for pair, quality in on_pairs(loss, test, direction.given, named).items():
                    by_pair[pair].append(quality)
            qualities[name] = {pair: float(np.mean(each)) for pair, each in by_pair.items()}
        yield qualities


def task_qualities(direction: Direction, n_splits: int) -> Iterator[dict[str, Scores]]:
    """T→A: the same; an object's attackers serve all of its pairs."""
    attacked = attackers(direction)
    tasks = sorted({task for task, _ in direction.pairs})
    labels = {task: np.array([task in values for values in direction.given], int) for task in tasks}
    for train, test in halves(group_of(direction.images), n_splits, TEST_SHARE):
        of_task = {
            (name, task): np.mean(
                [
                    inverse(cross_entropy(captions.predict(label, train, test), label[test]))
                    for captions in attacked[name]
                ]
            )
            for name in direction.sides
            for task, label in labels.items()
        }
        yield {
            name: {p: float(of_task[name, p[0]]) for p in direction.pairs}
            for name in direction.sides
        }


def on_pairs(loss: FloatArray, test: IntArray, given: Values, named: Values) -> dict[Pair, float]:
    """Quality on the test captions of each pair, from the (M,) loss of each test caption."""
    losses: dict[Pair, list[float]] = defaultdict(list)
    for row, one in zip(test, loss, strict=True):
        for g in given[row]:
            for o in named[row]:
                losses[g, o].append(one)
    return {pair: inverse(each) for pair, each in losses.items()}


def cross_entropy(second: FloatArray, labels: IntArray) -> FloatArray:
    """(M,) minus the logarithm of the probability of what is true."""
    return -np.log(np.where(labels == 1, second, 1 - second))


def inverse(losses: Sequence[float] | FloatArray) -> float:
    """Q = 1 / mean cross-entropy, which is believed down to 0.01."""
    return 1 / max(float(np.mean(losses)), SMALLEST_ENTROPY)


def attackers(direction: Direction) -> dict[str, list[Attacked]]:
    """What attackers of each side read, position by position."""
    return {
        name: [Attacked(words) for words in side.words] for name, side in direction.sides.items()
    }


def shares(values: Iterable[Collection[str]]) -> dict[str, float]:
    """The share of images or captions that have each value."""
    collected = list(values)
    counts = Counter(value for values_of_caption in collected for value in values_of_caption)
    return {value: n / len(collected) for value, n in counts.items()}


def is_described(image: Record) -> bool:
    """Whether the image has a group and captions of both sides."""
    return is_labelled(image) and bool(image.model) and bool(image.human)


def objects_named(caption: str) -> Collection[str]:
    """The objects that a caption names."""
    return lists.tasks().names_in(caption) - {EXCLUDED}


def without_objects(caption: str) -> Words:
    """The words of a caption, those for objects and persons hidden."""
    return lists.tasks().mask(cut(caption), "<task>")
