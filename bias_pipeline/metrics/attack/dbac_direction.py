"""The images, pairs, priors and attackers of one direction of DBAC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.attack.probe import Probe
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.predictions import LabelledCaptions, Predictions
from bias_pipeline.corpus.split import SMALLEST_GROUP, Split, seeds_in, with_fewer_images
from bias_pipeline.errors import NAME_HUMAN_CAPTIONS, NotApplicableError
from bias_pipeline.metrics.attack.attack_runner import check_tested
from bias_pipeline.metrics.attack.extra_parts import at_equal_speech
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import least_share
from bias_pipeline.metrics.functional import dbac
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.scoring import Scoring
from bias_pipeline.text.transform import Transform, apply_transforms

UNTRAINED = ("prior", "priors")  # numbers without attackers


@dataclass(frozen=True, eq=False)
class PairCounts:
    """The groups and tasks of M images, in labels and in captions."""

    group: Float64Array  # (M, K) 1 in the column of each image's group
    objects: Float64Array  # (M, T) objects in the image; empty where none are known
    tasks: Mapping[str, Float64Array]  # side to (M, T) number of captions that name a task
    named: Mapping[str, Float64Array]  # side to (M, K) number of captions that name a group
    captions: Mapping[str, Float64Array]  # side to (M,) number of captions

    @classmethod
    def count(cls, view: CorpusView, images: IntArray) -> PairCounts:
        """Sums over the captions of each image; ``images`` (M,) are rows of images with a group."""

        def sum_by_image(side: str, captions: sparse.csr_array) -> Float64Array:
            return np.asarray(view.by_image(side, captions)[images].toarray(), np.float64)

        objects = view.objects[images].toarray() if view.has_objects else np.empty((0, 0))
        return cls(
            group=np.eye(len(view.groups))[view.codes[images]],
            objects=np.asarray(objects, np.float64),
            tasks={side: sum_by_image(side, view.mentions(side)) for side in SIDES},
            named={side: sum_by_image(side, view.groups_named(side)) for side in SIDES},
            captions={side: view.n_captions(side)[images].astype(np.float64) for side in SIDES},
        )

    def repeat(self, rows: IntArray, groups: Float64Array) -> PairCounts:
        """The counts, with some images repeated at the end with (m, K) other groups."""

        def extend(table: Float64Array) -> Float64Array:
            return np.concatenate([table, table[rows]]) if len(table) else table

        return PairCounts(
            np.concatenate([self.group, groups]),
            extend(self.objects),
            *(
                {side: extend(table) for side, table in tables.items()}
                for tables in (self.tasks, self.named, self.captions)
            ),
        )


@dataclass(frozen=True, eq=False)
class DBACSettings:
    """Arguments of the metric that both directions use."""

    attribute: Attribute
    transforms: Mapping[str, Sequence[Transform]]
    probe: Probe
    scoring: Scoring
    stats: Bootstrap
    aggregate: str
    prior: str
    positions: int
    min_support: float
    rare: str


class Direction:
    """One direction, on the images that have all data for this direction."""

    def __init__(self, settings: DBACSettings, name: str, view: CorpusView) -> None:
        self.settings, self.name, self.corpus = settings, name, view.corpus
        self.all_tasks = view

    def repeat(self, places: IntArray, groups: Float64Array, pairs: BoolArray) -> Direction:
        """This direction for the supported pairs among ``pairs``, where some images occur twice.

        ``places`` (m,) says which images are repeated. The repetitions have (m, K) other groups.
        """
        longer = Direction(self.settings, self.name, self.all_tasks)
        longer.view = self.view
        longer.images = np.concatenate([self.images, self.images[places]])
        longer.counts = self.counts.repeat(places, groups)
        longer.supported_pairs = self.supported_pairs & pairs
        return longer

    @cached_property
    def images(self) -> IntArray:
        """(M,): the corpus rows of described images; for T→A their objects must be known."""
        view = self.all_tasks
        usable = (
            view.labelled
            & view.has("model")
            & view.of_captions(self.transformed_corpus).has("human")
        )
        if not self.to_task:
            usable &= view.objects_known
        if not usable.any():
            raise NotApplicableError(
                f"DBAC needs images with model and human captions; {NAME_HUMAN_CAPTIONS}"
            )
        return np.flatnonzero(usable)

    @cached_property
    def view(self) -> CorpusView:
        """The corpus with only the scored tasks. These tasks do not depend on the captioner.

        Rare tasks are merged or dropped. A task is rare if few human captions name it or, where
        attackers guess objects, if few images contain it.
        """
        counts = PairCounts.count(self.all_tasks, self.images)
        mention_rates = counts.tasks["human"].sum(axis=0) / counts.captions["human"].sum()
        share = mention_rates if self.to_task else counts.objects.mean(axis=0)
        rare = share < self.support_limit
        merged = rare & (share > 0) & (self.settings.rare == "merge")
        counted = self.all_tasks
        if at_equal_speech(self.settings.transforms[self.name]):
            counted = counted.of_captions(self.transformed_corpus)  # that attackers read
        return counted.of_tasks(np.flatnonzero(~rare), np.flatnonzero(merged))

    @cached_property
    def counts(self) -> PairCounts:
        return PairCounts.count(self.view, self.images)

    @cached_property
    def transformed_corpus(self) -> Corpus:
        return apply_transforms(self.settings.transforms[self.name], self.corpus)

    @property
    def tables(self) -> dict[str, list[dict[str, object]]]:
        """The tables that transforms made, with the direction added."""
        return {
            table: [{"direction": self.name, **line} for line in lines]
            for table, lines in self.transformed_corpus.tables.items()
        }

    @property
    def to_task(self) -> bool:
        """Whether the direction is A→T, in which the given variable is the attribute."""
        return self.name == "a_to_t"

    @property
    def by_labels(self) -> bool:
        """Whether groups are counted from image labels instead of the words of captions."""
        return not self.to_task and self.settings.prior == dbac.LABELS

    @property
    def prior(self) -> str:
        """The prior of the headline, under its name in :func:`dbac.dbac_score`."""
        if self.settings.prior != dbac.LABELS:
            return self.settings.prior
        return "shared" if self.by_labels else "counts"

    @property
    def by_group(self) -> bool:
        """Whether each group of an intersection of attributes also has a score."""
        return self.settings.attribute.is_crossed and self.settings.prior != dbac.OBJECT_SET

    @property
    def values(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the values of the given variable, and of the other variable."""
        pair = (self.view.groups, self.view.tasks)
        return pair if self.to_task else pair[::-1]

    @property
    def support_limit(self) -> float:
        """The smallest share that a task or group must have."""
        return least_share(self.settings.min_support, len(self.images))

    @cached_property
    def labels(self) -> IntArray:
        """What attackers guess of an image: the group, (M,), or the objects in it, (M, T)."""
        if self.to_task:
            return self.view.codes[self.images]
        # One byte each, because every seed, side and position keeps a table of the truth.
        return self.counts.objects.astype("int8")

    def pairs_named(self, side: str, k: int, images: IntArray, truth: IntArray) -> Float64Array:
        """(M, K * T): 1 where the image has group a and the caption names task t, else 0."""
        captions = self.view.corpus.side(side)
        chosen = captions.in_turn(k)
        rows = chosen[np.searchsorted(captions.image_rows[chosen], images)]
        named = self.view.mentions(side)[rows].toarray()
        group = np.eye(len(self.view.groups))[truth]
        pairs: Float64Array = (group[:, :, None] * named[:, None, :]).reshape(len(images), -1)
        return pairs

    @cached_property
    def supported_pairs(self) -> BoolArray:
        """(G, O) flags: true for pairs in human captions.

        T→A leaves out groups that annotators rarely name.

        Under ``prior=labels`` a pair must occur in images, and the group must have enough images.
        No pair is supported if the captioner never names a value of the other variable, or if
        attackers have too few images of a group to learn from.
        """
        every = np.ones((1, len(self.images)))
        sizes = self.counts.group.sum(axis=0)
        supported_pairs: BoolArray = self.mentions("human", every)[0, 0] > 0
        if not self.to_task:
            supported_pairs = supported_pairs & (
                self.other_shares("human", every)[0] >= self.support_limit
            )
        speaks = self.mentions("model", every)[0, 0][supported_pairs].sum() > 0
        return supported_pairs & speaks & (sizes.min() >= SMALLEST_GROUP)

    def mentions(self, side: str, weights: Float64Array) -> Float64Array:
        """(B, 1, G, O): the weighted number of captions for each pair."""
        if self.to_task:
            given, other = self.counts.group, self.counts.tasks[side]
        else:
            given, other = self.counts.objects, self._groups(side)
        pairs = (given[:, :, None] * other[:, None, :]).reshape(len(self.images), -1)
        shape = (len(weights), 1, given.shape[1], other.shape[1])
        return (weights @ pairs).reshape(shape)

    def given_shares(self, weights: Float64Array) -> Float64Array:
        """(B, 1, G): P(given), computed from image labels."""
        given = self.counts.group if self.to_task else self.counts.objects
        return (weights @ given / weights.sum(axis=1, keepdims=True))[:, None, :]

    def _groups(self, side: str) -> Float64Array:
        """(M, K): how many of a side's captions name each group, or 1 for the labelled group."""
        return self.counts.group if self.by_labels else self.counts.named[side]

    def other_shares(self, side: str, weights: Float64Array) -> Float64Array:
        """(B, 1, O): P(other), the share of the side's captions that name each value."""
        if self.by_labels:
            return (weights @ self.counts.group / weights.sum(axis=1, keepdims=True))[:, None, :]
        counts = self.counts.tasks[side] if self.to_task else self.counts.named[side]
        captions = weights @ self.counts.captions[side][:, None]
        return (weights @ counts / captions)[:, None, :]

    def part(self, what: str = "", **fields: str) -> PartName:
        return PartName(what, direction=self.name, **fields)

    def pair(self, g: int, o: int) -> PartName:
        """The name of a pair's score; ``g`` is the index of the given value, ``o`` of the other."""
        group, task = (g, o) if self.to_task else (o, g)
        return self.part(group=self.view.groups[group], object=self.view.tasks[task])


@dataclass(frozen=True, eq=False)
class GuessBlock:
    """The guesses of one seed on M test images. The means of the C columns give the qualities."""

    seed: int
    rows: IntArray
    # (C, M) score of a guess if it counts in the column, else 0; few count in a pair's column
    scores: Float64Array | sparse.csr_array
    counts: sparse.csr_array  # (C, M) 1 if the guess counts in the column; (1, M) if in all


class DirectionAttackers:
    """New attackers for both sides, which are trained when they are first needed."""

    def __init__(
        self, direction: Direction, splits: Sequence[Split], positions: int | None = None
    ) -> None:
        self.direction, self.settings, self.splits = direction, direction.settings, splits
        self.positions = positions or direction.settings.positions
        self.n_seeds = len(seeds_in(splits))

    @classmethod
    def from_predictions(
        cls, direction: Direction, predictions: Mapping[str, list[Predictions]]
    ) -> DirectionAttackers:
        """Attackers that have already guessed; ``predictions`` are sorted by side and position."""
        attackers = cls(direction, ())
        attackers.n_seeds = len(predictions["model"][0].seeds)
        attackers.predictions = dict(predictions)
        return attackers

    @classmethod
    def from_blocks(
        cls, direction: Direction, blocks: Mapping[str, list[GuessBlock]], n_seeds: int
    ) -> DirectionAttackers:
        """Attackers whose guesses are already known for each side."""
        attackers = cls(direction, ())
        attackers.n_seeds, attackers.blocks = n_seeds, dict(blocks)
        return attackers

    def with_fewer_images(self, share: float) -> DirectionAttackers:
        """The attackers of the first seed and position, trained on a share of the images."""
        return type(self)(self.direction, with_fewer_images(self.splits, share), 1)

    @cached_property
    def predictions(self) -> dict[str, list[Predictions]]:
        """For each side, the attackers' predictions for each caption position."""
        sides = SIDES if self.direction.supported_pairs.any() else ()
        return {side: self._attack(side) for side in sides}

    @cached_property
    def blocks(self) -> dict[str, list[GuessBlock]]:
        return {side: list(self._blocks(side)) for side in self.predictions}

    def evaluate(self, weights: Float64Array) -> dict[PartName, Float64Array]:
        """All numbers of the direction under image weights: (B, S), or (B, 1) for counts."""
        one = self.direction
        model, human = (self._side(side, weights) for side in SIDES)
        given = one.given_shares(weights)
        alike = dbac.Side(
            np.ones_like(human.mentions),
            np.ones_like(human.overall[:, :1]),
            human.other,
            human.mentions,
        )
        model_priors = dbac.Side(alike.quality, alike.overall, model.other, model.mentions)
        values = {one.part(): self._score(model, human, given, one.prior)}
        priors = ("shared", "none") if one.by_labels else dbac.PRIORS
        values |= {one.part(prior): self._score(model, human, given, prior) for prior in priors}
        values[one.part("priors")] = self._score(model_priors, alike, given, "counts")
        for name, side in (("model", model), ("human", human)):
            values[one.part("quality", side=name)] = side.overall
            values[one.part("prior", side=name)] = side.other.mean(axis=-1)
        pairs = dbac.pair_scores(model, human, given, one.prior)
        values |= {
            one.pair(g, o): pairs[..., g, o]
            for g, o in zip(*np.nonzero(one.supported_pairs), strict=True)
        }
        if one.by_group:
            values |= {
                one.part(group=name): self._of_group(g, model, human, given)
                for g, name in enumerate(one.view.groups)
            }
        return values

    def headline(self, weights: Float64Array) -> Float64Array:
        """(B, S): only the score, under image weights."""
        model, human = (self._side(side, weights) for side in SIDES)
        return self._score(model, human, self.direction.given_shares(weights), self.direction.prior)

    def _score(
        self, model: dbac.Side, human: dbac.Side, given: Float64Array, prior: str
    ) -> Float64Array:
        return dbac.dbac_score(
            model,
            human,
            given,
            self.direction.supported_pairs,
            aggregate=self.settings.aggregate,
            prior=prior,
        )

    def _of_group(
        self, group: int, model: dbac.Side, human: dbac.Side, given: Float64Array
    ) -> Float64Array:
        """(B, S): the score from the pairs of one group."""
        in_group = np.zeros_like(self.direction.supported_pairs)
        in_group[(group, slice(None)) if self.direction.to_task else (slice(None), group)] = True
        how = self.settings.aggregate
        return dbac.dbac_score(
            model,
            human,
            given,
            self.direction.supported_pairs & in_group,
            aggregate="weighted" if how == "marginal" else how,  # marginal has no pairs
            prior=self.direction.prior,
        )

    def _side(self, side: str, weights: Float64Array) -> dbac.Side:
        one = self.direction
        quality, overall = self._quality(side, weights)
        return dbac.Side(
            quality, overall, one.other_shares(side, weights), one.mentions(side, weights)
        )

    def _quality(self, side: str, weights: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Quality on each pair, (B, S, G, O), and on all captions, (B, S), over all positions."""
        n_columns = self.blocks[side][0].scores.shape[0]
        total = np.zeros((len(weights), self.n_seeds, n_columns))
        n_known = np.zeros_like(total)
        by_image = np.ascontiguousarray(weights.T)
        for block in self.blocks[side]:
            every_image = len(block.rows) == weights.shape[1]
            of_block = by_image if every_image else by_image[block.rows]
            with np.errstate(divide="ignore", invalid="ignore"):
                means = np.asarray((block.scores @ of_block) / (block.counts @ of_block))
                quality = self.settings.scoring.link(means.T)
            known = np.isfinite(quality)
            total[:, block.seed] += np.where(known, quality, 0.0)
            n_known[:, block.seed] += known
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = total / n_known
        return self._reshape(mean[..., :-1]), mean[..., -1]

    def _reshape(self, columns: Float64Array) -> Float64Array:
        """The columns of the blocks in the shape (B, S, G, O)."""
        given, other = map(len, self.direction.values)
        if self.direction.to_task:
            return columns.reshape(*columns.shape[:2], given, other)
        return np.broadcast_to(columns[..., None], (*columns.shape, other))

    def _attack(self, side: str) -> list[Predictions]:
        one = self.direction
        captions = one.transformed_corpus.side(side)
        usable = np.zeros(len(one.transformed_corpus), bool)
        usable[one.images] = True
        captions = captions.take(usable[captions.image_rows])
        predictions = []
        classes = one.values[0]
        for k, of_position in enumerate(captions.by_position(self.positions)):
            name = f"{one.name}:{side}:{k}"
            data = LabelledCaptions(name, of_position, one.labels, len(classes), classes)
            check_tested(data, self.splits)
            predictions.append(self.settings.probe.fit_predict(data, self.splits))
        return predictions

    def _blocks(self, side: str) -> Iterator[GuessBlock]:
        """Blocks with columns for pairs (A→T) or tasks (T→A), and a column for all guesses."""
        one = self.direction
        place = np.full(len(one.corpus), -1, np.int64)
        place[one.images] = np.arange(len(one.images))
        for k, predictions in enumerate(self.predictions[side]):
            for seed, (images, truth, probs) in enumerate(predictions):
                guess = self.settings.scoring.per_guess(probs, truth)
                if one.to_task:
                    counts = one.pairs_named(side, k, images, truth)
                    scores = counts * guess[:, None]
                    guess = guess[:, None]
                else:
                    counts, scores = np.empty((len(guess), 0)), guess
                all_guesses = guess.mean(axis=1, keepdims=True)
                order = np.argsort(place[images])
                by_column = np.hstack([scores, all_guesses])[order].T
                counts = np.hstack([counts, np.ones_like(all_guesses)])[order].T
                yield GuessBlock(
                    seed,
                    place[images][order],
                    sparse.csr_array(by_column) if one.to_task else by_column.copy(),
                    sparse.csr_array(counts),
                )
