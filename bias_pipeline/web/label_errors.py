"""How often the labels of a study err, in sentences: by its raters' answers alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bias_pipeline.array_types import Float64Array, IntArray
from bias_pipeline.stats.dawid_skene import LEAST_RATERS, error_range, label_confusion
from bias_pipeline.web.answers import Rating

_LEAST = 30  # items; with fewer nothing is said
_RESAMPLES = 200


def error_lines(ratings: Sequence[Rating], groups: Sequence[str]) -> list[str]:
    """What the answers of three raters and more, or else of two, say of errors; may be nothing.

    Args:
        ratings: of a study.
        groups: its answers without "cannot tell", which counts as no answer.
    """
    answers = _answers(ratings, groups)
    n_answers = (answers >= 0).sum(axis=1)
    several = answers[n_answers >= LEAST_RATERS]
    if len(several) >= _LEAST:
        return _by_truth(several, groups)
    both = answers[n_answers == 2]
    return _of_two(both, len(groups)) if len(both) >= _LEAST else []


def _answers(ratings: Sequence[Rating], groups: Sequence[str]) -> IntArray:
    """(N, R) the group that each rater gave each item, -1 for none."""
    images = {image: row for row, image in enumerate(dict.fromkeys(r.image_id for r in ratings))}
    raters = {name: column for column, name in enumerate(sorted({r.rater for r in ratings}))}
    answers = np.full((len(images), len(raters)), -1)
    for rating in ratings:
        if rating.value in groups:
            place = images[rating.image_id], raters[rating.rater]
            answers[place] = groups.index(rating.value)
    return answers


def _by_truth(answers: IntArray, groups: Sequence[str]) -> list[str]:
    generator, n_items = np.random.default_rng(0), len(answers)
    errors = _errors(answers, len(groups))
    drawn = [
        _errors(answers[generator.integers(0, n_items, n_items)], len(groups))
        for _ in range(_RESAMPLES)
    ]
    shares = []
    for group, error, values in zip(groups, errors, np.transpose(drawn), strict=True):
        if np.isfinite(error) and np.isfinite(values).all():
            low, high = np.quantile(values, [0.025, 0.975])
            shares.append(f"of {group} {error:.1%} [{low:.1%}, {high:.1%}]")
    if not shares:
        return []
    return [
        f"{n_items} items have {LEAST_RATERS} answers or more; if raters err independently (Dawid "
        f"and Skene 1979), the majority's label is wrong for {', '.join(shares)}"
    ]


def _errors(answers: IntArray, n_groups: int) -> Float64Array:
    return np.asarray(1 - np.diag(label_confusion(answers, n_groups)), np.float64)


def _of_two(answers: IntArray, n_groups: int) -> list[str]:
    pairs = np.array([row[row >= 0] for row in answers])
    differ = float((pairs[:, 0] != pairs[:, 1]).mean())
    low, high = error_range(differ, n_groups)
    return [
        f"two raters differ on {differ:.1%} of {len(pairs)} items; if they err independently, an "
        f"answer is wrong for {low:.1%} (one of them makes all errors) to {high:.1%} (both err "
        "alike); if they err together, for more"
    ]
