"""Imports the modules of the package."""

import importlib
import pkgutil
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType

import bias_pipeline

# A module that another program loads, to the package of that program.
_OF_OTHER_PROGRAMS = {"bias_pipeline.integrations.inspect_task": "inspect_ai"}


def all_modules() -> Iterator[ModuleType]:
    """Every public module that can be imported here."""
    for module in pkgutil.walk_packages(bias_pipeline.__path__, "bias_pipeline."):
        is_private = module.name.rpartition(".")[2].startswith("_")
        needed = _OF_OTHER_PROGRAMS.get(module.name)
        if not is_private and (needed is None or find_spec(needed)):
            yield importlib.import_module(module.name)
