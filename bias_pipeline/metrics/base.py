"""Defines the interface of metrics and the scores that metrics return."""

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

_NO_NUMBERS = ("draws", "unit", "range", "neutral")  # fields of a number that need not be numbers
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
NOT_SHOWN = "not beyond chance"  # a reason why an answer is "cannot tell"
# How a metric works: attackers guess, captions are counted, their language is rated, or queries
# retrieve pictures, whatever captions say.
FAMILIES = ("attack", "counting", "language", "retrieval")
WEIGHTS, PICTURES, SETS = "published weights", "pictures", "sets of pictures"
# What a data set or a machine may lack and a metric cannot do without.
NEEDS = ("human captions", "objects", PICTURES, WEIGHTS, SETS)
# The images of a metric: images with a labelled group, or images whose group annotators could not
# see.
LABELLED, UNSURE = "labelled", "unsure"
# Properties of captions that move scores even if they are equal for all groups: ``text.speech``.
TRAITS = ("words", "vocabulary", "neutral")


@dataclass(frozen=True)
class EvidenceRule:
    """The part that a conclusion on a headline may rest on.

    Attributes:
        part: the name of the part, which may be the headline itself. The part ``NAME:increase`` is
            the captioner's ``NAME`` minus the annotators' ``NAME:human``.
        follows: the :data:`TRAITS` of captions that also change the part. The part can only compare
            captioners that are alike in these traits. If empty, captions that are longer or shorter
            for all groups do not change the part.
        named: whether only captions that name one group count. If there are few such captions, no
            conclusion is drawn.
        matched: whether the traits do not change the part after matching (``alignment=matched``).
        also: names of further parts, each of which may decide a conclusion too (p values are
            corrected by Holm's method). A metric with further parts can compare captions of any
            length.
    """

    part: str
    follows: tuple[str, ...] = ()
    named: bool = False
    matched: bool = False
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExpectedResponse:
    """How a headline changes when a bias or habit (a behaviour) is planted in a captioner.

    :data:`~bias_pipeline.studies.behaviour.BEHAVIOURS` has the behaviours. Tests check each
    response.

    Attributes:
        moves: behaviours that change the headline.
        stays: behaviours that do not change the headline.
        absent: behaviours after which the headline cannot be computed.
    """

    moves: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cost:
    """The processor seconds that a cell (a metric on one corpus) takes.

    ``benchmarks/audit.py`` measured these seconds on 5,000 to 1,200,000 captions.

    Attributes:
        per_caption: seconds for each caption, however many seeds there are.
        per_attacked: seconds for each caption and seed, with attackers of ``encoder=ngram``.
        without_objects: the share of this time that the cell takes if the data set has no objects.
    """

    per_caption: float = 3e-6
    per_attacked: float = 0.0
    without_objects: float = 1.0


@dataclass(frozen=True)
class MetricInfo:
    """The facts on a metric that a reader must know.

    The last eight attributes are properties by which papers compare metrics (ImageCaptioner2 Table
    1, DBAC Table 1).

    Attributes:
        name: the name after ``metric=``.
        title: the name in words.
        version: increase the version whenever a value changes. The version is part of a result's
            identity.
        unit: the unit of the headline.
        range: lowest and highest possible headline.
        neutral: the no-bias value, the headline of a captioner that adds no bias.
        direction: how to read the headline.
        family: the metric's family among :data:`FAMILIES`.
        question: the question among :data:`QUESTIONS` that the metric answers.
        sources: the papers that define the metric, in the order of citation. Each has the section
            with the definition, or an empty text for the whole paper.
        ours: the part of the metric that no paper defines.
        needs: the :data:`NEEDS` of the metric with its default settings.
        without: further :data:`NEEDS` of a headline. Each comes with the part that can be computed
            without it.
        images: the images that the metric is about, ``LABELLED`` or ``UNSURE``. Coverage is a share
            of these images.
        cost: how long a cell takes.
        responses: how each headline responds to planted behaviours.
        says: for each headline, what a number above the no-bias value means, for readers who do not
            know the paper. ``{attribute}`` is replaced by gender, race or another attribute.
        readings: for each headline, the part on which a conclusion may rest. A headline without a
            part changes with how much a captioner writes, so no conclusion is drawn from the
            headline. Each part is tested on planted captioners (``tests/report/test_readings.py``).
        untested: headlines that differ from ``neutral`` even for human captions. So they have no p
            value against ``neutral`` and no arrow.
        least_seeds: how many seeds of attackers a headline needs for a p value. With fewer seeds
            the spread often looks too small, and p values are then too small.
        streams: whether the metric can count captions that do not fit into memory.
        source_identifying: whether it separates bias of the data from bias that the captioner adds.
        learnable: whether it learns what bias is instead of counting listed words.
        amplification: whether it measures by how much the captioner amplifies bias.
        full_context: whether it uses whole sentences.
        image: whether it uses the picture too.
        consistent: whether it ranks captioners alike under different attackers, as
            ``experiments/encoder_sensitivity`` found (``tests/test_studies.py``).
        directional: whether it separates attribute-to-task from task-to-attribute.
        language_aware: whether it corrects for how rich the language of annotators and models is.
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
    streams: bool = False
    source_identifying: bool = False
    learnable: bool = False
    amplification: bool = False
    full_context: bool = False
    image: bool = False
    consistent: bool = False
    directional: bool = False
    language_aware: bool = False

    def __post_init__(self) -> None:
        """Check the names of the parts that conclusions will rest on.

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
        """The papers that define the metric, with sections, and the parts that no paper defines."""
        cited = [", ".join(filter(None, (s.citation, place))) for s, place in self.sources.items()]
        return "; ".join([*cited, *([f"{self.ours} ours"] if self.ours else [])]) or "ours"


# The range of each unit. A fraction may be the difference of two shares.
UNIT_RANGES: Mapping[str, tuple[float, float]] = {
    "fraction": (-1.0, 1.0),
    **dict.fromkeys(
        ("ratio", "quality", "per caption", "per image", "per observation"), (0.0, math.inf)
    ),
}


@dataclass(frozen=True, kw_only=True)
class Number(Estimate):
    """One number of a score, such as the headline or the number of one side, object or group.

    Besides its value and uncertainty, a number has:

    Attributes:
        unit: ``fraction`` (printed in per cent), ``ratio``, ...
        n_images: how many images the number is computed from.
        coverage: the share of images that the number uses (also to train attackers), among all
            images that the metric is about (:meth:`Metric.scope`).
        neutral_rate: share of the number's captions that name no group.
        range: lowest and highest possible value, which also limit the interval. If None, a headline
            has the metric's range, and any other number has the range of its unit.
        neutral: the value that means no bias. If None, this is the no-bias value of the metric.
    """

    unit: str = "fraction"
    n_images: int
    coverage: float
    neutral_rate: float = math.nan
    range: tuple[float, float] | None = None
    neutral: float | None = None

    def bounds(self, name: str, info: MetricInfo) -> tuple[float, float]:
        """The range of the part ``name``. A symmetric interval is cut at the ends of the range."""
        if self.range is not None:
            return self.range
        if name in HEADLINES:
            return info.range
        return UNIT_RANGES.get(self.unit, (-math.inf, math.inf))


@dataclass(frozen=True)
class Score:
    """The numbers that a metric computes from a corpus.

    Attributes:
        parts: the numbers by name; ``score`` is the headline. A
            :class:`~bias_pipeline.metrics.value_names.PartName` is a name that consists of fields.
        predictions: predictions of attackers, from which the numbers are computed.
        audit: further facts for the manifest, as plain data.
        notes: sentences that are printed next to the numbers.
        tables: the lines of further tables by name, such as example captions. Each becomes a CSV
            file.
    """

    parts: Mapping[str, Number]
    predictions: Sequence[Predictions] = ()
    audit: Mapping[str, object] = field(default_factory=dict)
    notes: Sequence[str] = ()
    tables: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)


class Metric(Configurable, ABC):
    """A metric that is made with all settings and can then be computed on any corpus."""

    info: ClassVar[MetricInfo]
    attribute: Attribute
    task: TaskVocabulary  # only of metrics that count objects
    exclude_tasks: Sequence[str]  # only of metrics that count objects
    stats: Bootstrap  # only of metrics with intervals over images
    split: SplitRule  # only of metrics that train attackers

    def scope(self, corpus: Corpus) -> BoolArray:
        """(N,) flags: true for images that the metric is about, even if they have no captions."""
        grouping = corpus.groupings[self.attribute.name]
        return grouping.unsure if self.info.images == UNSURE else grouping.labelled

    @property
    def object_tasks(self) -> TaskVocabulary | None:
        """The tasks that the metric finds in images' objects, or None if it counts no objects."""
        return self.task if getattr(self, "labels", "") == "objects" else None

    @property
    def headline_range(self) -> tuple[float, float]:
        """The lowest and highest possible headline under these settings."""
        return self.info.range

    def require(self) -> None:
        """Check, before any data are read, that all needed models and programs are installed.

        Raises:
            BiasPipelineError: naming what is missing.
        """
        return

    def without_intervals(self) -> Self:
        """A copy that computes the same headlines with almost no resampling."""
        quick = copy(self)
        if hasattr(self, "stats"):
            quick.stats = replace(self.stats, resamples=2)
        return quick

    def scored_apart(self, corpus: Corpus) -> Sequence[Corpus]:
        """The corpora whose scores are averaged, one for each sample of captions."""
        return corpus.each_sample

    def draw_splits(self, corpus: Corpus, seeds: Sequence[int]) -> list[Split]:
        """For each seed, a split of all labelled images. Without training there are no splits."""
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
    """Raise an error if a score is no :class:`Score`, has no part, or has an impossible number.

    Raises:
        UsageError: naming the metric, its class, the part and the value.
    """
    where = f"metric {metric.info.name!r} ({type(metric).__module__}.{type(metric).__name__})"
    if not isinstance(score, Score):
        raise UsageError(f"{where}: compute returns {score!r}; it must return a Score")
    if not score.parts:
        raise UsageError(f"{where}: its score has no part; give an undefined score a part of NaN")
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
    """A phrase that tells where the user can change the range of a part."""
    if part.range is not None:
        return "Number(range=...)"
    if name in HEADLINES:
        return "MetricInfo(range=...)"
    return f"Number(range=...); without it, the unit {part.unit!r} decides"
