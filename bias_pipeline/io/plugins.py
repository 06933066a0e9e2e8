"""Lists the metrics, attributes, data sets and encoders that installed packages announce.

A package announces a choice by an entry point of the group ``bias_pipeline``: ``metric.silence =
mine`` says that the package ``mine`` has ``conf/metric/silence.yaml``. Only this metadata is read.
The package's code runs only if the user includes the package (:mod:`bias_pipeline.io.paths`).
"""

from __future__ import annotations

import re
from importlib import metadata
from typing import NamedTuple

from bias_pipeline.io.paths import FLAG, VARIABLE, included_packages

GROUP = "bias_pipeline"
_NAME = re.compile(r"([a-z]\w*)\.([A-Za-z][\w-]*)", re.ASCII)
_PACKAGE = re.compile(r"([A-Za-z]\w*)(?:[.:][\w.:]+)?", re.ASCII)


class Plugin(NamedTuple):
    group: str  # the group of the configuration, such as `metric`
    name: str  # the name of the choice
    package: str  # the package that a user includes
    release: str  # name and version of the installed distribution


def announced_plugins() -> list[Plugin]:
    """All choices that installed packages announce; malformed names and values are ignored."""
    plugins = set()
    for entry in metadata.entry_points(group=GROUP):
        name, package = _NAME.fullmatch(entry.name), _PACKAGE.fullmatch(entry.value)
        if name and package and entry.dist is not None:
            release = f"{entry.dist.name} {entry.dist.version}"
            plugins.add(Plugin(name[1], name[2], package[1], release))
    return sorted(plugins)


def plugins_not_included() -> list[Plugin]:
    """The announced choices of installed packages that the user has not included."""
    return [plugin for plugin in announced_plugins() if plugin.package not in included_packages()]


def plugin_lines() -> list[str]:
    """A heading, and a line for each choice that a package adds; empty if no package adds any."""
    lines = [
        f"{p.group}={p.name}: {FLAG} {p.package} ({p.release})" for p in plugins_not_included()
    ]
    return ["announced by installed packages, whose code has not run:", *lines, ""] if lines else []


def releases() -> dict[str, str]:
    """Map each included package that announces something to its distribution's name and version."""
    return {
        plugin.package: plugin.release
        for plugin in announced_plugins()
        if plugin.package in included_packages()
    }


def advice(group: str, name: str) -> str:
    """How to include the package that announces an unknown choice; empty if no package does."""
    for plugin in plugins_not_included():
        if (plugin.group, plugin.name) == (group, name):
            return (
                f"{group}={name} is in the package {plugin.package} ({plugin.release}), whose "
                f"code runs only if you include it: if you trust it, add {FLAG} {plugin.package} "
                f"(from Python: set the variable {VARIABLE}={plugin.package})"
            )
    return ""
