"""DPA: are the model's tasks and groups easier to guess from each other than people's?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from bias_pipeline.attackers.probe import Probe
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.predictions import Labelled, Predictions
from bias_pipeline.corpus.split import SMALLEST_GROUP, Split, SplitRule
from bias_pipeline.declared import NotNegative
from bias_pipeline.errors import DataError
from bias_pipeline.io.hashing import keys_of, stream
from bias_pipeline.metrics.base import Cost, Metric, MetricInfo, Part, Reading, Response, Score
from bias_pipeline.metrics.counting.tally import (
    FloatArray,
    IntArray,
    Mask,
    choice,
    least_share,
    support,
)
from bias_pipeline.metrics.functional.dpa import EQUALISE
from bias_pipeline.metrics.functional.relation import normalised
from bias_pipeline.metrics.parts import PartName
from bias_pipeline.metrics.seen import Seen
from bias_pipeline.metrics.sources import TOKAS_2024
from bias_pipeline.scoring import Scoring
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate

LABELS = ("objects", "union", "first")


class DPA(Metric):
    """Directional predictability amplification (Tokas et al. 2024), in both directions.

    ``a_to_t``: attackers guess tasks from the labelled group; ``t_to_a``: they guess the group from
    the labelled tasks. On one side they are trained and scored on what the model's caption names
    (Psi_M), on the other on labels that were made wrong at random until they are right as often as
    the model is (Psi_D). The score is (Psi_M - Psi_D) / (Psi_M + Psi_D), in (-1, 1).

    Several tasks are guessed one by one, each with a label noise of its own; Psi is the mean of
    their qualities, and ``a_to_t:object:NAME`` the score of one. ``t_to_a`` uses the images whose
    model caption names exactly one group. Every seed and side has fresh attackers.

    Attackers read label vectors written as words (the group's name; the tasks' names), so that any
    probe and encoder serves.

    Args:
        attribute: its groups are A.
        task: its tasks are T.
        probe: trains the attackers.
        split: how splits are drawn.
        scoring: the attackers' quality Q, above 0 and larger for better.
        stats: how intervals are made.
        labels: where the labelled tasks come from: ``objects`` in the image, the ``union`` of what
            its human captions name, or what the ``first`` of them names.
        equalise: how labels are made as wrong as the model: ``flip`` (as published), ``exchange``
            (passed on between images, ours) or ``none``. Symmetric flips make rare tasks more
            frequent, so under ``flip`` a captioner that names tasks as people do scores above 0;
            ``exchange`` keeps how frequent they are.
        min_support: the share of images whose labels must hold a task for it to count, whatever
            the captioner names; ours. See
            :func:`~bias_pipeline.metrics.counting.tally.least_share`.
        words: a preset of the attribute whose words name the groups; None: its own words.
        exclude_tasks: tasks left out; every image shows a person.

    Raises:
        UsageError: on an unknown choice or excluded task, or a negative support.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="dpa",
        title="Directional predictability amplification (DPA)",
        version=3,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0 the captioner amplifies in that direction",
        family="attack",
        question="tasks",
        sources={TOKAS_2024: ""},
        needs=("objects",),
        cost=Cost(per_caption=0.0, per_attacked=1e-5),
        responses={
            "a_to_t": Response(
                moves=("object follows group",),
                stays=(
                    "negation",
                    "synonym",
                    "word order",
                    "unlisted word",
                    "group follows object",
                    "biased people",
                ),
            ),
            "t_to_a": Response(
                moves=("group follows object",),
                stays=("object follows group",),
                absent=("neutral alone",),
            ),
        },
        says={
            "a_to_t": "{attribute} predicts the tasks it mentions better than those in the labels",
            "t_to_a": "tasks predict the {attribute} it names better than the labelled one",
        },
        readings={"t_to_a": Reading("t_to_a", named=True)},
        untested=("a_to_t",),
        source_identifying=True,
        learnable=True,
        amplification=True,
        directional=True,
    )

    def __init__(
        self,
        attribute: Attribute,
        task: TaskVocabulary,
        probe: Probe,
        split: SplitRule,
        scoring: Scoring,
        stats: Bootstrap,
        labels: str = "objects",
        equalise: str = "flip",
        min_support: NotNegative = 0.005,
        words: str | None = None,
        exclude_tasks: Sequence[str] = ("person",),
    ) -> None:
        for name in exclude_tasks:
            choice("exclude_tasks", name, task.tasks)
        self.attribute = attribute
        self.task = task
        self.probe = probe
        self.split = split
        self.scoring = scoring
        self.stats = stats
        self.labels = choice("labels", labels, LABELS)
        self.equalise = choice("equalise", equalise, EQUALISE)
        self.min_support = support(min_support)
        self.words = words
        self.exclude_tasks = tuple(exclude_tasks)

    def draw_splits(self, corpus: Corpus, seeds: Sequence[int]) -> list[Split]:
        """One split a seed over all labelled images."""
        return self.split.draw(corpus, self.attribute.name, seeds)

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        """See :class:`DPA`."""
        seen = Seen(corpus, self.attribute, self.words, self.task, self.exclude_tasks)
        seen.check_captioned()
        labels = self._labels(seen)
        known = seen.known if self.labels == "objects" else seen.has("human")
        usable = seen.labelled & seen.has("model") & known
        if not usable.any():
            raise DataError(
                f"captioner {corpus.captioner!r}: no image has a group, a caption and tasks by "
                f"labels={self.labels}"
            )
        found = [
            self._score(question, seen, splits)
            for question in (self._a_to_t(seen, labels, usable), self._t_to_a(seen, labels, usable))
        ]
        return Score(
            parts={name: part for one in found for name, part in one.parts.items()},
            predictions=[p for one in found for p in one.predictions],
            audit={name: value for one in found for name, value in one.audit.items()},
            notes=[*corpus.notes, *(note for one in found for note in one.notes)],
        )

    def _labels(self, seen: Seen) -> IntArray:
        """(N, T) tasks of each image by label.

        Raises:
            NotApplicableError: if the data set has no objects and they are asked for.
        """
        if self.labels == "objects":
            return _indicators(seen.objects.toarray())
        mentions = seen.mentions("human")
        if self.labels == "union":
            return _indicators(seen.by_image("human", mentions).toarray())
        first = np.flatnonzero(seen.corpus.human.positions == 0)
        labels = np.zeros(seen.shape, np.int64)
        labels[seen.images("human")[first]] = _indicators(mentions[first].toarray())
        return labels

    def _a_to_t(self, seen: Seen, labels: IntArray, usable: Mask) -> Question:
        rows = np.flatnonzero(usable)
        named = _indicators(seen.by_image("model", seen.mentions("model")).toarray())
        least = least_share(self.min_support, len(rows))
        kept = np.flatnonzero(labels[rows].mean(axis=0) >= least)
        return Question(
            name="a_to_t",
            inputs=_written([[seen.groups[code]] for code in seen.codes[rows]], rows),
            labels=labels[np.ix_(rows, kept)],
            predicted=named[np.ix_(rows, kept)],
            classes=tuple(seen.tasks[t] for t in kept),
            lacking=""
            if len(kept)
            else f"no task is in {100 * least:.2g} % of images by label (metric.min_support)",
        )

    def _t_to_a(self, seen: Seen, labels: IntArray, usable: Mask) -> Question:
        named = np.full(len(seen.corpus), -1)
        named[seen.images("model")] = seen.named("model")
        rows = np.flatnonzero(usable & (named >= 0))
        sizes = [
            np.bincount(codes[rows], minlength=len(seen.groups)) for codes in (seen.codes, named)
        ]
        lacking = seen.unsaid("model")
        if not lacking and np.min(sizes) < SMALLEST_GROUP:
            lacking = f"captions must name every group alone in {SMALLEST_GROUP} images or more"
        held = [[seen.tasks[t] for t in np.flatnonzero(labels[row])] for row in rows]
        return Question(
            name="t_to_a",
            inputs=_written(held, rows),
            labels=seen.codes[rows],
            predicted=named[rows],
            classes=seen.groups,
            lacking=lacking,
        )

    def _score(self, question: Question, seen: Seen, splits: Sequence[Split]) -> Score:
        if question.lacking:
            return _absent(question, seen, len(splits))
        return _Direction(self, question, seen, splits).score()


@dataclass(frozen=True, eq=False)
class Question:
    """What attackers of one direction are asked, on M images.

    Attributes:
        name: the direction.
        inputs: M label vectors written as words.
        labels: (M,) true classes, or (M, T) 0/1 for several tasks.
        predicted: the same by the model's captions.
        classes: names of the classes or tasks.
        lacking: why it cannot be asked, empty if it can.
    """

    name: str
    inputs: Captions
    labels: IntArray
    predicted: IntArray
    classes: tuple[str, ...]
    lacking: str = ""

    def part(self, what: str = "", **fields: str) -> PartName:
        """The name of a number of this direction."""
        return PartName(what, direction=self.name, **fields)

    @property
    def images(self) -> IntArray:
        """(M,) rows of the corpus."""
        return self.inputs.image_rows

    @property
    def several(self) -> bool:
        """Whether there are several tasks rather than one variable."""
        return self.labels.ndim == 2


class _Direction:
    """Predictions in one direction and the numbers made from them."""

    def __init__(
        self, metric: DPA, question: Question, seen: Seen, splits: Sequence[Split]
    ) -> None:
        self.metric, self.question, self.seen = metric, question, seen
        self.splits, self.n_seeds = splits, len(splits)

    @cached_property
    def predictions(self) -> dict[str, Predictions]:
        """Side to what its attackers predict; they are trained when this is first asked for."""
        train = self.metric.probe.fit_predict
        return {
            "model": train(self._posed("model", self.question.predicted), self.splits),
            # Every seed has label noise of its own.
            "human": Predictions.joined(
                [train(self._posed("human", self._noisy(s.seed)), [s]) for s in self.splits]
            ),
        }

    def _posed(self, side: str, labels: IntArray) -> Labelled:
        own = self.question
        name = f"{own.name}:{side}"
        return Labelled(name, own.inputs, labels, len(own.classes), own.classes)

    def _noisy(self, seed: int) -> IntArray:
        """The labels as attackers of one seed see them."""
        own = self.question
        equalise = EQUALISE[self.metric.equalise]
        images = self.seen.corpus.keys[own.images]
        if not own.several:
            noise = stream("noise", seed, images)
            return equalise(own.labels, own.predicted, len(own.classes), noise)
        columns = [
            equalise(labels, predicted, 2, stream("noise", seed, images, task))
            for labels, predicted, task in zip(
                own.labels.T, own.predicted.T, keys_of(own.classes), strict=True
            )
        ]
        return np.stack(columns, axis=1)

    def _quality(self, side: str, weights: FloatArray) -> FloatArray:
        """(B, S, C) quality of each seed's attackers, for each task if there are several."""
        place = np.full(len(self.seen.corpus), -1)
        place[self.question.images] = np.arange(len(self.question.images))
        found = []
        for images, truth, probs in self.predictions[side]:
            guess = self.metric.scoring.per_guess(probs, truth).reshape(len(images), -1)
            own = weights[:, place[images]]
            with np.errstate(divide="ignore", invalid="ignore"):
                mean = own @ guess / own.sum(axis=1, keepdims=True)
            found.append(self.metric.scoring.link(mean))
        return np.stack(found, axis=1)

    def evaluate(self, weights: FloatArray) -> dict[PartName, FloatArray]:
        """All numbers of the direction, (B, S) each, when images count as often as weighted."""
        own, of = self.question, self.question.part
        model, human = (self._quality(side, weights) for side in ("model", "human"))
        found = {of(): normalised(model.mean(axis=-1), human.mean(axis=-1))}
        found |= {
            of("quality", side="model"): model.mean(axis=-1),
            of("quality", side="human"): human.mean(axis=-1),
            of("accuracy"): self._mean(own.labels == own.predicted, weights),
        }
        if own.several:
            scores = normalised(model, human)
            found |= {of(object=t): scores[..., k] for k, t in enumerate(own.classes)}
            for side, named in (("model", own.predicted), ("human", own.labels)):
                found[of("mentions", side=side)] = len(own.classes) * self._mean(named, weights)
        return found

    def _mean(self, values: Mask | IntArray, weights: FloatArray) -> FloatArray:
        """(B, S) weighted mean over images and tasks of what no attacker changes."""
        each = values.reshape(len(values), -1).mean(axis=1)
        return (weights @ each / weights.sum(axis=1))[:, None] * np.ones((1, self.n_seeds))

    def score(self) -> Score:
        """Estimates of all numbers."""
        keys = self.seen.corpus.keys[self.question.images]
        estimates = self.metric.stats.estimate_weighted(keys, self.evaluate)
        return Score(
            parts={
                part: _part(part, estimate, self.question, self.seen)
                for part, estimate in estimates.items()
            },
            predictions=list(self.predictions.values()),
            audit={f"{self.question.name}:classes": list(self.question.classes)},
            notes=[self._caution(estimates)] if self.question.several else [],
        )

    def _caution(self, estimates: dict[PartName, Estimate]) -> str:
        of = self.question.part
        model, human = (estimates[of("mentions", side=side)].value for side in SIDES)
        return (
            f"A→T: captions name {model:.2f} tasks an image, labels hold {human:.2f}; rare tasks "
            "are easy to guess, so a captioner that says less scores higher"
        )


def _absent(question: Question, seen: Seen, n_seeds: int) -> Score:
    """A headline without a value, and why; nothing was trained for it."""
    nan = float("nan")
    estimate = Estimate(nan, nan, nan, nan, nan, nan, n_seeds)
    arrow = {"a_to_t": "A→T", "t_to_a": "T→A"}[question.name]
    return Score(
        parts={question.name: _part(question.part(), estimate, question, seen)},
        notes=[f"{arrow} cannot be scored: {question.lacking}"],
    )


_UNITS = {"quality": "quality", "mentions": "per image"}


def _part(name: PartName, estimate: Estimate, question: Question, seen: Seen) -> Part:
    images = np.zeros(len(seen.corpus), bool)
    images[question.images] = True
    return Part(
        estimate=estimate,
        unit=_UNITS.get(name.what, "fraction"),
        n_images=len(question.images),
        coverage=float(len(question.images) / seen.labelled.sum()),
        neutral_rate=seen.neutral_rate(name.side or "model", images),
    )


def _written(vectors: Sequence[Sequence[str]], rows: IntArray) -> Captions:
    """Label vectors as captions, one word a label that is set."""
    texts = [" ".join(name.replace(" ", "_") for name in vector) for vector in vectors]
    return Captions.from_texts(texts, rows.tolist())


def _indicators(counts: FloatArray) -> IntArray:
    """1 where something was counted."""
    return (counts > 0).astype(np.int64)
