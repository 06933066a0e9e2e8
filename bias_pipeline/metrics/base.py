"""What every metric is and returns."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus
from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.corpus.split import Split
from bias_pipeline.declared import Configurable
from bias_pipeline.metrics.parts import HEADLINES as HEADLINES
from bias_pipeline.metrics.sources import Source
from bias_pipeline.stats.bootstrap import Estimate

# What metrics ask of a captioner, in the order in which an audit answers.
QUESTIONS: Mapping[str, str] = {
    "leakage": "Does it give the group away?",
    "misgendering": "Does it name the wrong group?",
    "tasks": "Does it put tasks to groups?",
    "mentions": "How often does it name each group?",
    "quality": "How well does it describe?",
    "retrieval": "Whom do neutral queries retrieve?",
}
# How a metric works: attackers guess, captions are counted, their language is rated, or queries
# retrieve pictures, whatever captions say.
FAMILIES = ("attack", "counting", "language", "retrieval")
WEIGHTS, PICTURES = "published weights", "pictures"
# What a data set or a machine may lack and a metric cannot do without.
NEEDS = ("human captions", "objects", PICTURES, WEIGHTS)
# Ways to speak, alike for all groups, that move scores without any bias; see ``text.speech``.
TRAITS = ("words", "vocabulary", "neutral")


@dataclass(frozen=True)
class Reading:
    """The part that a conclusion on a headline may rest on.

    Attributes:
        part: its name; may be the headline itself. Where a part ``NAME:increase`` stands beside it,
            that is the part less people's, which is ``NAME:human``.
        follows: the traits that move it too, of :data:`TRAITS`: it permits conclusions only on
            speakers who are alike in them. Empty: a captioner that merely says more or less, for
            all groups alike, does not move it.
        named: whether it rests on the captions that name one group alone; where few do, it says
            nothing of the captioner.
    """

    part: str
    follows: tuple[str, ...] = ()
    named: bool = False


@dataclass(frozen=True)
class Response:
    """What planted habits of a captioner do to a headline.

    Each is a name of :data:`~bias_pipeline.calibration.behaviour.BEHAVIOURS`, and each claim a
    test.

    Attributes:
        moves: those that move it.
        stays: those that leave it where it was.
        absent: those that leave nothing to say.
    """

    moves: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cost:
    """Processor seconds that a cell takes; rather too many, so that slower machines keep time too.

    ``benchmarks/audit.py`` measures them, from 5,000 to 1,200,000 captions.

    Attributes:
        per_caption: for each caption, whatever the seeds.
        per_attacked: for each caption and seed, with attackers of ``encoder=ngram``.
    """

    per_caption: float = 3e-6
    per_attacked: float = 0.0


@dataclass(frozen=True)
class MetricInfo:
    """What a reader must know of a metric.

    The eight properties are those of the papers' comparison tables (ImageCaptioner2 Table 1,
    DBAC Table 1).

    Attributes:
        name: as in ``metric=``.
        title: in words.
        version: raise it whenever any value changes; part of a result's identity.
        unit: of the headline.
        range: lowest and highest possible headline.
        neutral: the headline of a captioner that adds no bias.
        direction: how to read it.
        family: which of :data:`FAMILIES` it belongs to.
        question: which of :data:`QUESTIONS` it answers.
        sources: paper to where in it the metric stands, empty for all of it; cited in this order.
        ours: what no paper has.
        needs: what of :data:`NEEDS` it cannot do without, with its default settings.
        cost: how long it takes.
        responses: headline to what planted habits do to it.
        says: headline to what a number above neutral says, in words that need no paper;
            ``{attribute}`` stands for gender, race or whatever groups are looked at.
        readings: headline to what a conclusion on it may rest on. A headline without one follows
            how much a captioner says, so nothing is concluded from it. Each is tested on planted
            captioners (``tests/analysis/test_readings.py``).
        untested: headlines that people's captions move away from ``neutral`` too, so that they have
            no p against it and point nowhere.
        source_identifying: tells bias of the data from bias the captioner adds.
        learnable: learns what bias is instead of counting listed words.
        amplification: says by how much the captioner amplifies.
        full_context: looks at whole sentences.
        image: looks at the picture too.
        consistent: ranks captioners alike under different attackers, by what
            ``experiments/encoder_sensitivity`` found (``tests/test_studies.py``).
        directional: tells attribute-to-task from task-to-attribute.
        language_aware: evens out the richness of people's and models' language.
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
    sources: Mapping[Source, str] = field(default_factory=dict)
    ours: str = ""
    needs: tuple[str, ...] = ()
    cost: Cost = Cost()
    responses: Mapping[str, Response] = field(default_factory=dict)
    says: Mapping[str, str] = field(default_factory=dict)
    readings: Mapping[str, Reading] = field(default_factory=dict)
    untested: tuple[str, ...] = ()
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
            ValueError: if a question, family, need, headline or trait is unknown.
        """
        traits = {trait for reading in self.readings.values() for trait in reading.follows}
        unknown = [
            *({self.question} - set(QUESTIONS)),
            *({self.family} - set(FAMILIES)),
            *(set(self.needs) - set(NEEDS)),
            *({*self.readings, *self.says, *self.responses, *self.untested} - set(HEADLINES)),
            *(traits - set(TRAITS)),
        ]
        if unknown:
            raise ValueError(f"metric {self.name!r}: {unknown[0]!r} is unknown")

    @property
    def reference(self) -> str:
        """Papers with the places in them, and what is ours."""
        cited = [", ".join(filter(None, (s.short, place))) for s, place in self.sources.items()]
        return "; ".join([*cited, *([f"{self.ours} ours"] if self.ours else [])]) or "ours"


# What a number of a unit cannot leave; a fraction may be a difference of two.
UNIT_RANGES: Mapping[str, tuple[float, float]] = {
    "fraction": (-1.0, 1.0),
    **dict.fromkeys(
        ("ratio", "quality", "per caption", "per image", "per observation"), (0.0, math.inf)
    ),
}


@dataclass(frozen=True)
class Part:
    """One number of a score: the headline, a side, an object, a group.

    Attributes:
        estimate: value and uncertainty.
        unit: ``fraction`` (printed in per cent), ``ratio``, ...
        n_images: images it rests on.
        coverage: ``n_images`` as a share of all images that belong to a group.
        neutral_rate: share of its captions that name no group.
        range: lowest and highest possible value, which its interval does not leave; None: for a
            headline the metric's own, else that of its unit.
        neutral: the value that means no bias; None: the metric's own.
    """

    estimate: Estimate
    unit: str
    n_images: int
    coverage: float
    neutral_rate: float
    range: tuple[float, float] | None = None
    neutral: float | None = None

    def bounds(self, name: str, info: MetricInfo) -> tuple[float, float]:
        """What its interval does not leave; a symmetric one would, near the end of the range."""
        if self.range is not None:
            return self.range
        if name in HEADLINES:
            return info.range
        return UNIT_RANGES.get(self.unit, (-math.inf, math.inf))


@dataclass(frozen=True)
class Score:
    """What a metric says of a corpus.

    Attributes:
        parts: name to number; names of :class:`~bias_pipeline.metrics.parts.PartName` know what
            they are of; ``score`` is the headline.
        predictions: the attackers' predictions that the numbers are made from.
        audit: further facts for the manifest, as plain data.
        notes: sentences a reader must see beside the numbers.
        tables: name to lines of further tables, such as example captions; a CSV file each.
    """

    parts: Mapping[str, Part]
    predictions: Sequence[Predictions] = ()
    audit: Mapping[str, object] = field(default_factory=dict)
    notes: Sequence[str] = ()
    tables: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)


class Metric(Configurable, ABC):
    """A metric: constructed with all it needs, then computed on any corpus."""

    info: ClassVar[MetricInfo]
    attribute: Attribute

    def require(self) -> None:
        """Know before any data are read that what it needs beside them is there.

        Raises:
            BiasPipelineError: naming what is not.
        """
        return

    def draw_splits(self, corpus: Corpus, seeds: Sequence[int]) -> list[Split]:
        """One split a seed; none for metrics that train nothing."""
        del corpus, seeds
        return []

    @abstractmethod
    def compute(self, corpus: Corpus, *, splits: Sequence[Split]) -> Score:
        """The score of a corpus.

        Args:
            corpus: raw captions; transforms are the metric's own.
            splits: as :meth:`draw_splits` returns them.

        Raises:
            DataError: if the corpus cannot be scored.
        """
