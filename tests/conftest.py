"""Fixtures for all tests."""

import gc
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import omegaconf
import pytest
from hydra._internal import defaults_list
from hypothesis import settings
from omegaconf.grammar_parser import parse

from tests.corpora import DATA

# How fast a machine is decides no claim; a run draws half of the usual hundred inputs anew.
settings.register_profile("claims", deadline=None, max_examples=50)
settings.load_profile("claims")
EMPTY = omegaconf.DictConfig({})


def pytest_configure() -> None:
    """Look for no garbage while modules are imported, wait for no disk, parse a reference once.

    The first is a fifth of the time of collecting; files of tests need not outlive a power cut;
    hundreds of tests compose a configuration, and its references are a seventh of their time. Hydra
    lists all choices for every file, a third of that time; a file needs them if it refers to one.
    """
    gc.disable()
    os.fsync = lambda _: None
    omegaconf.base.parse = omegaconf._utils.parse = lru_cache(maxsize=2000)(parse)
    list_choices = defaults_list._create_interpolation_map

    def choices_for(overrides: Any, entries: list[Any], self_added: bool) -> omegaconf.DictConfig:
        needed = any(entry.is_interpolation() for entry in entries)
        return list_choices(overrides, entries, self_added) if needed else EMPTY

    defaults_list._create_interpolation_map = choices_for


def pytest_collection_finish() -> None:
    """Take what was imported and collected out of every later search for garbage.

    Millions of objects that stay to the end; without this a fifth of the tests' time goes into
    looking at them again. What tests make is looked for less often: a tenth of their time.
    """
    gc.freeze()  # garbage of the imports too, some megabytes: looking for it takes a second
    gc.set_threshold(200_000, 50, 100)
    gc.enable()


def pytest_sessionfinish() -> None:
    """Look for garbage once at the end; pytest looks five times, through all that is left."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def data_root() -> Path:
    """The folder of real data; skips where it is absent."""
    if not (DATA / "lic").is_dir():
        pytest.skip(f"no real captions at {DATA}; set BIAS_PIPELINE_DATA to have this test run")
    return DATA
