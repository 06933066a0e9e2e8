"""Replaces ``all`` by its values, and checks a sweep's captioners."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from itertools import product

import yaml

from bias_pipeline.config.compose import CellConfig, composed_cell
from bias_pipeline.config.overrides import (
    ALL_METRICS,
    choices_in,
    quoted,
    representative_overrides,
    sweeps,
)
from bias_pipeline.errors import UsageError
from bias_pipeline.io.paths import conf_file, group_choices
from bias_pipeline.results.settings import ANNOTATOR

ALL_CAPTIONERS = "captioner=all"
ALL_ANNOTATORS = f"{ANNOTATOR}=all"


def expand(options: Namespace) -> list[str]:
    """Overrides with those of an experiment's sweep, and ``all`` replaced by its values."""
    overrides = [*options.overrides, *_sweep_of_experiment(options.overrides)]
    for number, override in enumerate(overrides):
        if override == ALL_METRICS:
            overrides[number] = "metric=" + ",".join(group_choices("metric"))
    if ALL_ANNOTATORS in overrides:
        rest = [override for override in overrides if override != ALL_ANNOTATORS]
        swept = ",".join(quoted(name) for name in _all_annotators(rest, options))
        overrides[overrides.index(ALL_ANNOTATORS)] = f"{ANNOTATOR}={swept}"
    if ALL_CAPTIONERS in overrides:
        rest = [override for override in overrides if override != ALL_CAPTIONERS]
        swept = ",".join(_all_captioners(rest, options))
        overrides[overrides.index(ALL_CAPTIONERS)] = f"captioner={swept}"
    return overrides


def _sweep_of_experiment(overrides: Sequence[str]) -> list[str]:
    """What an experiment's file sweeps over (``sweep:``), unless the command names the key."""
    names = [word.partition("=")[2] for word in overrides if word.startswith("experiment=")]
    if not names or names[-1] not in group_choices("experiment"):
        return []
    content = yaml.safe_load(conf_file("experiment", names[-1]).read_text(encoding="utf-8")) or {}
    named = {word.lstrip("+").partition("=")[0] for word in overrides}
    swept = content.get("sweep", {}).items()
    return [f"{key}={values}" for key, values in swept if key not in named]


def _all_annotators(overrides: Sequence[str], options: Namespace) -> Sequence[str]:
    """``majority`` and the names of all annotators."""
    from bias_pipeline.datasets.label_files import MAJORITY

    rest = [override for override in overrides if override != ALL_CAPTIONERS]
    cell = composed_cell(representative_overrides(rest), options)
    dataset, attribute = cell.build("dataset"), cell.build("attribute")
    names: Sequence[str] = dataset.annotators(attribute)
    if not names:
        raise UsageError(
            f"{ALL_ANNOTATORS}: dataset {cell.choices['dataset']!r} has no labels by annotator"
        )
    return [MAJORITY, *names]


def _all_captioners(overrides: Sequence[str], options: Namespace) -> Sequence[str]:
    """The captioners that all swept data sets and attributes share."""
    keys = ("dataset", "attribute")
    swept = [o for o in overrides if sweeps(o) and o.partition("=")[0] in keys]
    rest = [o for o in overrides if o not in swept]
    captioners_by_choice = {
        " ".join(chosen): _captioners([*rest, *chosen], options)
        for chosen in product(*(choices_in(override) for override in swept))
    }
    names = next(iter(captioners_by_choice.values()))
    odd = next(
        (label for label, captioners in captioners_by_choice.items() if captioners != names), None
    )
    if odd:
        raise UsageError(
            f"captioner=all: {odd} has the captioners {', '.join(captioners_by_choice[odd])}, "
            f"{next(iter(captioners_by_choice))} has {', '.join(names)}; name the captioners to run"
        )
    return names


def _captioners(overrides: Sequence[str], options: Namespace) -> Sequence[str]:
    cell = composed_cell(representative_overrides(overrides), options)
    names = cell.build("dataset").everyone(cell.build("attribute"))
    if not names:
        raise UsageError(
            f"captioner=all: dataset {cell.choices['dataset']!r} has no captioner file for this "
            "attribute, so there is nothing to run"
        )
    return names


def check_captioners(overrides: Sequence[str], first: CellConfig) -> None:
    """Refuse a sweep with an unknown captioner before its first job, ``first``, runs."""
    swept = {override.partition("=")[0] for override in overrides if sweeps(override)}
    names = [override for override in overrides if override.startswith("captioner=")]
    if "captioner" not in swept or any(key.partition(".")[0] == "dataset" for key in swept):
        return
    dataset = first.build("dataset")
    for name in names[-1].partition("=")[2].split(","):
        if name.replace("_", "").isalnum():  # else an expression, which Hydra checks
            dataset.check_captioner(name)
