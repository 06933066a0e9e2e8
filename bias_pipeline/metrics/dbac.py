"""DBAC: bias amplification in both directions, attribute to task and task to attribute."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from bias_pipeline.attackers.data import Labelled, Predictions
from bias_pipeline.attackers.probe import Probe
from bias_pipeline.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus import SIDES, Corpus
from bias_pipeline.errors import DataError, NotApplicableError, UsageError, did_you_mean
from bias_pipeline.intersection import Intersection
from bias_pipeline.metrics.base import Metric, MetricInfo, Part, Score
from bias_pipeline.metrics.functional import dbac
from bias_pipeline.metrics.functional.counts import known_mean
from bias_pipeline.metrics.worst_group import gap_of, sentence
from bias_pipeline.scoring import Scoring
from bias_pipeline.split import SMALLEST_GROUP, Split, SplitRule
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate, steady
from bias_pipeline.text.mentions import attribute_mentions, neutral_rate
from bias_pipeline.text.tasks import task_mentions

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Transform = Callable[[Corpus], Corpus]

DIRECTIONS = ("a_to_t", "t_to_a")


class DBAC(Metric):
    """Directional Bias Amplification in Captioning (eq. 5 to 8), in the reading of our docs.

    ``a_to_t``: attackers guess the group from captions whose group words are masked; ``t_to_a``:
    attackers guess the image's objects from captions whose object words are masked. A side's
    omega is the attackers' quality times P(other) / P(given); the score is the normalised
    difference of the sides, in (-1, 1), 0 for a captioner that adds no bias. Beside each headline
    stand the qualities, the priors, the score under all three priors, and ``<direction>:priors``,
    what the priors alone would give; ``<direction>:<given>:<other>`` is the score of a pair.

    Both directions use only images with captions of both sides (and known objects, for
    ``t_to_a``). Every caption position of the human side has its own attackers.

    Args:
        attribute: its groups are A.
        task: its tasks are T.
        a_to_t: transforms before the attackers of A->T.
        t_to_a: transforms before the attackers of T->A.
        probe: trains the attackers.
        split: how splits are drawn.
        scoring: the attackers' quality Q, above 0 and larger for better.
        stats: how intervals are made.
        aggregate: see :func:`bias_pipeline.metrics.functional.dbac.score`.
        prior: see there.
        positions: how many human captions of an image are used.
        min_support: how many captions of each side must hold a pair for it to count; ours.
        exclude_tasks: tasks left out; every image shows a person.

    Raises:
        UsageError: on an unknown aggregate, prior or excluded task.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="dbac",
        title="Directional Bias Amplification in Captioning",
        version=3,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0 the captioner amplifies in that direction",
        reference="DBAC, eq. 5-8",
        source_identifying=True,
        learnable=True,
        amplification=True,
        full_context=True,
        consistent=True,
        directional=True,
        language_aware=True,
    )

    def __init__(
        self,
        attribute: Attribute,
        task: TaskVocabulary,
        a_to_t: Sequence[Transform],
        t_to_a: Sequence[Transform],
        probe: Probe,
        split: SplitRule,
        scoring: Scoring,
        stats: Bootstrap,
        aggregate: str = "per_pair",
        prior: str = "counts",
        positions: int = 5,
        min_support: int = 50,
        exclude_tasks: Sequence[str] = ("person",),
    ) -> None:
        _check("aggregate", aggregate, dbac.AGGREGATES)
        _check("prior", prior, dbac.PRIORS)
        for name in exclude_tasks:
            _check("exclude_tasks", name, task.tasks)
        self.attribute = attribute
        self.task = task
        self.transforms = {"a_to_t": tuple(a_to_t), "t_to_a": tuple(t_to_a)}
        self.probe = probe
        self.split = split
        self.scoring = scoring
        self.stats = stats
        self.aggregate = aggregate
        self.prior = prior
        self.positions = positions
        self.min_support = min_support
        self.tasks = tuple(name for name in task.tasks if name not in exclude_tasks)

    def draw_splits(self, corpus: Corpus, seeds: Sequence[int]) -> list[Split]:
        """One split a seed over all labelled images."""
        return self.split.draw(corpus, self.attribute.name, seeds)

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        """See :class:`DBAC`."""
        counts = Counts.of(corpus, self.attribute, self.task, self.tasks)
        found = [
            _Direction(self, name, corpus, counts, splits).score()
            for name in DIRECTIONS
            if name == "a_to_t" or counts.has_objects.any()
        ]
        notes = [note for one in found for note in one.notes]
        if len(found) < len(DIRECTIONS):
            notes.append("the data set has no objects, so T->A cannot be scored")
        return Score(
            parts={name: part for one in found for name, part in one.parts.items()},
            predictions=[p for one in found for p in one.predictions],
            audit={name: value for one in found for name, value in one.audit.items()},
            notes=[*corpus.notes, *notes],
            tables={
                name: [line for one in found for line in one.tables[name]]
                for name in ("examples", "resample")
            },
        )


@dataclass(frozen=True, eq=False)
class Counts:
    """What captions and labels say of N images, before any attacker.

    Attributes:
        group: (N,) class of each image, -1 for none.
        groups: the K group names.
        objects: (N, T) objects in the image.
        has_objects: (N,) whether they are known.
        tasks: side to (N, T) number of captions that name a task.
        named: side to (N, K) number of captions that name a group.
        captions: side to (N,) number of captions.
        by_caption: side to (captions, T) which tasks each caption names.
    """

    group: IntArray
    groups: tuple[str, ...]
    objects: FloatArray
    has_objects: npt.NDArray[np.bool_]
    tasks: Mapping[str, FloatArray]
    named: Mapping[str, FloatArray]
    captions: Mapping[str, FloatArray]
    by_caption: Mapping[str, sparse.csr_array]

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        attribute: Attribute,
        vocabulary: TaskVocabulary,
        tasks: tuple[str, ...],
    ) -> Counts:
        """Count mentions and objects."""
        grouping = corpus.groupings[attribute.name]
        objects = np.zeros((len(corpus), len(tasks)))
        known = np.zeros(len(corpus), bool)
        for row, names in enumerate(corpus.objects or ()):
            known[row] = bool(names)
            objects[row] = [task in names for task in tasks]
        by_caption = {s: task_mentions(corpus.side(s), vocabulary, tasks) for s in SIDES}
        named = {s: attribute_mentions(corpus.side(s), attribute, grouping.names) for s in SIDES}
        return cls(
            group=grouping.codes,
            groups=grouping.names,
            objects=objects,
            has_objects=known,
            tasks={s: _per_image(corpus, s, by_caption[s]) for s in SIDES},
            named={s: _per_image(corpus, s, named[s]) for s in SIDES},
            captions={
                s: np.bincount(corpus.side(s).images, minlength=len(corpus)).astype(np.float64)
                for s in SIDES
            },
            by_caption=by_caption,
        )


@dataclass(frozen=True, eq=False)
class _Block:
    """One attacker's guesses: for M test images, C sums that make its qualities."""

    seed: int
    rows: IntArray
    scores: FloatArray  # (M, C) score of a guess where it belongs to a column, else 0
    counts: FloatArray  # (M, C) 1 where it belongs to a column


class _Direction:
    """The score in one direction, on the images that allow it."""

    def __init__(
        self,
        metric: DBAC,
        name: str,
        corpus: Corpus,
        counts: Counts,
        splits: Sequence[Split],
    ) -> None:
        self.metric, self.name, self.corpus, self.counts = metric, name, corpus, counts
        usable = (
            (counts.group >= 0) & (counts.captions["model"] > 0) & (counts.captions["human"] > 0)
        )
        if name == "t_to_a":
            usable &= counts.has_objects
        self.images = np.flatnonzero(usable)
        if not len(self.images):
            raise NotApplicableError(
                f"captioner {corpus.captioner!r}: DBAC needs images with model and human captions"
            )
        self.n_seeds = len(splits)
        self.kept = self._kept_tasks()
        self.tasks = tuple(metric.tasks[t] for t in self.kept)
        self.supported = self._supported()
        attacked = SIDES if self.supported.any() else ()
        ready = corpus
        for transform in metric.transforms[name]:
            ready = transform(ready)
        self.answers = {side: self._attack(ready, side, splits) for side in attacked}
        self.blocks = {side: list(self._blocks(side)) for side in attacked}

    @property
    def to_task(self) -> bool:
        """Whether the attribute is given and the task is the other variable."""
        return self.name == "a_to_t"

    @property
    def by_group(self) -> bool:
        """Whether groups are scored one by one: those of an intersection."""
        return isinstance(self.metric.attribute, Intersection)

    @property
    def values(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the values of the given and of the other variable."""
        pair = (self.counts.groups, self.tasks)
        return pair if self.to_task else pair[::-1]

    def _kept_tasks(self) -> IntArray:
        """Tasks with images or captions enough to be worth an attacker."""
        if self.to_task:
            enough = [
                self.counts.tasks[side][self.images].sum(axis=0)
                / self.counts.captions[side][self.images].mean()
                for side in SIDES
            ]
            return np.flatnonzero(np.min(enough, axis=0) >= self.metric.min_support)
        held = self.counts.objects[self.images].sum(axis=0)
        return np.flatnonzero(held >= self.metric.min_support)

    def _attack(self, ready: Corpus, side: str, splits: Sequence[Split]) -> list[Predictions]:
        captions = ready.side(side)
        usable = np.zeros(len(ready), bool)
        usable[self.images] = True
        captions = captions.take(usable[captions.images])
        answers = []
        for k in range(self.metric.positions if side == "human" else 1):
            own = captions.position(k)
            if len(own) == len(self.images):
                labels = self._labels(own.images)
                classes = self.counts.groups if self.to_task else self.tasks
                name = f"{self.name}:{side}:{k}"
                data = Labelled(name, own, labels, len(classes), classes)
                answers.append(self.metric.probe.fit_predict(data, splits))
        if not answers:
            raise DataError(
                f"captioner {self.corpus.captioner!r}: no {side} caption position covers all "
                f"{len(self.images)} images that have both sides"
            )
        return answers

    def _labels(self, images: IntArray) -> IntArray:
        if self.to_task:
            return self.counts.group[images]
        return self.counts.objects[np.ix_(images, self.kept)].astype(np.int64)

    def _blocks(self, side: str) -> Iterator[_Block]:
        """Columns: the pairs (A->T) or the tasks (T->A), then all guesses together."""
        place = np.full(len(self.corpus), -1, np.int64)
        place[self.images] = np.arange(len(self.images))
        for k, answers in enumerate(self.answers[side]):
            for seed, (images, truth, probs) in enumerate(answers):
                guess = self.metric.scoring.per_guess(probs, truth)
                if self.to_task:
                    counts = self._pairs(side, k, images, truth)
                    scores = counts * guess[:, None]
                    guess = guess[:, None]
                else:
                    counts, scores = np.ones_like(guess), guess
                all_guesses = guess.mean(axis=1, keepdims=True)
                yield _Block(
                    seed,
                    place[images],
                    np.hstack([scores, all_guesses]),
                    np.hstack([counts, np.ones_like(all_guesses)]),
                )

    def _pairs(self, side: str, k: int, images: IntArray, truth: IntArray) -> FloatArray:
        """(M, K * T) 1 where the caption's image is of group a and the caption names task t."""
        captions = self.corpus.side(side)
        first = np.searchsorted(captions.images, images)
        named = self.counts.by_caption[side][first + k].toarray()[:, self.kept]
        group = np.eye(len(self.counts.groups))[truth]
        pairs: FloatArray = (group[:, :, None] * named[:, None, :]).reshape(len(images), -1)
        return pairs

    def _supported(self) -> npt.NDArray[np.bool_]:
        """(G, O) pairs with captions enough on both sides.

        Qualities of A->T belong to pairs, so each pair needs its captions. Those of T->A belong
        to tasks; it is enough that captions name a group at all.
        """
        if self.to_task:
            ones = np.ones((1, len(self.images)))
            enough = [
                self._mentions(side, ones)[0, 0] / self.counts.captions[side][self.images].mean()
                for side in SIDES
            ]
            return np.min(enough, axis=0) >= self.metric.min_support
        named = [self.counts.named[side][self.images].sum(axis=0) for side in SIDES]
        groups = np.min(named, axis=0) >= SMALLEST_GROUP
        return np.broadcast_to(groups, (len(self.tasks), len(groups)))

    def _mentions(self, side: str, weights: FloatArray) -> FloatArray:
        """(B, 1, G, O) weighted number of captions of each pair."""
        group = np.eye(len(self.counts.groups))[self.counts.group[self.images]]
        if self.to_task:
            given, other = group, self.counts.tasks[side][np.ix_(self.images, self.kept)]
        else:
            given = self.counts.objects[np.ix_(self.images, self.kept)]
            other = self.counts.named[side][self.images]
        pairs = (given[:, :, None] * other[:, None, :]).reshape(len(self.images), -1)
        shape = (len(weights), 1, given.shape[1], other.shape[1])
        return (weights @ pairs).reshape(shape)

    def _given(self, weights: FloatArray) -> FloatArray:
        """(B, 1, G) P(given) from image labels."""
        if self.to_task:
            held = np.eye(len(self.counts.groups))[self.counts.group[self.images]]
        else:
            held = self.counts.objects[np.ix_(self.images, self.kept)]
        return (weights @ held / weights.sum(axis=1, keepdims=True))[:, None, :]

    def _other(self, side: str, weights: FloatArray) -> FloatArray:
        """(B, 1, O) P(other): share of the side's captions that name each value."""
        counts = self.counts.tasks[side][:, self.kept] if self.to_task else self.counts.named[side]
        captions = weights @ self.counts.captions[side][self.images, None]
        return (weights @ counts[self.images] / captions)[:, None, :]

    def _quality(self, side: str, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(B, S, G, O) quality on pairs and (B, S) on all captions, mean over positions."""
        n_columns = self.blocks[side][0].scores.shape[1]
        total = np.zeros((len(weights), self.n_seeds, n_columns))
        n_known = np.zeros_like(total)
        for block in self.blocks[side]:
            own = weights[:, block.rows]
            with np.errstate(divide="ignore", invalid="ignore"):
                quality = self.metric.scoring.link((own @ block.scores) / (own @ block.counts))
            known = np.isfinite(quality)
            total[:, block.seed] += np.where(known, quality, 0.0)
            n_known[:, block.seed] += known
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = total / n_known
        return self._shaped(mean[..., :-1]), mean[..., -1]

    def _shaped(self, columns: FloatArray) -> FloatArray:
        """(B, S, G, O) from the columns of the blocks."""
        given, other = map(len, self.values)
        if self.to_task:
            return columns.reshape(*columns.shape[:2], given, other)
        return np.broadcast_to(columns[..., None], (*columns.shape, other))

    def _side(self, side: str, weights: FloatArray) -> dbac.Side:
        quality, overall = self._quality(side, weights)
        return dbac.Side(
            quality, overall, self._other(side, weights), self._mentions(side, weights)
        )

    def evaluate(self, weights: FloatArray) -> dict[str, FloatArray]:
        """All numbers of the direction, (B, S) each, when images count as often as weighted."""
        model, human = (self._side(side, weights) for side in SIDES)
        given = self._given(weights)
        alike = dbac.Side(
            np.ones_like(human.quality), np.ones_like(human.overall), human.other, human.mentions
        )
        louder = dbac.Side(alike.quality, alike.overall, model.other, model.mentions)

        def score(one: dbac.Side, two: dbac.Side, prior: str) -> FloatArray:
            return dbac.score(
                one, two, given, self.supported, aggregate=self.metric.aggregate, prior=prior
            )

        seeds = np.ones((1, self.n_seeds))
        found = {"": score(model, human, self.metric.prior)}
        found |= {f":{prior}": score(model, human, prior) for prior in dbac.PRIORS}
        found[":priors"] = score(louder, alike, "counts") * seeds
        for name, side in (("model", model), ("human", human)):
            found[f":quality:{name}"] = side.overall
            found[f":prior:{name}"] = side.other.mean(axis=-1) * seeds
        pairs = dbac.pair_scores(model, human, given, self.metric.prior)
        found |= {
            f":{self.values[0][g]}:{self.values[1][o]}": pairs[..., g, o]
            for g, o in zip(*np.nonzero(self.supported), strict=True)
        }
        if self.by_group:
            known = np.where(self.supported, pairs, np.nan)
            means = known_mean(known if self.to_task else np.swapaxes(known, -1, -2), 1)
            found |= {f":group:{name}": means[..., g] for g, name in enumerate(self.counts.groups)}
        return {self.name + name: values for name, values in found.items()}

    def score(self) -> Score:
        """Estimates of all numbers, with what drives the headline in a sentence."""
        if not self.supported.any():
            return self._nothing()
        level = self.metric.stats.level
        drawn = self.metric.stats.estimate_weighted(self.corpus.keys[self.images], self.evaluate)
        estimates = {name: steady(estimate, level) for name, estimate in drawn.items()}
        estimates |= self._descriptive()
        notes = [self._driver(estimates), *self._compare_groups(estimates)]
        parts = {name: self._part(name, estimate) for name, estimate in estimates.items()}
        return Score(
            parts=parts,
            predictions=[p for side in SIDES for p in self.answers[side]],
            audit={
                f"{self.name}:pairs": int(self.supported.sum()),
                f"{self.name}:pairs_without_support": int((~self.supported).sum()),
            },
            notes=notes,
            tables={
                "examples": list(self._examples(estimates)),
                "resample": list(self._resample(estimates)),
            },
        )

    def _compare_groups(self, estimates: dict[str, Estimate]) -> list[str]:
        """Add the largest gap between groups of an intersection; say which is worst."""
        if not self.by_group:
            return []
        level, start = self.metric.stats.level, f"{self.name}:group:"
        groups = {name: estimates[start + name] for name in self.counts.groups}
        gap = gap_of(groups, level)
        if gap is None:
            return []
        estimates[f"{self.name}:gap"] = gap.estimate
        return [sentence("A→T" if self.to_task else "T→A", groups, gap)]

    def _nothing(self) -> Score:
        """A headline that is absent, and why; nothing was trained for it."""
        nan = float("nan")
        absent = Estimate(nan, nan, nan, nan, nan, nan, self.n_seeds)
        arrow, needs = ("A->T", f"{self.metric.min_support} captions that name a task")
        if not self.to_task:
            arrow, needs = ("T->A", f"{SMALLEST_GROUP} captions that name a group, and objects")
        return Score(
            parts={self.name: self._part(self.name, absent)},
            notes=[f"{arrow} cannot be scored: no pair has {needs} on both sides"],
            tables={"examples": [], "resample": []},
        )

    def _part(self, name: str, estimate: Estimate) -> Part:
        side = "human" if name.endswith("human") else "model"
        captions = self.corpus.side(side)
        images = self._images_of(name)
        usable = np.isin(captions.images, images)
        return Part(
            estimate=estimate,
            unit="quality" if ":quality" in name else "fraction",
            n_images=len(images),
            coverage=float(len(images) / (self.counts.group >= 0).sum()),
            neutral_rate=neutral_rate(captions.take(usable), self.metric.attribute),
        )

    def _images_of(self, name: str) -> IntArray:
        """Corpus rows that a number rests on: of a group, those labelled or captioned with it."""
        _, marked, group = name.partition(":group:")
        if not marked:
            return self.images
        place = self.counts.groups.index(group)
        if self.to_task:
            return self.images[self.counts.group[self.images] == place]
        named = sum(self.counts.named[side][self.images, place] for side in SIDES)
        return self.images[np.asarray(named) > 0]

    def _descriptive(self) -> dict[str, Estimate]:
        """Numbers that need no attacker: mention rates and the quality of knowing prevalences."""
        labels = self._labels(self.images)
        shares = (
            np.bincount(labels, minlength=len(self.counts.groups)) / len(labels)
            if self.to_task
            else labels.mean(axis=0)
        )
        probs = np.tile(shares, (len(labels), 1))
        guess = self.metric.scoring.per_guess(probs, labels)
        found = {":quality:baseline": float(self.metric.scoring.link(np.asarray(guess.mean())))}
        for side in SIDES:
            counts = self.counts.tasks[side] if self.to_task else self.counts.named[side]
            named = counts[self.images].sum() / self.counts.captions[side][self.images].sum()
            found[f":mentions:{side}"] = float(named)
        nan = float("nan")
        return {
            self.name + name: Estimate(value, nan, nan, nan, nan, nan, self.n_seeds)
            for name, value in found.items()
        }

    def _driver(self, estimates: Mapping[str, Estimate]) -> str:
        attackers, priors = (estimates[f"{self.name}:{part}"].value for part in ("none", "priors"))
        driver = "the attackers" if abs(attackers) >= abs(priors) else "the priors"
        arrow = "A->T" if self.to_task else "T->A"
        return (
            f"{arrow} is driven by {driver}: attackers alone {100 * attackers:+.1f}, "
            f"priors alone {100 * priors:+.1f}"
        )

    def _amplified(self, estimates: Mapping[str, Estimate]) -> list[tuple[int, int, Estimate]]:
        """Pairs whose interval lies above 0, the strongest first."""
        pairs = [
            (int(g), int(o), estimates[f"{self.name}:{self.values[0][g]}:{self.values[1][o]}"])
            for g, o in zip(*np.nonzero(self.supported), strict=True)
        ]
        return sorted((p for p in pairs if p[2].ci_low > 0), key=lambda p: -p[2].value)

    def _holders(self, g: int, o: int) -> IntArray:
        """Corpus rows of images of a pair: labelled with the group, captioned with the task."""
        group, task = (g, o) if self.to_task else (o, g)
        held = self.counts.group[self.images] == group
        if self.to_task:
            held &= self.counts.tasks["model"][self.images, self.kept[task]] > 0
        else:
            held &= self.counts.objects[self.images, self.kept[task]] > 0
        return self.images[held]

    def _examples(self, estimates: Mapping[str, Estimate]) -> Iterator[dict[str, object]]:
        """Up to three captions for each of the ten most amplified pairs."""
        for g, o, estimate in self._amplified(estimates)[:10]:
            for row in self._holders(g, o)[:3]:
                record = self.corpus[int(row)]
                yield {
                    **self._pair_columns(g, o, estimate),
                    "image_id": record.id,
                    "model": record.model,
                    "human": record.human[0],
                }

    def _resample(self, estimates: Mapping[str, Estimate]) -> Iterator[dict[str, object]]:
        """Images of amplified pairs with the weight that makes group and task independent.

        The weight is P(group) P(task) / P(group, task) over images (Kamiran and Calders 2012):
        below 1 the image should be drawn less often when the captioner is trained again.
        """
        for g, o, estimate in self._amplified(estimates):
            holders = self._holders(g, o)
            group, task = (g, o) if self.to_task else (o, g)
            of_group = (self.counts.group[self.images] == group).mean()
            source = self.counts.tasks["model"] if self.to_task else self.counts.objects
            of_task = (source[self.images, self.kept[task]] > 0).mean()
            weight = of_group * of_task / (len(holders) / len(self.images))
            for row in holders:
                columns = self._pair_columns(g, o, estimate)
                yield {**columns, "image_id": self.corpus.ids[row], "weight": round(weight, 4)}

    def _pair_columns(self, g: int, o: int, estimate: Estimate) -> dict[str, object]:
        return {
            "direction": self.name,
            "given": self.values[0][g],
            "other": self.values[1][o],
            "score": estimate.value,
            "ci_low": estimate.ci_low,
            "ci_high": estimate.ci_high,
        }


def _per_image(corpus: Corpus, side: str, by_caption: sparse.csr_array) -> FloatArray:
    """(N, C) sums over each image's captions."""
    captions = corpus.side(side)
    n = len(captions)
    gather = sparse.csr_array((np.ones(n), (captions.images, np.arange(n))), shape=(len(corpus), n))
    return np.asarray((gather @ by_caption).toarray(), np.float64)


def _check(key: str, value: str, known: Sequence[str] | Mapping[str, object]) -> None:
    if value not in known:
        raise UsageError(f"metric.{key}: {value!r} is unknown; {did_you_mean(value, known)}")
