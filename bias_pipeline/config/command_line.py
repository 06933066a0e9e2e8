"""The command line of a run: Hydra's flags and overrides, checked before composing."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from bias_pipeline.config.intersection_syntax import CHOICE, expand_intersections
from bias_pipeline.config.overrides import check_one
from bias_pipeline.errors import UsageError, did_you_mean
from bias_pipeline.io.paths import choices_of
from bias_pipeline.io.plugins import conf_dirs

ALL_METRICS = "metric=all"


def options_of(words: Sequence[str]) -> Namespace:
    """Hydra's flags and overrides; flags may be anywhere.

    Raises:
        UsageError: on a flag that would bypass the checks.
    """
    from hydra._internal.utils import get_args_parser

    _check_dashes(words)
    options = get_args_parser().parse_intermixed_args(expand_intersections(words))
    for flag in ("experimental_rerun", "config_path", "config_name", "shell_completion"):
        if getattr(options, flag):
            raise UsageError(f"--{flag.replace('_', '-')} is not supported; use overrides")
    return options


def _check_dashes(words: Sequence[str]) -> None:
    """Refuse settings that are written as flags; Hydra would print its own help page.

    Raises:
        UsageError: showing the right form.
    """
    from hydra._internal.utils import get_args_parser

    known = get_args_parser()._option_string_actions
    for word in words:
        flag, _, value = word.partition("=")
        if flag.startswith("--") and flag not in known:
            name = flag.lstrip("-")
            raise UsageError(
                f"{word} is unknown; settings are written without dashes, as "
                f"{name}={value or '...'}. "
                f"{did_you_mean(flag, known)}"
            )


def check_names(options: Namespace) -> None:
    """Refuse an unknown choice of a configuration group, with the nearest known one."""
    roots = [*conf_dirs(), *([Path(options.config_dir)] if options.config_dir else [])]
    for override in options.overrides:
        key, equals, values = override.lstrip("+~").partition("=")
        folders = [root / key.partition("@")[0] for root in roots]
        if not key or not equals or key.startswith("hydra") or override == ALL_METRICS:
            continue
        known = [name for folder in folders for name in choices_of(folder)]
        if not known:
            continue
        check_one(override, known)
        for value in values.split(","):
            plain = (
                not value or value.translate({95: None, 32: None}).isalnum()
            )  # else Hydra checks it
            if value == "all":
                raise UsageError(f"{override}: all must be the only value, as {key}=all")
            if plain and value not in (*known, "null", CHOICE):
                raise UsageError(f"{key}={value} is unknown; {did_you_mean(value, known)}")
