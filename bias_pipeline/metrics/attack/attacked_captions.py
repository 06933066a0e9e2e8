"""Attackers of a corpus's captions.

Metrics that differ only in the scoring of guesses share attackers.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Protocol

from bias_pipeline.array_types import BoolArray
from bias_pipeline.attack.probe import Probe
from bias_pipeline.corpus.attribute import Attribute
from bias_pipeline.corpus.corpus import Corpus, Side
from bias_pipeline.corpus.predictions import Predictions
from bias_pipeline.corpus.split import Split
from bias_pipeline.declared import Configurable
from bias_pipeline.errors import DataError, NotApplicableError
from bias_pipeline.io.machine import return_freed_memory
from bias_pipeline.metrics.attack.attack_runner import AttackRunner, AttackSettings
from bias_pipeline.metrics.attack.attacked_pair import Pair
from bias_pipeline.metrics.attack.extra_parts import (
    NO_SECOND_PERSON,
    TURNS,
    alike_corpora,
    at_equal_speech,
    one_person_as_captioner,
    rename_predictions,
)
from bias_pipeline.metrics.corpus_view import has_captions
from bias_pipeline.metrics.value_names import HUMAN_PAIRED, MODEL_PAIRED
from bias_pipeline.text.transform import Transform, apply_transforms


class AttackingMetric(Protocol):
    """The settings and functions of a metric on which its attackers depend."""

    attribute: Attribute
    probe: Probe
    positions: int
    sides: Sequence[Side]
    wordless_limit: float
    learning_curve: bool

    @property
    def trains_alone(self) -> bool:
        """Whether no other metric can share this metric's attackers."""

    @property
    def attack_settings(self) -> AttackSettings:
        """The settings and functions with which the metric attacks captions."""

    def transform(self, transforms: Sequence[Transform], corpus: Corpus) -> Corpus:
        """The corpus in the form that attackers read."""

    def attackable(self, transformed: Corpus) -> BoolArray:
        """(N,) flags: true for images that have everything attackers read besides captions."""


@dataclass(frozen=True, eq=False)
class AnnotatorAttack:
    """Attackers that read human captions instead of the captioner's captions."""

    pair: Pair
    corpus: Corpus  # in which an annotator is the captioner
    images: BoolArray  # (N,) that both sides describe
    predictions: Sequence[Predictions]


class AttackedCaptions:
    """Attackers that read transformed captions; they are trained when first needed."""

    def __init__(
        self,
        metric: AttackingMetric,
        transforms: Sequence[Transform],
        corpus: Corpus,
        splits: Sequence[Split],
    ) -> None:
        self.metric, self.transforms = metric, transforms
        self.corpus, self.splits = corpus, splits
        self.align = at_equal_speech(transforms)
        self._first = transforms.index(self.align) if self.align else 0

    @cached_property
    def _unaligned_corpus(self) -> Corpus:
        return apply_transforms(self.transforms[: self._first], self.corpus)

    @cached_property
    def captioner(self) -> AttackRunner:
        """Attackers of the captioner's captions and of human captions."""
        transformed = self.metric.transform(self.transforms[self._first :], self._unaligned_corpus)
        return_freed_memory()
        return AttackRunner(self.metric.attack_settings, transformed, self.splits)

    @cached_property
    def one_person(self) -> AnnotatorAttack | str:
        """Attackers in which one annotator is the captioner, or the reason why there are none."""
        people = one_person_as_captioner(self.corpus, self.metric.attribute.name)
        if people is None:
            return NO_SECOND_PERSON
        return_freed_memory()  # of the captioner's attackers
        try:
            transformed = self.metric.transform(self.transforms, people)
            pair, images, trained = self._attack_annotators(transformed)
        except NotApplicableError as error:
            return f"there is no matched:people: {error}"
        return AnnotatorAttack(pair, people, images, rename_predictions(trained, "people"))

    @cached_property
    def annotators_alike(self) -> AnnotatorAttack | str:
        """Attackers of annotators' captions of equal length, or why there are none."""
        assert self.align is not None
        first = self.align.of_first_captions()
        after = self.transforms[self._first + 1 :]
        pairs: list[Pair] = []
        predictions: list[Predictions] = []
        try:
            turns = alike_corpora(
                self._unaligned_corpus,
                self.align,
                lambda annotator: self.metric.transform([first, *after], annotator),
                TURNS if self.metric.probe.quick else 1,
            )
            for number, matched in enumerate(turns):
                pair, images, trained = self._attack_annotators(matched)
                pairs.append(pair)
                predictions += rename_predictions(trained, f"alike:{number}")
        except DataError as error:
            return f"there is no matched:alike: {error}"
        return AnnotatorAttack(Pair.of_all(pairs), matched, images, predictions)

    def _attack_annotators(self, transformed: Corpus) -> tuple[Pair, BoolArray, list[Predictions]]:
        """Attackers that read only human captions, and the images whose group they guess."""
        return_freed_memory()
        runner = AttackRunner(self.metric.attack_settings, transformed, self.splits)
        images = has_captions(transformed, "model")
        images = images & self.metric.attackable(transformed)
        (pair,) = pairs_of(runner, images, self.metric.probe.cross_fits(self.splits))
        return pair, images, runner.trained


def pairs_of(
    attack: AttackRunner, images: BoolArray, cross_fitted: bool, shares: Sequence[float] = ()
) -> list[Pair]:
    """Predictions for both sides, by all attackers and by attackers trained on fewer images."""
    model, human = (
        attack.attack_images(name, images, shares) for name in (MODEL_PAIRED, HUMAN_PAIRED)
    )
    return [Pair(*sides, cross_fitted) for sides in zip(model, human, strict=True)]


@dataclass(frozen=True)
class _Request:
    """The settings that determine attackers' predictions, and the metric that trains attackers."""

    corpus: Corpus
    content: Hashable
    metric: AttackingMetric = field(compare=False)
    transforms: Sequence[Transform] = field(compare=False)
    splits: Sequence[Split] = field(compare=False)


# One at a time: the cells of LIC and Leakage follow each other, and predictions take memory.
@lru_cache(maxsize=1)
def _answer_request(request: _Request) -> AttackedCaptions:
    return AttackedCaptions(request.metric, request.transforms, request.corpus, request.splits)


def forget_attackers() -> None:
    """Free the memory of attackers that no later cell of the audit uses."""
    _answer_request.cache_clear()


def attacked_captions(
    metric: AttackingMetric,
    transforms: Sequence[Transform],
    corpus: Corpus,
    splits: Sequence[Split],
) -> AttackedCaptions:
    """The attackers of a corpus, which the previous metric may have trained."""
    decides = (
        metric.trains_alone and metric,
        metric.attribute.name,
        metric.positions,
        tuple(metric.sides),
        metric.wordless_limit,
        metric.learning_curve,
        type(metric.probe),
        json.dumps(metric.probe.spec, sort_keys=True),
        tuple(split.digest for split in splits),
        _content(transforms),
    )
    return _answer_request(_Request(corpus, decides, metric, transforms, splits))


def _content(value: object) -> Hashable:
    """A key that is equal for equal settings. A value without a hash is equal only to itself."""
    if isinstance(value, Configurable) and type(value).__hash__ is object.__hash__:
        return type(value), _content(vars(value))
    if isinstance(value, Mapping):
        return tuple((name, _content(value[name])) for name in sorted(value, key=str))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(map(_content, value))
    if isinstance(value, Set):
        return frozenset(value)
    return value if isinstance(value, Hashable) else object()


def as_trained_before(predictions: Sequence[Predictions]) -> list[Predictions]:
    """Predictions whose record says that another metric trained the attackers."""
    return [
        replace(
            one,
            training=replace(
                one.training,
                trained=0,
                cached=one.training.trained + one.training.cached,
                failed=0,
                out_of_memory=(),
            ),
        )
        for one in predictions
    ]
