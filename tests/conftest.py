"""Fixtures for all tests."""

import gc
from pathlib import Path
from typing import Any

import pytest
from hydra._internal import config_loader_impl
from hydra._internal.config_repository import IConfigRepository
from hydra._internal.defaults_list import DefaultsList, Overrides
from hydra.core.override_parser.types import Override
from hypothesis import settings

from bias_pipeline.io.paths import conf_dir
from tests.corpora import DATA

settings.register_profile("claims", deadline=None)  # how fast a machine is decides no claim
settings.load_profile("claims")


def pytest_collection_finish() -> None:
    """Take what was imported and collected out of every later search for garbage.

    Millions of objects that stay to the end; without this a fifth of the tests' time goes into
    looking at them again.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def data_root() -> Path:
    """The folder of real data; skips where it is absent."""
    if not (DATA / "lic").is_dir():
        pytest.skip(f"no real captions at {DATA}; set BIAS_PIPELINE_DATA to have this test run")
    return DATA


_defaults: dict[object, DefaultsList] = {}  # by the choices that lead to them
_create_defaults_list = config_loader_impl.create_defaults_list


def _defaults_once(
    repo: IConfigRepository, config_name: str, overrides_list: list[Override], **options: Any
) -> DefaultsList:
    """Hydra's list of the files of some choices; it takes half the time of composing.

    Files of the package do not change while tests run, so their lists are made once. A search
    path with any other folder has its list made anew.
    """
    folders = {source.path for source in repo.get_sources() if source.scheme() == "file"}
    values = Overrides(repo, overrides_list).config_overrides
    ids = {id(value) for value in values}
    choices = [override.input_line for override in overrides_list if id(override) not in ids]
    key = (config_name, *choices, *options.items())
    if folders != {str(conf_dir())}:
        return _create_defaults_list(repo, config_name, overrides_list, **options)
    if key not in _defaults:
        _defaults[key] = _create_defaults_list(repo, config_name, overrides_list, **options)
    made = _defaults[key]
    return DefaultsList(made.defaults, made.defaults_tree, values, made.overrides)


config_loader_impl.create_defaults_list = _defaults_once
