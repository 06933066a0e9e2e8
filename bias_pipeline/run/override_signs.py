"""Overrides with a sign of Hydra's grammar that it refuses: ``+``, ``++`` and ``~``."""

from __future__ import annotations

from collections.abc import Sequence

from bias_pipeline.io.paths import group_choices

_REFUSED = (
    "Multiple values for ",
    "appears more than once",
    "force-add of config groups",
    "An item is already at ",
    "Could not delete ",
)


def refused_sign(message: str, overrides: Sequence[str]) -> str:
    """A sentence on an override with a sign; empty if Hydra's message is about something else.

    Example:
        >>> refused_sign("Multiple values for experiment.", ["+experiment=relic_gender"])
        '+experiment=relic_gender: experiment is there already; write experiment=relic_gender, \
without +'
        >>> refused_sign("Could not delete 'logger'. No match", ["~logger"])
        '~logger: nothing can be taken out of logger; write logger=csv, or another of csv, mlflow, \
tensorboard, wandb'
    """
    if not any(words in message for words in _REFUSED):
        return ""
    signed = [word for word in overrides if word[0] in "+~"]
    about = [word for word in signed if _key(word) in message]
    return _sentence(about[0]) if about else ""


def _key(override: str) -> str:
    return override.lstrip("+~").partition("=")[0]


def _sentence(override: str) -> str:
    key, plain = _key(override), override.lstrip("+~")
    if override[0] == "+":
        return f"{override}: {key} is there already; write {plain}, without +"
    choices = group_choices(key)
    if not choices:
        return f"{override}: {key} is not set, so nothing can be taken out; remove {override}"
    return (
        f"{override}: nothing can be taken out of {key}; write {key}={choices[0]}, or another of "
        f"{', '.join(choices)}"
    )
