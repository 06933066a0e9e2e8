"""Handles overrides as text: Hydra's flags, sweeps and their values, ``attribute=[a,b]``.

Overrides are checked before composing.
"""

from __future__ import annotations

import math
import re
from argparse import Namespace
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from bias_pipeline.errors import UsageError, did_you_mean, inflect, listed_names
from bias_pipeline.io import plugins
from bias_pipeline.io.paths import choices_of, conf_dirs, conf_file, group_choices

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override, RangeSweep

MOST_VALUES = 10_000  # most values of one key in a sweep
MOST_JOBS = 100_000
LISTED = ("logger", "experiment")  # groups that allow several choices at once
SWEEP_ALONE = (
    "{}: several values are a sweep, which only run takes; give one, or [a,b] where a list is meant"
)
# Options of `audit`, to the keys that set the same in other commands.
OF_AUDIT = {
    "attributes": "dataset.attributes",
    "captions": "dataset.captions",
    "objects": "dataset.instances",
    "out": "paths.outputs",
}
# Groups from which metrics are built; each metric uses some of them.
OF_METRICS = (
    *("alignment", "attacker", "context", "debias", "encoder", "head", "image_masking", "masking"),
    *("probe", "prompt", "scoring", "split", "trainer"),
)


def quote_value(name: str) -> str:
    r"""A name or path within the quotes that Hydra's grammar needs.

    Example:
        >>> print(quote_value("sat"), quote_value("a b's.json"), quote_value("${x}.json"))
        sat 'a b\'s.json' '\${x}.json'
    """
    if name.isascii() and name.isidentifier():
        return name
    # A backslash needs no escape except before a reference, before a quote and at the end.
    literal = re.sub(r"(\\*)\$\{", r"\1\1\\${", name)
    ended = re.sub(r"(\\+)(?='|$)", r"\1\1", literal)
    return "'" + ended.replace("'", "\\'") + "'"


def path_override(key: str, path: object) -> str:
    """An override whose value is a path, quoted only where Hydra's grammar needs quotes.

    Example:
        >>> print(path_override("dataset.root", "d/coco"), path_override("dataset.root", "d (1)"))
        dataset.root=d/coco dataset.root='d (1)'
    """
    text = str(path)
    return f"{key}={text if re.fullmatch(r'[A-Za-z0-9_./-]+', text) else quote_value(text)}"


def unreadable(override: str, reason: str) -> str:
    """A sentence on an override that Hydra's grammar does not allow.

    Example:
        >>> print(unreadable("captioner=Modèle", ""))
        captioner=Modèle cannot be read; a value with characters such as é, #, & or ( needs \
quotes within quotes: 'captioner="Modèle"'
    """
    key, equals, value = override.partition("=")
    if not equals and ("/" in override or Path(override).is_file()):
        return (
            f"{override} is not a setting; to name a captioner's file, write captioner={override}"
        )
    if not equals:
        return f"{override} has no value; write {override}=..."
    if value.startswith("~"):
        return f'{override}: a shell does not expand this ~; write {key}="$HOME{value[1:]}"'
    if set(value) & set("[]{}'\""):
        return f"{override} cannot be read: {reason}"
    return (
        f"{override} cannot be read; a value with characters such as é, #, & or ( needs quotes "
        f"within quotes: {_in_quotes(key, value)}"
    )


def _in_quotes(key: str, value: str) -> str:
    """An override in the form for a shell, with its value in quotes."""
    return f"'{key}=\"{value}\"'"


_NO_CHOICE = re.compile(
    r"Could not find '([^']+)/([^'/]+)'\s+Available options in '[^']+':((?:\n\t\S+)+)"
)


def refused_choice(message: str) -> str:
    """A sentence on a group's choices if Hydra's message refuses one; may be empty."""
    if message.startswith("Ambiguous value"):
        return SWEEP_ALONE.format(message.split("'")[1])
    match = _NO_CHOICE.search(message)
    if match is None:
        return ""
    group, name, known = match.groups()
    unknown = f"{group}={name} is unknown; {did_you_mean(name, known.split())}"
    return plugins.advice(group, name) or unknown


_REFUSED_SIGNS = (
    "Multiple values for ",
    "appears more than once",
    "force-add of config groups",
    "An item is already at ",
    "Could not delete ",
)


def refused_sign(message: str, overrides: Sequence[str]) -> str:
    """A sentence if Hydra's message refuses an override with a sign (``+`` or ``~``); or empty.

    Example:
        >>> refused_sign("Multiple values for experiment.", ["+experiment=relic_gender"])
        '+experiment=relic_gender: experiment is there already; write experiment=relic_gender, \
without +'
        >>> refused_sign("Could not delete 'logger'. No match", ["~logger"])
        '~logger: nothing can be taken out of logger; write logger=csv, or another of csv, mlflow, \
tensorboard, wandb'
    """
    if not any(words in message for words in _REFUSED_SIGNS):
        return ""
    for override in overrides:
        plain = override.lstrip("+~")
        key = plain.partition("=")[0]
        if override[0] in "+~" and key in message:
            return _sign_advice(override, key, plain)
    return ""


def _sign_advice(override: str, key: str, plain: str) -> str:
    if override[0] == "+":
        return f"{override}: {key} is there already; write {plain}, without +"
    choices = group_choices(key)
    if not choices:
        return f"{override}: {key} is not set, so nothing can be taken out; remove {override}"
    return (
        f"{override}: nothing can be taken out of {key}; write {key}={choices[0]}, or another of "
        f"{', '.join(choices)}"
    )


def refused_key(message: str) -> str:
    """The key that Hydra could not set; empty if its message is about something else."""
    return message.partition("Could not override '")[2].partition("'")[0]


def check_one(override: str, known: Sequence[str]) -> None:
    """Refuse ``{}``, and a list for a group of one choice, since Hydra would merge the list.

    Example:
        >>> check_one("metric=[lic,dbac]", ["dbac", "lic"])
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: metric=[lic,dbac]: a job has one metric; a sweep \
over several has no brackets: metric=lic,dbac
    """
    key, _, value = override.partition("=")
    group = key.lstrip("+~").partition("@")[0]
    if value.strip() == "{}":
        raise UsageError(f"{override} is empty; name one of {', '.join(known)}")
    if "[" not in value or "{" in value:
        return
    names = [name.strip() for name in value.replace("[", "").replace("]", "").split(",")]
    if group not in LISTED:
        raise UsageError(
            f"{override}: a job has one {group}; a sweep over several has no brackets: "
            f"{group}={','.join(names) or known[0]}"
        )
    for name in filter(None, names):
        if name not in known:
            raise UsageError(f"{override}: {name!r} is unknown; {did_you_mean(name, known)}")


@lru_cache(maxsize=1000)
def parsed_override(override: str) -> Override:
    """Parse an override by Hydra's grammar; cached, since parsing takes a millisecond."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    return OverridesParser.create().parse_override(override)


def sweeps(override: str) -> bool:
    """Whether an override has several values."""
    try:
        return bool(parsed_override(override).is_sweep_override())
    except Exception:  # composing will refuse the override with a better message
        return False


def unused_overrides(overrides: Sequence[str], used: Collection[str]) -> list[str]:
    """The overrides without effect, because no metric uses their group.

    Example:
        >>> unused_overrides(["metric=gender_error", "encoder.hidden_dim=9"], {"attribute"})
        ['encoder.hidden_dim=9']
    """
    return [
        override
        for override in overrides
        if _group(override) in OF_METRICS and _group(override) not in used
    ]


def _group(override: str) -> str:
    return override.lstrip("+~").partition("=")[0].partition("@")[0].partition(".")[0]


def representative_overrides(overrides: Sequence[str]) -> list[str]:
    """The overrides of the first job of a sweep."""
    chosen = []
    for override in overrides:
        chosen += choices_in(override)[:1] if sweeps(override) else [override]
    return chosen


def other_overrides(overrides: Sequence[str]) -> Iterator[list[str]]:
    """The overrides of a job with each value of a sweep, except the first value of each key.

    Example:
        >>> list(other_overrides(["metric=lic,dbac", "seeds=1,2"]))
        [['metric=dbac', 'seeds=1'], ['metric=lic', 'seeds=2']]
    """
    first = representative_overrides(overrides)
    for place, override in enumerate(overrides):
        for choice in choices_in(override)[1:] if sweeps(override) else ():
            yield [*first[:place], choice, *first[place + 1 :]]


def choices_in(override: str) -> list[str]:
    """The overrides of a sweep over one key; a repeated value counts once."""
    from hydra.core.override_parser.types import Glob, RangeSweep

    parsed = parsed_override(override)
    if not parsed.is_discrete_sweep() or isinstance(parsed._value, Glob):
        raise UsageError(f"{override}: a sweep must list its values, as {parsed.key_or_group}=a,b")
    value = parsed._value
    if isinstance(value, RangeSweep) and not value.step:
        raise UsageError(f"{override}: the step of a range must not be 0")
    if isinstance(value, RangeSweep) and _length(value) > MOST_VALUES:
        raise UsageError(f"{override}: a sweep may have at most {MOST_VALUES:,} values; name fewer")
    values = dict.fromkeys(parsed.sweep_string_iterator())  # each once
    return [f"{parsed.get_key_element()}={value}" for value in values]


def each_value_once(override: str) -> str:
    """The override in which each value of its sweep occurs only once.

    Example:
        >>> each_value_once("metric=lic,dbac,lic"), each_value_once("metric=lic,lic")
        ('metric=lic,dbac', 'metric=lic')
    """
    if not sweeps(override):
        return override
    choices = choices_in(override)
    key = choices[0].partition("=")[0]
    return f"{key}={','.join(choice.removeprefix(f'{key}=') for choice in choices)}"


def override_values(override: str) -> list[str]:
    """The values that an override gives, as texts.

    Example:
        >>> override_values("captioner=sat,'a b.json'"), override_values("captioner=null")
        (['sat', 'a b.json'], ['None'])
    """
    single = choices_in(override) if sweeps(override) else [override]
    return [str(parsed_override(one).value()) for one in single]


def captioners_in(overrides: Sequence[str]) -> list[str]:
    """The captioners of the last ``captioner=``; empty if no override names a captioner.

    Example:
        >>> captioners_in(["seeds=2", "captioner=sat,'a, b.json'"]), captioners_in(["seeds=2"])
        (['sat', 'a, b.json'], [])
    """
    from hydra.errors import HydraException

    named = [override for override in overrides if override.startswith("captioner=")]
    if not named:
        return []
    try:
        return override_values(named[-1])
    except HydraException:  # the value as it is written
        return named[-1].partition("=")[2].split(",")


def check_folders(overrides: Sequence[str]) -> None:
    """Refuse a sweep over folders, which a comma in a folder's name would cause.

    Example:
        >>> check_folders(["paths.outputs=a,b"])
        Traceback (most recent call last):
        ...
        bias_pipeline.errors.UsageError: paths.outputs=a,b names two folders or more, and a \
command has one; a name with a comma needs quotes within quotes: 'paths.outputs="a,b"'
    """
    for override in overrides:
        key, _, value = override.partition("=")
        if key == "paths":
            raise UsageError(f"{override}: name the folder of results as paths.outputs={value}")
        if key.startswith("paths.") and sweeps(override):
            raise UsageError(
                f"{override} names two folders or more, and a command has one; "
                f"a name with a comma needs quotes within quotes: {_in_quotes(key, value)}"
            )


def check_size(overrides: Sequence[str]) -> None:
    """Refuse a sweep of too many jobs.

    Example:
        >>> check_size(["metric=lic,dbac", "seeds=1,2"])
    """
    n_jobs = math.prod(len(choices_in(o)) for o in overrides if sweeps(o))
    if n_jobs > MOST_JOBS:
        raise UsageError(
            f"the sweep has {inflect(f'{n_jobs:,}', 'jobs')}; one command runs at most "
            f"{MOST_JOBS:,}; split it into several"
        )


def _length(values: RangeSweep) -> float:
    """The number of values in a range, without generating them."""
    start, stop = float(values.start or 0), float(values.stop or 0)
    return (stop - start) / float(values.step)


def jobs_of(overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of each job of a sweep, in the order in which Hydra runs them.

    Example:
        >>> jobs_of(["metric=lic,dbac", "seeds=1,2"])[1]
        ['metric=lic', 'seeds=2']
    """
    listed = [choices_in(o) if sweeps(o) else [o] for o in overrides]
    return [list(job) for job in product(*listed)]


def as_hydra_writes(override: str) -> str:
    """A single override in the form in which Hydra writes it for a job.

    Example:
        >>> as_hydra_writes("dataset.strict=false"), as_hydra_writes("attribute.min_share=1e-2")
        ('dataset.strict=False', 'attribute.min_share=0.01')
    """
    parsed = parsed_override(override)
    return f"{parsed.get_key_element()}={parsed.get_value_element_as_str()}"


CHOICE = "_intersection"


def expand_intersections(words: Sequence[str]) -> list[str]:
    """Command-line words, with the choices of an intersection in place of ``attribute=[a,b]``.

    Example:
        >>> expand_intersections(["attribute=[gender,race]", "seeds=3"])[:2]
        ['attribute=_intersection', 'attribute@attribute.parts.first=gender']
    """
    expanded = []
    for word in words:
        key, _, value = word.partition("=")
        if key != "attribute" or not (value.startswith("[") and value.endswith("]")):
            expanded.append(word)
            continue
        names = [name.strip() for name in value[1:-1].split(",")]
        if len(names) != 2:
            raise UsageError(f"{word}: name two attributes, as attribute=[gender,race]")
        expanded += [
            f"attribute={CHOICE}",
            f"attribute@attribute.parts.first={names[0]}",
            f"attribute@attribute.parts.second={names[1]}",
        ]
    return expanded


ALL_METRICS = "metric=all"


def options_of(words: Sequence[str]) -> Namespace:
    from hydra._internal.utils import get_args_parser

    _check_dashes(words)
    options = get_args_parser().parse_intermixed_args(expand_intersections(words))
    for flag in ("experimental_rerun", "config_path", "config_name", "shell_completion"):
        if getattr(options, flag):
            raise UsageError(f"--{flag.replace('_', '-')} is not supported; use overrides")
    return options


def _check_dashes(words: Sequence[str]) -> None:
    """Refuse settings that are written as flags, for which Hydra would print its own help."""
    from hydra._internal.utils import get_args_parser

    known = get_args_parser()._option_string_actions
    for word in words:
        flag, _, value = word.partition("=")
        if flag.startswith("--") and flag not in known:
            name = flag.lstrip("-")
            near = get_close_matches(flag, known, n=1, cutoff=0.8)
            suggestion = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(
                f"{word} is unknown; settings are written without dashes, as "
                f"{OF_AUDIT.get(name, name)}={value or '...'}{suggestion}"
            )


def choices_with(group: str, key: str) -> list[str]:
    """The choices in a configuration group whose own files contain a key.

    Example:
        >>> choices_with("encoder", "order")
        ['ngram']
    """
    outer, within = (
        re.compile(rf"^{indent}{re.escape(key)}:", re.MULTILINE) for indent in ("", "  ")
    )
    texts = {name: conf_file(group, name).read_text("utf-8") for name in group_choices(group)}
    return [
        name
        for name, text in texts.items()
        if (within if "@package _global_" in text else outer).search(text)
    ]


def check_names(options: Namespace) -> None:
    """Refuse an unknown choice of a configuration group, and name the nearest known choice."""
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
            )  # Hydra checks every other value
            if not value.strip():
                raise UsageError(f"{override}: a name is missing; {listed_names(known)}")
            if value == "all" and key == "metric":
                raise UsageError(
                    f"{override}: all cannot stand beside other values; write {key}=all"
                )
            if plain and value not in (*known, CHOICE):
                unknown = f"{key}={value} is unknown; {did_you_mean(value, known)}"
                raise UsageError(plugins.advice(key, value) or unknown)
