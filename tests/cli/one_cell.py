"""Values set in a cell that is composed once."""

import copy
from functools import cache

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig

from bias_pipeline.run import compose, overrides
from bias_pipeline.run.compose import Cell
from bias_pipeline.run.hydra_composer import loader_of


def with_values(choices: tuple[str, ...], values: tuple[str, ...]) -> Cell:
    """The cell of some choices of files, with values set as Hydra sets them.

    Raises:
        UsageError: if a value does not fit.
    """
    config = copy.deepcopy(_compose(choices))
    parsed = OverridesParser.create().parse_overrides(list(values))
    ConfigLoaderImpl._apply_overrides_to_config(parsed, config)
    loader_of().check(config)
    cell = compose.cell_of(config)
    cell.loggers()
    return cell


@cache
def _compose(choices: tuple[str, ...]) -> DictConfig:
    options = overrides.options_of(choices)
    return compose.composer(options).job(options.overrides)
