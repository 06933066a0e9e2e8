"""One cell: a corpus and a metric to a result. No configuration, usable from a notebook."""

from __future__ import annotations

import math
import os
import platform
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from bias_pipeline import __version__
from bias_pipeline.corpus.corpus import SIDES, Corpus
from bias_pipeline.corpus.predictions import Training
from bias_pipeline.corpus.split import Split
from bias_pipeline.io.progress import bar
from bias_pipeline.metrics.base import HEADLINES, Metric, MetricInfo, Part, Score
from bias_pipeline.results.store import Result, Row
from bias_pipeline.stats.bootstrap import Estimate, against
from bias_pipeline.text.declines import declines_note
from bias_pipeline.text.speech import captioned, speeches


@dataclass(frozen=True)
class Origin:
    """The names of the choices behind a result, as they stand in its rows; empty: plays no part."""

    encoder: str = ""
    head: str = ""
    masking: str = ""
    alignment: str = ""
    scoring: str = ""


def run_cell(
    corpus: Corpus,
    metric: Metric,
    seeds: Sequence[int],
    *,
    run_id: str,
    origin: Origin = Origin(),
    facts: Mapping[str, object] | None = None,
) -> Result:
    """Compute a metric on a corpus.

    Args:
        corpus: what is scored.
        metric: built with all it needs.
        seeds: one split and fresh attackers each.
        run_id: name of the result.
        origin: names of the choices, for the rows.
        facts: further entries of the manifest, as plain data.

    Raises:
        DataError: if the corpus cannot be scored.
    """
    started = time.time()
    with bar(f"{metric.info.name} {corpus.captioner}"):
        splits = metric.draw_splits(corpus, seeds)
        score = metric.compute(corpus, splits=splits)
    rows = [
        _row(name, part, corpus, metric, seeds, run_id, origin)
        for name, part in score.parts.items()
    ]
    account = asdict(Training.total(own.training for own in score.predictions))
    curves = account.pop("curves")  # a line an epoch: a table beside the manifest
    manifest = {
        **_manifest(corpus, metric, score, splits),
        "metric": _reading(metric.info, score),
        "training": account,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 3),
        **(facts or {}),
    }
    compared = {*HEADLINES, *(reading.part for reading in metric.info.readings.values())}
    draws = {
        str(name): own
        for name, part in score.parts.items()
        if name in compared and (own := part.estimate.draws)
    }
    tables = {**score.tables, **({"curves": curves} if curves else {})}
    return Result(run_id, rows, manifest, score.predictions, corpus.ids, tables, draws)


def _row(
    name: str,
    part: Part,
    corpus: Corpus,
    metric: Metric,
    seeds: Sequence[int],
    run_id: str,
    origin: Origin,
) -> Row:
    estimate = _tested(name, part, metric.info)
    low, high = part.bounds(name, metric.info)
    return Row(
        run_id=run_id,
        metric=metric.info.name,
        metric_version=metric.info.version,
        part=str(name),
        attribute=metric.attribute.name,
        dataset=corpus.dataset,
        captioner=corpus.captioner,
        **vars(origin),
        value=estimate.value,
        unit=part.unit,
        seed_std=estimate.seed_std,
        ci_low=max(estimate.ci_low, low),  # in this order NaN stays NaN
        ci_high=min(estimate.ci_high, high),
        p_value=estimate.p_value,
        n_images=part.n_images,
        n_seeds=estimate.n_seeds,
        coverage=part.coverage,
        neutral_rate=part.neutral_rate,
        seeds=tuple(seeds),
    )


def _tested(name: str, part: Part, info: MetricInfo) -> Estimate:
    """The estimate, headlines with the p of meaning no bias, where the metric gives none.

    A number that cannot go below neutral lies above it by chance alone: it has no p.
    """
    low, high = part.bounds(name, info)
    neutral = info.neutral if part.neutral is None else part.neutral
    tested = not math.isnan(part.estimate.p_value) or name in info.untested
    if name not in HEADLINES or tested or not low < neutral < high:
        return part.estimate
    return against(part.estimate, neutral)


def _reading(info: MetricInfo, score: Score) -> dict[str, object]:
    """How the headlines are read."""
    neutral = {
        str(name): info.neutral if part.neutral is None else part.neutral
        for name, part in score.parts.items()
        if name in HEADLINES
    }
    return {
        "title": info.title,
        "direction": info.direction,
        "question": info.question,
        "says": dict(info.says),
        "readings": {
            name: asdict(reading)
            for name, reading in info.readings.items()
            if reading.part in score.parts
        },
        "neutral": neutral,
        "untested": list(info.untested),
        "range": {name: list(score.parts[name].bounds(name, info)) for name in neutral},
    }


def _manifest(
    corpus: Corpus, metric: Metric, score: Score, splits: Sequence[Split]
) -> dict[str, object]:
    return {
        "corpus": {
            "digest": corpus.digest,
            "reference": corpus.reference,
            "file": corpus.file,
            "n_images": len(corpus),
            "n_model_captions": len(corpus.model),
            "n_human_captions": len(corpus.human),
            "blanks": dict(corpus.blanks),
            "blank_share": {side: corpus.blank_share(side) for side in SIDES},
            "captioned": captioned(corpus, metric.attribute),
            "trained_on_reference": corpus.trained_on_reference,
        },
        "speech": {
            side: asdict(speech) for side, speech in speeches(corpus, metric.attribute).items()
        },
        "audit": dict(score.audit),
        "attackers": dict(getattr(getattr(metric, "probe", None), "spec", {})),
        "image_std": {str(name): part.estimate.image_std for name, part in score.parts.items()},
        "choice_std": {
            str(name): own.choice_std
            for name, part in score.parts.items()
            if not math.isnan((own := part.estimate).choice_std)
        },
        "split": {"copies": asdict(splits[0].copies)} if splits else {},
        "notes": _notes(corpus, metric.attribute.name, score, splits),
        "versions": _versions(),
        "machine": {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
        },
    }


def _notes(corpus: Corpus, attribute: str, score: Score, splits: Sequence[Split]) -> list[str]:
    """What a reader must see beside the numbers, of the data whatever the metric says of them."""
    told = dict.fromkeys((*corpus.notes, *score.notes))
    found = [
        *told,
        declines_note(corpus, attribute),
        *(split.copies.note() for split in splits[:1]),
    ]
    if len(splits) == 1:
        found.append(
            "one seed: how much attackers vary is unknown; intervals take it to be as much as "
            "images do, and there is no p"
        )
    return [note for note in found if note]


def _versions() -> dict[str, str]:
    """Versions of ourselves and of the numerical packages this run has loaded."""
    versions = {"bias_pipeline": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "torch", "pytorch_lightning", "transformers"):
        if name in sys.modules:
            versions[name] = str(sys.modules[name].__version__)
    return versions
