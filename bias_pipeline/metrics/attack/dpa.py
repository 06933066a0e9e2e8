"""DPA: do captions make tasks and groups easier to guess from each other than labels do?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from bias_pipeline.array_types import BoolArray, Float64Array, IntArray
from bias_pipeline.attack.probe import Probe
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.predictions import LabelledCaptions, Predictions
from bias_pipeline.corpus.split import (
    SMALLEST_GROUP,
    Split,
    SplitRule,
    seeds_in,
    with_fewer_images,
)
from bias_pipeline.declared import NotNegative
from bias_pipeline.errors import DataError
from bias_pipeline.io.hashing import hash_ids, random_words
from bias_pipeline.metrics.attack.attack_runner import check_tested
from bias_pipeline.metrics.attack.extra_parts import (
    error_of_first_seed,
    learning_note,
    learning_parts,
    smaller_shares,
)
from bias_pipeline.metrics.attack.guess_sums import GuessSums
from bias_pipeline.metrics.base import (
    Cost,
    EvidenceRule,
    ExpectedResponse,
    Metric,
    MetricInfo,
    Number,
    Score,
)
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import check_excluded, indicators, least_share
from bias_pipeline.metrics.functional.attack import normalised_difference
from bias_pipeline.metrics.functional.dpa import EQUALISE, Equalise
from bias_pipeline.metrics.references import TOKAS_2024
from bias_pipeline.metrics.value_names import PartName
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate, drop_void_interval
from bias_pipeline.stats.scoring import Scoring


@dataclass(frozen=True, eq=False)
class PredictionTask:
    """What attackers of one direction guess, on M images."""

    name: str  # the direction
    inputs: Captions  # M label vectors written as words
    labels: IntArray  # (M,) true classes, or (M, T) 0/1 for several tasks
    predicted: IntArray  # classes by the model's captions, in the same shape
    classes: tuple[str, ...]  # names of the classes or tasks
    lacking: str = ""  # why the direction cannot be scored, empty if it can
    note: str = ""  # a sentence for readers, empty if there is none

    def part(self, what: str = "", **fields: str) -> PartName:
        """The name of a number of this direction."""
        return PartName(what, direction=self.name, **fields)

    @property
    def images(self) -> IntArray:
        """(M,) rows of the corpus."""
        return self.inputs.image_rows

    @property
    def has_several(self) -> bool:
        """Whether there are several tasks rather than one variable."""
        return self.labels.ndim == 2


def common_groups(labels: IntArray, predicted: IntArray, n_groups: int) -> IntArray:
    """Groups with enough images by labels and by captions; only images of such groups count."""
    groups = np.arange(n_groups)
    while True:
        both = np.isin(labels, groups) & np.isin(predicted, groups)
        sizes = [np.bincount(classes[both], minlength=n_groups) for classes in (labels, predicted)]
        frequent = np.flatnonzero(np.min(sizes, axis=0) >= SMALLEST_GROUP)
        if len(frequent) == len(groups):
            return groups
        groups = frequent


def write_labels(vectors: Sequence[Sequence[str]], rows: IntArray) -> Captions:
    """Label vectors as captions, with one word for each label that is set."""
    texts = [" ".join(name.replace(" ", "_") for name in vector) for vector in vectors]
    return Captions.from_texts(texts, rows.tolist())


Labels = Literal["objects", "union", "first"]
_UNITS = {"quality": "quality", "mentions": "per image"}
_COUNTED = ("accuracy", "mentions")  # numbers without attackers


@dataclass(eq=False)
class DPA(Metric):
    """Directional predictability amplification (Tokas et al. 2024), in both directions.

    ``a_to_t``: attackers guess tasks from the labelled group. ``t_to_a``: they guess the group from
    the labelled tasks. One side is what the model's caption names (Psi_M), the other side is labels
    with equally many random errors (Psi_D). The score is (Psi_M - Psi_D) / (Psi_M + Psi_D), in (-1,
    1).

    ``a_to_t:object:NAME`` is the score of one task, ``a_to_t:accuracy`` the accuracy that labels
    were brought to, ``<direction>:learning:*`` the score of attackers that learn from fewer images.
    ``t_to_a`` uses the images whose caption names exactly one group. ``a_to_t`` is above 0 for
    human captions too and has no p.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="dpa",
        title="Directional predictability amplification (DPA)",
        version=5,
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
            "a_to_t": ExpectedResponse(
                moves=("object follows group",),
                stays=(
                    "negation",
                    "synonym",
                    "word order",
                    "unlisted word",
                    "group follows object",
                    "biased annotators",
                ),
            ),
            "t_to_a": ExpectedResponse(
                moves=("group follows object",),
                stays=("object follows group",),
                absent=("names no group",),
            ),
        },
        says={
            "a_to_t": "the {attribute} predicts the tasks in captions better than the labelled "
            "tasks",
            "t_to_a": "tasks predict the {attribute} in captions better than the labelled "
            "{attribute}",
        },
        readings={"t_to_a": EvidenceRule("t_to_a", named=True)},
        untested=("a_to_t",),
        source_identifying=True,
        learnable=True,
        amplification=True,
        directional=True,
    )

    attribute: Attribute  # its groups are A
    task: TaskVocabulary  # its tasks are T
    probe: Probe  # trains the attackers
    split: SplitRule  # how splits are drawn
    scoring: Scoring  # the attackers' quality Q, above 0 and larger for better
    stats: Bootstrap  # how intervals are made
    # Where the labelled tasks come from: `objects` in the image, the `union` of what its human
    # captions name, or what the `first` of them names
    labels: Labels = "objects"
    # How labels get as many errors as the model: `flip` (as published), `exchange` (between images,
    # ours) or `none`. Symmetric flips make rare tasks more frequent, so under `flip` a captioner
    # that names tasks as annotators do scores above 0; `exchange` does not change their frequency
    equalise: Equalise = "flip"
    # The share of images whose labels must contain a task for it to count, whatever the captioner
    # names; ours. See `least_share`
    min_support: NotNegative = 0.005
    # A preset of the attribute whose words name the groups; None: its own words
    words: str | None = None
    exclude_tasks: Sequence[str] = ("person",)  # tasks left out; every image shows a person

    def __post_init__(self) -> None:
        check_excluded(self.exclude_tasks, self.task)
        self.split.check_trains()

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        view = CorpusView(corpus, self.attribute, self.words, self.task, self.exclude_tasks)
        view.check_captioned()
        labels = self._labels(view)
        known = view.objects_known if self.labels == "objects" else view.has("human")
        usable = view.labelled & view.has("model") & known
        if not usable.any():
            raise DataError(f"no image has a group, a caption and tasks by labels={self.labels}")
        questions = self._a_to_t(view, labels, usable), self._t_to_a(view, labels, usable)
        scores = [
            _absent(question, view, len(seeds_in(splits)))
            if question.lacking
            else _Direction(self, question, view, splits).score()
            for question in questions
        ]
        return Score(
            parts={name: part for one in scores for name, part in one.parts.items()},
            predictions=[p for one in scores for p in one.predictions],
            audit={name: value for one in scores for name, value in one.audit.items()},
            notes=[*corpus.notes, *(note for one in scores for note in one.notes)],
        )

    def _labels(self, view: CorpusView) -> IntArray:
        """(N, T) tasks of each image by label."""
        if self.labels == "objects":
            return indicators(view.task_labels.toarray())
        mentions = view.mentions("human")
        if self.labels == "union":
            return indicators(view.by_image("human", mentions).toarray())
        first = np.flatnonzero(view.corpus.human.positions == 0)
        labels = np.zeros(view.shape, np.int64)
        labels[view.images("human")[first]] = indicators(mentions[first].toarray())
        return labels

    def _a_to_t(self, view: CorpusView, labels: IntArray, usable: BoolArray) -> PredictionTask:
        rows = np.flatnonzero(usable)
        named = indicators(view.by_image("model", view.mentions("model")).toarray())
        least = least_share(self.min_support, len(rows))
        supported = np.flatnonzero(labels[rows].mean(axis=0) >= least)
        lacking = ""
        if (np.bincount(view.codes[rows]) >= SMALLEST_GROUP).sum() < 2:
            lacking = (
                f"two groups need {SMALLEST_GROUP} images or more that have a caption and tasks by "
                f"labels={self.labels}"
            )
        elif not len(supported):
            lacking = f"no task is in {100 * least:.2g} % of images by label (metric.min_support)"
        return PredictionTask(
            name="a_to_t",
            inputs=write_labels([[view.groups[code]] for code in view.codes[rows]], rows),
            labels=labels[np.ix_(rows, supported)],
            predicted=named[np.ix_(rows, supported)],
            classes=tuple(view.tasks[t] for t in supported),
            lacking=lacking,
        )

    def _t_to_a(self, view: CorpusView, labels: IntArray, usable: BoolArray) -> PredictionTask:
        named = np.full(len(view.corpus), -1)
        named[view.images("model")] = view.named_group("model")
        rows = np.flatnonzero(usable & (named >= 0))
        groups = common_groups(view.codes[rows], named[rows], len(view.groups))
        place = np.full(len(view.groups), -1)
        place[groups] = np.arange(len(groups))
        rows = rows[(place[view.codes[rows]] >= 0) & (place[named[rows]] >= 0)]
        lacking = view.too_few_named("model")
        if not lacking and len(groups) < 2:
            lacking = (
                f"two groups need {SMALLEST_GROUP} images or more whose captions name them alone"
            )
        tasks_of_images = [[view.tasks[t] for t in np.flatnonzero(labels[row])] for row in rows]
        rare = [name for k, name in enumerate(view.groups) if k not in groups]
        return PredictionTask(
            name="t_to_a",
            inputs=write_labels(tasks_of_images, rows),
            labels=place[view.codes[rows]],
            predicted=place[named[rows]],
            classes=tuple(view.groups[k] for k in groups),
            lacking=lacking,
            note=f"T→A leaves out {', '.join(rare)}: captions or labels have each in fewer "
            f"than {SMALLEST_GROUP} images whose caption names one group"
            if rare
            else "",
        )


class _Direction:
    """Predictions in one direction and the numbers computed from them."""

    def __init__(
        self, metric: DPA, question: PredictionTask, view: CorpusView, splits: Sequence[Split]
    ) -> None:
        self.metric, self.question, self.view = metric, question, view
        self.splits, self.seeds = splits, seeds_in(splits)

    @cached_property
    def predictions(self) -> dict[str, Predictions]:
        """The attackers' predictions by side; attackers are trained at the first use."""
        train = self.metric.probe.fit_predict
        model = self._label_inputs("model", self.question.predicted), self.splits
        by_seed = [  # every seed has its own label noise
            (
                self._label_inputs("human", self._noisy(seed)),
                [split for split in self.splits if split.seed == seed],
            )
            for seed in self.seeds
        ]
        for data, splits in (model, *by_seed):
            check_tested(data, splits)
        return {
            "model": train(*model),
            "human": Predictions.of_all_seeds([train(data, splits) for data, splits in by_seed]),
        }

    def _label_inputs(self, side: str, labels: IntArray) -> LabelledCaptions:
        question = self.question
        name = f"{question.name}:{side}"
        return LabelledCaptions(
            name, question.inputs, labels, len(question.classes), question.classes
        )

    def _noisy(self, seed: int) -> IntArray:
        """The labels with the noise of one seed."""
        question = self.question
        equalise = EQUALISE[self.metric.equalise]
        images = self.view.corpus.keys[question.images]
        if not question.has_several:
            noise = random_words("noise", seed, images)
            return equalise(question.labels, question.predicted, len(question.classes), noise)
        columns = [
            equalise(labels, predicted, 2, random_words("noise", seed, images, task))
            for labels, predicted, task in zip(
                question.labels.T, question.predicted.T, hash_ids(question.classes), strict=True
            )
        ]
        return np.stack(columns, axis=1)

    @cached_property
    def _guesses(self) -> dict[str, list[GuessSums]]:
        """The guesses of each seed's attackers, by side."""
        place = np.full(len(self.view.corpus), -1)
        place[self.question.images] = np.arange(len(self.question.images))
        return {
            side: [
                GuessSums.from_guesses(
                    self.metric.scoring, place[images], truth, probs, place.max() + 1
                )
                for images, truth, probs in predictions
            ]
            for side, predictions in self.predictions.items()
        }

    def _quality(self, side: str, weights: Float64Array) -> Float64Array:
        """(B, S, C) quality of each seed's attackers, for each task if there are several."""
        means = [guesses.mean(weights) for guesses in self._guesses[side]]
        return np.stack([self.metric.scoring.link(mean) for mean in means], axis=1)

    def evaluate(self, weights: Float64Array) -> dict[PartName, Float64Array]:
        """All numbers of the direction under weights of the images: (B, S), for counts (B, 1)."""
        question, of = self.question, self.question.part
        model, human = (self._quality(side, weights) for side in ("model", "human"))
        values = {of(): normalised_difference(model.mean(axis=-1), human.mean(axis=-1))}
        values |= {
            of("quality", side="model"): model.mean(axis=-1),
            of("quality", side="human"): human.mean(axis=-1),
            of("accuracy"): self._mean("accuracy", weights),
        }
        if question.has_several:
            scores = normalised_difference(model, human)
            values |= {of(object=t): scores[..., k] for k, t in enumerate(question.classes)}
            for side in SIDES:
                mean = self._mean(side, weights)
                values[of("mentions", side=side)] = len(question.classes) * mean
        return values

    @cached_property
    def _of_images(self) -> dict[str, Float64Array]:
        """(M,) three shares of tasks: named exactly if labelled, named by the model, labelled."""
        labels, named = self.question.labels, self.question.predicted
        values = {"accuracy": labels == named, "model": named, "human": labels}
        return {what: each.reshape(len(each), -1).mean(axis=1) for what, each in values.items()}

    def _mean(self, what: str, weights: Float64Array) -> Float64Array:
        """(B, 1) weighted mean over images and tasks."""
        mean: Float64Array = (weights @ self._of_images[what] / weights.sum(axis=1))[:, None]
        return mean

    def score(self) -> Score:
        keys, of = self.view.corpus.keys[self.question.images], self.question.part()
        estimates = self.metric.stats.estimate_weighted(
            keys,
            self.evaluate,
            trained=lambda name: name.what not in _COUNTED,
            cross_fitted=self.metric.probe.cross_fits(self.splits),
        )
        estimates |= {of: drop_void_interval(estimates[of])}
        parts: dict[str, Number] = {
            n: _part(n, one, self.question, self.view) for n, one in estimates.items()
        }
        curve = self._learning_curve()
        return Score(
            parts={**parts, **learning_parts(curve, self.question.name)},
            predictions=list(self.predictions.values()),
            audit={f"{self.question.name}:classes": list(self.question.classes)},
            notes=[
                *([self._caution(estimates)] if self.question.has_several else []),
                *filter(None, [self.question.note]),
                *learning_note(curve, error_of_first_seed(estimates[of]), self.question.name),
            ],
        )

    def _learning_curve(self) -> dict[str, Number]:
        """Map each share of images to the score of first-seed attackers that learn from it."""
        images = self.question.images
        shares = smaller_shares(self.view.codes[images]) if self.metric.probe.quick else {}
        if not shares:
            return {}
        once, headline = np.ones((1, len(images))), self.question.part()
        values = {"all": self.evaluate(once)[headline][0, 0].item()}
        for name, share in shares.items():
            fewer = with_fewer_images(self.splits, share)
            one = _Direction(self.metric, self.question, self.view, fewer)
            values[name] = one.evaluate(once)[headline].item()
        return {
            name: _part(headline, Estimate(value, n_seeds=1), self.question, self.view)
            for name, value in values.items()
        }

    def _caution(self, estimates: dict[PartName, Estimate]) -> str:
        of = self.question.part
        model, human = (estimates[of("mentions", side=side)].value for side in SIDES)
        return (
            f"A→T: captions name {model:.2f} tasks an image, labels contain {human:.2f}; rare "
            "tasks are easy to guess, so shorter captions score higher"
        )


def _absent(question: PredictionTask, view: CorpusView, n_seeds: int) -> Score:
    """A headline without a value, and the reason; no attacker was trained."""
    estimate = Estimate(float("nan"), n_seeds=n_seeds)
    arrow = {"a_to_t": "A→T", "t_to_a": "T→A"}[question.name]
    return Score(
        parts={question.name: _part(question.part(), estimate, question, view)},
        notes=[f"{arrow} cannot be scored: {question.lacking}"],
    )


def _part(name: PartName, estimate: Estimate, question: PredictionTask, view: CorpusView) -> Number:
    images = np.isin(np.arange(len(view.corpus)), question.images)
    return Number(
        **vars(estimate),
        unit=_UNITS.get(name.what, "fraction"),
        n_images=len(question.images),
        coverage=float(len(question.images) / view.labelled.sum()),
        neutral_rate=view.neutral_rate(name.side or "model", images),
    )
