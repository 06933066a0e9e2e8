"""The manifest of a run: how its numbers were computed, from which data, how to read them.

A manifest is stored as plain data, from which :func:`manifest_of` makes a :class:`Manifest`. A key
that an earlier version did not write gets its default. An absent number is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bias_pipeline.corpus.predictions import Training
from bias_pipeline.metrics.base import LABELLED, TRAITS, EvidenceRule
from bias_pipeline.results.plain_data import plain_values, reader_of
from bias_pipeline.text.caption_language import UNCHECKED
from bias_pipeline.text.caption_statistics import CaptionStatistics


@dataclass(frozen=True)
class CorpusFacts:
    digest: str = ""  # digest of captions and labels
    reference: str | None = None  # digest of all but the captioner's captions; None if unknown
    file: str = ""  # the captioner's file
    n_images: int = 0
    n_labelled: int | None = None  # images in a group; None in earlier versions
    n_model_captions: int = 0
    n_samples: int = 1  # scored captions of an image
    n_human_captions: int = 0
    blanks: Mapping[str, int] = field(default_factory=dict)  # by side
    blank_share: Mapping[str, float] = field(default_factory=dict)  # by side, with declining ones
    declined: int = 0
    unknown_objects: float = math.nan  # share of objects that the list of tasks does not know
    captioned: float = math.nan  # share of the images to score that have a caption
    file_share: float = 1.0  # share of the labelled images that the captioner's file has
    trained_on_reference: bool | None = None
    misfit: str = ""  # why labels or captions seem to be of other images; empty if they seem right
    objects_misfit: str = ""  # why objects seem to be of other images


@dataclass(frozen=True)
class LanguageFacts:
    """Whether the attribute's word lists fit the captions."""

    lists: str = ""  # language of the word lists
    shares: Mapping[str, float] = field(default_factory=dict)  # share of captions in it, by side
    unchecked: str = UNCHECKED  # why lists of another language give no answer; empty if they do


@dataclass(frozen=True)
class MetricFacts:
    """The facts that readers need to read a metric's numbers."""

    title: str = ""
    direction: str = ""  # such as "lower is fairer"
    question: str = ""  # the question that the metric answers, empty if none
    images: str = LABELLED  # the images that the metric is about
    says: Mapping[str, str] = field(default_factory=dict)  # the meaning of each headline
    # By headline, what a conclusion may rest on; None in results of earlier versions
    readings: Mapping[str, EvidenceRule] | None = None
    neutral: Mapping[str, float] = field(default_factory=dict)  # the no-bias value of each headline
    untested: Sequence[str] = ()  # headlines without a test
    # By headline, its lowest and highest value; None for no limit
    range: Mapping[str, Sequence[float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """How the numbers of a run were computed; the fields have their stored order."""

    corpus: CorpusFacts = CorpusFacts()
    speech: Mapping[str, CaptionStatistics] = field(default_factory=dict)  # by side
    language: LanguageFacts = LanguageFacts()
    audit: Mapping[str, Any] = field(default_factory=dict)  # what a metric says besides numbers
    attackers: Mapping[str, Any] = field(default_factory=dict)  # the attackers' kind, if any
    image_std: Mapping[str, float] = field(default_factory=dict)  # by part
    choice_std: Mapping[str, float] = field(default_factory=dict)  # by part
    split: Mapping[str, Any] = field(default_factory=dict)  # images that are copies of others
    notes: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)  # by package
    machine: Mapping[str, Any] = field(default_factory=dict)
    metric: MetricFacts = MetricFacts()
    training: Training | None = None  # without curves; None if unknown
    started: str = ""  # when the run began, in UTC
    seconds: float = math.nan
    config: Mapping[str, Any] = field(default_factory=dict)  # what the metric was built from
    keys: Mapping[str, str] = field(default_factory=dict)  # keys by path in config
    included: Mapping[str, str] = field(default_factory=dict)  # the user's packages and folders
    plugins: Mapping[str, str] | None = None  # releases by plugin
    text: Mapping[str, Any] = field(default_factory=dict)  # how captions were read
    overrides: Sequence[str] | None = None  # of the command; None for a call from Python
    gold: str | None = None  # digest of the gold labels that corrected the run, if any
    job: Mapping[str, Any] | None = None  # launcher and number; None for a call from Python
    files: Mapping[str, str] | None = None  # checksums of files; None until stored

    def to_plain(self) -> dict[str, Any]:
        """The manifest in its stored form."""
        stored: dict[str, Any] = plain_values(self)
        if stored["training"]:
            del stored["training"]["curves"]  # stored as a table, with a line for each epoch
        optional = ("training", "plugins", "overrides", "gold", "job", "files")
        return {key: v for key, v in stored.items() if key not in optional or v is not None}


def manifest_of(stored: Mapping[str, Any]) -> Manifest:
    """Read a manifest from plain data; a ValueError names an entry of the wrong type.

    Example:
        >>> manifest_of({"metric": {"question": "naming"}}).metric.question
        'naming'
        >>> manifest_of({"notes": 7})
        Traceback (most recent call last):
        ...
        ValueError: notes is '7'
    """
    manifest: Manifest = reader_of(Manifest)(stored, "")
    for headline, rule in (manifest.metric.readings or {}).items():
        if {*rule.follows} - {*TRAITS} or "named" not in stored["metric"]["readings"][headline]:
            raise ValueError(f"metric.readings.{headline[:40]} is {str(rule)[:200]}")
    for headline, ends in manifest.metric.range.items():
        if len(ends) != 2:
            raise ValueError(f"metric.range.{headline[:40]} is {str(ends)[:40]}")
    return manifest
