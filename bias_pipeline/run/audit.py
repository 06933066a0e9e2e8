"""Audits with every metric that the data permit, for every attribute, within a time limit."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bias_pipeline.corpus.corpus import BLANK_WORDS, Corpus
from bias_pipeline.corpus.split import SMALLEST_GROUP
from bias_pipeline.data.captioner_files import PARTLY
from bias_pipeline.data.label_files import NoLabelColumnError
from bias_pipeline.errors import DataError, NotApplicableError, SweepError, UsageError
from bias_pipeline.io.paths import group_choices
from bias_pipeline.io.terminal import warn
from bias_pipeline.metrics import catalogue
from bias_pipeline.metrics.base import HEADLINES, LABELLED, PICTURES, SETS, WEIGHTS
from bias_pipeline.metrics.catalogue import infos
from bias_pipeline.metrics.counting.declines import declines_note
from bias_pipeline.report.answer_texts import fold, noise_sentences, notes, screen
from bias_pipeline.report.answers import Answer, answers_of
from bias_pipeline.report.conclusion_checks import LIMITS, Limits, untestable_data
from bias_pipeline.report.corrected import correction_sentences
from bias_pipeline.report.table import percent
from bias_pipeline.report.verdict import Verdict, verdict
from bias_pipeline.results.rows import Result
from bias_pipeline.results.settings import Results, with_settings
from bias_pipeline.run.outcomes import SweepOutcome
from bias_pipeline.run.overrides import quote_value
from bias_pipeline.text.caption_language import LANGUAGE_WORDS
from bias_pipeline.text.image_fit import MISFIT_REMEDY
from bias_pipeline.text.transform import apply_transforms

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Table

    from bias_pipeline.run.compose import Cell


# Attributes that relabel another attribute, or whose groups no caption names.
_LEFT = frozenset({"race_unsure", "ethnicity"})
FIRST = "gender"  # its error is shown if no attribute can be read
_SEEDS = 2  # repetitions; each guesses every image
# Runs at equal style compare single words, since pairs of words reveal who wrote them.
EQUAL_SPEECH = {"alignment": "matched", "encoder.order": "1"}
AT_EQUAL_SPEECH = ("lic", "leakage")
MATCHED_BOTH = "matched_both"  # the alignment if annotators use too few of the captioner's words
# Settings that score only the first sentence of captions much longer than human captions.
FIRST_SENTENCE = {"text.unit": "sentence", "text.preambles": "cut"}
_HELPS = 0.1  # the least gain in reach for which first sentences are compared
# Without objects DPA does not run, and DBAC's attackers of tasks answer in its place.
AT_EQUAL_SPEECH_WITHOUT_OBJECTS = (*AT_EQUAL_SPEECH, "dbac")
_FEW_CAPTIONS = 10_000
# Audits give the same numbers on every machine, so a time allows metrics that half of it allows
# on the machine where costs were measured.
_SLOWER = 2


@dataclass(frozen=True)
class Plan:
    """The metrics that the time limit of one attribute allows."""

    metrics: Sequence[str]  # by name
    left_out: Sequence[str]  # metrics that the data permit but the time does not
    seeds: int  # how many
    seconds: float  # expected of one processor
    matched: Sequence[str] = ()  # metrics that are run at equal style too
    reach: float = 1.0  # the share of the captioner's words that annotators use as often
    # That share for each caption's first sentence; NaN if first sentences are not tried
    first_sentence: float = math.nan

    @property
    def too_rich(self) -> bool:
        """Whether annotators use so few of the model's words that nothing is concluded."""
        return self.reach < LIMITS.reach

    @property
    def by_sentence(self) -> bool:
        """Whether first sentences are compared too, since annotators use more of their words."""
        return self.too_rich and self.first_sentence >= self.reach + _HELPS

    @property
    def cells(self) -> list[tuple[str, Mapping[str, str]]]:
        """The metric of each cell, with the settings that differ from the defaults."""
        speech = _at_equal_speech(self.reach)
        matched = [(metric, speech) for metric in self.matched]
        if self.by_sentence:  # first, so that the numbers of whole captions come last
            sentence = {**_at_equal_speech(self.first_sentence), **FIRST_SENTENCE}
            matched.insert(0, (AT_EQUAL_SPEECH[0], sentence))
        return [*((metric, {}) for metric in self.metrics), *matched]


def _at_equal_speech(reach: float) -> Mapping[str, str]:
    """The settings at equal style, which may remove words that annotators use too rarely."""
    return {**EQUAL_SPEECH, "alignment": MATCHED_BOTH} if reach < LIMITS.reach else EQUAL_SPEECH


Announce = Callable[[Mapping[str, Corpus], Mapping[str, Plan]], None]


@dataclass(frozen=True)
class Audit:
    corpora: Mapping[str, Corpus]  # what was scored, by attribute
    plans: Mapping[str, Plan]  # what was run, by attribute
    results: Results  # of every cell that the data permit
    limits: Limits = LIMITS  # what an answer needs
    exit_code: int = 0  # of the command; 0 unless a cell failed
    # Metric and attribute, as `attribute=race metric=dpa`, to why the metric does not apply
    skipped: Mapping[str, str] = field(default_factory=dict)
    made: Sequence[Result] = ()  # the results that this audit computed, as they are stored

    def __repr__(self) -> str:
        """The answers on one screen."""
        return "\n".join(self.screen())

    @cached_property
    def verdict(self) -> Verdict:
        return verdict(with_settings(self.results), self.limits)

    @cached_property
    def answers(self) -> list[Answer]:
        """An answer to each question about each attribute."""
        return [
            answer
            for attribute in self.corpora
            for answer in answers_of(self.verdict, attribute, self._why_untested(attribute))
        ]

    def answers_on(self, attribute: str) -> list[Answer]:
        return [answer for answer in self.answers if answer.attribute == attribute]

    def _why_untested(self, attribute: str) -> dict[str, str]:
        """The reason why a question's metrics did not run, by question."""
        reasons: dict[str, str] = {}
        for metric in self.plans[attribute].left_out:
            reasons.setdefault(infos()[metric].question, f"no time for {metric}")
        for cell, reason in self.skipped.items():
            settings = dict(word.partition("=")[::2] for word in shlex.split(cell))
            if settings.get("attribute", attribute) == attribute:
                question = infos()[settings["metric"]].question
                reasons.setdefault(question, reason)
        if not len(self.corpora[attribute].human):
            reasons |= dict.fromkeys(("leakage", "quality"), "no annotators' captions")
        return reasons

    def screen(self) -> list[str]:
        first = next(iter(self.corpora.values()))
        n_captions = sum(len(sample.model) for sample in first.each_sample)
        people = f"{len(first.human):,} by annotators" if len(first.human) else "none by annotators"
        objects = "objects" if first.objects is not None else "no objects"
        read = f"{first.captioner}: {n_captions:,} captions, {people}, {objects}"
        several = len(self.corpora) > 1
        lines = fold(read if several else f"{read}; {self._groups(*self.corpora)}")
        for attribute in self.corpora:
            lines += ["", *fold(self._groups(attribute))] if several else []
            lines += screen(self.verdict, self.answers_on(attribute))
        return [*lines, *fold(" ".join(cautions(self.results, self.corpora)))]

    def _groups(self, attribute: str) -> str:
        """The numbers of images that the model describes, by group."""
        corpus = self.corpora[attribute]
        grouping = corpus.groupings[attribute]
        codes = grouping.codes[np.unique(corpus.model.image_rows)]
        sizes = {name: int((codes == code).sum()) for code, name in enumerate(grouping.names)}
        return f"{attribute}: {', '.join(f'{n:,} {name}' for name, n in sizes.items() if n)}"

    @property
    def notes(self) -> list[str]:
        """The lines below the answers: notes on attributes, and the effect of label noise."""
        several = len(self.corpora) > 1
        lines = [
            f"{attribute}: {note}" if several else note
            for attribute in self.corpora
            for note in notes(self.verdict, self.answers_on(attribute))
        ]
        return [*lines, *noise_sentences(with_settings(self.results))]

    def frame(self) -> DataFrame:
        """All rows as one table, which :meth:`Results.frame` describes."""
        return self.results.frame()

    def arrow(self) -> Table:
        """All rows as an Arrow table, in which absent numbers are null."""
        return self.results.arrow()


class Source(Protocol):
    """The data of an audit, from files or from memory, and the way in which its cells run."""

    @property
    def attributes(self) -> Collection[str]:
        """The attributes whose labels the audit looks for."""
        ...

    def corpus(self, attribute: str) -> Corpus:
        """The captions and labels for an attribute."""
        ...

    def reach(self, attribute: str, settings: Mapping[str, str]) -> float:
        """The share of the model's words that annotators use as often.

        The share is NaN if the user has set one of ``settings``.
        """
        ...

    def run_plans(self, plans: Mapping[str, Plan]) -> SweepOutcome:
        """Run the planned cells; the results have their draws."""
        ...

    def noisy(self, attribute: str) -> bool:
        """Whether the audit also measures how much additional label errors would move scores."""
        ...


def plan_audit(
    source: Source,
    minutes: float | None = None,
    announce: Announce = lambda corpora, plans: None,
) -> tuple[Mapping[str, Corpus], Mapping[str, Plan]]:
    corpora = labelled_corpora(source)
    plans = {}
    for name, corpus in corpora.items():
        usual = 1 if len(corpus.model) <= _FEW_CAPTIONS else 5
        plan = plan_for(corpus, 60 * (minutes or usual), noisy=source.noisy(name))
        plans[name] = _with_reach(plan, source, name, corpus) if plan.matched else plan
    announce(corpora, plans)
    return corpora, plans


def _with_reach(plan: Plan, source: Source, attribute: str, corpus: Corpus) -> Plan:
    """The plan, with the coverage of the vocabulary and, if it is low, also of first sentences."""
    whole = replace(plan, reach=source.reach(attribute, EQUAL_SPEECH))
    if not whole.too_rich or AT_EQUAL_SPEECH[0] not in plan.matched:
        return whole
    first = source.reach(attribute, {**EQUAL_SPEECH, **FIRST_SENTENCE})
    both = replace(whole, first_sentence=first)
    if not both.by_sentence:
        return both
    more = catalogue.seconds_of(AT_EQUAL_SPEECH[0], corpus, plan.seeds, matched=True)
    return replace(both, seconds=plan.seconds + more)


def word_reach(lic: Cell, corpus: Corpus) -> float:
    """The share of the model's words that annotators use as often, under a LIC cell's settings."""
    *before, matched = lic.build("metric").transforms
    reach: float = matched.reach(apply_transforms(before, corpus))
    return reach


def run_audit(
    source: Source,
    minutes: float | None = None,
    limits: Limits = LIMITS,
    announce: Announce = lambda corpora, plans: None,
) -> Audit:
    """Run every metric that the data and the time permit, for every labelled attribute."""
    corpora, plans = plan_audit(source, minutes, announce)
    return score_plans(source, corpora, plans, limits)


def score_plans(
    source: Source, corpora: Mapping[str, Corpus], plans: Mapping[str, Plan], limits: Limits
) -> Audit:
    """Run the planned cells of each attribute."""
    scored = source.run_plans(plans)
    results = Results(scored.results)
    if not results and scored.exit_code:
        raise SweepError(
            "nothing could be scored: jobs failed for the reasons above; correct these"
        )
    if not results:
        raise DataError("nothing could be scored: no metric applies to these data")
    return Audit(corpora, plans, results, limits, scored.exit_code, scored.skipped, scored.made)


def attribute_names() -> list[str]:
    """The attributes that an audit looks for in the label file."""
    return [name for name in group_choices("attribute") if name not in _LEFT]


def labelled_corpora(source: Source) -> dict[str, Corpus]:
    """The corpus under every attribute that the label file has in two groups or more."""
    read = {name: read_or_refused(source, name) for name in source.attributes}
    labelled = {
        name: corpus
        for name, corpus in read.items()
        if isinstance(corpus, Corpus) and _in_two_groups(corpus, name)
    }
    refused = {name: error for name, error in read.items() if isinstance(error, DataError)}
    small = [
        f"{name}: {_group_sizes(corpus, name)}"
        for name, corpus in read.items()
        if isinstance(corpus, Corpus) and name not in labelled
    ]
    _check_labelled(labelled, refused, small)
    return labelled


def _group_sizes(corpus: Corpus, attribute: str) -> str:
    """The numbers of images of each group, and of each label that names no group."""
    grouping = corpus.groupings[attribute]
    sizes = ", ".join(f"{size} {name}" for name, size in grouping.sizes.items())
    others = ", ".join(f"{n} {label or '(empty)'!r}" for label, n in grouping.strata.items() if n)
    return f"{sizes} (labels of no group: {others})" if others else sizes


def _check_labelled(
    labelled: Mapping[str, Corpus], refused: Mapping[str, DataError], small: Sequence[str]
) -> None:
    """Raise an error if no attribute can be audited; warn of each attribute that is not."""
    faults = {n: e for n, e in refused.items() if not isinstance(e, NotApplicableError)}
    if faults and not labelled:
        raise faults.get(FIRST, next(iter(faults.values())))
    if small and not labelled:
        raise UsageError(
            f"an audit compares two groups of at least {SMALLEST_GROUP} images; labelled "
            f"images: {'; '.join(small)}"
        )
    unlabelled = [error for error in refused.values() if isinstance(error, NoLabelColumnError)]
    if not labelled and len(unlabelled) == len(refused):
        path, columns = unlabelled[0].path, unlabelled[0].columns
        raise UsageError(
            f"{path}: found no column with labels of an attribute ({', '.join(refused)}); it has "
            f"{columns}. Name yours with --label-column COLUMN (dataset.label_column=COLUMN)"
        )
    if not labelled:
        raise UsageError(
            "the label file has no attribute with two groups of at least "
            f"{SMALLEST_GROUP} images; {'; '.join(map(str, refused.values()))}"
        )
    for name, fault in faults.items():
        warn(f"{name} is not audited: {fault}")
    for sizes in small:
        warn(f"not audited, fewer than two groups of {SMALLEST_GROUP} images: {sizes}")
    absent = [name for name in refused if name not in faults]
    if absent:
        warn(
            f"not audited, no labels found: {', '.join(absent)} (--label-column names a column, in "
            "Python dataset={'label_column': ...})"
        )


def read_or_refused(source: Source, attribute: str) -> Corpus | DataError:
    """The corpus, or the error that was raised when it was read."""
    try:
        return source.corpus(attribute)
    except DataError as error:
        return error


def _in_two_groups(corpus: Corpus, attribute: str) -> bool:
    """Whether at least two groups are large enough to be split."""
    sizes = corpus.groupings[attribute].sizes.values()
    return sum(size >= SMALLEST_GROUP for size in sizes) >= 2


def plan_for(corpus: Corpus, seconds: float, *, noisy: bool = False) -> Plan:
    """All metrics without published weights or pictures, and attackers at equal style.

    If the time is too short, the costliest metrics are left out. Each attribute has its own time
    limit, so further columns of labels do not change which metrics run for an attribute.
    """
    # An audit must be quick and give the same numbers on every machine. Metrics that need weights
    # or pictures can be run by name.
    left = {PICTURES, WEIGHTS}
    left |= {SETS} if corpus.set_ids is None else set()
    candidates = {name: info for name, info in infos().items() if not left & set(info.needs)}
    spared = catalogue.sparable_metrics(
        info for info in candidates.values() if catalogue.has_needs(info, corpus)
    )
    comparable = AT_EQUAL_SPEECH_WITHOUT_OBJECTS if corpus.objects is None else AT_EQUAL_SPEECH
    for left_out in (spared[:n] for n in range(len(spared) + 1)):
        metrics = [name for name in candidates if name not in left_out]
        alike = len(corpus.human) > 0 and corpus.in_memory
        matched = tuple(name for name in comparable if name in metrics and alike)
        expected = sum(
            _seconds_together(names, corpus, noisy=noisy, matched=names is matched)
            for names in (metrics, matched)
        )
        plan = Plan(metrics, left_out, _SEEDS, expected, matched)
        if _SLOWER * plan.seconds <= seconds:
            break
    return plan


def _seconds_together(
    metrics: Sequence[str], corpus: Corpus, *, noisy: bool, matched: bool
) -> float:
    """The expected processor seconds of several metrics; shared attackers count once."""
    known = set[str]()
    seconds = 0.0
    for name in metrics:
        attackers = catalogue.attackers(catalogue.settings_of(name))
        trained = bool(attackers) and attackers in known
        seconds += catalogue.seconds_of(
            name, corpus, _SEEDS, noisy=noisy, matched=matched, trained=trained
        )
        known.add(attackers)
    return seconds


def cautions(results: Sequence[Result], corpora: Mapping[str, Corpus]) -> list[str]:
    """Sentences that readers of the answers must know."""
    first = next(iter(corpora.values()))
    declined = [note for name, corpus in corpora.items() if (note := declines_note(corpus, name))]
    notes = dict.fromkeys(note for corpus in corpora.values() for note in corpus.notes)
    # The notes of two attributes differ only in ids and sizes of groups, which are cut off.
    partly = dict.fromkeys(
        note.partition(", such as ")[0].partition(" (")[0] for note in notes if PARTLY in note
    )
    absent = [
        note
        for note in notes
        if note.startswith("warning: ")
        and any(words in note for words in (BLANK_WORDS, LANGUAGE_WORDS, MISFIT_REMEDY))
    ]
    noted = [f"{note.removeprefix('warning: ')}." for note in [*declined[:1], *partly, *absent]]
    return [*noted, *correction_sentences(results), _caution(results, first)]


def _caution(results: Sequence[Result], corpus: Corpus) -> str:
    if not len(corpus.human):
        return (
            "Without human captions of the same images amplification cannot be measured: human "
            "captions might leak as much."
        )
    rates: dict[str, float] = {}
    foreign = {result.rows[0].attribute for result in results if untestable_data(result)}
    labelled = [result for result in results if result.facts.metric.images == LABELLED]
    of_groups = [row for result in labelled for row in result.rows]
    for row in (row for row in of_groups if row.part in HEADLINES):
        if not math.isnan(row.neutral_rate) and row.attribute not in foreign:
            rates.setdefault(row.attribute, row.neutral_rate)
    shares = ", ".join(f"{percent(rate, 0)} % ({name})" for name, rate in rates.items())
    silent = f"{shares} of its captions name no group" if rates else ""
    trained = (
        "the captioner was trained on captions of this data set"
        if corpus.trained_on_reference
        else "we do not know its training captions, so call this a difference from annotators, not "
        "amplification"
    )
    return f"{silent}; {trained}.".lstrip("; ").capitalize()


def scored_captions(folder: Path, overrides: Sequence[str], files: Sequence[Path]) -> list[Result]:
    """The results and draws of every metric that the data permit and that needs no pictures."""
    from bias_pipeline.run import launch

    known = infos()
    metrics = [
        name
        for name, info in known.items()
        if not info.image and not {PICTURES, WEIGHTS, SETS} & set(info.needs)
    ]
    swept = any(word.startswith("metric=") for word in overrides)
    captioners = f"captioner={','.join(quote_value(str(file)) for file in files)}"
    read = [] if any(word.startswith("dataset=") for word in overrides) else ["dataset=coco"]
    shared = [*read, "logger=csv", f"paths.outputs={quote_value(str(folder / 'runs'))}"]
    at_equal_speech = [f"{key}={value}" for key, value in EQUAL_SPEECH.items()]
    sweeps = [
        [f"metric={','.join(metrics)}"],
        [f"metric={','.join(AT_EQUAL_SPEECH)}", *at_equal_speech],
    ]
    results: list[Result] = []
    for words in [[]] if swept else sweeps:
        finished = launch.run([*shared, *words, *overrides, captioners], skips=launch.NOT_PERMITTED)
        results += finished.with_draws()
    return results
