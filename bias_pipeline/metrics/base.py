"""What every metric is and returns."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import ClassVar, Self

from bias_pipeline.array_types import BoolArray
from bias_pipeline.corpus.attribute import Attribute, TaskVocabulary
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.corpus.split import Split, SplitRule
from bias_pipeline.declared import Configurable
from bias_pipeline.errors import UsageError
from bias_pipeline.metrics.references import Reference as Reference
from bias_pipeline.metrics.value_names import HEADLINES as HEADLINES
from bias_pipeline.stats.bootstrap import Bootstrap, Estimate

_NO_NUMBERS = ("draws", "unit", "range", "neutral")  # fields of a number
_ROUNDING = 1e-6  # by which a value may lie outside its range

# What metrics ask of a captioner, in the order in which an audit answers.
QUESTIONS: Mapping[str, str] = {
    "leakage": "Does it leak the group?",
    "misgendering": "Does it name the wrong group?",
    "describing": "Does it describe the groups differently?",
    "assuming": "Does it assume what nobody can see?",
    "tasks": "Does it link objects and activities to groups?",
    "inventing": "Does it invent objects for one group?",
    "changing": "Does the caption change with the group?",
    "mentions": "How often does it name each group?",
    "declining": "Does it decline to describe one group more often?",
    "quality": "How well does it describe?",
    "retrieval": "Whom do queries that name no group retrieve?",
}
NOT_SHOWN = "not beyond chance"  # why a metric that answers its question itself cannot tell
# How a metric works: attackers guess, captions are counted, their language is rated, or queries
# retrieve pictures, whatever captions say.
FAMILIES = ("attack", "counting", "language", "retrieval")
WEIGHTS, PICTURES, SETS = "published weights", "pictures", "sets of pictures"
# What a data set or a machine may lack and a metric cannot do without.
NEEDS = ("human captions", "objects", PICTURES, WEIGHTS, SETS)
# The images of a metric: those of a labelled group, or those whose group annotators could not see.
LABELLED, UNSURE = "labelled", "unsure"
# Properties of captions that move scores even if they are equal for all groups: ``text.speech``.
TRAITS = ("words", "vocabulary", "neutral")


@dataclass(frozen=True)
class EvidenceRule:
    """The part that a conclusion on a headline may rest on.

    Attributes:
        part: its name; may be the headline itself. A part ``NAME:increase`` is ``NAME`` minus
            the annotators' ``NAME:human``.
        follows: those of :data:`TRAITS` that move it too: only captioners that are alike in them
            can be compared. Empty: longer or shorter captions of all groups do not move it.
        named: whether only captions that name one group count; with few such captions no
            conclusion is drawn.
        matched: whether the traits no longer move it after matching (``alignment=matched``).
        also: further parts, each of which may decide too (Holm). A metric that has them compares
            captions of any length.
    """

    part: str
    follows: tuple[str, ...] = ()
    named: bool = False
    matched: bool = False
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExpectedResponse:
    """How a headline responds when a behaviour is planted in a captioner.

    Each is a name of :data:`~bias_pipeline.studies.behaviour.BEHAVIOURS`, and tests check each.

    Attributes:
        moves: behaviours that move it.
        stays: behaviours that do not.
        absent: behaviours after which it cannot be computed.
    """

    moves: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cost:
    """Processor seconds that a cell takes, estimated high so that slower machines finish in time.

    ``benchmarks/audit.py`` measures them, from 5,000 to 1,200,000 captions.

    Attributes:
        per_caption: for each caption, whatever the seeds.
        per_attacked: for each caption and seed, with attackers of ``encoder=ngram``.
        without_objects: the share of it where the data set has no objects.
    """

    per_caption: float = 3e-6
    per_attacked: float = 0.0
    without_objects: float = 1.0


@dataclass(frozen=True)
class MetricInfo:
    """What a reader must know of a metric.

    The eight properties stand in the papers' comparison tables (ImageCaptioner2 Table 1,
    DBAC Table 1).

    Attributes:
        name: as in ``metric=``.
        title: in words.
        version: raise it whenever any value changes; part of a result's identity.
        unit: of the headline.
        range: lowest and highest possible headline.
        neutral: the no-bias value, the headline of a captioner that adds no bias.
        direction: how to read it.
        family: which of :data:`FAMILIES` it belongs to.
        question: which of :data:`QUESTIONS` it answers.
        sources: paper to the section that defines the metric, empty for all; cited in this order.
        ours: what no paper has.
        needs: what of :data:`NEEDS` it requires with its default settings.
        without: what further of :data:`NEEDS` a headline requires, to the part that there is
            without it.
        images: which images it is about, ``LABELLED`` or ``UNSURE``; coverage is a share
            of these.
        cost: how long it takes.
        responses: headline to its response to planted behaviours.
        says: headline to what a number above the no-bias value means, in words that need no paper;
            ``{attribute}`` is replaced by gender, race or another attribute.
        readings: headline to the part that a conclusion on it may rest on. A headline without one
            changes with how much a captioner says, so no conclusion is drawn from it. Each is
            tested on planted captioners (``tests/report/test_readings.py``).
        untested: headlines that human captions also move away from ``neutral``, so they have no
            p against it and no arrow.
        least_seeds: attackers' seeds that a p of the headlines needs. Few seeds often make the
            spread look too small, so the smallest p values come too often.
        source_identifying: separates bias of the data from bias the captioner adds.
        learnable: learns what bias is instead of counting listed words.
        amplification: measures by how much the captioner amplifies.
        full_context: uses whole sentences.
        image: uses the picture too.
        consistent: ranks captioners alike under different attackers, as
            ``experiments/encoder_sensitivity`` found (``tests/test_studies.py``).
        directional: separates attribute-to-task from task-to-attribute.
        language_aware: corrects for how rich the language of annotators and models is.
    """

    name: str
    title: str
    version: int
    unit: str
    range: tuple[float, float]
    neutral: float
    direction: str
    family: str
    question: str
    sources: Mapping[Reference, str] = field(default_factory=dict)
    ours: str = ""
    needs: tuple[str, ...] = ()
    without: Mapping[str, str] = field(default_factory=dict)
    images: str = LABELLED
    cost: Cost = Cost()
    responses: Mapping[str, ExpectedResponse] = field(default_factory=dict)
    says: Mapping[str, str] = field(default_factory=dict)
    readings: Mapping[str, EvidenceRule] = field(default_factory=dict)
    untested: tuple[str, ...] = ()
    least_seeds: int = 2
    source_identifying: bool = False
    learnable: bool = False
    amplification: bool = False
    full_context: bool = False
    image: bool = False
    consistent: bool = False
    directional: bool = False
    language_aware: bool = False

    def __post_init__(self) -> None:
        """Check what conclusions will rest on.

        Raises:
            ValueError: if a question, family, need, kind of images, headline or trait is unknown.
        """
        traits = {trait for reading in self.readings.values() for trait in reading.follows}
        unknown = [
            *({self.question} - set(QUESTIONS)),
            *({self.images} - {LABELLED, UNSURE}),
            *({self.family} - set(FAMILIES)),
            *({*self.needs, *self.without} - set(NEEDS)),
            *({*self.readings, *self.says, *self.responses, *self.untested} - set(HEADLINES)),
            *(traits - set(TRAITS)),
        ]
        if unknown:
            raise ValueError(f"metric {self.name!r}: {unknown[0]!r} is unknown")

    @property
    def reference(self) -> str:
        """Papers with the places in them, and what is ours."""
        cited = [", ".join(filter(None, (s.citation, place))) for s, place in self.sources.items()]
        return "; ".join([*cited, *([f"{self.ours} ours"] if self.ours else [])]) or "ours"


# The range of each unit; a fraction may be the difference of two.
UNIT_RANGES: Mapping[str, tuple[float, float]] = {
    "fraction": (-1.0, 1.0),
    **dict.fromkeys(
        ("ratio", "quality", "per caption", "per image", "per observation"), (0.0, math.inf)
    ),
}


@dataclass(frozen=True, kw_only=True)
class Number(Estimate):
    """One number of a score: the headline, a side, an object, a group.

    Beside value and uncertainty it has:

    Attributes:
        unit: ``fraction`` (printed in per cent), ``ratio``, ...
        n_images: images it rests on.
        coverage: the images that it uses, also to learn from, as a share of all that the metric is
            about (:meth:`Metric.scope`).
        neutral_rate: share of its captions that name no group.
        range: lowest and highest possible value, which also limit its interval; None: for a
            headline the metric's own, else that of its unit.
        neutral: the value that means no bias; None: the metric's own.
    """

    unit: str = "fraction"
    n_images: int
    coverage: float
    neutral_rate: float = math.nan
    range: tuple[float, float] | None = None
    neutral: float | None = None

    def bounds(self, name: str, info: MetricInfo) -> tuple[float, float]:
        """The limits of its interval; a symmetric one could cross the end of the range."""
        if self.range is not None:
            return self.range
        if name in HEADLINES:
            return info.range
        return UNIT_RANGES.get(self.unit, (-math.inf, math.inf))


@dataclass(frozen=True)
class Score:
    """What a metric says of a corpus.

    Attributes:
        parts: name to number; ``score`` is the headline. A
            :class:`~bias_pipeline.metrics.value_names.PartName` also has the name's fields.
        predictions: the attackers' predictions from which the numbers are computed.
        audit: further facts for the manifest, as plain data.
        notes: sentences that are printed next to the numbers.
        tables: name to lines of further tables, such as example captions; a CSV file each.
    """

    parts: Mapping[str, Number]
    predictions: Sequence[Predictions] = ()
    audit: Mapping[str, object] = field(default_factory=dict)
    notes: Sequence[str] = ()
    tables: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)


class Metric(Configurable, ABC):
    """A metric: constructed with all it needs, then computed on any corpus."""

    info: ClassVar[MetricInfo]
    attribute: Attribute
    task: TaskVocabulary  # of metrics that count objects
    exclude_tasks: Sequence[str]  # of the same
    stats: Bootstrap  # of metrics with intervals over images
    split: SplitRule  # of metrics that train attackers

    def scope(self, corpus: Corpus) -> BoolArray:
        """(N,) the images that it is about, whether or not captions describe them."""
        grouping = corpus.groupings[self.attribute.name]
        return grouping.unsure if self.info.images == UNSURE else grouping.labelled

    @property
    def object_tasks(self) -> TaskVocabulary | None:
        """The tasks that it finds among the images' objects; None if it counts no objects."""
        return self.task if getattr(self, "labels", "") == "objects" else None

    @property
    def headline_range(self) -> tuple[float, float]:
        """The lowest and highest possible headline under these settings."""
        return self.info.range

    def require(self) -> None:
        """Check before any data are read that everything else that it needs is installed.

        Raises:
            BiasPipelineError: naming what is missing.
        """
        return

    def without_intervals(self) -> Self:
        """A copy that computes the same headlines, as quickly as it can."""
        quick = copy(self)
        if hasattr(self, "stats"):
            quick.stats = replace(self.stats, resamples=2)
        return quick

    def scored_apart(self, corpus: Corpus) -> Sequence[Corpus]:
        """What is scored by itself, before the mean: each of the captioner's samples."""
        return corpus.each_sample

    def draw_splits(self, corpus: Corpus, seeds: Sequence[int]) -> list[Split]:
        """One split a seed over all labelled images; empty for metrics that train nothing."""
        if not hasattr(self, "split"):
            return []
        return self.split.draw(corpus, self.attribute.name, seeds)

    @abstractmethod
    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        """The score of a corpus.

        Args:
            corpus: raw captions; the metric applies its transforms itself.
            splits: as :meth:`draw_splits` returns them.

        Raises:
            DataError: if the corpus cannot be scored.
        """


def check_score(score: object, metric: Metric) -> None:
    """Refuse a score of another type, without parts, or with numbers that cannot be.

    Raises:
        UsageError: naming the metric, its class, the part and the value.
    """
    where = f"metric {metric.info.name!r} ({type(metric).__module__}.{type(metric).__name__})"
    if not isinstance(score, Score):
        raise UsageError(f"{where}: compute returns {score!r}; it must return a Score")
    if not score.parts:
        raise UsageError(f"{where}: its score has no part; what is undefined is a part that is NaN")
    for name, part in score.parts.items():
        for what in [column.name for column in fields(part) if column.name not in _NO_NUMBERS]:
            value = getattr(part, what)
            if not isinstance(value, Real):
                raise UsageError(
                    f"{where}: part {name!r} has {what}={value!r}, which is no number; give a "
                    "float, NaN where it is undefined"
                )
        value, (low, high) = part.value, part.bounds(name, metric.info)
        if value < low - _ROUNDING or value > high + _ROUNDING:  # NaN is neither
            raise UsageError(
                f"{where}: part {name!r} has value={value!r}, outside its range [{low:g}, "
                f"{high:g}]; correct the value, or the range in {_range_of(name, part)}"
            )


def _range_of(name: str, part: Number) -> str:
    """Where the range of a part is declared."""
    if part.range is not None:
        return "Number(range=...)"
    if name in HEADLINES:
        return "MetricInfo(range=...)"
    return f"Number(range=...), which is that of the unit {part.unit!r} if you give none"
