"""Two steps that Hydra and OmegaConf repeat for each file and each reference, taken once.

They take a fifth of the time in which a configuration is composed; what comes out is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any

import hydra._internal.defaults_list as defaults_list
from omegaconf import DictConfig, OmegaConf, base

if TYPE_CHECKING:
    from hydra.core.default_element import InputDefault


def take_shortcuts() -> None:
    """Make Hydra and OmegaConf take them in this process."""
    references: Any = base
    if hasattr(references.parse, "cache_info"):
        return
    references.parse = lru_cache(maxsize=2000)(references.parse)
    create = defaults_list._create_interpolation_map
    defaults_list._create_interpolation_map = _where_referred_to(create)


def _where_referred_to(create: Callable[..., DictConfig]) -> Callable[..., DictConfig]:
    """A map of all choices only for files whose defaults list refers to one, as ``${encoder}``."""
    empty = OmegaConf.create()

    @wraps(create)
    def choices(overrides: Any, defaults: Sequence[InputDefault], self_added: bool) -> DictConfig:
        refers = any(default.is_interpolation() for default in defaults)
        return create(overrides, defaults, self_added) if refers else empty

    return choices
