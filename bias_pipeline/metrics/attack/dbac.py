"""DBAC measures bias amplification from attribute to task and from task to attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from bias_pipeline.attack.probe import Probe
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.corpus.split import Split, SplitRule
from bias_pipeline.declared import Count, NotNegative
from bias_pipeline.errors import NotApplicableError, UsageError
from bias_pipeline.metrics.attack.attack_runner import over_alternatives
from bias_pipeline.metrics.attack.dbac_direction import DBACSettings, Direction, DirectionAttackers
from bias_pipeline.metrics.attack.dbac_scorer import DirectionScorer
from bias_pipeline.metrics.attack.extra_parts import (
    at_equal_speech,
    one_person_as_captioner,
    score_of_people,
)
from bias_pipeline.metrics.attack.gold_pairs import PairsUnderBothLabels, guesses_of
from bias_pipeline.metrics.base import (
    Cost,
    EvidenceRule,
    ExpectedResponse,
    Metric,
    MetricInfo,
    Score,
)
from bias_pipeline.metrics.corpus_view import CorpusView
from bias_pipeline.metrics.counting.base import check_excluded
from bias_pipeline.metrics.counting.gold import check_drawn_at_random
from bias_pipeline.metrics.functional import dbac
from bias_pipeline.metrics.gold import (
    CorrectableByGold,
    Correction,
    GoldSample,
    attackers_note,
    check_cross_fitted,
    join_corrections,
    one_step_correction,
)
from bias_pipeline.metrics.references import NAIR_2025
from bias_pipeline.metrics.value_names import A_TO_T, DIRECTIONS, PartName
from bias_pipeline.stats.bootstrap import Bootstrap
from bias_pipeline.stats.scoring import Scoring
from bias_pipeline.text.matched import MatchedAlignment
from bias_pipeline.text.transform import Transform, alternatives

Rare = Literal["merge", "drop"]
_PEOPLE = "people:"  # before the names of predictions with an annotator as the captioner
# Aggregates in which rare kinds of captions count as much as frequent ones
_OF_RARE = {"per_pair": "rare pairs", dbac.IMAGES: "rare sets of objects"}


@dataclass(eq=False)
class DBAC(Metric, CorrectableByGold):
    """Directional Bias Amplification in Captioning (eq. 5 to 8); see docs/dbac.md.

    For ``a_to_t``, attackers guess the image's group from captions whose group words are masked.
    For ``t_to_a``, attackers guess the image's objects from captions whose object words are masked.
    Omega is the attackers' quality times P(other) / P(given). "Given" means what attackers guess,
    and "other" means what captions name. The score is the difference between the captioner's and
    the annotators' omegas, divided by their sum.

    * ``<direction>:counts``, ``:shared``, ``:none``: the score under each choice of P(other) and
      P(given). ``:priors``: the score without the attackers' quality.
    * ``<direction>:quality:*``, ``:prior:*``, ``:mentions:*``: the factors of the score.
    * ``<direction>:<given>:<other>``: the score of one pair. For several attributes,
      ``:group:NAME`` and ``:gap`` compare groups.
    * ``a_to_t:learning:*``: the score if attackers learn from fewer images.

    Images that only the captioner or only annotators describe are left out.
    """

    info: ClassVar[MetricInfo] = MetricInfo(
        name="dbac",
        title="Directional Bias Amplification in Captioning",
        version=6,
        unit="fraction",
        range=(-1.0, 1.0),
        neutral=0.0,
        direction="lower is fairer; above 0, the captioner amplifies bias in that direction",
        family="attack",
        question="tasks",
        sources={NAIR_2025: "eq. 5-8"},
        needs=("human captions",),
        without={"objects": A_TO_T},
        cost=Cost(per_caption=0.0, per_attacked=1e-4, without_objects=0.2),
        responses={
            "a_to_t": ExpectedResponse(
                moves=("word order", "unlisted word", "object follows group"),
                stays=("tire and diaper", "biased annotators"),
            )
        },
        says={
            "a_to_t": "tasks depend more on the {attribute} than in human captions",
            "t_to_a": "the {attribute} depends more on tasks than in human captions",
        },
        readings={
            name: EvidenceRule(
                PartName("shared", direction=name),
                follows=("words", "vocabulary"),
                matched=name == "a_to_t",  # a small vocabulary still moves T→A there
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

    attribute: Attribute  # its groups are A
    task: TaskVocabulary  # its tasks are T
    a_to_t: Sequence[Transform]  # transforms before the attackers of A→T
    t_to_a: Sequence[Transform]  # transforms before the attackers of T→A
    probe: Probe  # trains the attackers
    split: SplitRule  # how splits are drawn
    scoring: Scoring  # the attackers' quality Q, above 0 and larger for better
    stats: Bootstrap  # how intervals are made
    # See `dbac_score`; `images`: as the authors' code, with `prior=object_set`
    aggregate: dbac.Aggregate | Literal["images"] = "weighted"
    # See `dbac_score`. `labels`: for `t_to_a`, P(group), the supported groups and the weights of
    # pairs come from the images' labels on both sides, so that groups count that captions hardly
    # name, such as races (`a_to_t` is as under `counts`). `object_set`: the frequency of the
    # exact set of objects that a caption names, see `dbac_object_sets`
    prior: dbac.Prior | Literal["labels", "object_set"] = "counts"
    positions: Count = 5  # how many human captions of an image are used
    # The share of human captions that must name a task; for `t_to_a`, of images that must
    # contain an object and of human captions that must name a group. Ours. It never depends on
    # the captioner; a number from 1 on counts images instead, see `least_share`
    min_support: NotNegative = 0.005
    # What happens to rarer tasks: `merge` makes one task of them all, so that the exact limit
    # hardly matters (ours); `drop` leaves them out
    rare: Rare = "merge"
    exclude_tasks: Sequence[str] = ("person",)  # tasks left out; every image shows a person

    def __post_init__(self) -> None:
        check_excluded(self.exclude_tasks, self.task)
        self.split.check_trains()
        if (self.prior == dbac.OBJECT_SET) != (self.aggregate == dbac.IMAGES):
            raise UsageError(
                f"metric.prior={self.prior} with metric.aggregate={self.aggregate}: sets of "
                "objects are averaged over images alone; set metric.prior=object_set and "
                "metric.aggregate=images, or neither"
            )

    @property
    def settings(self) -> DBACSettings:
        return DBACSettings(
            attribute=self.attribute,
            transforms={"a_to_t": self.a_to_t, "t_to_a": [*map(_all_words, self.t_to_a)]},
            probe=self.probe,
            scoring=self.scoring,
            stats=self.stats,
            aggregate=self.aggregate,
            prior=self.prior,
            positions=self.positions,
            min_support=self.min_support,
            rare=self.rare,
        )

    @property
    def object_tasks(self) -> TaskVocabulary:
        """All tasks, since the attackers of T→A guess which objects are in an image."""
        return self.task

    def see(self, corpus: Corpus) -> CorpusView:
        return CorpusView(corpus, self.attribute, None, self.task, self.exclude_tasks)

    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        view = self.see(corpus)
        scores = [
            self._score(name, view, splits)
            for name in DIRECTIONS
            if name == "a_to_t" or view.has_objects
        ]
        notes = [note for one in scores for note in one.notes]
        if len(scores) < len(DIRECTIONS):
            notes.append("the data set has no objects, so T→A cannot be scored")
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

    def correct(self, score: Score, corpus: Corpus, gold: GoldLabels) -> Correction:
        """Add to each number the change that gold images' true labels would cause (first order)."""
        self._check_correctable(score)
        check_drawn_at_random(CorpusView(corpus, self.attribute, None), gold)
        captioners = {"": corpus}
        if any(guesses.name.startswith(_PEOPLE) for guesses in score.predictions):
            people = one_person_as_captioner(corpus, self.attribute.name)
            assert people is not None
            captioners[_PEOPLE] = people
        corrections = {
            (whose, name): self._correct(name, score, captions, gold, whose)
            for whose, captions in captioners.items()
            for name in DIRECTIONS
            if guesses_of(name, score.predictions, whose)["model"]
        }
        n_gold = {name: one.n_gold for (whose, name), one in corrections.items() if not whose}
        notes = [attackers_note(self.attribute.name)]
        if len(set(n_gold.values())) > 1:
            notes.append(f"T→A rests on {n_gold['t_to_a']} gold labels, of images with objects")
        without_labels = [
            name
            for name in score.parts
            if isinstance(name, PartName)
            and (name.what == "mentions" or name.detail in ("reach", "retained"))
        ]
        return join_corrections(corrections.values(), notes, without_labels)

    def _check_correctable(self, score: Score) -> None:
        """Raise an error with the reason if gold labels cannot correct the score."""
        if self.aggregate in _OF_RARE:
            raise NotApplicableError(
                f"gold labels do not correct {self.info.name} under "
                f"metric.aggregate={self.aggregate}: {_OF_RARE[self.aggregate]} count as much as "
                "frequent ones, and a few true labels change them more than the correction can "
                "tell; choose metric.aggregate=weighted"
            )
        if any(len(alternatives(each)) > 1 for each in (self.a_to_t, self.t_to_a)):
            raise NotApplicableError(
                f"gold labels correct {self.info.name} under one choice of text and alignment; "
                "score each choice by itself"
            )
        check_cross_fitted(score, self.info.name)

    def _correct(
        self, name: str, score: Score, corpus: Corpus, gold: GoldLabels, whose: str
    ) -> Correction:
        """One direction, after correction.

        If an annotator replaces the captioner, only the printed numbers are corrected.
        """
        settings = self.settings
        (transforms,) = alternatives(settings.transforms[name]).values()
        direction = Direction(
            replace(settings, transforms={name: transforms}), name, self.see(corpus)
        )
        sample = GoldSample.from_rows(direction.images, corpus, gold)
        attackers = DirectionAttackers.from_predictions(
            direction, guesses_of(name, score.predictions, whose)
        )
        both = PairsUnderBothLabels(attackers, sample)
        changes, alone = both.changes(), both.estimates_of_gold(self.stats)
        if whose:
            names = {
                direction.part(): direction.part("matched", detail="people"),
                direction.part("shared"): direction.part("shared", detail="matched:people"),
            }
            changes = {to: changes[of] for of, to in names.items()}
            alone = {to: alone[of] for of, to in names.items()}
        return one_step_correction(self, score, changes, alone, sample)

    def _score(self, direction: str, view: CorpusView, splits: Sequence[Split]) -> Score:
        shared = self.settings

        def score_under(transforms: Sequence[Transform]) -> Score:
            settings = replace(shared, transforms={direction: transforms})

            def scorer(of: CorpusView) -> DirectionScorer:
                return DirectionScorer(Direction(settings, direction, of), splits)

            findings = scorer(view)
            if not at_equal_speech(transforms):
                return findings.with_learning_curve(findings.score())
            people = score_of_people(
                view.corpus, self.attribute.name, lambda corpus: scorer(self.see(corpus)).score()
            )
            return findings.at_equal_speech(people)

        return over_alternatives(shared.transforms[direction], shared.stats.level, score_under)


def _all_words(transform: Transform) -> Transform:
    """The transform for attackers that guess tasks; style matching then includes group words."""
    return transform.with_all_words() if isinstance(transform, MatchedAlignment) else transform
