"""DPA measures whether captions make tasks and groups easier to guess than labels do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from bias_pipeline.array_types import BoolArray, IntArray
from bias_pipeline.attack.probe import Probe
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.captions import Captions
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.corpus.split import (
    SMALLEST_GROUP,
    Split,
    SplitRule,
    seeds_in,
)
from bias_pipeline.declared import NotNegative
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.metrics.attack.dpa_direction import (
    DPASettings,
    PredictionTask,
    VectorAttackers,
    number_of,
)
from bias_pipeline.metrics.attack.gold_vectors import VectorsUnderBothLabels
from bias_pipeline.metrics.base import (
    Cost,
    EvidenceRule,
    ExpectedResponse,
    Metric,
    MetricInfo,
    Score,
)
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import check_excluded, indicators, least_share
from bias_pipeline.metrics.counting.gold import check_drawn_at_random
from bias_pipeline.metrics.functional.dpa import Equalise
from bias_pipeline.metrics.gold import (
    CorrectableByGold,
    Correction,
    GoldSample,
    attackers_note,
    check_cross_fitted,
    join_corrections,
    one_step_correction,
)
from bias_pipeline.metrics.references import TOKAS_2024
from bias_pipeline.metrics.value_names import T_TO_A
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate
from bias_pipeline.stats.scoring import Scoring


def common_groups(labels: IntArray, predicted: IntArray, n_groups: int) -> IntArray:
    """The groups that have enough images by label and by caption; images of others do not count."""
    groups = np.arange(n_groups)
    while True:
        both = np.isin(labels, groups) & np.isin(predicted, groups)
        sizes = [np.bincount(classes[both], minlength=n_groups) for classes in (labels, predicted)]
        frequent = np.flatnonzero(np.min(sizes, axis=0) >= SMALLEST_GROUP)
        if len(frequent) == len(groups):
            return groups
        groups = frequent


def write_labels(vectors: Sequence[Sequence[str]], rows: IntArray) -> Captions:
    """Label vectors written as captions, with one word for each label that is 1."""
    texts = [" ".join(name.replace(" ", "_") for name in vector) for vector in vectors]
    return Captions.from_texts(texts, rows.tolist())


Labels = Literal["objects", "union", "first"]


@dataclass(eq=False)
class DPA(Metric, CorrectableByGold):
    """Directional predictability amplification (Tokas et al. 2024).

    For ``a_to_t``, attackers guess tasks from the labelled group. For ``t_to_a``, attackers guess
    the group from the labelled tasks. Psi_M says how well attackers guess what captions name. Psi_D
    says how well attackers guess labels with as many random errors as captions have. The score is
    (Psi_M - Psi_D) / (Psi_M + Psi_D), in (-1, 1).

    ``a_to_t:object:NAME`` is the score of one task. ``a_to_t:accuracy`` is the accuracy of the
    labels after random errors. ``<direction>:learning:*`` is the score if attackers learn from
    fewer images. ``t_to_a`` uses only images whose caption names exactly one group. ``a_to_t`` is
    above 0 for human captions too, so it has no p value.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="dpa",
        title="Directional predictability amplification (DPA)",
        version=5,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0, the captioner amplifies bias in that direction",
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
        view = self._see(corpus)
        scores = [
            _absent(question, view, len(seeds_in(splits)))
            if question.lacking
            else VectorAttackers(self._settings, question, view, splits).score()
            for question in self._questions(view)
        ]
        return Score(
            parts={name: part for one in scores for name, part in one.parts.items()},
            predictions=[p for one in scores for p in one.predictions],
            audit={name: value for one in scores for name, value in one.audit.items()},
            notes=[*corpus.notes, *(note for one in scores for note in one.notes)],
        )

    def correct(self, score: Score, corpus: Corpus, gold: GoldLabels) -> Correction:
        """Add to each number the change that gold images' true labels would cause (first order)."""
        if self.equalise == "exchange":
            raise NotApplicableError(
                "gold labels do not correct dpa under metric.equalise=exchange: how labels are "
                "exchanged depends on all of them; choose metric.equalise=flip"
            )
        check_cross_fitted(score, self.info.name)
        view = self._see(corpus)
        check_drawn_at_random(view, gold)
        known = {guesses.name: guesses for guesses in score.predictions}
        corrections, notes = [], [attackers_note(self.attribute.name)]
        for question in self._questions(view):
            if question.lacking:
                continue
            sides = {side: known[f"{question.name}:{side}"] for side in ("model", "human")}
            attackers = VectorAttackers.from_predictions(self._settings, question, view, sides)
            sample = GoldSample.from_rows(question.images, corpus, gold)
            both = VectorsUnderBothLabels(attackers, sample)
            changes, alone = both.changes(), both.estimates_of_gold(self.stats)
            corrections.append(one_step_correction(self, score, changes, alone, sample))
            if question.name == T_TO_A:
                notes.append(
                    f"T→A rests on {len(sample.rows)} gold labels, of images whose captions name "
                    "one group; its attackers learnt machine labels on one side only, so T→A is a "
                    "little too high"
                )
        return join_corrections(corrections, notes)

    @property
    def _settings(self) -> DPASettings:
        return DPASettings(self.probe, self.scoring, self.stats, self.equalise)

    def _see(self, corpus: Corpus) -> CorpusView:
        return CorpusView(corpus, self.attribute, self.words, self.task, self.exclude_tasks)

    def _questions(self, view: CorpusView) -> tuple[PredictionTask, PredictionTask]:
        """What the attackers of A→T and of T→A guess."""
        view.check_captioned()
        labels = self._labels(view)
        known = view.objects_known if self.labels == "objects" else view.has("human")
        usable = view.labelled & view.has("model") & known
        if not usable.any():
            raise DataError(f"no image has a group, a caption and tasks by labels={self.labels}")
        return self._a_to_t(view, labels, usable), self._t_to_a(view, labels, usable)

    def _labels(self, view: CorpusView) -> IntArray:
        """(N, T): the labelled tasks of each image."""
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


def _absent(question: PredictionTask, view: CorpusView, n_seeds: int) -> Score:
    """A headline without a value, and the reason why no attacker was trained."""
    estimate = Estimate(float("nan"), n_seeds=n_seeds)
    arrow = {"a_to_t": "A→T", "t_to_a": "T→A"}[question.name]
    return Score(
        parts={question.name: number_of(question.part(), estimate, question, view)},
        notes=[f"{arrow} cannot be scored: {question.lacking}"],
    )
