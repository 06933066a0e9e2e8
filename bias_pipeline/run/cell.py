"""Computes one cell, which is a metric on a corpus, without any configuration."""

from __future__ import annotations

import math
import os
import platform
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from bias_pipeline import __version__
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.gold_labels import GoldLabels
from bias_pipeline.corpus.object_names import ObjectsRead
from bias_pipeline.corpus.predictions import Training
from bias_pipeline.corpus.regrouping import LabelNoise, without_small_groups
from bias_pipeline.corpus.split import Split, seeds_in
from bias_pipeline.corpus.streamed_captions import NOT_STREAMED
from bias_pipeline.errors import NotApplicableError, inflect
from bias_pipeline.io.progress import bar
from bias_pipeline.metrics.base import HEADLINES, Metric, MetricInfo, Number, Score, check_score
from bias_pipeline.metrics.corpus_view import objects_read
from bias_pipeline.metrics.counting.declines import declines_note
from bias_pipeline.metrics.gold import check_correctable, with_gold
from bias_pipeline.metrics.repeated_scores import mean_score, with_label_noise
from bias_pipeline.metrics.value_names import BEYOND, sibling_name
from bias_pipeline.results.manifest import CorpusFacts, LanguageFacts, Manifest, MetricFacts
from bias_pipeline.results.rows import Result, Row
from bias_pipeline.results.settings import NAMED
from bias_pipeline.stats.bootstrap import LEAST_TESTED, drop_void_interval, with_p_value
from bias_pipeline.text.caption_language import language_shares, unchecked_reason
from bias_pipeline.text.caption_statistics import captioned_share, speeches
from bias_pipeline.text.image_fit import misfit, objects_misfit
from bias_pipeline.text.scored_text import declined_images


def run_cell(
    corpus: Corpus,
    metric: Metric,
    seeds: Sequence[int],
    *,
    run_id: str,
    choices: Mapping[str, str] = MappingProxyType({}),
    facts: Mapping[str, Any] = MappingProxyType({}),
    label_noise: LabelNoise | None = None,
    gold: GoldLabels | None = None,
) -> Result:
    """Compute a metric on a corpus.

    ``choices`` fill the result's columns of chosen names (:data:`NAMED`). ``facts`` fill further
    fields of the :class:`Manifest`.
    """
    started = time.time()
    if not (metric.info.streams or corpus.in_memory):
        raise NotApplicableError(NOT_STREAMED)
    if gold is not None:
        check_correctable(metric)
    if label_noise is not None:
        label_noise.wrong_shares(corpus.groupings[metric.attribute.name].names)
    with bar(f"{metric.info.name} {corpus.captioner}"):
        samples = [
            _score_of_sample(sample, metric, seeds) for sample in metric.scored_apart(corpus)
        ]
    splits, score = samples[0][0], mean_score([score for _, score in samples], metric)
    trained = [guesses.training for _, each in samples for guesses in each.predictions]
    if gold is not None:
        score = with_gold(score, corpus, metric, gold)
    if label_noise is not None:
        score, also_trained = _with_noise(score, corpus, metric, seeds, label_noise)
        trained += also_trained
    rows = [
        _row(name, part, corpus, metric, seeds, run_id, choices)
        for name, part in score.parts.items()
    ]
    training = Training.total(trained)
    manifest = replace(
        _manifest(corpus, metric, score, splits),
        training=training,
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        seconds=round(time.time() - started, 3),
        gold=gold.digest if gold else None,
        **facts,
    )
    compared = {*HEADLINES, BEYOND, *(rule.part for rule in metric.info.readings.values())}
    draws = {
        str(name): part_draws
        for name, part in score.parts.items()
        if name in compared and (part_draws := part.draws)
    }
    tables = {**score.tables, **({"curves": training.curves} if training.curves else {})}
    return Result(run_id, rows, manifest.to_plain(), score.predictions, corpus.ids, tables, draws)


def _score_of_sample(
    corpus: Corpus, metric: Metric, seeds: Sequence[int]
) -> tuple[list[Split], Score]:
    scorable = _scorable(corpus, metric)
    splits = metric.draw_splits(scorable, seeds)
    score = metric.compute(scorable, splits=splits)
    check_score(score, metric)
    return splits, _of_all(score, scorable, corpus, metric)


def _with_noise(
    score: Score, corpus: Corpus, metric: Metric, seeds: Sequence[int], noise: LabelNoise
) -> tuple[Score, list[Training]]:
    """The score with the effect of label noise, and how attackers learnt noisy labels.

    Groups that were too small for the score stay left out.
    """
    quick = metric.without_intervals()
    scorable = replace(
        _scorable(corpus, metric),
        samples=tuple(_scorable(sample, metric) for sample in corpus.samples),
    )
    trained: list[Training] = []

    def values(noisy: Corpus) -> dict[str, float]:
        scores = [
            quick.compute(sample, splits=quick.draw_splits(sample, seeds))
            for sample in quick.scored_apart(noisy)
        ]
        accounts = (guesses.training for each in scores for guesses in each.predictions)
        trained.extend(replace(account, curves=()) for account in accounts)
        parts = mean_score(scores, quick).parts
        return {name: part.value for name, part in parts.items() if name in HEADLINES}

    with bar(f"{metric.info.name} {corpus.captioner}, label noise"):
        return with_label_noise(score, scorable, metric, noise, values), trained


def _scorable(corpus: Corpus, metric: Metric) -> Corpus:
    """The corpus without groups too small for attackers; other metrics keep the corpus."""
    if metric.info.family != "attack":
        return corpus
    return without_small_groups(corpus, metric.attribute.name)


def _of_all(score: Score, scored: Corpus, corpus: Corpus, metric: Metric) -> Score:
    """The score, whose coverage is a share of all labelled images, including small groups."""
    if scored is corpus:
        return score
    labelled = [
        int((each.groupings[metric.attribute.name].codes >= 0).sum()) for each in (scored, corpus)
    ]
    share = labelled[0] / labelled[1]
    parts = {n: replace(part, coverage=share * part.coverage) for n, part in score.parts.items()}
    return replace(score, parts=parts)


def _row(
    name: str,
    part: Number,
    corpus: Corpus,
    metric: Metric,
    seeds: Sequence[int],
    run_id: str,
    choices: Mapping[str, str],
) -> Row:
    part = _with_p(name, part, metric.info)
    low, high = part.bounds(name, metric.info)
    return Row(
        run_id=run_id,
        metric=metric.info.name,
        metric_version=metric.info.version,
        part=str(name),
        attribute=metric.attribute.name,
        dataset=corpus.dataset,
        captioner=corpus.captioner,
        **{name: choices.get(name, "") for name in NAMED},
        value=part.value,
        unit=part.unit,
        seed_std=part.seed_std,
        ci_low=max(part.ci_low, low),  # in this order NaN stays NaN
        ci_high=min(part.ci_high, high),
        p_value=part.p_value,
        n_images=part.n_images,
        n_seeds=part.n_seeds,
        coverage=part.coverage,
        neutral_rate=part.neutral_rate,
        seeds=tuple(seeds),
    )


def _with_p(name: str, part: Number, info: MetricInfo) -> Number:
    """Add a p value to a headline or deciding part, unless the metric gives a p value.

    A number has no p value if it cannot lie below the no-bias value, since chance alone then lifts
    it above. A number also has no p value if it has no interval or too few attackers, or if
    resampling does not change it.
    """
    low, high = part.bounds(name, info)
    neutral = info.neutral if part.neutral is None else part.neutral
    few = 0 < part.n_seeds < info.least_seeds
    tested = not math.isnan(part.p_value) or name in info.untested or few
    part = drop_void_interval(part) if name in HEADLINES else part
    deciding = {name for rule in info.readings.values() for name in (rule.part, *rule.also)}
    deciding |= {sibling_name(name, "increase") for name in deciding if name.endswith(":model")}
    if name not in {*HEADLINES, BEYOND, *deciding} or tested or math.isnan(part.ci_low):
        return part
    return with_p_value(part, neutral) if low < neutral < high else part


def _metric_facts(info: MetricInfo, score: Score) -> MetricFacts:
    neutral = {
        str(name): info.neutral if part.neutral is None else part.neutral
        for name, part in score.parts.items()
        if name in HEADLINES
    }
    moved = next((value for value in neutral.values() if value != info.neutral), info.neutral)
    return MetricFacts(
        title=info.title,
        # a ratio is neutral at 1
        direction=info.direction.replace(f"above {info.neutral:g} ", f"above {moved:g} "),
        question=info.question,
        images=info.images,
        says=info.says,
        readings={name: rule for name, rule in info.readings.items() if rule.part in score.parts},
        neutral=neutral,
        untested=info.untested,
        range={name: score.parts[name].bounds(name, info) for name in neutral},
    )


def _manifest(corpus: Corpus, metric: Metric, score: Score, splits: Sequence[Split]) -> Manifest:
    """The facts on data, metric, attackers and machine behind a score."""
    versions = {"bias_pipeline": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "torch", "pytorch_lightning", "transformers"):
        if name in sys.modules:
            versions[name] = str(sys.modules[name].__version__)
    return Manifest(
        corpus=_corpus_facts(corpus, metric),
        speech=speeches(corpus, metric.attribute),
        language=LanguageFacts(
            lists=metric.attribute.language,
            unchecked=unchecked_reason(metric.attribute),
            shares={
                str(side): share
                for side, share in language_shares(corpus, metric.attribute).items()
            },
        ),
        audit=score.audit,
        attackers=getattr(getattr(metric, "probe", None), "spec", {}),
        image_std={name: part.image_std for name, part in score.parts.items()},
        choice_std={
            name: part.choice_std
            for name, part in score.parts.items()
            if not math.isnan(part.choice_std)
        },
        split={"copies": splits[0].copies} if splits else {},
        notes=_notes(corpus, metric, score, splits),
        versions=versions,
        machine={
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
        },
        metric=_metric_facts(metric.info, score),
    )


def _corpus_facts(corpus: Corpus, metric: Metric) -> CorpusFacts:
    objects = _objects_read(corpus, metric)
    return CorpusFacts(
        digest=corpus.digest,
        reference=corpus.reference,
        file=corpus.file,
        n_images=len(corpus),
        n_labelled=int((corpus.groupings[metric.attribute.name].codes >= 0).sum()),
        n_model_captions=sum(len(sample.model) for sample in corpus.each_sample),
        n_samples=len(corpus.each_sample),
        n_human_captions=len(corpus.human),
        blanks=corpus.blanks,
        blank_share={side: corpus.absent_share(side) for side in SIDES},
        declined=sum(int(declined_images(each).sum()) for each in corpus.each_sample),
        unknown_objects=math.nan if objects is None else objects.unknown_share,
        captioned=captioned_share(corpus, metric.scope(corpus)),
        file_share=corpus.file_share,
        trained_on_reference=corpus.trained_on_reference,
        misfit=misfit(corpus, metric.attribute),
        objects_misfit=objects_misfit(corpus),
    )


def _notes(corpus: Corpus, metric: Metric, score: Score, splits: Sequence[Split]) -> list[str]:
    noted = dict.fromkeys((*corpus.notes, *score.notes))
    objects = _objects_read(corpus, metric)
    notes = [
        *noted,
        *([objects.note_on_renamed(), objects.fault(metric.task.name)] if objects else []),
        declines_note(corpus, metric.attribute.name),
        *(note for split in splits[:1] for note in split.notes()),
        *_too_few_tested(score, sum(corpus.groupings[metric.attribute.name].sizes.values())),
        _all_alike(corpus),
    ]
    headlines = [part for name, part in score.parts.items() if name in HEADLINES]
    n_seeds = len(seeds_in(splits))
    if n_seeds == 1:
        has_p = any(math.isfinite(part.p_value) for part in headlines)
        notes.append(
            "one seed does not show how much attackers vary: intervals assume that they vary as "
            "much as images do" + ("" if has_p else ", and there is no p")
        )
    elif 0 < n_seeds < metric.info.least_seeds and any(part.n_seeds for part in headlines):
        notes.append(
            f"{inflect(n_seeds, 'seeds')}: {metric.info.name} has a p only with "
            f"{metric.info.least_seeds} or "
            f"more (seeds={metric.info.least_seeds}); with fewer, p is small too often"
        )
    return [note for note in notes if note]


def _objects_read(corpus: Corpus, metric: Metric) -> ObjectsRead | None:
    """How names of objects were interpreted, or None if the metric or the corpus has no objects."""
    if corpus.objects is None or metric.object_tasks is None:
        return None
    return corpus.read(objects_read, tuple(metric.object_tasks.tasks), tuple(metric.exclude_tasks))


def _all_alike(corpus: Corpus) -> str:
    """A note if all captions of the captioner are equal, or empty."""
    captions = corpus.model
    if len(captions) < 2 or not captions.all_alike:
        return ""
    return (
        f"all {len(captions)} captions are the same, {captions.text(0)!r}: they say nothing about "
        "the images"
    )


def _too_few_tested(score: Score, labelled: int) -> list[str]:
    """A note on each headline that has no interval because too few images are tested."""
    tested = min((len(rows) for guesses in score.predictions for rows, _, _ in guesses), default=0)
    if not 0 < tested < LEAST_TESTED:
        return []
    needed = math.ceil(labelled * LEAST_TESTED / tested)
    return [
        f"{name} has no interval: some attacker is tested on only {tested} images; about {needed} "
        "images would be enough"
        for name, part in score.parts.items()
        if name in HEADLINES and math.isnan(part.ci_low) and not math.isnan(part.value)
    ]
