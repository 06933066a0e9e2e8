"""DBAC: bias amplification in both directions, attribute to task and task to attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self

from bias_pipeline.attackers.probe import Probe
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.split import Split, SplitRule
from bias_pipeline.declared import Count, NotNegative
from bias_pipeline.metrics.attack.attack_runner import over_alternatives
from bias_pipeline.metrics.attack.dbac_direction import DBACSettings, Direction
from bias_pipeline.metrics.attack.dbac_scorer import DirectionScorer
from bias_pipeline.metrics.attack.extra_parts import at_equal_speech, one_person_as_captioner
from bias_pipeline.metrics.base import (
    Cost,
    EvidenceRule,
    ExpectedResponse,
    Metric,
    MetricInfo,
    Score,
)
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import choice
from bias_pipeline.metrics.functional import dbac
from bias_pipeline.metrics.references import NAIR_2025
from bias_pipeline.metrics.value_names import DIRECTIONS, PartName
from bias_pipeline.scoring import Scoring
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.text.matched import MatchedAlignment
from bias_pipeline.text.transform import Transform

Rare = Literal["merge", "drop"]


class DBAC(Metric):
    """Directional Bias Amplification in Captioning (eq. 5 to 8), as docs/dbac.md reads it.

    ``a_to_t``: attackers guess the group from captions whose group words are masked; ``t_to_a``:
    attackers guess the image's objects from captions whose object words are masked. A side's
    omega is the attackers' quality times P(other) / P(given); the score is the normalised
    difference of the sides, in (-1, 1), 0 for a captioner that adds no bias. Each headline also has
    the qualities, the priors, the score under all three priors, and ``<direction>:priors``, the
    score of the priors alone; ``<direction>:<given>:<other>`` is the score of a pair.
    ``<direction>:learning:all``, ``:half`` and ``:quarter`` are the scores of attackers that learn
    from a share of the images, of the first seed and human caption, without intervals; attackers
    that are networks have none.

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
        aggregate: see :func:`bias_pipeline.metrics.functional.dbac.dbac_score`.
        prior: see there; ``labels``: for ``t_to_a``, P(group), the supported groups and the weights
            of pairs are those of the images' labels on both sides, so that groups count which
            captions hardly name, such as those of race (``a_to_t`` is as under ``counts``).
        positions: how many human captions of an image are used.
        min_support: the share of people's captions that must name a task; for ``t_to_a``, of
            images that must contain an object and of people's captions that must name a group.
            Ours. It never depends on the captioner; a number from 1 on counts images instead, see
            :func:`~bias_pipeline.metrics.counting.base.least_share`.
        rare: what happens to rarer tasks: ``merge`` makes one task of them all, so that the exact
            limit hardly matters (ours); ``drop`` leaves them out.
        exclude_tasks: tasks left out; every image shows a person.

    Raises:
        UsageError: on an unknown excluded task.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="dbac",
        title="Directional Bias Amplification in Captioning",
        version=4,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0 the captioner amplifies in that direction",
        family="attack",
        question="tasks",
        sources={NAIR_2025: "eq. 5-8"},
        needs=("human captions",),
        cost=Cost(per_caption=0.0, per_attacked=3e-4, without_objects=0.2),
        responses={
            "a_to_t": ExpectedResponse(
                moves=("word order", "unlisted word", "object follows group"),
                stays=("tire and diaper", "biased people"),
            )
        },
        says={
            "a_to_t": "{attribute} reveals more of the tasks than in people's captions",
            "t_to_a": "tasks reveal more of the {attribute} than in people's captions",
        },
        readings={
            name: EvidenceRule(
                PartName("shared", direction=name),
                follows=("words", "vocabulary"),
                matched=name == "a_to_t",  # a small vocabulary still moves T->A there
            )
            for name in DIRECTIONS
        },
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
        aggregate: dbac.Aggregate = "weighted",
        prior: dbac.Prior | Literal["labels"] = "counts",
        positions: Count = 5,
        min_support: NotNegative = 0.005,
        rare: Rare = "merge",
        exclude_tasks: Sequence[str] = ("person",),
    ) -> None:
        for name in exclude_tasks:
            choice("exclude_tasks", name, task.tasks)
        self.attribute = attribute
        self.task = task
        split.check_trains()
        self.split, self.stats = split, stats
        self.settings = DBACSettings(
            attribute=attribute,
            transforms={"a_to_t": tuple(a_to_t), "t_to_a": tuple(map(_all_words, t_to_a))},
            probe=probe,
            scoring=scoring,
            stats=stats,
            aggregate=aggregate,
            prior=prior,
            positions=positions,
            min_support=min_support,
            rare=rare,
        )
        self.exclude_tasks = tuple(exclude_tasks)

    def without_intervals(self) -> Self:
        """See the base."""
        quick = super().without_intervals()
        quick.settings = replace(self.settings, stats=quick.stats)
        return quick

    def see(self, corpus: Corpus) -> CorpusView:
        """The groups and tasks that the metric reads."""
        return CorpusView(corpus, self.attribute, None, self.task, self.exclude_tasks)

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        """See :class:`DBAC`."""
        view = self.see(corpus)
        scores = [
            self._score(name, view, splits)
            for name in DIRECTIONS
            if name == "a_to_t" or view.has_objects
        ]
        notes = [note for one in scores for note in one.notes]
        if len(scores) < len(DIRECTIONS):
            notes.append("the data set has no objects, so T->A cannot be scored")
        return Score(
            parts={name: part for one in scores for name, part in one.parts.items()},
            predictions=[p for one in scores for p in one.predictions],
            audit={name: value for one in scores for name, value in one.audit.items()},
            notes=list(dict.fromkeys([*corpus.notes, *notes])),
            tables={
                name: [line for one in scores for line in one.tables[name]]
                for name in scores[0].tables
            },
        )

    def _score(self, direction: str, view: CorpusView, splits: Sequence[Split]) -> Score:
        """The score of one direction."""

        def under(transforms: Sequence[Transform]) -> Score:
            settings = replace(self.settings, transforms={direction: transforms})
            findings = DirectionScorer(Direction(settings, direction, view), splits)
            if not at_equal_speech(transforms):
                return findings.with_learning_curve(findings.score())
            people = one_person_as_captioner(view.corpus, self.attribute.name)
            if people is None:
                return findings.at_equal_speech(None)
            return findings.at_equal_speech(
                DirectionScorer(Direction(settings, direction, self.see(people)), splits)
            )

        settings_of = self.settings
        return over_alternatives(settings_of.transforms[direction], settings_of.stats.level, under)


def _all_words(transform: Transform) -> Transform:
    """For attackers that guess tasks: equal speech also matches words that name groups."""
    return transform.with_all_words() if isinstance(transform, MatchedAlignment) else transform
